"""Recurrence sets that are refused: by which part, how fast, and that nothing but a refusal comes of broken text."""

from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rota.domain.errors import InvalidExpression
from rota.domain.rrule import compile_rrule

START = "DTSTART:20260105T090000"  # a Monday
DAILY = f"{START}\nRRULE:FREQ=DAILY"


def refused(text: str) -> InvalidExpression:
    with pytest.raises(InvalidExpression) as caught:
        compile_rrule(text)
    return caught.value


@pytest.mark.parametrize(
    ("part", "rule", "words"),
    [
        ("FREQ", "INTERVAL=2", "give it"),
        ("FREQ", "FREQ=FORTNIGHTLY", "one of YEARLY, MONTHLY"),
        ("FREQ", "FREQ=SECONDLY", "use `every`"),
        ("FREQ", "FREQ=DA\u0131LY", "ASCII"),
        ("RRULE", "", "is not a rule part"),
        ("RRULE", "DAILY", "is not a rule part"),
        ("RRULE", "FREQ=DAILY;", "is not a rule part"),
        ("RRULE", "=1;FREQ=DAILY", "is not a name"),
        ("RRULE", "FREQ=DAILY;BY\u017fECOND=1", "is not a name"),
        ("RRULE", f"FREQ=DAILY;{'X' * 50}=1", "is not a name"),
        ("FREQ", "FREQ=", "give it a value"),
        ("BYHOUR", "FREQ=DAILY;BYHOUR=\u0663", "ASCII"),
        ("BYEASTER", "FREQ=YEARLY;BYEASTER=0", "no such rule part"),
        ("X-NAME", "FREQ=YEARLY;X-NAME=0", "no such rule part"),
        ("RSCALE", "FREQ=YEARLY;RSCALE=HEBREW", "Gregorian"),
        ("SKIP", "FREQ=YEARLY;SKIP=FORWARD", "Gregorian"),
        ("BYDAY", "FREQ=WEEKLY;BYDAY=MO;BYDAY=TU", "stands twice"),
        ("FREQ", "FREQ=DAILY;FREQ=DAILY", "stands twice"),
        ("INTERVAL", "FREQ=DAILY;INTERVAL=0", "1 to 1000000"),
        ("INTERVAL", "FREQ=DAILY;INTERVAL=-1", "1 to 1000000"),
        ("INTERVAL", "FREQ=DAILY;INTERVAL=+1", "1 to 1000000"),
        ("INTERVAL", "FREQ=DAILY;INTERVAL=1000001", "1 to 1000000"),
        ("INTERVAL", "FREQ=DAILY;INTERVAL=1.5", "1 to 1000000"),
        ("INTERVAL", f"FREQ=DAILY;INTERVAL={'9' * 5000}", "1 to 1000000"),
        ("COUNT", "FREQ=DAILY;COUNT=0", "1 to 10000"),
        ("COUNT", "FREQ=DAILY;COUNT=-1", "1 to 10000"),
        ("COUNT", "FREQ=DAILY;COUNT=10001", "give UNTIL"),
        ("COUNT", f"FREQ=DAILY;COUNT={'9' * 5000}", "give UNTIL"),
        ("COUNT", "FREQ=DAILY;COUNT=2;UNTIL=20270101T000000Z", "beside UNTIL"),
        ("UNTIL", "FREQ=DAILY;UNTIL=20270101", "give an instant"),
        ("UNTIL", "FREQ=DAILY;UNTIL=20270230T000000Z", "no date and time"),
        ("UNTIL", "FREQ=DAILY;UNTIL=00000101T000000Z", "no date and time"),
        ("UNTIL", "FREQ=DAILY;UNTIL=20270101T000000+01", "give an instant"),
        ("UNTIL", "FREQ=DAILY;UNTIL=20260105T085959", "before the first time"),
        ("UNTIL", "FREQ=DAILY;UNTIL=20260101T000000Z", "before the first time"),
        ("BYMONTH", "FREQ=YEARLY;BYMONTH=0", "1 to 12"),
        ("BYMONTH", "FREQ=YEARLY;BYMONTH=13", "1 to 12"),
        ("BYMONTH", "FREQ=YEARLY;BYMONTH=-1", "1 to 12"),
        ("BYMONTH", "FREQ=YEARLY;BYMONTH=5L", "1 to 12"),
        ("BYWEEKNO", "FREQ=YEARLY;BYWEEKNO=54", "1 to 53 or -53 to -1"),
        ("BYWEEKNO", "FREQ=MONTHLY;BYWEEKNO=1", "FREQ=YEARLY only"),
        ("BYYEARDAY", "FREQ=YEARLY;BYYEARDAY=367", "1 to 366 or -366 to -1"),
        ("BYYEARDAY", "FREQ=YEARLY;BYYEARDAY=-0", "1 to 366 or -366 to -1"),
        ("BYYEARDAY", "FREQ=DAILY;BYYEARDAY=1", "beside FREQ=DAILY"),
        ("BYYEARDAY", "FREQ=WEEKLY;BYYEARDAY=1", "beside FREQ=WEEKLY"),
        ("BYYEARDAY", "FREQ=MONTHLY;BYYEARDAY=1", "beside FREQ=MONTHLY"),
        ("BYMONTHDAY", "FREQ=MONTHLY;BYMONTHDAY=32", "1 to 31 or -31 to -1"),
        ("BYMONTHDAY", "FREQ=MONTHLY;BYMONTHDAY=0", "1 to 31 or -31 to -1"),
        ("BYMONTHDAY", "FREQ=MONTHLY;BYMONTHDAY=1,,2", "1 to 31 or -31 to -1"),
        ("BYMONTHDAY", "FREQ=MONTHLY;BYMONTHDAY=1, 2", "1 to 31 or -31 to -1"),
        ("BYMONTHDAY", "FREQ=MONTHLY;BYMONTHDAY=001", "1 to 31 or -31 to -1"),
        ("BYMONTHDAY", "FREQ=WEEKLY;BYMONTHDAY=1", "beside FREQ=WEEKLY"),
        ("BYDAY", "FREQ=WEEKLY;BYDAY=MONDAY", "not a weekday"),
        ("BYDAY", "FREQ=WEEKLY;BYDAY=1MO", "FREQ=MONTHLY or YEARLY only"),
        ("BYDAY", "FREQ=DAILY;BYDAY=-1MO", "FREQ=MONTHLY or YEARLY only"),
        ("BYDAY", "FREQ=MONTHLY;BYDAY=6MO", "at most 5"),
        ("BYDAY", "FREQ=YEARLY;BYMONTH=1;BYDAY=-6MO", "at most 5"),
        ("BYDAY", "FREQ=YEARLY;BYDAY=54MO", "1 to 53"),
        ("BYDAY", "FREQ=YEARLY;BYDAY=0MO", "1 to 53"),
        ("BYDAY", "FREQ=YEARLY;BYDAY=100MO", "not a weekday"),
        ("BYDAY", "FREQ=YEARLY;BYWEEKNO=1;BYDAY=1MO", "beside BYWEEKNO"),
        ("BYHOUR", "FREQ=DAILY;BYHOUR=24", "0 to 23"),
        ("BYHOUR", "FREQ=DAILY;BYHOUR=-0", "0 to 23"),
        ("BYHOUR", "FREQ=DAILY;BYHOUR=+9", "0 to 23"),
        ("BYMINUTE", "FREQ=DAILY;BYMINUTE=60", "0 to 59"),
        ("BYSECOND", "FREQ=DAILY;BYSECOND=60", "0 to 59"),
        ("BYSETPOS", "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=0", "1 to 366 or -366 to -1"),
        ("BYSETPOS", "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=367", "1 to 366 or -366 to -1"),
        ("BYSETPOS", "FREQ=DAILY;BYSETPOS=1", "another BY part"),
        ("WKST", "FREQ=WEEKLY;WKST=1MO", "one of MO, TU"),
    ],
)
def test_a_rule_is_refused_by_its_part(part: str, rule: str, words: str) -> None:
    error = refused(f"{START}\nRRULE:{rule}")
    assert error.part == part
    assert words in error.problem
    assert len(str(error)) < 200


