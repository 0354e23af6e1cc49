"""Recurrence sets: the examples of RFC 5545, section 3.8.5.3, and how RRULE, RDATE, EXDATE, COUNT and UNTIL combine.

Where an example of the RFC gives UNTIL as an instant, it stands here as a local time in New York.
"""

from datetime import UTC, datetime, time, timedelta
from itertools import islice

import pytest

from rota.domain.rrule import RRuleSet, compile_rrule
from tests.domain.test_rrule_oracle import BEGINNING, walk

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
NINE = time(9)


def days(text: str) -> list[datetime]:
    """As the RFC writes them: `1997 Sep 2 9 Oct 7 1998 Jan 6`, all at nine."""
    found: list[datetime] = []
    year = month = 0
    for word in text.split():
        if word in MONTHS:
            month = MONTHS.index(word) + 1
        elif len(word) == 4:
            year = int(word)
        else:
            found.append(datetime.combine(datetime(year, month, int(word)), NINE))
    return found


def compiled(rule: str, *lines: str, dtstart: str = "19970902T090000") -> RRuleSet:
    return compile_rrule("\n".join([f"DTSTART:{dtstart}", f"RRULE:{rule}", *lines]))


# DTSTART's day, the rule, its times; "..." at the end: it goes on.
EXAMPLES = [
    ("0902", "FREQ=DAILY;COUNT=10", "1997 Sep 2 3 4 5 6 7 8 9 10 11"),
    ("0902", "FREQ=DAILY;INTERVAL=2", "1997 Sep 2 4 6 8 10 12 14 16 18 20 22 24 26 28 30 Oct 2 4 6 ..."),
    ("0902", "FREQ=DAILY;INTERVAL=10;COUNT=5", "1997 Sep 2 12 22 Oct 2 12"),
    ("0902", "FREQ=WEEKLY;COUNT=10", "1997 Sep 2 9 16 23 30 Oct 7 14 21 28 Nov 4"),
    ("0902", "FREQ=WEEKLY;UNTIL=19971223T190000",
     "1997 Sep 2 9 16 23 30 Oct 7 14 21 28 Nov 4 11 18 25 Dec 2 9 16 23"),
    ("0902", "FREQ=WEEKLY;INTERVAL=2;WKST=SU",
     "1997 Sep 2 16 30 Oct 14 28 Nov 11 25 Dec 9 23 1998 Jan 6 20 Feb 3 17 ..."),
    ("0902", "FREQ=WEEKLY;UNTIL=19971006T200000;WKST=SU;BYDAY=TU,TH", "1997 Sep 2 4 9 11 16 18 23 25 30 Oct 2"),
    ("0902", "FREQ=WEEKLY;COUNT=10;WKST=SU;BYDAY=TU,TH", "1997 Sep 2 4 9 11 16 18 23 25 30 Oct 2"),
    ("0901", "FREQ=WEEKLY;INTERVAL=2;UNTIL=19971223T190000;WKST=SU;BYDAY=MO,WE,FR",
     "1997 Sep 1 3 5 15 17 19 29 Oct 1 3 13 15 17 27 29 31 Nov 10 12 14 24 26 28 Dec 8 10 12 22"),
    ("0902", "FREQ=WEEKLY;INTERVAL=2;COUNT=8;WKST=SU;BYDAY=TU,TH", "1997 Sep 2 4 16 18 30 Oct 2 14 16"),
    ("0905", "FREQ=MONTHLY;COUNT=10;BYDAY=1FR",
     "1997 Sep 5 Oct 3 Nov 7 Dec 5 1998 Jan 2 Feb 6 Mar 6 Apr 3 May 1 Jun 5"),
    ("0905", "FREQ=MONTHLY;UNTIL=19971223T190000;BYDAY=1FR", "1997 Sep 5 Oct 3 Nov 7 Dec 5"),
    ("0907", "FREQ=MONTHLY;INTERVAL=2;COUNT=10;BYDAY=1SU,-1SU",
     "1997 Sep 7 28 Nov 2 30 1998 Jan 4 25 Mar 1 29 May 3 31"),
    ("0922", "FREQ=MONTHLY;COUNT=6;BYDAY=-2MO", "1997 Sep 22 Oct 20 Nov 17 Dec 22 1998 Jan 19 Feb 16"),
    ("0928", "FREQ=MONTHLY;BYMONTHDAY=-3", "1997 Sep 28 Oct 29 Nov 28 Dec 29 1998 Jan 29 Feb 26 ..."),
    ("0902", "FREQ=MONTHLY;COUNT=10;BYMONTHDAY=2,15", "1997 Sep 2 15 Oct 2 15 Nov 2 15 Dec 2 15 1998 Jan 2 15"),
    ("0930", "FREQ=MONTHLY;COUNT=10;BYMONTHDAY=1,-1", "1997 Sep 30 Oct 1 31 Nov 1 30 Dec 1 31 1998 Jan 1 31 Feb 1"),
    ("0910", "FREQ=MONTHLY;INTERVAL=18;COUNT=10;BYMONTHDAY=10,11,12,13,14,15",
     "1997 Sep 10 11 12 13 14 15 1999 Mar 10 11 12 13"),
    ("0902", "FREQ=MONTHLY;INTERVAL=2;BYDAY=TU",
     "1997 Sep 2 9 16 23 30 Nov 4 11 18 25 1998 Jan 6 13 20 27 Mar 3 10 17 24 31 ..."),
    ("0610", "FREQ=YEARLY;COUNT=10;BYMONTH=6,7",
     "1997 Jun 10 Jul 10 1998 Jun 10 Jul 10 1999 Jun 10 Jul 10 2000 Jun 10 Jul 10 2001 Jun 10 Jul 10"),
    ("0310", "FREQ=YEARLY;INTERVAL=2;COUNT=10;BYMONTH=1,2,3",
     "1997 Mar 10 1999 Jan 10 Feb 10 Mar 10 2001 Jan 10 Feb 10 Mar 10 2003 Jan 10 Feb 10 Mar 10"),
    ("0101", "FREQ=YEARLY;INTERVAL=3;COUNT=10;BYYEARDAY=1,100,200",
     "1997 Jan 1 Apr 10 Jul 19 2000 Jan 1 Apr 9 Jul 18 2003 Jan 1 Apr 10 Jul 19 2006 Jan 1"),
    ("0519", "FREQ=YEARLY;BYDAY=20MO", "1997 May 19 1998 May 18 1999 May 17 ..."),
    ("0512", "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", "1997 May 12 1998 May 11 1999 May 17 ..."),
    ("0313", "FREQ=YEARLY;BYMONTH=3;BYDAY=TH", "1997 Mar 13 20 27 1998 Mar 5 12 19 26 1999 Mar 4 11 18 25 ..."),
    ("0605", "FREQ=YEARLY;BYDAY=TH;BYMONTH=6,7,8",
     "1997 Jun 5 12 19 26 Jul 3 10 17 24 31 Aug 7 14 21 28 1998 Jun 4 ..."),
    ("0902", "FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13", "1998 Feb 13 Mar 13 Nov 13 1999 Aug 13 2000 Oct 13 ..."),
    ("0913", "FREQ=MONTHLY;BYDAY=SA;BYMONTHDAY=7,8,9,10,11,12,13",
     "1997 Sep 13 Oct 11 Nov 8 Dec 13 1998 Jan 10 Feb 7 Mar 7 Apr 11 May 9 Jun 13 ..."),
    ("1104", "FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8",
     "1997 Nov 4 2001 Nov 6 2005 Nov 8 2009 Nov 3 ..."),
    ("0904", "FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3", "1997 Sep 4 Oct 7 Nov 6"),
    ("0929", "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2",
     "1997 Sep 29 Oct 30 Nov 27 Dec 30 1998 Jan 29 Feb 26 Mar 30 ..."),
    ("0805", "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO", "1997 Aug 5 10 19 24"),
    ("0805", "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU", "1997 Aug 5 17 19 31"),
    ("0115", "FREQ=MONTHLY;BYMONTHDAY=15,30;COUNT=5", "1997 Jan 15 30 Feb 15 Mar 15 30"),
]  # fmt: skip


