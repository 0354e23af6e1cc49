"""Cadences of each kind: elapsed time, single times, rules that end at an instant, and what `auto` makes of them.

Changes of the clocks are printed above what depends on them.
"""

from datetime import datetime, timedelta

import pytest

from rota.domain.cadence import Fold, FoldAsked, Gap, resolve_fold
from rota.domain.recurrence import At, Cron, Every, Recurrence, RRule
from tests.domain.occurrences import cadence, times, utc


def test_elapsed_time_knows_no_gap_and_no_fold() -> None:
    anchor = utc("2025-10-25T00:30")
    every = Every(interval=timedelta(hours=12), anchor=anchor)
    assert times(cadence(every, "Europe/Paris"), 4, after="2025-10-25T00:29:59") == [
        "2025-10-25T02:30+02:00",
        "2025-10-25T14:30+02:00",
        "2025-10-26T02:30+02:00",
        "2025-10-26T13:30+01:00",
    ]


def test_the_anchor_is_the_first_of_its_grid_and_the_grid_never_drifts() -> None:
    anchor = utc("2020-01-01T00:00:07")
    every = cadence(Every(interval=timedelta(minutes=7), anchor=anchor))
    beginning = every.next(utc("2019-06-01T00:00"))
    assert beginning is not None
    assert beginning.scheduled_at == anchor
    assert every.at(anchor) is not None
    far = every.next(utc("2524-02-29T23:59:59"))
    assert far is not None
    assert (far.scheduled_at - anchor) % timedelta(minutes=7) == timedelta(0)
    assert far.scheduled_at - utc("2524-02-29T23:59:59") <= timedelta(minutes=7)


def test_elapsed_time_shares_a_week_where_the_interval_is_shorter() -> None:
    anchor = utc("2026-01-05T00:00")
    assert cadence(Every(interval=timedelta(hours=167), anchor=anchor)).two_share_a_week()
    assert not cadence(Every(interval=timedelta(hours=168), anchor=anchor)).two_share_a_week()
    assert not cadence(At(time=anchor)).two_share_a_week()


def test_a_grid_ends_with_the_calendar() -> None:
    yearly = cadence(Every(interval=timedelta(days=365), anchor=utc("2020-01-01T00:00")))
    assert yearly.next(utc("9998-09-13T00:00")) is None
    assert yearly.next(utc("9999-12-31T00:00")) is None


# Europe/London  2025-03-30T01:00Z  +00:00 to +01:00   01:00 to 02:00
# Europe/London  2025-10-26T01:00Z  +01:00 to +00:00   02:00 to 01:00
@pytest.mark.parametrize(
    ("local", "gap", "fold", "expected"),
    [
        ("2025-03-30T01:30", "skip", "first", []),
        ("2025-03-30T01:30", "forward", "first", ["2025-03-30T02:00+01:00"]),
        ("2025-10-26T01:30", "skip", "first", ["2025-10-26T01:30+01:00"]),
        ("2025-10-26T01:30", "skip", "second", ["2025-10-26T01:30+00:00"]),
        ("2025-10-26T01:30", "skip", "both", ["2025-10-26T01:30+01:00", "2025-10-26T01:30+00:00"]),
        ("2025-06-01T01:30", "forward", "second", ["2025-06-01T01:30+01:00"]),
    ],
)
def test_a_single_local_time_is_resolved_like_any_other(
    local: str, gap: Gap, fold: Fold, expected: list[str]
) -> None:
    once = cadence(At(time=datetime.fromisoformat(local)), "Europe/London", gap=gap, fold=fold)
    assert times(once, 3, after="2025-01-01T00:00") == expected


def test_a_single_instant_is_not_touched_by_policies() -> None:
    once = cadence(At(time=utc("2025-10-26T00:30")), "Europe/London", fold="second")
    assert times(once, 3, after="2025-01-01T00:00") == ["2025-10-26T01:30+01:00"]
    assert once.next(utc("2025-10-26T00:30")) is None


