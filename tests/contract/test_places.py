"""Places: of a schedule whose runs may not overlap one run is open, and at most one waits for it (I3)."""

from dataclasses import replace
from datetime import datetime

import pytest

from rota.domain.admission import Admission, nothing_owed
from rota.domain.due import DueSchedule
from rota.domain.job import Job
from rota.domain.overlap import Places
from rota.domain.run import Run, RunState
from rota.domain.schedule import Overlap, Schedule
from rota.domain.settlement import Settlement
from rota.domain.sink import CelerySink
from rota.store.port import AdmissionOutcome, Fence, PlannedDue, PlannedOutcome, Store
from tests.contract.builders import (
    DAY,
    HOUR,
    MINUTE,
    NINE,
    SECOND,
    admission,
    audit_event,
    definition,
    failure,
    new_schedule,
    planned_run_at,
    run_at,
    success,
)
from tests.contract.racing import all_at_once
from tests.contract.steps import (
    admit,
    create,
    fence_of,
    open_attempt,
    plan,
    record_of,
    run_of,
    settle,
    wanted,
)

JOBS = ["sales_report"]
TEN = NINE + HOUR


def overlapping(store: Store, overlap: Overlap = "queue", id_: str = "report-7") -> Schedule:
    return create(store, new_schedule(id_, of=definition(overlap=overlap)))


def placed(schedule: Schedule, *runs: Run, expected: Places = (), places: Places | None = None) -> Admission:
    """An admission of these runs that depends on `expected`, and takes places for all that it admits."""
    taken = (*expected, *(run.run_id for run in runs)) if places is None else places
    return replace(admission(schedule, runs=runs), expected_places=expected, places=taken)


def waiting(run: Run) -> Run:
    return replace(run, state=RunState.WAITING, available_at=None)


def open_and_wait(store: Store, id_: str = "report-7") -> tuple[Run, Run]:
    """The runs of a schedule at nine, which is open, and at ten, which waits for it."""
    schedule = overlapping(store, id_=id_)
    first = run_at(schedule, NINE)
    give(store, placed(schedule, first))
    second = waiting(run_at(schedule, TEN))
    give(store, placed(record_of(store, schedule).schedule, second, expected=(first.run_id,)))
    return first, second


def give(store: Store, *elements: Admission, now: datetime = TEN) -> None:
    assert set(admit(store, fence_of(store, 0), elements, now=now)) == {AdmissionOutcome.ADMITTED}


def test_a_run_that_takes_a_place_is_told_to_whoever_decides_next(store: Store) -> None:
    first, second = open_and_wait(store)
    schedule_id = first.schedule_id
    assert store.read_places(schedule_id) == (first.run_id, second.run_id)
    [due] = store.read_due(0, now=NINE + 2 * DAY, limit=3)
    assert isinstance(due, DueSchedule)
    assert due.places == (first.run_id, second.run_id)
    assert run_of(store, second.run_id) == second
    assert [intent.run_id for intent in store.read_intents(JOBS, now=TEN, limit=9)] == [first.run_id]


def test_an_admission_that_knows_other_places_is_stale(store: Store) -> None:
    schedule = overlapping(store, "skip")
    first = run_at(schedule, NINE)
    give(store, placed(schedule, first))
    again = record_of(store, schedule).schedule
    second = placed(again, run_at(again, TEN))
    [outcome] = admit(store, fence_of(store, 0), [second], now=TEN)
    assert outcome is AdmissionOutcome.STALE
    assert store.read_places(schedule.schedule_id) == (first.run_id,)
    open_attempt(store, first)
    settle(store, success(first.run_id, at=TEN))
    give(store, second)


def test_an_admission_that_depends_on_no_places_leaves_them(store: Store) -> None:
    schedule = overlapping(store)
    first = run_at(schedule, NINE)
    give(store, placed(schedule, first))
    give(store, replace(admission(record_of(store, schedule).schedule), runs=()))
    assert store.read_places(schedule.schedule_id) == (first.run_id,)


@pytest.mark.parametrize("end", ["succeeded", "failed"])
def test_the_run_that_waits_is_queued_in_the_commit_that_ends_the_first(store: Store, end: str) -> None:
    first, second = open_and_wait(store)
    open_attempt(store, first)
    at = TEN + MINUTE
    ends: dict[str, Settlement] = {
        "succeeded": success(first.run_id, at=at),
        "failed": failure(first.run_id, at=at),
    }
    assert settle(store, ends[end]) == [True]
    turn_came = replace(second, state=RunState.QUEUED, available_at=at)
    assert run_of(store, second.run_id) == turn_came
    assert store.read_places(first.schedule_id) == (second.run_id,)
    [opened] = store.commit_claims("w", wanted(*JOBS), now=at, limit=2)
    assert opened.run.run_id == second.run_id
    assert settle(store, success(second.run_id, at=at)) == [True]
    assert store.read_places(first.schedule_id) == ()


