"""The coarsest period that a recurrence set keeps, and whether it covers every hour."""

from collections.abc import Callable
from datetime import datetime
from itertools import islice

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from rota.domain.rrule import RRuleSet, compile_rrule
from tests.domain.rrule_rules import GeneratedRule, rules
from tests.domain.test_rrule_oracle import compiled_or_none, rule_of, walk

MONDAY = "20260105T090000"
PERIODS: dict[str, Callable[[datetime], object]] = {
    "month": lambda local: (local.year, local.month),
    "week": lambda local: local.isocalendar()[:2],
    "day": lambda local: local.date(),
}
FINENESS = [*PERIODS, "instant"]


def compiled(rule: str, *dates: str, dtstart: str = MONDAY) -> RRuleSet:
    return compile_rrule("\n".join([f"DTSTART:{dtstart}", *([f"RRULE:{rule}"] if rule else []), *dates]))


def coarsest_by_looking(found: RRuleSet, *, looks: int) -> tuple[str, bool]:
    """The coarsest period that no two of the first times share, and whether further times can change that."""
    times = [*islice(walk(found), looks)]
    for name, key in PERIODS.items():
        if len({key(at) for at in times}) == len(times):
            return name, len(times) == looks
    return "instant", False


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("FREQ=DAILY", "day"),
        ("FREQ=DAILY;INTERVAL=7", "week"),
        ("FREQ=DAILY;INTERVAL=6", "day"),
        ("FREQ=DAILY;INTERVAL=8", "week"),
        ("FREQ=DAILY;INTERVAL=30", "week"),
        ("FREQ=DAILY;INTERVAL=31", "month"),
        ("FREQ=DAILY;BYDAY=TU", "week"),
        ("FREQ=DAILY;INTERVAL=2;BYDAY=MO,TU", "week"),
        ("FREQ=DAILY;INTERVAL=2;BYDAY=MO,WE", "day"),
        ("FREQ=DAILY;BYMONTHDAY=1", "month"),
        ("FREQ=DAILY;BYMONTHDAY=1,31", "day"),
        ("FREQ=DAILY;BYHOUR=9,17", "instant"),
        ("FREQ=DAILY;BYHOUR=9,17;BYSETPOS=1", "day"),
        ("FREQ=DAILY;INTERVAL=7;BYHOUR=9,17;BYSETPOS=-1", "week"),
        ("FREQ=WEEKLY;BYDAY=MO", "week"),
        ("FREQ=WEEKLY;BYDAY=MO,WE", "day"),
        ("FREQ=WEEKLY;BYDAY=MO,WE;BYSETPOS=2", "week"),
        ("FREQ=WEEKLY;BYDAY=SU,MO;WKST=SU", "day"),
        ("FREQ=WEEKLY;BYDAY=SU,MO;WKST=SU;BYSETPOS=1", "week"),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=SU,MO;WKST=SU", "week"),
        ("FREQ=WEEKLY;INTERVAL=4", "week"),
        ("FREQ=WEEKLY;INTERVAL=5", "month"),
        ("FREQ=WEEKLY;BYMONTH=2;BYDAY=MO,TU;BYSETPOS=2", "week"),
        ("FREQ=MONTHLY", "month"),
        ("FREQ=MONTHLY;BYDAY=1MO", "month"),
        ("FREQ=MONTHLY;BYDAY=1MO,2MO", "week"),
        ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", "month"),
        ("FREQ=MONTHLY;BYMONTHDAY=1,15", "week"),
        ("FREQ=MONTHLY;BYMONTHDAY=1,31", "day"),
        ("FREQ=MONTHLY;INTERVAL=2;BYMONTHDAY=1,31", "week"),
        ("FREQ=MONTHLY;BYMONTHDAY=1;BYHOUR=9,17", "instant"),
        ("FREQ=YEARLY", "month"),
        ("FREQ=YEARLY;BYMONTH=1,7", "month"),
        ("FREQ=YEARLY;BYDAY=MO", "week"),
        ("FREQ=YEARLY;BYDAY=MO,TU", "day"),
        ("FREQ=YEARLY;BYYEARDAY=1,-1", "month"),
        ("FREQ=YEARLY;BYYEARDAY=1,8", "week"),
        ("FREQ=YEARLY;BYHOUR=9,17", "instant"),
        ("FREQ=YEARLY;BYDAY=MO,TU;BYHOUR=9,17;BYSETPOS=1,-1", "month"),
        ("FREQ=HOURLY", "instant"),
        ("FREQ=HOURLY;INTERVAL=23", "instant"),
        ("FREQ=HOURLY;INTERVAL=24", "day"),
        ("FREQ=HOURLY;INTERVAL=168", "week"),
        ("FREQ=HOURLY;INTERVAL=7;BYHOUR=9", "week"),
        ("FREQ=HOURLY;BYHOUR=9;BYDAY=FR", "week"),
        ("FREQ=MINUTELY;INTERVAL=44640", "month"),
        ("FREQ=MINUTELY;INTERVAL=44639", "week"),
        ("FREQ=DAILY;COUNT=1", "month"),
        ("FREQ=DAILY;COUNT=2", "day"),
        ("FREQ=WEEKLY;BYDAY=MO,TU;COUNT=1", "month"),
        ("FREQ=MONTHLY;BYMONTHDAY=5,25;UNTIL=20260120T000000", "month"),
        ("FREQ=MINUTELY;INTERVAL=44639;COUNT=300", "month"),
        ("FREQ=MINUTELY;INTERVAL=44639;COUNT=10000", "week"),
    ],
)
def test_the_coarsest_period_is_found(rule: str, expected: str) -> None:
    found = compiled(rule)
    assert found.coarsest_period() == expected