@pytest.mark.parametrize(
    ("part", "text", "words"),
    [
        ("DTSTART", "", "not 0"),
        ("DTSTART", "RRULE:FREQ=DAILY", "not 0"),
        ("DTSTART", f"{START}\n{DAILY}", "not 2"),
        ("DTSTART", "DTSTART:20260105\nRRULE:FREQ=DAILY", "is not one"),
        ("DTSTART", "DTSTART:20260105T090000Z\nRRULE:FREQ=DAILY", "without Z"),
        ("DTSTART", "DTSTART:20260105t090000z\nRRULE:FREQ=DAILY", "without Z"),
        ("DTSTART", "DTSTART;TZID=Europe/Paris:20260105T090000\nRRULE:FREQ=DAILY", "without TZID"),
        ("DTSTART", "DTSTART;VALUE=DATE:20260105\nRRULE:FREQ=DAILY", "VALUE=DATE"),
        ("DTSTART", "DTSTART;VALUE=DATE-T\u0131ME:20260105T090000\nRRULE:FREQ=DAILY", "is not read"),
        ("DTSTART", "DTSTART:20260230T090000\nRRULE:FREQ=DAILY", "no date and time"),
        ("DTSTART", "DTSTART:18991231T090000\nRRULE:FREQ=DAILY", "1900 to 9998"),
        ("DTSTART", "DTSTART:99990101T090000\nRRULE:FREQ=DAILY", "1900 to 9998"),
        ("DTSTART", "DTSTART:\u0662\u0660260105T090000\nRRULE:FREQ=DAILY", "is not one"),
        ("RRULE", START, "give an RRULE"),
        ("RRULE", f"{DAILY}\nRRULE:FREQ=WEEKLY", "several"),
        ("RRULE", f"{START}\nRRULE;X=1:FREQ=DAILY", "is not read"),
        ("RRULE", DAILY + "\n" * 70_000, "65536"),
        ("RDATE", f"{DAILY}\nRDATE;VALUE=PERIOD:20260105T090000/PT1H", "VALUE=PERIOD"),
        ("RDATE", f"{DAILY}\nRDATE:20260105T090000,", "is not one"),
        ("EXDATE", f"{DAILY}\nEXDATE;TZID=UTC:20260106T090000", "without TZID"),
        ("EXDATE", f"{DAILY}\nEXDATE:20260106", "is not one"),
        ("EXDATE", f"{DAILY};COUNT=2\nEXDATE:20260105T090000,20260106T090000", "every time"),
        ("EXDATE", f"{START}\nRDATE:20260105T090000\nEXDATE:20260105T090000", "every time"),
        (
            "EXDATE",
            f"{DAILY};UNTIL=20250101T000000\nRDATE:20260107T090000\nEXDATE:20260107T090000",
            "every time",
        ),
        ("EXRULE", f"{DAILY}\nEXRULE:FREQ=WEEKLY", "EXDATE"),
        ("VEVENT", f"{DAILY}\nVEVENT:1", "only DTSTART"),
        ("line", f"{DAILY}\nDTSTART", "NAME:VALUE"),
        ("line", f"FREQ=DAILY\n{START}", "NAME:VALUE"),
        ("line", f"{DAILY}\n:1", "is not a name"),
        ("line", f"{DAILY}\n\ud800:1", "is not a name"),
        ("DTSTART", f"{START}\r{DAILY}", "is not one"),
    ],
)
def test_a_set_is_refused_by_its_property(part: str, text: str, words: str) -> None:
    error = refused(text)
    assert error.part == part
    assert words in error.problem
    assert len(str(error)) < 200


