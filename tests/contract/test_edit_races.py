"""Edits, plans and admissions of one schedule at once: the schedule's row decides who was first (I3, I8)."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import pytest

from rota.domain.identity import digest_of
from rota.domain.recurrence import Cron
from rota.domain.run import RunState
from rota.domain.schedule import Schedule
from rota.store.port import AdmissionOutcome, ChangeOutcome, Fence, RunFilter, ScheduleChange, Store
from tests.contract.builders import (
    DAY,
    HOUR,
    NINE,
    admission,
    change_of,
    change_to,
    cursor,
    definition,
    edit,
    idempotency_record,
    new_schedule,
    new_version,
    planned_run_at,
    run_at,
)
from tests.contract.racing import CALLERS, all_at_once
from tests.contract.steps import (
    admit,
    commit,
    create,
    deliveries,
    fence_of,
    hold,
    plan,
    record_of,
    run_of,
)

several_times = pytest.mark.parametrize("round_", range(4))
CHANGED, ADMITTED = ChangeOutcome.CHANGED, AdmissionOutcome.ADMITTED
PLANNED, HELD, QUEUED = RunState.PLANNED, RunState.HELD, RunState.QUEUED
TEN = definition(Cron(expression="0 10 * * *"))


def edit_now(schedule: Schedule, *, number: int = 1) -> ScheduleChange:
    """An edit that takes over at `NINE` at once; the one of each caller has params of its own."""
    of = replace(TEN, timezone=f"Etc/GMT+{number}")
    new = new_version(schedule.schedule_id, of, number=2, effective_from=NINE)
    return edit(schedule, new, cursor=cursor(NINE + HOUR, version=2))


def is_admitted(store: Store, fence: Fence, schedule: Schedule) -> bool:
    """Whether the old version's run at `NINE` was, as it had been decided before the edit."""
    element = admission(schedule, runs=[run_at(schedule, NINE)])
    return admit(store, fence, [element]) == [ADMITTED]


def versions_and_instants(store: Store) -> list[tuple[int, datetime]]:
    runs = store.list_runs(RunFilter(), before=None, limit=10)
    return [(run.version, run.scheduled_at) for run in runs]


def is_changed(store: Store, change: ScheduleChange) -> bool:
    return store.commit_change(change) is CHANGED


def change_wins(change: Callable[[], bool], other: Callable[[], bool]) -> bool:
    """Half of the callers try the change, half the other: one of all applies. Whether it was a change."""
    applied = all_at_once(lambda number: change() if number % 2 else other())
    assert sum(applied) == 1
    return any(applied[1::2])


@several_times
def test_an_edit_and_an_admission_that_was_planned_before_it_do_not_both_apply(
    store: Store, round_: int
) -> None:
    """Never a run of the old version past the boundary, nor one of the new version before it."""
    schedule, fence = create(store), hold(store)[0]
    edited = change_wins(
        lambda: is_changed(store, edit_now(schedule)), lambda: is_admitted(store, fence, schedule)
    )
    record = record_of(store, schedule)
    if edited:
        assert (record.version.number, record.schedule.cursor) == (2, cursor(NINE + HOUR, version=2))
        assert versions_and_instants(store) == []
    else:
        assert (record.latest.number, record.schedule.cursor) == (1, cursor(NINE + DAY))
        assert versions_and_instants(store) == [(1, NINE)]


@several_times
def test_an_activation_and_an_edit_of_what_is_pending_do_not_both_apply(store: Store, round_: int) -> None:
    """The dispatcher takes a version over while somebody replaces it."""
    fence, pending = hold(store)[0], new_version(of=TEN, number=2, effective_from=NINE)
    schedule = commit(store, edit(create(store), pending))
    carried = replace(planned_run_at(schedule, NINE + HOUR), carried_by=2)
    activation = replace(admission(schedule, runs=[carried]), cursor=cursor(NINE + DAY, version=2))
    third = new_version(of=TEN, number=3, effective_from=NINE + HOUR)
    replacing = replace(edit(schedule, third), windows=((1, NINE + HOUR), (2, NINE)))
    replaced = change_wins(
        lambda: is_changed(store, replacing), lambda: admit(store, fence, [activation]) == [ADMITTED]
    )
    record = record_of(store, schedule)
    if replaced:
        assert (record.version.number, record.latest.number) == (1, 3)
        assert versions_and_instants(store) == []
    else:
        assert (record.version, record.pending) == (pending.version, None)
        assert versions_and_instants(store) == [(1, NINE + HOUR)]


@several_times
def test_of_edits_at_once_one_makes_the_version(store: Store, round_: int) -> None:
    schedule = create(store)
    edits = [edit_now(schedule, number=number) for number in range(CALLERS)]
    outcomes = all_at_once(lambda number: store.commit_change(edits[number]))
    assert Counter(outcomes) == {CHANGED: 1, ChangeOutcome.STALE: CALLERS - 1}
    [winner] = edits[outcomes.index(CHANGED)].versions
    assert record_of(store, schedule).version == winner.version
    versions = store.list_versions(schedule.schedule_id, before=None, limit=9)
    assert [version.number for version in versions] == [2, 1]
    assert len(store.list_audit(schedule.schedule_id, limit=10)) == 2