@pytest.mark.parametrize(("day", "rule", "expected"), EXAMPLES)
def test_the_examples_of_the_rfc(day: str, rule: str, expected: str) -> None:
    times = days(expected.removesuffix("..."))
    found = walk(compiled(rule, dtstart=f"1997{day}T090000"))
    assert [*islice(found, len(times))] == times
    assert (next(found, None) is not None) == expected.endswith("...")


@pytest.mark.parametrize("rule", ["FREQ=YEARLY;BYDAY=SU,MO,TU,WE,TH,FR,SA", "FREQ=DAILY"])
def test_every_day_in_january_for_three_years(rule: str) -> None:
    found = compiled(f"{rule};UNTIL=20000131T090000;BYMONTH=1", dtstart="19980101T090000")
    every = [datetime(year, 1, day, 9) for year in (1998, 1999, 2000) for day in range(1, 32)]
    assert [*walk(found)] == every


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("FREQ=HOURLY;INTERVAL=3;UNTIL=19970902T170000", "09:00 12:00 15:00"),
        ("FREQ=MINUTELY;INTERVAL=15;COUNT=6", "09:00 09:15 09:30 09:45 10:00 10:15"),
        ("FREQ=MINUTELY;INTERVAL=90;COUNT=4", "09:00 10:30 12:00 13:30"),
        ("FREQ=DAILY;BYHOUR=9,10;BYMINUTE=0,20,40;COUNT=6", "09:00 09:20 09:40 10:00 10:20 10:40"),
        ("FREQ=MINUTELY;INTERVAL=20;BYHOUR=9,10;COUNT=6", "09:00 09:20 09:40 10:00 10:20 10:40"),
    ],
)
def test_the_examples_of_the_rfc_within_a_day(rule: str, expected: str) -> None:
    assert " ".join(f"{at:%H:%M}" for at in walk(compiled(rule))) == expected