def test_two_times_that_meet_in_leap_years_only_are_found() -> None:
    # Every seventh day; and the last day of a leap year, of whose week January 1st is too.
    year_days = ",".join(map(str, [*range(1, 359, 7), 366]))
    found = compiled(f"FREQ=YEARLY;BYYEARDAY={year_days}", dtstart="20250101T090000")
    assert coarsest_by_looking(found, looks=400) == ("week", True)
    assert coarsest_by_looking(found, looks=430) == ("day", True)
    assert found.coarsest_period() == "day"


@pytest.mark.parametrize(
    ("rule", "dates", "expected"),
    [
        ("FREQ=DAILY", ["RDATE:20270105T170000"], "instant"),
        ("FREQ=DAILY", ["RDATE:20270105T170000", "EXDATE:20270105T090000"], "day"),
        ("FREQ=DAILY", ["RDATE:20270105T090000"], "day"),
        ("FREQ=WEEKLY", ["RDATE:20900111T090000"], "day"),
        ("FREQ=WEEKLY", ["RDATE:20900111T090000", "EXDATE:20900111T090000"], "week"),
        ("FREQ=MONTHLY", ["RDATE:20260107T080000,20260404T080000"], "day"),
        ("FREQ=MONTHLY", ["RDATE:20260120T080000"], "week"),
        ("FREQ=WEEKLY;BYDAY=MO,TU", ["EXDATE:20260106T090000,20260113T090000"], "day"),
        ("FREQ=WEEKLY;BYDAY=MO,TU;COUNT=4", ["EXDATE:20260106T090000,20260113T090000"], "week"),
        ("FREQ=DAILY;BYHOUR=9,17;COUNT=2", ["EXDATE:20260105T170000"], "month"),
        ("", ["RDATE:20260205T090000"], "month"),
        ("", ["RDATE:20260125T090000"], "week"),
        ("", ["RDATE:20260107T090000"], "day"),
        ("", ["RDATE:20260105T100000"], "instant"),
        ("", ["RDATE:20260105T100000", "EXDATE:20260105T090000"], "month"),
    ],
)
def test_dates_count_for_the_coarsest_period(rule: str, dates: list[str], expected: str) -> None:
    assert compiled(rule, *dates).coarsest_period() == expected


def test_dates_taken_away_do_not_hide_what_comes_later() -> None:
    tuesdays = [*islice(walk(compiled("FREQ=WEEKLY;BYDAY=TU")), 1500)]
    found = compiled(
        "FREQ=WEEKLY;BYDAY=MO,TU", f"EXDATE:{','.join(f'{at:%Y%m%dT%H%M%S}' for at in tuesdays)}"
    )
    assert coarsest_by_looking(found, looks=1000) == ("week", True)
    assert found.coarsest_period() == "day"


@settings(max_examples=120, deadline=None)
@given(rules(), st.sampled_from(["", ";COUNT=3", ";COUNT=60", ";COUNT=500", ";UNTIL=20310101T000000"]))
@example(rule_of("2024-01-31T09:00", "YEARLY", "MO", BYWEEKNO=(53, 1)), "")
@example(rule_of("2024-01-31T09:00", "MONTHLY", BYMONTHDAY=(1, -1)), "")
def test_the_coarsest_period_is_what_a_long_look_shows(rule: GeneratedRule, limit: str) -> None:
    found = compiled_or_none(rule.text + limit)
    assume(found is not None)
    assert found is not None
    looked, may_change = coarsest_by_looking(found, looks=1500)
    answer = found.coarsest_period()
    # Further times can only make it finer.
    assert answer == looked or (may_change and FINENESS.index(answer) > FINENESS.index(looked))


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("FREQ=HOURLY", True),
        ("FREQ=HOURLY;BYDAY=MO;BYMONTH=2", True),
        ("FREQ=HOURLY;BYMINUTE=0,30;BYSETPOS=-1", True),
        ("FREQ=HOURLY;BYHOUR=9", False),
        (f"FREQ=HOURLY;BYHOUR={','.join(map(str, range(24)))}", False),
        ("FREQ=HOURLY;INTERVAL=2", False),
        ("FREQ=HOURLY;INTERVAL=25", False),
        ("FREQ=MINUTELY", True),
        ("FREQ=MINUTELY;BYMINUTE=30", True),
        ("FREQ=MINUTELY;BYDAY=SA", True),
        ("FREQ=MINUTELY;INTERVAL=7", True),
        ("FREQ=MINUTELY;INTERVAL=7;BYDAY=SA", True),
        ("FREQ=MINUTELY;INTERVAL=60", True),
        ("FREQ=MINUTELY;INTERVAL=7;BYMINUTE=0", False),
        ("FREQ=MINUTELY;INTERVAL=61", False),
        ("FREQ=MINUTELY;INTERVAL=90", False),
        ("FREQ=MINUTELY;BYHOUR=1,2", False),
        ("FREQ=DAILY;BYHOUR=0,1,2", False),
        ("FREQ=DAILY", False),
        ("FREQ=YEARLY", False),
        ("", False),
    ],
)
def test_a_rule_covers_every_hour_where_each_hour_has_a_time(rule: str, expected: bool) -> None:
    assert compiled(rule, *([] if rule else ["RDATE:20260106T090000"])).covers_every_hour is expected