@pytest.mark.parametrize(
    ("part", "dtstart", "rule"),
    [
        ("RRULE", "20260105", "FREQ=DAILY;INTERVAL=7;BYDAY=TU"),
        ("RRULE", "20260105", "FREQ=DAILY;INTERVAL=7;BYDAY=TU;BYMONTHDAY=1"),
        ("RRULE", "20260105", "FREQ=DAILY;INTERVAL=146097;BYMONTH=2"),
        ("RRULE", "20260105", "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30"),
        ("RRULE", "20260105", "FREQ=DAILY;INTERVAL=1000000;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO"),
        ("RRULE", "20260105", "FREQ=WEEKLY;INTERVAL=20871;BYMONTH=7"),
        ("RRULE", "20260105", "FREQ=HOURLY;INTERVAL=7;BYHOUR=9;BYDAY=TU"),
        ("RRULE", "20260105", "FREQ=HOURLY;INTERVAL=24;BYHOUR=8"),
        ("RRULE", "20260105", "FREQ=HOURLY;INTERVAL=48;BYHOUR=9;BYYEARDAY=366;BYMONTHDAY=1"),
        ("RRULE", "20260105", "FREQ=MINUTELY;INTERVAL=10080;BYDAY=TU"),
        ("RRULE", "20260105", "FREQ=MINUTELY;INTERVAL=60;BYMINUTE=7"),
        ("RRULE", "20260105", "FREQ=MINUTELY;INTERVAL=999983;BYMONTH=2;BYMONTHDAY=29;BYHOUR=3;BYMINUTE=1"),
        ("RRULE", "20260105", "FREQ=MONTHLY;INTERVAL=2;BYMONTH=2"),
        ("RRULE", "20260105", "FREQ=MONTHLY;INTERVAL=12;BYMONTHDAY=31;BYMONTH=2"),
        ("RRULE", "20260131", "FREQ=MONTHLY;BYMONTH=2,4,6"),
        ("RRULE", "20260105", "FREQ=YEARLY;INTERVAL=4;BYMONTH=2;BYMONTHDAY=29"),
        ("RRULE", "20260105", "FREQ=YEARLY;INTERVAL=400;BYYEARDAY=366"),
        ("RRULE", "20260105", "FREQ=YEARLY;BYWEEKNO=53;BYMONTH=6"),
        ("RRULE", "20260105", "FREQ=YEARLY;BYDAY=53MO;BYYEARDAY=1"),
        ("RRULE", "99981231", "FREQ=DAILY;BYMONTH=1"),
        ("BYSETPOS", "20260105", "FREQ=MONTHLY;BYMONTHDAY=31;BYSETPOS=2"),
        ("BYSETPOS", "20260105", "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=6"),
        ("BYSETPOS", "20260105", "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=-40"),
        ("BYSETPOS", "20260105", "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYSETPOS=2"),
        ("BYSETPOS", "20260105", "FREQ=WEEKLY;BYDAY=MO,TU;BYSETPOS=3"),
        ("BYSETPOS", "20260105", "FREQ=WEEKLY;BYDAY=MO,TU;BYMONTH=2;BYSETPOS=3"),
        ("BYSETPOS", "20260105", "FREQ=DAILY;BYHOUR=9;BYSETPOS=2"),
        ("BYSETPOS", "20260105", "FREQ=MINUTELY;BYSECOND=1,2;BYSETPOS=-3"),
    ],
)
def test_a_rule_without_a_time_is_refused(part: str, dtstart: str, rule: str) -> None:
    error = refused(f"DTSTART:{dtstart}T090000\nRRULE:{rule}")
    assert error.part == part


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("FREQ=DAILY;INTERVAL=14;BYMONTHDAY=29;BYMONTH=2", "2072-02-29"),
        ("FREQ=MONTHLY;INTERVAL=5;BYMONTH=2", "2028-02-05"),
        ("FREQ=YEARLY;INTERVAL=6;BYMONTH=2;BYMONTHDAY=29", "2032-02-29"),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=SU", "2032-02-29"),
        ("FREQ=YEARLY;BYWEEKNO=53;BYDAY=MO;BYMONTHDAY=27", "2032-12-27"),
        ("FREQ=WEEKLY;INTERVAL=52;BYMONTH=2", "2276-02-28"),
        ("FREQ=HOURLY;INTERVAL=7;BYHOUR=10;BYDAY=WE", "2026-01-07"),
    ],
)
def test_a_rule_that_is_only_rare_is_accepted(rule: str, expected: str) -> None:
    found = compile_rrule(f"{START}\nRRULE:{rule}").next(datetime(1, 1, 1))
    assert found is not None
    assert f"{found:%Y-%m-%d}" == expected


