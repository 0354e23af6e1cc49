"""The dispatch protocol: skips that touch become one row, so that a long backlog stays a short ledger (I4)."""

from dataclasses import replace

import pytest

from rota.domain.admission import Skip, SkipReason
from rota.domain.schedule import Schedule
from rota.store.port import AdmissionOutcome, Store
from tests.contract.builders import DAY, HOUR, NINE, admission, new_schedule, skip_at
from tests.contract.steps import admit, create, fence_of, record_of


def commit_skips(store: Store, schedule: Schedule, *skips: Skip) -> None:
    """Admits these skips, each in an admission of its own."""
    for skip in skips:
        moved = record_of(store, schedule).schedule
        assert moved.cursor.due_at is not None
        element = admission(moved, runs=[], skips=[skip], next_due=moved.cursor.due_at + DAY)
        assert admit(store, fence_of(store, schedule.partition), [element]) == [AdmissionOutcome.ADMITTED]


def skips_of(store: Store, schedule: Schedule) -> list[Skip]:
    """Oldest first."""
    ledger = store.list_ledger(schedule.schedule_id, before=None, limit=100)
    return [entry for entry in reversed(ledger) if isinstance(entry, Skip)]


def test_skips_that_touch_become_one(store: Store) -> None:
    schedule = create(store)
    commit_skips(
        store,
        schedule,
        skip_at(schedule, NINE, NINE + HOUR, count=60),
        skip_at(schedule, NINE + HOUR, NINE + 2 * HOUR, count=59),
        skip_at(schedule, NINE + 2 * HOUR, NINE + 3 * HOUR),
    )
    assert skips_of(store, schedule) == [skip_at(schedule, NINE, NINE + 3 * HOUR, count=120)]


def test_skips_that_touch_within_one_admission_become_one(store: Store) -> None:
    schedule = create(store)
    skips = [skip_at(schedule, NINE + hours * HOUR, NINE + (hours + 1) * HOUR) for hours in range(3)]
    element = admission(schedule, runs=[], skips=skips)
    assert admit(store, fence_of(store, 0), [element]) == [AdmissionOutcome.ADMITTED]
    assert skips_of(store, schedule) == [skip_at(schedule, NINE, NINE + 3 * HOUR, count=3)]


def test_skips_with_an_equal_note_become_one(store: Store) -> None:
    schedule = create(store)
    commit_skips(
        store,
        schedule,
        skip_at(schedule, NINE, NINE + HOUR, note="used"),
        skip_at(schedule, NINE + HOUR, NINE + 2 * HOUR, note="used"),
    )
    assert skips_of(store, schedule) == [skip_at(schedule, NINE, NINE + 2 * HOUR, count=2, note="used")]


@pytest.mark.parametrize("notes", [("one", None), (None, "two"), ("one", "two"), (None, "")])
def test_skips_with_another_note_stay_apart(store: Store, notes: tuple[str | None, str | None]) -> None:
    schedule = create(store)
    skips = [
        skip_at(schedule, NINE, NINE + HOUR, note=notes[0]),
        skip_at(schedule, NINE + HOUR, NINE + 2 * HOUR, note=notes[1]),
    ]
    commit_skips(store, schedule, *skips)
    assert skips_of(store, schedule) == skips


def test_skips_with_a_gap_between_them_stay_apart(store: Store) -> None:
    schedule = create(store)
    skips = [skip_at(schedule, NINE, NINE + HOUR), skip_at(schedule, NINE + 2 * HOUR, NINE + 3 * HOUR)]
    commit_skips(store, schedule, *skips)
    assert skips_of(store, schedule) == skips


def test_skips_for_another_reason_stay_apart(store: Store) -> None:
    schedule = create(store)
    skips = [
        skip_at(schedule, NINE, NINE + HOUR, reason="expired"),
        skip_at(schedule, NINE + HOUR, NINE + 2 * HOUR, reason="paused"),
        skip_at(schedule, NINE + 2 * HOUR, NINE + 3 * HOUR, reason="expired"),
    ]
    commit_skips(store, schedule, *skips)
    assert skips_of(store, schedule) == skips


def test_skips_of_another_version_stay_apart(store: Store) -> None:
    schedule = create(store)
    skips = [
        skip_at(schedule, NINE, NINE + HOUR),
        replace(skip_at(schedule, NINE + HOUR, NINE + 2 * HOUR), version=2),
    ]
    commit_skips(store, schedule, *skips)
    assert skips_of(store, schedule) == skips


def test_skips_of_another_schedule_stay_apart(store: Store) -> None:
    one, other = create(store), create(store, new_schedule("report-70"))
    first, second = skip_at(one, NINE, NINE + HOUR), skip_at(other, NINE + HOUR, NINE + 2 * HOUR)
    commit_skips(store, one, first)
    commit_skips(store, other, second)
    assert skips_of(store, one) == [first]
    assert skips_of(store, other) == [second]


@pytest.mark.parametrize(
    "reason",
    ["expired", "superseded", "paused", "overlap", "period_used", "on_request", "ended", "error"],
)
def test_a_skip_is_read_back_whole(store: Store, reason: SkipReason) -> None:
    schedule = create(store)
    skip = skip_at(schedule, NINE, NINE + 40 * DAY, reason=reason, count=57_600, note="sälted")
    commit_skips(store, schedule, skip)
    assert skips_of(store, schedule) == [skip]