def test_a_run_keeps_its_place_through_all_its_attempts(store: Store) -> None:
    first, second = open_and_wait(store)
    open_attempt(store, first)
    assert settle(store, failure(first.run_id, at=TEN, retry_at=TEN + MINUTE)) == [True]
    assert run_of(store, second.run_id).state is RunState.WAITING
    assert store.read_places(first.schedule_id) == (first.run_id, second.run_id)


def test_several_that_end_at_once_each_let_the_next_one_come(store: Store) -> None:
    pairs = [open_and_wait(store, id_) for id_ in ("a", "b")]
    for first, _ in pairs:
        open_attempt(store, first)
    assert settle(store, *(success(first.run_id, at=TEN) for first, _ in pairs)) == [True, True]
    states = [run_of(store, second.run_id).state for _, second in pairs]
    assert states == [RunState.QUEUED, RunState.QUEUED]


def cancel(store: Store, run: Run) -> Run | None:
    return store.commit_cancel(run.run_id, event=audit_event(run.schedule_id, at=TEN), now=TEN)


def test_a_first_run_that_is_cancelled_lets_the_next_one_come(store: Store) -> None:
    first, second = open_and_wait(store)
    cancel(store, first)
    assert run_of(store, second.run_id).state is RunState.QUEUED
    assert store.read_places(first.schedule_id) == (second.run_id,)


def test_a_run_that_is_cancelled_while_it_waits_leaves_its_place(store: Store) -> None:
    first, second = open_and_wait(store)
    cancelled = cancel(store, second)
    assert cancelled == replace(second, state=RunState.CANCELLED, finished_at=TEN)
    assert store.read_places(first.schedule_id) == (first.run_id,)
    open_attempt(store, first)
    assert settle(store, success(first.run_id, at=TEN)) == [True]
    assert store.read_next_intent_time(JOBS) is None


def test_a_run_that_cannot_be_read_leaves_its_place(store: Store) -> None:
    """I12: its version is not there, so nobody can open it."""
    schedule = overlapping(store)
    bad = replace(run_at(schedule, NINE), version=9)
    plan(store, schedule, bad)
    second = waiting(run_at(schedule, TEN))
    element = placed(record_of(store, schedule).schedule, second, places=(bad.run_id, second.run_id))
    give(store, element)
    assert store.commit_claims("w", wanted(*JOBS), now=TEN, limit=2) == []
    assert run_of(store, bad.run_id).state is RunState.FAILED
    assert store.read_places(schedule.schedule_id) == (second.run_id,)
    assert run_of(store, second.run_id).available_at == TEN


def test_a_message_that_nobody_can_send_leaves_its_place(store: Store) -> None:
    schedule = overlapping(store)
    bad = replace(run_at(schedule, NINE), version=9)
    plan(store, schedule, bad)
    give(store, placed(record_of(store, schedule).schedule, places=(bad.run_id,)))
    store.commit_job(Job(name=JOBS[0], sink=CelerySink(task="tasks.report")), now=NINE)
    assert store.commit_takes(wanted(*JOBS), now=TEN, lease=MINUTE, limit=2) == []
    assert store.read_places(schedule.schedule_id) == ()
    assert store.read_next_delivery_time(JOBS) is None


def strand(store: Store, id_: str = "report-7") -> tuple[Run, Run]:
    """A run that is open and one that waits, which has lost the place of the one before it."""
    first, second = open_and_wait(store, id_)
    element = admission(record_of(store, new_schedule(id_).schedule).schedule)
    give(
        store,
        replace(element, expected_places=(first.run_id, second.run_id), places=(second.run_id,)),
    )
    return first, second


def test_a_run_that_waits_for_nobody_is_queued_by_whoever_holds_its_partition(store: Store) -> None:
    (_, lost), (_, other) = strand(store, "a"), strand(store, "b")
    behind = open_and_wait(store, "c")[1]
    fence = fence_of(store, 0)
    assert store.commit_freed([], now=TEN, limit=9) == 0
    assert store.commit_freed([replace(fence, epoch=fence.epoch + 1)], now=TEN, limit=9) == 0
    assert store.commit_freed([fence], now=TEN + SECOND, limit=1) == 1
    assert run_of(store, lost.run_id) == replace(lost, state=RunState.QUEUED, available_at=TEN + SECOND)
    assert store.read_places(lost.schedule_id) == (lost.run_id,)
    assert store.commit_freed([fence], now=TEN + SECOND, limit=9) == 1
    assert store.commit_freed([fence], now=TEN + SECOND, limit=9) == 0
    assert run_of(store, other.run_id).state is RunState.QUEUED
    assert run_of(store, behind.run_id).state is RunState.WAITING
    claimed = store.commit_claims("w", wanted(*JOBS), now=TEN + SECOND, limit=2)
    claimed += store.commit_claims("w", wanted(*JOBS), now=TEN + SECOND, limit=2)
    claimed += store.commit_claims("w", wanted(*JOBS), now=TEN + SECOND, limit=2)
    assert {lost.run_id, other.run_id} < {attempt.run.run_id for attempt in claimed}


