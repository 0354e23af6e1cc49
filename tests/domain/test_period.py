"""Periods: which one a rule keeps, which are refused, and the key of an occurrence."""

from datetime import UTC, datetime, timedelta

import pytest

from rota.domain.cadence import Cadence, Fold, Gap
from rota.domain.errors import InvalidRequest
from rota.domain.period import Period, PeriodAsked, period_key, resolve_period
from rota.domain.recurrence import At, Cron, Every, Recurrence, RRule
from rota.zones import load_zone

AT = At(time=datetime(2026, 1, 10, 9))
EVERY = Every(interval=timedelta(hours=24), anchor=datetime(2026, 1, 10, tzinfo=UTC))
HOURLY = Cron(expression="0 * * * *")
DAILY = Cron(expression="0 9 * * *")
WEEKLY = Cron(expression="0 9 * * 1")
MONTHLY = Cron(expression="0 9 1 * *")


def cadence(recurrence: Recurrence, zone: str = "UTC", *, gap: Gap = "skip", fold: Fold = "first") -> Cadence:
    return Cadence(recurrence, load_zone(zone), gap=gap, fold=fold)


@pytest.mark.parametrize(
    ("recurrence", "expected"),
    [
        (AT, "once"),
        (At(time=datetime(2026, 1, 10, 9, tzinfo=UTC)), "once"),
        (EVERY, "instant"),
        (HOURLY, "instant"),
        (DAILY, "day"),
        (Cron(expression="0 9 * * 1-5"), "day"),
        (WEEKLY, "week"),
        (MONTHLY, "month"),
        (RRule(text="DTSTART:20260105T090000\nRRULE:FREQ=WEEKLY;BYDAY=MO"), "week"),
    ],
)
def test_auto_is_the_coarsest_period_that_the_rule_keeps(recurrence: Recurrence, expected: Period) -> None:
    assert resolve_period("auto", cadence(recurrence)) == expected


@pytest.mark.parametrize(
    ("recurrence", "asked", "expected"),
    [
        (AT, "once", "once"),
        (AT, "instant", "once"),
        (EVERY, "instant", "instant"),
        (DAILY, "day", "day"),
        (DAILY, "instant", "instant"),
        (WEEKLY, "week", "week"),
        (WEEKLY, "day", "day"),
        (MONTHLY, "month", "month"),
        (MONTHLY, "week", "week"),
    ],
)
def test_a_period_that_the_rule_keeps_may_be_asked_for(
    recurrence: Recurrence, asked: PeriodAsked, expected: Period
) -> None:
    assert resolve_period(asked, cadence(recurrence)) == expected


@pytest.mark.parametrize(
    ("recurrence", "asked", "works"),
    [
        (AT, "day", "once"),
        (AT, "month", "once"),
        (EVERY, "day", "instant"),
        (EVERY, "once", "instant"),
        (HOURLY, "day", "instant"),
        (DAILY, "week", "day"),
        (DAILY, "month", "day"),
        (DAILY, "once", "day"),
        (WEEKLY, "month", "week"),
        (MONTHLY, "once", "month"),
        (RRule(text="DTSTART:20200101T090000\nRRULE:FREQ=YEARLY;BYYEARDAY=31,32"), "week", "month"),
    ],
)
def test_a_period_in_which_the_rule_can_yield_two_is_refused_with_the_one_that_works(
    recurrence: Recurrence, asked: PeriodAsked, works: str
) -> None:
    with pytest.raises(InvalidRequest, match=works) as refusal:
        resolve_period(asked, cadence(recurrence))
    assert [error.field for error in refusal.value.errors] == ["period"]


def keys(of: Cadence, period: Period, *, after: str, until: str) -> list[str]:
    bounds = [datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (after, until)]
    return [period_key(period, occurrence) for occurrence in of.occurrences(after=bounds[0], until=bounds[1])]


def test_a_key_is_the_period_with_its_kind_in_front() -> None:
    nine = cadence(DAILY, "America/New_York")
    expected: dict[Period, str] = {
        "day": "day:2026-01-14",
        "week": "week:2026-W03",
        "month": "month:2026-01",
        "instant": "instant:2026-01-14T14:00:00Z",
        "once": "once",
    }
    for period, key in expected.items():
        assert keys(nine, period, after="2026-01-14T00:00", until="2026-01-15T00:00") == [key]


def test_a_week_is_an_iso_week_whose_year_may_be_another() -> None:
    monday = cadence(Cron(expression="0 9 * * 1"))
    assert keys(monday, "week", after="2024-12-24T00:00", until="2025-01-07T00:00") == [
        "week:2025-W01",
        "week:2025-W02",
    ]
    friday = cadence(Cron(expression="0 9 * * 5"))
    assert keys(friday, "week", after="2020-12-26T00:00", until="2021-01-09T00:00") == [
        "week:2020-W53",
        "week:2021-W01",
    ]


def test_a_key_is_of_the_local_day_and_not_of_the_day_in_utc() -> None:
    late = cadence(Cron(expression="0 22 * * *"), "America/New_York")
    assert keys(late, "day", after="2026-01-15T00:00", until="2026-01-15T12:00") == ["day:2026-01-14"]


# Pacific/Apia  2011-12-30T10:00Z  -10:00 to +14:00   the 30th is left out
def test_a_moved_occurrence_keeps_the_key_of_the_time_that_was_named() -> None:
    noon = cadence(Cron(expression="0 12 * * *"), "Pacific/Apia", gap="forward")
    assert keys(noon, "day", after="2011-12-29T12:00", until="2011-12-31T00:00") == [
        "day:2011-12-29",
        "day:2011-12-30",
        "day:2011-12-31",
    ]


# Europe/Paris  2025-10-26T01:00Z  +02:00 to +01:00   03:00 to 02:00
def test_a_second_pass_has_a_key_of_its_own_only_where_both_passes_occur() -> None:
    half_past_two = Cron(expression="30 2 * * *")
    night = {"after": "2025-10-25T12:00", "until": "2025-10-26T12:00"}
    both = cadence(half_past_two, "Europe/Paris", fold="both")
    assert keys(both, "day", **night) == ["day:2025-10-26", "day:2025-10-26/fold"]
    assert keys(both, "week", **night) == ["week:2025-W43", "week:2025-W43/fold"]
    assert keys(both, "month", **night) == ["month:2025-10", "month:2025-10/fold"]
    assert keys(both, "instant", **night) == ["instant:2025-10-26T00:30:00Z", "instant:2025-10-26T01:30:00Z"]
    second = cadence(half_past_two, "Europe/Paris", fold="second")
    assert keys(second, "day", **night) == ["day:2025-10-26"]


@pytest.mark.parametrize("zone", ["Europe/Paris", "Pacific/Apia", "Africa/Casablanca", "Australia/Lord_Howe"])
@pytest.mark.parametrize("fold", ["first", "second", "both"])
@pytest.mark.parametrize("gap", ["skip", "forward"])
def test_no_two_occurrences_share_a_key_of_the_period_that_auto_chose(
    zone: str, fold: Fold, gap: Gap
) -> None:
    for recurrence in (HOURLY, Cron(expression="30 2 * * *"), Cron(expression="15 3 * * 0"), MONTHLY):
        of = cadence(recurrence, zone, gap=gap, fold=fold)
        found = keys(of, resolve_period("auto", of), after="2011-06-01T00:00", until="2012-06-01T00:00")
        assert len(found) == len(set(found))