PIECES = st.sampled_from(
    [
        *(
            "DTSTART:20260105T090000",
            "RRULE:",
            "RDATE:20260105T100000",
            "EXDATE:20260105T090000",
            "\n",
            "\r\n",
            "\n ",
        ),
        *(
            "FREQ=",
            "DAILY",
            "MONTHLY",
            "MINUTELY",
            "YEARLY",
            "WEEKLY",
            "INTERVAL=",
            "COUNT=",
            "UNTIL=",
            "BYDAY=",
        ),
        *(
            "BYMONTHDAY=",
            "BYSETPOS=",
            "BYWEEKNO=",
            "BYHOUR=",
            "BYMONTH=",
            "WKST=",
            "MO",
            "-1FR",
            "TU",
            "29",
            "31",
        ),
        *(
            "20270101T000000Z",
            "99991231T235959Z",
            "0",
            "1",
            "2",
            "7",
            "-1",
            "366",
            "1000000",
            ",",
            ";",
            ";",
            ":",
            "=",
        ),
    ]
)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(PIECES | st.text(max_size=3), max_size=14).map("".join),
    st.sampled_from(["", START + "\nRRULE:FREQ="]),
)
def test_broken_text_is_refused_or_read_but_never_worse(text: str, beginning: str) -> None:
    error, canonical = outcome(beginning + text)
    if canonical is None:
        assert error is not None
        assert error.part.isascii()
        assert len(str(error)) < 200
    else:
        assert outcome(canonical) == (None, canonical)


def outcome(text: str) -> tuple[InvalidExpression | None, str | None]:
    """The refusal, or the one text of a set that has a time and a coarsest period."""
    try:
        found = compile_rrule(text)
    except InvalidExpression as error:
        return error, None
    assert found.next(datetime(1, 1, 1)) is not None
    assert found.coarsest_period() in {"month", "week", "day", "instant"}
    return None, found.text