@several_times
def test_a_plan_and_an_admission_do_not_both_create_the_run(store: Store, round_: int) -> None:
    schedule, fence = create(store), hold(store)[0]
    change = replace(change_of(schedule), runs=(planned_run_at(schedule, NINE),))
    planned = change_wins(lambda: is_changed(store, change), lambda: is_admitted(store, fence, schedule))
    [run] = store.list_runs(RunFilter(), before=None, limit=10)
    assert run.state is (PLANNED if planned else QUEUED)


def test_runs_on_request_at_once_are_all_created_beside_an_admission(store: Store) -> None:
    """They neither compare nor raise anything."""
    schedule, fence = create(store), hold(store)[0]

    def call(number: int) -> bool:
        if number == 0:
            return is_admitted(store, fence, schedule)
        run = replace(run_at(schedule, NINE + number * HOUR), origin="manual")
        change = replace(change_of(schedule), expected_cursor=None, runs=(run,))
        return store.commit_change(change) is CHANGED

    is_admitted_at_once, *are_created = all_at_once(call)
    assert are_created == [True] * (CALLERS - 1)
    # An admission leaves alone what somebody else is at work on, and comes again.
    assert is_admitted_at_once or is_admitted(store, fence, schedule)
    assert len(deliveries(store)) == CALLERS


@several_times
def test_a_run_on_request_is_created_by_one(store: Store, round_: int) -> None:
    schedule = create(store)
    run = replace(run_at(schedule, NINE, period_key="manual:1"), origin="manual")
    change = replace(change_of(schedule), expected_cursor=None, runs=(run,))
    outcomes = all_at_once(lambda _: store.commit_change(change))
    assert Counter(outcomes) == {CHANGED: 1, ChangeOutcome.KEY_USED: CALLERS - 1}
    assert len(deliveries(store)) == 1


def test_a_period_key_is_taken_by_one(store: Store) -> None:
    schedule = create(store)
    runs = [planned_run_at(schedule, NINE + hours * HOUR, period_key="day") for hours in range(CALLERS)]
    changes = [replace(change_of(schedule), expected_cursor=None, runs=(run,)) for run in runs]
    outcomes = all_at_once(lambda number: store.commit_change(changes[number]))
    assert Counter(outcomes) == {CHANGED: 1, ChangeOutcome.KEY_USED: CALLERS - 1}
    assert versions_and_instants(store) == [(1, NINE + outcomes.index(CHANGED) * HOUR)]


def test_an_idempotency_key_changes_one(store: Store) -> None:
    schedules = [create(store, new_schedule(f"s{number}")) for number in range(CALLERS)]
    changes = [
        replace(
            change_of(schedule),
            idempotency=idempotency_record(digest=digest_of(schedule.schedule_id), expires_at=NINE + DAY),
        )
        for schedule in schedules
    ]
    outcomes = all_at_once(lambda number: store.commit_change(changes[number]))
    assert Counter(outcomes) == {CHANGED: 1, ChangeOutcome.KEY_TAKEN: CALLERS - 1}
    winner = outcomes.index(CHANGED)
    assert store.get_idempotency("order-1", now=NINE) == changes[winner].idempotency
    revisions = [record_of(store, schedule).schedule.revision for schedule in schedules]
    assert revisions == [2 if number == winner else 1 for number in range(CALLERS)]


def test_planned_runs_fall_due_once(store: Store) -> None:
    schedule = create(store, new_schedule(due=None))
    runs = [planned_run_at(schedule, NINE + hours * HOUR, due=NINE) for hours in range(12)]
    plan(store, schedule, *runs)
    fence = fence_of(store, 0)
    outcomes = all_at_once(lambda _: store.commit_planned(fence, now=NINE, limit=5))
    assert sum(outcome.queued for outcome in outcomes) == len(runs)
    assert len(deliveries(store)) == len(runs)


@several_times
def test_a_planned_run_falls_due_or_is_skipped_on_request(store: Store, round_: int) -> None:
    schedule, fence = create(store, new_schedule(due=None)), hold(store)[0]
    run = planned_run_at(schedule, NINE)
    schedule = plan(store, schedule, run)
    skip = change_to(run, RunState.SKIPPED, reason="on_request")
    change = replace(change_of(schedule), run_changes=(skip,))
    is_skipped = change_wins(
        lambda: is_changed(store, change),
        lambda: store.commit_planned(fence, now=NINE, limit=5).queued == 1,
    )
    assert run_of(store, run.run_id).state is (RunState.SKIPPED if is_skipped else QUEUED)
    assert len(deliveries(store)) == (0 if is_skipped else 1)


def test_parked_runs_are_decided_by_one(store: Store) -> None:
    """The commit leaves the cursor where it was: the states of its runs are what it expects."""
    schedule, fence = create(store), hold(store)[0]
    runs = [planned_run_at(schedule, NINE + hours * HOUR) for hours in range(3)]
    schedule = plan(store, schedule, *runs)
    held = [change_to(run, HELD) for run in runs]
    schedule = commit(store, replace(change_of(schedule), run_changes=tuple(held)))
    released = tuple(change_to(change.run, QUEUED) for change in held)
    element = replace(admission(schedule, runs=[]), cursor=schedule.cursor, run_changes=released)
    outcomes = all_at_once(lambda _: admit(store, fence, [element]))
    assert Counter(outcome for [outcome] in outcomes) == {
        ADMITTED: 1,
        AdmissionOutcome.STALE: CALLERS - 1,
    }
    assert len(deliveries(store)) == len(runs)
