"""Old history is given up in bounded batches, and no period that a run used becomes free by it (I2)."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from rota.domain.admission import Skip
from rota.domain.identity import RunId
from rota.domain.json_text import JsonText
from rota.domain.key_uses import PERIOD_REACH
from rota.domain.run import Run, RunState
from rota.domain.schedule import Schedule, ScheduleStatus
from rota.store.port import PRUNED_BEHIND, AdmissionOutcome, ChangeOutcome, LedgerKey, PruneOutcome, Store
from tests.contract.builders import (
    DAY,
    HOUR,
    NINE,
    SECOND,
    admission,
    audit_event,
    change_of,
    change_to,
    cursor,
    new_schedule,
    pause,
    planned_run_at,
    resume,
    run_at,
    skip_at,
    status_change,
    success,
)
from tests.contract.steps import (
    admit,
    admit_runs,
    commit,
    create,
    fence_of,
    open_attempt,
    plan,
    record_of,
    refuse,
    run_of,
    settle,
)

LATER = NINE + 400 * DAY
"""What is pruned in these tests is old by then."""


def old_schedule(id_: str = "report-7", *, due: datetime | None = LATER) -> Schedule:
    """One whose cursor has come a long way."""
    return new_schedule(id_, due=due, history_from=NINE - DAY).schedule


def made(store: Store, id_: str = "report-7", *, due: datetime | None = LATER) -> Schedule:
    return create(store, replace(new_schedule(id_), schedule=old_schedule(id_, due=due)))


def ended_run(store: Store, schedule: Schedule, instant: datetime, *, result: str | None = None) -> Run:
    run = replace(run_at(schedule, instant), job=f"job-{instant:%j%H%M%S}-{schedule.schedule_id}")
    commit(store, replace(change_of(schedule), expected_cursor=None, runs=(run,)))
    open_attempt(store, run, now=instant)
    kept = None if result is None else JsonText(result)
    assert settle(store, success(run.run_id, at=instant, result=kept)) == [True]
    return run


def prune(
    store: Store, *, before: datetime = LATER, after: LedgerKey | None = None, limit: int = 100
) -> PruneOutcome:
    return store.prune_history(before=before, after=after, limit=limit)


def runs_of(store: Store, schedule: Schedule) -> list[datetime]:
    found = store.list_ledger(schedule.schedule_id, before=None, limit=1000)
    return sorted(entry.scheduled_at for entry in found if isinstance(entry, Run))


def history_from(store: Store, schedule: Schedule) -> datetime:
    return record_of(store, schedule).schedule.history_from


def test_no_two_instants_of_one_period_lie_further_apart_than_what_is_pruned_lies_behind() -> None:
    assert max(PERIOD_REACH.values()) == PRUNED_BEHIND >= timedelta(days=31 + 3)


def test_runs_that_ended_long_ago_go_with_their_attempts_and_results(store: Store) -> None:
    schedule = made(store)
    old = [ended_run(store, schedule, NINE + day * DAY, result="7") for day in range(3)]
    young = ended_run(store, schedule, LATER - DAY, result="8")
    assert prune(store) == PruneOutcome(runs=3, events=1, reached=None)
    assert [store.get_run(run.run_id) for run in old] == [None, None, None]
    detail = store.get_run(young.run_id)
    assert detail is not None
    assert (detail.run.state, len(detail.attempts), detail.result) == (RunState.SUCCEEDED, 1, "8")
    assert runs_of(store, schedule) == [LATER - DAY]
    assert history_from(store, schedule) == LATER
    assert prune(store) == PruneOutcome()


def test_what_lies_less_far_back_than_a_period_reaches_stays(store: Store) -> None:
    schedule = made(store)
    ended_run(store, schedule, LATER - PRUNED_BEHIND - SECOND)
    ended_run(store, schedule, LATER - PRUNED_BEHIND)
    ended_run(store, schedule, LATER - SECOND)
    assert prune(store).runs == 1
    assert runs_of(store, schedule) == [LATER - PRUNED_BEHIND, LATER - SECOND]


def test_history_that_was_given_up_can_never_be_created_again(store: Store) -> None:
    schedule = made(store)
    ended_run(store, schedule, NINE)
    ended_run(store, schedule, LATER - DAY)
    assert prune(store, before=LATER - 10 * DAY).runs == 1
    pruned = record_of(store, schedule).schedule
    for instant in (NINE, LATER - 10 * DAY - SECOND):
        again = replace(run_at(pruned, instant), origin="backfill", due_at=LATER)
        refuse(store, replace(change_of(pruned), runs=(again,)), ChangeOutcome.PRUNED)
        element = admission(pruned, runs=[again])
        assert admit(store, fence_of(store, 0), [element]) == [AdmissionOutcome.PRUNED]
    allowed = replace(run_at(pruned, LATER - 10 * DAY), origin="backfill")
    assert store.commit_change(replace(change_of(pruned), runs=(allowed,))) is ChangeOutcome.CHANGED


def test_a_schedule_with_nothing_to_be_pruned_keeps_its_history(store: Store) -> None:
    schedule = made(store)
    ended_run(store, schedule, LATER - DAY)
    before = record_of(store, schedule)
    assert prune(store) == PruneOutcome()
    assert record_of(store, schedule) == before


@pytest.mark.parametrize("ahead", [NINE + 100 * DAY, None])
def test_history_never_passes_the_cursor(store: Store, ahead: datetime | None) -> None:
    schedule = made(store, due=ahead)
    for day in (0, 50, 99):
        ended_run(store, schedule, NINE + day * DAY)
    assert prune(store).runs == 2
    assert history_from(store, schedule) == (ahead or LATER)


def test_history_never_passes_what_is_planned_or_held(store: Store) -> None:
    schedule = made(store)
    ended_run(store, schedule, NINE)
    planned = planned_run_at(schedule, NINE + 50 * DAY, due=NINE + 60 * DAY)
    plan(store, schedule, planned)
    ended_run(store, record_of(store, schedule).schedule, LATER - DAY)
    assert prune(store).runs == 1
    assert history_from(store, schedule) == NINE + 50 * DAY
    assert run_of(store, planned.run_id) == planned


@pytest.mark.parametrize("state", [RunState.QUEUED, RunState.RUNNING, RunState.PLANNED, RunState.HELD])
def test_a_run_that_has_not_ended_stays(store: Store, state: RunState) -> None:
    schedule = made(store)
    if state in (RunState.PLANNED, RunState.HELD):
        planned = planned_run_at(schedule, NINE)
        schedule = plan(store, schedule, planned)
        if state is RunState.HELD:
            held = change_to(planned, RunState.HELD)
            schedule = commit(store, replace(change_of(schedule), run_changes=(held,)))
    else:
        run = run_at(schedule, NINE)
        schedule = plan(store, schedule, run)
        if state is RunState.RUNNING:
            open_attempt(store, run)
    ended_run(store, schedule, LATER - DAY)
    assert prune(store).runs == 0
    assert runs_of(store, schedule) == [NINE, LATER - DAY]


def test_a_run_that_fell_due_late_stays_as_long_as_one_that_was_scheduled_then(store: Store) -> None:
    schedule = made(store)
    moved = replace(planned_run_at(schedule, NINE), due_at=LATER - 2 * DAY, state=RunState.CANCELLED)
    schedule = plan(store, schedule, moved)
    ended_run(store, schedule, LATER - DAY)
    assert prune(store).runs == 0
    assert prune(store, before=LATER + PRUNED_BEHIND).runs == 0, "the cursor has not passed it yet"


def test_of_a_schedule_that_goes_on_the_last_run_stays(store: Store) -> None:
    """It may become a one-time schedule by an edit, which runs once in its life."""
    schedule = made(store)
    ended_run(store, schedule, NINE)
    ended_run(store, schedule, NINE + DAY)
    assert prune(store).runs == 1
    assert runs_of(store, schedule) == [NINE + DAY]


def test_a_run_that_may_free_its_period_does_not_stand_for_those_before_it(store: Store) -> None:
    schedule = made(store)
    ended_run(store, schedule, NINE)
    skipped = replace(planned_run_at(schedule, NINE + DAY), state=RunState.SKIPPED, reason="on_request")
    schedule = plan(store, schedule, skipped)
    schedule = plan(store, schedule, planned_run_at(schedule, LATER + DAY))
    assert prune(store).runs == 0
    assert runs_of(store, schedule) == [NINE, NINE + DAY, LATER + DAY]


def test_of_a_schedule_that_has_ended_everything_goes(store: Store) -> None:
    schedule = made(store)
    ended_run(store, schedule, NINE)
    ended_run(store, schedule, NINE + DAY)
    ended = status_change(schedule, ScheduleStatus.ENDED, at=NINE + 2 * DAY)
    commit(store, replace(ended, cursor=cursor(None)))
    assert prune(store).runs == 2
    assert runs_of(store, schedule) == []


def test_runs_on_request_use_no_period_and_go(store: Store) -> None:
    schedule = made(store)
    by_hand = replace(
        run_at(schedule, NINE),
        run_id=RunId(f"{schedule.schedule_id}.1.m-x"),
        origin="manual",
        period_key="manual:x",
    )
    ended = replace(by_hand, state=RunState.SUCCEEDED, finished_at=NINE, available_at=None)
    plan(store, schedule, ended)
    assert prune(store).runs == 1
    assert runs_of(store, schedule) == []


def test_skips_suspensions_and_events_go_with_the_runs_of_their_schedule(store: Store) -> None:
    schedule = made(store)
    ended_run(store, schedule, NINE)
    ended_run(store, schedule, LATER - DAY)
    end = LATER - PRUNED_BEHIND
    schedule = commit(store, pause(record_of(store, schedule).schedule, at=NINE + DAY))
    schedule = commit(store, resume(schedule, at=NINE + 2 * DAY, paused_at=NINE + DAY))
    schedule = commit(store, pause(schedule, at=end - DAY))
    schedule = commit(store, resume(schedule, at=end + DAY, paused_at=end - DAY))
    recent = audit_event(action="schedule.pause", at=end)
    schedule = commit(store, replace(change_of(schedule, at=end), event=recent))
    ranges = [(NINE, NINE + DAY), (end - 2 * DAY, end - SECOND), (end - 3 * DAY, end + DAY)]
    skips = [skip_at(schedule, *range_, note=str(place)) for place, range_ in enumerate(ranges)]
    element = admission(schedule, runs=[], skips=skips, next_due=LATER)
    assert admit(store, fence_of(store, 0), [element]) == [AdmissionOutcome.ADMITTED]
    outcome = prune(store)
    assert (outcome.runs, outcome.skips, outcome.suspensions) == (1, 2, 1)
    left = store.list_ledger(schedule.schedule_id, before=None, limit=100)
    assert [entry.note for entry in left if isinstance(entry, Skip)] == ["2"]
    assert [event.at for event in store.list_audit(schedule.schedule_id, limit=100)][-1] >= end
    assert recent in store.list_audit(schedule.schedule_id, limit=100)


def test_a_batch_is_bounded_and_the_next_one_goes_on_behind_it(store: Store) -> None:
    stays = made(store, "paused-long-ago")
    ended_run(store, stays, NINE - HOUR)
    schedule = made(store)
    for day in range(5):
        ended_run(store, schedule, NINE + day * DAY)
    ended_run(store, schedule, LATER - DAY)
    counts, after = [], None
    for _ in range(10):
        outcome = prune(store, after=after, limit=2)
        counts.append(outcome.runs)
        after = outcome.reached
        if after is None:
            break
    assert sum(counts) == 5
    assert max(counts) == 2
    assert runs_of(store, stays) == [NINE - HOUR]
    assert runs_of(store, schedule) == [LATER - DAY]


def test_where_much_lies_beside_the_runs_it_goes_first_in_batches_of_its_own(store: Store) -> None:
    schedule = made(store)
    ended_run(store, schedule, NINE)
    ended_run(store, schedule, LATER - DAY)
    schedule = record_of(store, schedule).schedule
    skips = [skip_at(schedule, NINE + day * DAY, NINE + day * DAY + SECOND) for day in range(5)]
    assert admit(store, fence_of(store, 0), [admission(schedule, runs=[], skips=skips, next_due=LATER)]) == [
        AdmissionOutcome.ADMITTED
    ]
    outcomes, after = [], None
    for _ in range(4):
        outcome = prune(store, after=after, limit=2)
        outcomes.append((outcome.skips, outcome.runs))
        after = outcome.reached
    assert outcomes[:3] == [(2, 0), (2, 0), (1, 1)]


def test_a_key_that_a_pruned_run_held_is_free_only_for_what_cannot_be_created(store: Store) -> None:
    schedule = made(store)
    first = ended_run(store, schedule, NINE)
    ended_run(store, schedule, LATER - DAY)
    assert prune(store).runs == 1
    pruned = record_of(store, schedule).schedule
    same_key = run_at(pruned, LATER, period_key=first.period_key)
    admit_runs(store, pruned, same_key)
    assert run_of(store, same_key.run_id) == same_key