@pytest.mark.parametrize(
    ("recurrence", "asked", "resolved"),
    [
        (Cron(expression="30 1 * * *"), "auto", "first"),
        (Cron(expression="0 * * * *"), "auto", "both"),
        (Cron(expression="*/5 * * * 1-5"), "auto", "both"),
        (Cron(expression="0 9-17 * * *"), "auto", "first"),
        (Cron(expression="0 * * * *"), "first", "first"),
        (Cron(expression="30 1 * * *"), "second", "second"),
        (RRule(text="DTSTART:20260101T000000\nRRULE:FREQ=HOURLY"), "auto", "both"),
        (RRule(text="DTSTART:20260101T000000\nRRULE:FREQ=DAILY"), "auto", "first"),
        (At(time=datetime(2026, 1, 1)), "auto", "first"),
        (Every(interval=timedelta(minutes=1), anchor=utc("2026-01-01T00:00")), "auto", "first"),
    ],
)
def test_auto_is_both_for_a_rule_that_covers_every_hour(
    recurrence: Recurrence, asked: FoldAsked, resolved: Fold
) -> None:
    assert resolve_fold(asked, recurrence) == resolved


# America/New_York  2025-11-02T06:00Z  -04:00 to -05:00   02:00 to 01:00
@pytest.mark.parametrize(
    ("until", "fold", "expected"),
    [
        ("20251102T053000Z", "both", ["2025-11-01T01:30-04:00", "2025-11-02T01:30-04:00"]),
        ("20251102T052959Z", "both", ["2025-11-01T01:30-04:00"]),
        ("20251102T063000Z", "second", ["2025-11-01T01:30-04:00", "2025-11-02T01:30-05:00"]),
        ("20251102T062959Z", "second", ["2025-11-01T01:30-04:00"]),
    ],
)
def test_until_is_an_instant_and_judged_on_the_instant_of_each_pass(
    until: str, fold: Fold, expected: list[str]
) -> None:
    rule = RRule(text=f"DTSTART:20251101T013000\nRRULE:FREQ=DAILY;UNTIL={until}")
    assert times(cadence(rule, "America/New_York", fold=fold), 5, after="2025-10-01T00:00") == expected


def test_until_bounds_a_time_moved_out_of_a_gap_by_the_instant_it_is_moved_to() -> None:
    # Europe/Paris  2025-03-30T01:00Z  +01:00 to +02:00   02:00 to 03:00
    for until, count in (("20250330T010000Z", 1), ("20250330T005959Z", 0)):
        rule = RRule(text=f"DTSTART:20250330T023000\nRRULE:FREQ=DAILY;UNTIL={until}")
        moved = times(cadence(rule, "Europe/Paris", gap="forward"), 5, after="2025-03-01T00:00")
        assert moved == ["2025-03-30T03:00+02:00"][:count]


def test_until_does_not_bound_single_dates() -> None:
    rule = RRule(
        text="DTSTART:20250101T090000\nRRULE:FREQ=DAILY;UNTIL=20250102T120000Z\nRDATE:20270601T090000,20280601T090000"
    )
    assert times(cadence(rule, "Europe/Paris"), 9, after="2024-12-01T00:00") == [
        "2025-01-01T09:00+01:00",
        "2025-01-02T09:00+01:00",
        "2027-06-01T09:00+02:00",
        "2028-06-01T09:00+02:00",
    ]


def test_a_minutely_rule_that_has_reached_its_until_ends_at_once() -> None:
    rule = RRule(text="DTSTART:20250101T000000\nRRULE:FREQ=MINUTELY;UNTIL=20250601T000000Z")
    minutely = cadence(rule, "Asia/Kolkata", fold="both")
    assert times(minutely, 5, after="2025-05-31T23:59") == ["2025-06-01T05:30+05:30"]
    assert minutely.next(utc("2025-06-01T00:00")) is None