def test_every_four_years_means_years_counted_from_dtstart() -> None:
    rule = "FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8"
    found = islice(walk(compiled(rule, dtstart="19961105T090000")), 3)
    assert [*found] == days("1996 Nov 5 2000 Nov 7 2004 Nov 2")


def test_dtstart_is_a_time_only_if_the_rule_names_it() -> None:
    assert compiled("FREQ=WEEKLY;BYDAY=WE").next(BEGINNING) == datetime(1997, 9, 3, 9)
    assert [*walk(compiled("FREQ=WEEKLY;BYDAY=WE;COUNT=2"))] == days("1997 Sep 3 10")


def test_without_a_rule_dtstart_and_the_dates_are_the_times() -> None:
    found = compile_rrule(
        "DTSTART:19970902T090000\nRDATE:19970910T090000,19970801T090000\nRDATE:19970902T090000"
    )
    assert [*walk(found)] == days("1997 Aug 1 Sep 2 10")
    assert found.is_rdate(datetime(1997, 9, 2, 9))
    assert found.until is None
    assert found.text == "DTSTART:19970902T090000\nRDATE:19970801T090000,19970902T090000,19970910T090000"


def test_exdate_wins_over_rdate_and_rule() -> None:
    found = compiled(
        "FREQ=DAILY;COUNT=3",
        "RDATE:19970910T090000,19970911T090000",
        "EXDATE:19970910T090000,19970903T090000",
    )
    assert [*walk(found)] == days("1997 Sep 2 4 11")


def test_a_local_until_is_inclusive_and_bounds_no_rdate() -> None:
    found = compiled("FREQ=DAILY;UNTIL=19970904T090000", "RDATE:19980101T090000")
    assert [*walk(found)] == days("1997 Sep 2 3 4 1998 Jan 1")
    assert found.until is None
    assert found.is_rdate(datetime(1998, 1, 1, 9))
    assert not found.is_rdate(datetime(1997, 9, 2, 9))
    assert [*walk(compiled("FREQ=DAILY;UNTIL=19970904T085959"))] == days("1997 Sep 2 3")


def test_an_until_in_utc_is_left_to_who_knows_the_zone() -> None:
    found = compiled("FREQ=DAILY;UNTIL=19970904T090000Z")
    assert found.until == datetime(1997, 9, 4, 9, tzinfo=UTC)
    assert [*walk(found)] == days("1997 Sep 2 3 4 5 6")


