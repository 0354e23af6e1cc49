"""Changes and admissions alike: runs that they create or change, and the period keys that those hold (I2, I4)."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from rota.domain.run import Origin, Run, RunChange, RunState
from rota.domain.schedule import Schedule
from rota.store.port import AdmissionOutcome, ChangeOutcome, Intent, RunFilter, ScheduleChange, Store
from tests.contract.builders import (
    DAY,
    HOUR,
    MADE_AT,
    MINUTE,
    NINE,
    SECOND,
    admission,
    audit_event,
    change_of,
    change_to,
    new_schedule,
    planned_run_at,
    run_at,
)
from tests.contract.steps import (
    admit,
    commit,
    contents,
    create,
    deliveries,
    delivery_of,
    fence_of,
    open_all,
    plan,
    record_of,
    refuse,
    run_of,
)

KEY = "day:2026-01-10"
HELD, QUEUED, SKIPPED = RunState.HELD, RunState.QUEUED, RunState.SKIPPED
STALE, KEY_USED, PRUNED = ChangeOutcome.STALE, ChangeOutcome.KEY_USED, ChangeOutcome.PRUNED

Apply = Callable[[Store, Schedule, Sequence[RunChange]], str]


def by_change(store: Store, schedule: Schedule, changes: Sequence[RunChange]) -> str:
    return store.commit_change(replace(change_of(schedule), run_changes=tuple(changes)))


def by_admission(store: Store, schedule: Schedule, changes: Sequence[RunChange]) -> str:
    element = replace(admission(schedule, runs=[]), run_changes=tuple(changes))
    [outcome] = admit(store, fence_of(store, schedule.partition), [element])
    return outcome


either_way = pytest.mark.parametrize("apply", [by_change, by_admission])
APPLIED = {ChangeOutcome.CHANGED.value, AdmissionOutcome.ADMITTED.value}


def now_of(store: Store, schedule: Schedule) -> Schedule:
    return record_of(store, schedule).schedule


def add(schedule: Schedule, *runs: Run) -> ScheduleChange:
    return replace(change_of(schedule), runs=runs)


def test_a_planned_run_is_created_whole_and_waits(store: Store) -> None:
    schedule = create(store)
    run = replace(planned_run_at(schedule, NINE + DAY, due=NINE + 2 * DAY), second_pass=True)
    backfilled = replace(planned_run_at(schedule, NINE + HOUR), origin="backfill")
    plan(store, schedule, run, backfilled)
    assert store.list_runs(RunFilter(), before=None, limit=10) == [run, backfilled]
    assert deliveries(store) == []


def test_a_queued_run_is_created_with_its_delivery(store: Store) -> None:
    schedule = create(store)
    run = replace(run_at(schedule, NINE, period_key="manual:1"), origin="manual", available_at=NINE + MINUTE)
    plan(store, schedule, run)
    assert deliveries(store) == [delivery_of(run)]
    assert open_all(store, deliveries(store), now=NINE + HOUR)[0] is not None


def test_a_run_may_be_created_skipped(store: Store) -> None:
    """An occurrence that is skipped on request before anything was planned."""
    schedule = create(store)
    [skip] = [change_to(planned_run_at(schedule, NINE), SKIPPED, reason="on_request").run]
    plan(store, schedule, skip)
    assert run_of(store, skip.run_id) == skip
    assert deliveries(store) == []


def test_an_id_that_exists_creates_nothing(store: Store) -> None:
    schedule = create(store)
    run = planned_run_at(schedule, NINE)
    schedule = plan(store, schedule, run)
    fresh = planned_run_at(schedule, NINE + DAY)
    refuse(store, add(schedule, fresh, replace(run, period_key="another")), KEY_USED)


def test_two_runs_of_one_change_share_neither_id_nor_key(store: Store) -> None:
    schedule = create(store)
    run = planned_run_at(schedule, NINE, period_key=KEY)
    refuse(store, add(schedule, run, replace(run, period_key="another")), KEY_USED)
    refuse(store, add(schedule, run, planned_run_at(schedule, NINE + HOUR, period_key=KEY)), KEY_USED)


def test_a_used_period_key_creates_nothing(store: Store) -> None:
    schedule = create(store)
    schedule = plan(store, schedule, planned_run_at(schedule, NINE, period_key=KEY))
    runs = [run_at(schedule, NINE + DAY), planned_run_at(schedule, NINE + HOUR, period_key=KEY)]
    refuse(store, add(schedule, *runs), KEY_USED)


def test_period_keys_are_each_schedules_own(store: Store) -> None:
    one, other = create(store), create(store, new_schedule("report-70"))
    plan(store, one, planned_run_at(one, NINE, period_key=KEY))
    plan(store, other, planned_run_at(other, NINE, period_key=KEY))


def test_nothing_is_created_before_the_kept_history(store: Store) -> None:
    schedule = create(store, new_schedule(history_from=NINE))
    early = planned_run_at(schedule, NINE - SECOND)
    refuse(store, add(schedule, planned_run_at(schedule, NINE), early), PRUNED)
    plan(store, schedule, planned_run_at(schedule, NINE))


def test_a_refusal_names_the_first_of_its_causes(store: Store) -> None:
    schedule = create(store, new_schedule(history_from=NINE))
    run = planned_run_at(schedule, NINE, period_key=KEY)
    schedule = plan(store, schedule, run)
    pruned = planned_run_at(schedule, NINE - SECOND, period_key=KEY)
    stale = change_to(replace(run, state=HELD), SKIPPED, reason="paused")
    refuse(store, replace(add(schedule, pruned), run_changes=(stale,)), STALE)
    refuse(store, add(schedule, pruned), PRUNED)
    refuse(store, add(schedule, replace(pruned, scheduled_at=NINE)), KEY_USED)


@pytest.mark.parametrize("state", [RunState.CANCELLED, RunState.SKIPPED])
def test_a_run_keeps_its_key_whatever_became_of_it(store: Store, state: RunState) -> None:
    schedule = create(store)
    run = planned_run_at(schedule, NINE, period_key=KEY)
    schedule = plan(store, schedule, run)
    end = change_to(run, state, reason="on_request" if state is SKIPPED else None)
    schedule = commit(store, replace(change_of(schedule), run_changes=(end,)))
    refuse(store, add(schedule, planned_run_at(schedule, NINE + HOUR, period_key=KEY)), KEY_USED)


def test_a_planned_run_that_is_cancelled_keeps_its_key(store: Store) -> None:
    schedule = create(store)
    run = planned_run_at(schedule, NINE, period_key=KEY)
    schedule = plan(store, schedule, run)
    cancelled = store.commit_cancel(run.run_id, event=audit_event(at=NINE), now=NINE)
    assert cancelled == replace(run, state=RunState.CANCELLED, finished_at=NINE)
    refuse(store, add(schedule, planned_run_at(schedule, NINE + HOUR, period_key=KEY)), KEY_USED)


@pytest.mark.parametrize("reason", ["paused", "expired", "superseded", "ended", "error", "overlap"])
@either_way
def test_an_automatic_skip_frees_its_key(store: Store, apply: Apply, reason: str) -> None:
    schedule = create(store)
    run = planned_run_at(schedule, NINE, period_key=KEY)
    schedule = plan(store, schedule, run)
    assert apply(store, schedule, [change_to(run, SKIPPED, reason=reason)]) in APPLIED
    again = planned_run_at(schedule, NINE + HOUR, period_key=KEY)
    schedule = plan(store, now_of(store, schedule), again)
    third = planned_run_at(schedule, NINE + 2 * HOUR, period_key=KEY)
    refuse(store, add(schedule, third), KEY_USED)
    schedule = commit(
        store, replace(change_of(schedule), run_changes=(change_to(again, SKIPPED, reason=reason),))
    )
    plan(store, schedule, third)


@either_way
def test_a_skip_on_request_keeps_its_key(store: Store, apply: Apply) -> None:
    schedule = create(store)
    run = planned_run_at(schedule, NINE, period_key=KEY)
    schedule = plan(store, schedule, run)
    assert apply(store, schedule, [change_to(run, SKIPPED, reason="on_request")]) in APPLIED
    again = planned_run_at(schedule, NINE + HOUR, period_key=KEY)
    refuse(store, add(now_of(store, schedule), again), KEY_USED)


def test_a_run_that_is_created_as_an_automatic_skip_holds_no_key(store: Store) -> None:
    schedule = create(store)
    skips = [
        change_to(planned_run_at(schedule, NINE + hours * HOUR, period_key=KEY), SKIPPED, reason="paused").run
        for hours in range(2)
    ]
    schedule = plan(store, schedule, *skips)
    plan(store, schedule, planned_run_at(schedule, NINE + 2 * HOUR, period_key=KEY))


def test_a_change_may_use_the_key_that_it_frees(store: Store) -> None:
    schedule = create(store)
    run = planned_run_at(schedule, NINE, period_key=KEY)
    schedule = plan(store, schedule, run)
    again = planned_run_at(schedule, NINE + HOUR, period_key=KEY)
    swapped = replace(add(schedule, again), run_changes=(change_to(run, SKIPPED, reason="superseded"),))
    commit(store, swapped)
    assert run_of(store, again.run_id) == again


@either_way
def test_a_run_that_becomes_queued_is_delivered_when_it_is_available(store: Store, apply: Apply) -> None:
    schedule = create(store)
    runs = [planned_run_at(schedule, NINE, due=NINE + HOUR), planned_run_at(schedule, NINE + DAY)]
    schedule = plan(store, schedule, *runs)
    changes = [change_to(run, QUEUED, at=NINE + MINUTE) for run in runs]
    assert apply(store, schedule, changes) in APPLIED
    assert deliveries(store) == [
        Intent(run_id=run.run_id, attempt=1, job="sales_report", available_at=run.due_at) for run in runs
    ]
    assert [run_of(store, run.run_id) for run in runs] == [change.run for change in changes]


@pytest.mark.parametrize("state", [RunState.CANCELLED, RunState.FAILED])
@either_way
def test_a_queued_run_that_becomes_something_else_is_not_delivered(
    store: Store, apply: Apply, state: RunState
) -> None:
    schedule = create(store)
    run, other = run_at(schedule, NINE), run_at(schedule, NINE + HOUR)
    schedule = plan(store, schedule, run, other)
    assert apply(store, schedule, [change_to(run, state)]) in APPLIED
    assert deliveries(store) == [delivery_of(other)]
    assert open_all(store, [delivery_of(run)]) == [None]


@either_way
def test_a_changed_run_is_written_whole(store: Store, apply: Apply) -> None:
    schedule = create(store)
    run = planned_run_at(schedule, NINE)
    schedule = plan(store, schedule, run)
    moved = replace(
        run,
        due_at=NINE + 3 * HOUR,
        planned_at=NINE,
        reason="moved",
        error="none",
        period_key="day:2026-01-11",
        second_pass=True,
        carried_by=4,
    )
    assert apply(store, schedule, [RunChange(expected_state=RunState.PLANNED, run=moved)]) in APPLIED
    assert run_of(store, run.run_id) == moved


def test_a_run_whose_key_is_changed_frees_the_one_before(store: Store) -> None:
    schedule = create(store)
    run = planned_run_at(schedule, NINE, period_key=KEY)
    schedule = plan(store, schedule, run)
    rekeyed = RunChange(expected_state=RunState.PLANNED, run=replace(run, period_key="day:2026-01-11"))
    schedule = commit(store, replace(change_of(schedule), run_changes=(rekeyed,)))
    schedule = plan(store, schedule, planned_run_at(schedule, NINE + HOUR, period_key=KEY))
    refuse(store, add(schedule, planned_run_at(schedule, NINE + DAY, period_key="day:2026-01-11")), KEY_USED)


@either_way
def test_a_held_run_is_released_or_dropped(store: Store, apply: Apply) -> None:
    schedule = create(store)
    runs = [planned_run_at(schedule, NINE + hours * HOUR) for hours in range(2)]
    schedule = plan(store, schedule, *runs)
    held = [change_to(run, HELD) for run in runs]
    assert apply(store, schedule, held) in APPLIED
    assert [run_of(store, run.run_id).state for run in runs] == [HELD, HELD]
    assert deliveries(store) == []
    released = change_to(held[0].run, QUEUED)
    dropped = change_to(held[1].run, SKIPPED, reason="paused")
    assert apply(store, now_of(store, schedule), [released, dropped]) in APPLIED
    assert [run_of(store, run.run_id).state for run in runs] == [QUEUED, SKIPPED]
    assert [delivery.run_id for delivery in deliveries(store)] == [runs[0].run_id]


@pytest.mark.parametrize("place", [0, 1])
@either_way
def test_one_run_in_another_state_refuses_every_change_with_it(
    store: Store, apply: Apply, place: int
) -> None:
    schedule = create(store)
    runs = [planned_run_at(schedule, NINE + hours * HOUR) for hours in range(2)]
    schedule = plan(store, schedule, *runs)
    schedule = commit(store, replace(change_of(schedule), run_changes=(change_to(runs[place], HELD),)))
    before = contents(store)
    changes = [change_to(run, QUEUED) for run in runs]
    assert apply(store, schedule, changes) == STALE
    assert contents(store) == before


@either_way
def test_a_change_of_a_run_that_does_not_exist_is_stale(store: Store, apply: Apply) -> None:
    schedule = create(store)
    run = planned_run_at(schedule, NINE)
    before = contents(store)
    assert apply(store, schedule, [change_to(run, SKIPPED, reason="ended")]) == STALE
    assert contents(store) == before


@pytest.mark.parametrize("origin", ["schedule", "backfill", "manual", "replay"])
def test_a_run_of_every_origin_can_be_created(store: Store, origin: Origin) -> None:
    schedule = create(store)
    run = replace(planned_run_at(schedule, NINE), origin=origin, planned_at=MADE_AT)
    plan(store, schedule, run)
    assert store.list_runs(RunFilter(origin=origin), before=None, limit=10) == [run]