def test_a_run_that_waits_without_a_place_is_queued_once_no_run_has_one(store: Store) -> None:
    first, second = open_and_wait(store)
    element = admission(record_of(store, new_schedule().schedule).schedule)
    expected = (first.run_id, second.run_id)
    give(store, replace(element, expected_places=expected, places=(first.run_id,)))
    fence = fence_of(store, 0)
    assert store.commit_freed([fence], now=TEN, limit=9) == 0
    cancel(store, first)
    assert run_of(store, second.run_id).state is RunState.WAITING
    assert store.commit_freed([fence], now=TEN, limit=9) == 1
    assert store.read_places(first.schedule_id) == (second.run_id,)


@pytest.mark.parametrize("overlap", ["skip", "queue"])
def test_planned_runs_that_may_not_overlap_are_judged_one_by_one(store: Store, overlap: Overlap) -> None:
    schedule = overlapping(store, overlap)
    planned = planned_run_at(schedule, NINE - SECOND, due=NINE)
    backfilled = replace(planned_run_at(schedule, NINE - MINUTE, due=NINE), origin="backfill")
    plan(store, schedule, planned, backfilled)
    fence = fence_of(store, 0)
    assert store.commit_planned(fence, now=NINE, limit=9) == PlannedOutcome(queued=1)
    assert run_of(store, backfilled.run_id).state is RunState.QUEUED
    [left] = store.read_planned(0, now=NINE, limit=9)
    assert isinstance(left, PlannedDue)
    assert (left.run, left.due.places, left.due.version.definition.overlap) == (planned, (), overlap)


def test_such_a_schedule_is_the_planners_and_stands_at_no_beat(store: Store) -> None:
    overlapping(store, "skip", "skips")
    overlapping(store, "queue", "queues")
    fence_of(store, 0)
    before = NINE - DAY
    assert store.read_beats([0], after=before, now=NINE, each=9) == []
    create(store, new_schedule("allows"))
    assert len(store.read_beats([0], after=before, now=NINE, each=9)) == 1


def test_a_schedule_keeps_its_turn_and_its_spread(store: Store) -> None:
    spread = definition(spread=10 * MINUTE)
    schedule = create(store, new_schedule("spread", of=spread))
    record = record_of(store, schedule)
    assert record.version.definition == spread
    element = replace(admission(schedule), turn=3)
    give(store, element, now=NINE)
    assert record_of(store, schedule).schedule.turn == 3
    [due] = store.read_due(0, now=NINE + DAY, limit=2)
    assert isinstance(due, DueSchedule)
    assert due.schedule.turn == 3
    give(store, nothing_owed(due), now=NINE + DAY)


def test_a_settlement_that_races_the_next_admission_leaves_one_open_run(store: Store) -> None:
    """Whoever is second finds what the first has left; the planner then decides anew."""

    for number in range(6):
        schedule = overlapping(store, id_=f"raced-{number}")
        first = run_at(schedule, NINE)
        give(store, placed(schedule, first))
        open_attempt(store, first)
        again = record_of(store, schedule).schedule
        fence = fence_of(store, 0)
        second = run_at(again, TEN)

        def race(
            caller: int,
            first: Run = first,
            second: Run = second,
            again: Schedule = again,
            fence: Fence = fence,
        ) -> object:
            if caller == 0:
                return settle(store, success(first.run_id, at=TEN))
            element = placed(again, waiting(second), expected=(first.run_id,))
            if caller == 2:
                element = placed(again, second, expected=())
            return admit(store, fence, [element], now=TEN)

        all_at_once(race)
        runs = [run_of(store, first.run_id)]
        if store.get_run(second.run_id) is not None:
            runs.append(run_of(store, second.run_id))
            assert runs[-1].state is RunState.QUEUED
        assert runs[0].state is RunState.SUCCEEDED
        assert store.read_places(schedule.schedule_id) == tuple(run.run_id for run in runs[1:])