@pytest.mark.parametrize("until", ["99991231T235959Z", "99981231T235959Z", "99991231T235959"])
def test_an_until_at_the_end_of_time_is_no_limit(until: str) -> None:
    found = compiled(f"FREQ=DAILY;UNTIL={until}")
    assert f"UNTIL={until}" in found.text
    assert found.next(datetime(9998, 12, 30, 9)) == datetime(9998, 12, 31, 9)
    assert found.next(datetime(9998, 12, 31, 9)) is None


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=YEARLY;BYYEARDAY=-1",
        "FREQ=MONTHLY;BYMONTHDAY=31",
        "FREQ=WEEKLY;BYDAY=SU,MO,TU,WE,TH,FR,SA",
        "FREQ=WEEKLY;BYDAY=SU,MO,TU,WE,TH,FR,SA;WKST=WE;BYMONTH=12;BYSETPOS=1,2,3,4,5,6,7",
        "FREQ=DAILY;BYMONTHDAY=31",
        "FREQ=HOURLY;BYHOUR=9;BYMINUTE=0",
        "FREQ=MINUTELY;BYHOUR=9;BYMINUTE=0",
    ],
)
def test_the_calendar_ends_with_the_year_9998(rule: str) -> None:
    found = compiled(rule)
    times = [*walk(found, after=datetime(9998, 12, 30))]
    assert times[-1] == datetime(9998, 12, 31, 9)
    for after in (times[-1], datetime(9999, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999)):
        assert found.next(after) is None


def test_count_is_counted_from_dtstart_wherever_the_search_begins() -> None:
    found = compiled("FREQ=MINUTELY;INTERVAL=7;COUNT=10000")
    last = datetime(1997, 9, 2, 9) + timedelta(minutes=7 * 9_999)
    assert found.next(last - timedelta(seconds=1)) == last
    assert found.next(last) is None
    # A rule may end, with the calendar, before it has been counted.
    assert [*walk(compiled("FREQ=YEARLY;INTERVAL=4000;COUNT=10"))] == days("1997 Sep 2 5997 Sep 2 9997 Sep 2")


def test_equal_sets_have_one_text() -> None:
    text = (
        " DtStart;Value=Date-Time:19970902t090000 \r\n\r\nrrule: wkst=mo;byday=+1FR,mo,MO ;Freq=monthly;interval=1;"
        "bymonthday=\r\n +13,-01,13;byhour=09\nEXDATE:19970905T090000\nRDATE:19970907T090000,19970906T090000\n"
        "EXDATE:19970905T090000"
    )
    assert compile_rrule(text).text == (
        "DTSTART:19970902T090000\nRRULE:FREQ=MONTHLY;BYDAY=MO,1FR;BYMONTHDAY=-1,13;BYHOUR=9\n"
        "RDATE:19970906T090000,19970907T090000\nEXDATE:19970905T090000"
    )


def test_an_early_until_keeps_its_four_digits_of_year() -> None:
    found = compiled("FREQ=DAILY;UNTIL=09870101T000000Z", "RDATE:19970902T090000")
    assert "UNTIL=09870101T000000Z" in found.text
    assert [*walk(compile_rrule(found.text))] == days("1997 Sep 2")


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("FREQ=YEARLY;INTERVAL=2026;BYMONTH=2", ["20260201T000000", "40520201T000000"]),
        ("FREQ=YEARLY;INTERVAL=9999", ["20260101T000000", None]),
        ("FREQ=MONTHLY;INTERVAL=100000", ["20260101T000000", None]),
        ("FREQ=MONTHLY;INTERVAL=24312;BYMONTHDAY=2", ["20260102T000000", "40520102T000000"]),
        ("FREQ=WEEKLY;INTERVAL=1000000", ["20260101T000000", None]),
        ("FREQ=DAILY;INTERVAL=1000000", ["20260101T000000", "47631129T000000"]),
    ],
)
def test_the_first_instant_of_a_period_begins_a_rule_of_any_interval(
    rule: str, expected: list[str | None]
) -> None:
    """Just before DTSTART is the period before the first one, which an interval must not take for its own."""
    found = compile_rrule(f"DTSTART:20260101T000000\nRRULE:{rule}")
    first = found.next(datetime(1, 1, 1))
    assert first is not None
    second = found.next(first)
    assert [f"{first:%Y%m%dT%H%M%S}", second and f"{second:%Y%m%dT%H%M%S}"] == expected
