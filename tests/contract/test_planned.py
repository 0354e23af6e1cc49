"""The dispatch protocol: planned runs that fall due are queued, held or dropped; what is late is left to judgement."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from rota.domain.due import DueSchedule
from rota.domain.overdue import LatestOnly
from rota.domain.planned import IN_TIME
from rota.domain.run import Run, RunState
from rota.domain.schedule import Cursor, Schedule, ScheduleStatus
from rota.store.port import Fence, PlannedDue, PlannedOutcome, Store, Unreadable
from tests.contract.builders import (
    DAY,
    HOUR,
    MADE_AT,
    MILLISECOND,
    MINUTE,
    NINE,
    SECOND,
    change_of,
    change_to,
    cursor,
    edit,
    new_schedule,
    new_version,
    pause,
    planned_run_at,
    resume,
    run_at,
    status_change,
)
from tests.contract.steps import (
    commit,
    contents,
    create,
    deliveries,
    delivery_of,
    earliest_due,
    fence_of,
    hold,
    open_attempt,
    plan,
    record_of,
    run_of,
)

PLANNED, HELD, QUEUED, SKIPPED = RunState.PLANNED, RunState.HELD, RunState.QUEUED, RunState.SKIPPED
ACTIVE, ENDED = ScheduleStatus.ACTIVE, ScheduleStatus.ENDED
FAR = NINE + 100 * DAY
NOTHING = PlannedOutcome()


def create_with(store: Store, *runs: Run, id_: str = "report-7", partition: int = 0) -> Schedule:
    """A schedule whose cursor stands far ahead, with these runs planned."""
    schedule = create(store, new_schedule(id_, due=FAR, partition=partition))
    return plan(store, schedule, *(replace(run, partition=partition) for run in runs))


def planned(*instants: datetime, id_: str = "report-7") -> list[Run]:
    schedule = new_schedule(id_).schedule
    return [planned_run_at(schedule, instant) for instant in instants]


def set_status(store: Store, schedule: Schedule, status: ScheduleStatus) -> Schedule:
    return commit(store, status_change(schedule, status, at=NINE - HOUR))


def fall_due(store: Store, *, now: datetime = NINE, limit: int = 10, partition: int = 0) -> PlannedOutcome:
    return store.commit_planned(fence_of(store, partition), now=now, limit=limit)


def late_ids(store: Store, *, now: datetime = NINE, limit: int = 10, partition: int = 0) -> list[str]:
    left = store.read_planned(partition, now=now, limit=limit)
    return [entry.run.run_id for entry in left if isinstance(entry, PlannedDue)]


def states(store: Store, *runs: Run) -> list[RunState]:
    return [run_of(store, run.run_id).state for run in runs]


def test_a_planned_run_in_time_is_queued_with_its_delivery(store: Store) -> None:
    [run] = planned(NINE)
    schedule = create_with(store, run)
    before = record_of(store, schedule)
    assert fall_due(store, now=NINE + MILLISECOND) == PlannedOutcome(queued=1)
    queued = run_of(store, run.run_id)
    assert queued == replace(run, state=QUEUED, admitted_at=NINE + MILLISECOND, available_at=NINE)
    assert deliveries(store) == [delivery_of(queued)]
    assert record_of(store, schedule) == before
    assert open_attempt(store, queued, now=NINE + SECOND).run.attempt == 1


def test_a_planned_run_is_not_due_before_its_instant(store: Store) -> None:
    [run] = planned(NINE)
    create_with(store, run)
    before = contents(store)
    assert fall_due(store, now=NINE - MILLISECOND) == NOTHING
    assert late_ids(store, now=NINE - MILLISECOND) == []
    assert contents(store) == before


def test_a_planned_run_is_due_when_it_was_moved_to(store: Store) -> None:
    schedule = new_schedule().schedule
    earlier = planned_run_at(schedule, NINE + DAY, due=NINE)
    later = planned_run_at(schedule, NINE, due=NINE + HOUR)
    create_with(store, earlier, later)
    assert fall_due(store) == PlannedOutcome(queued=1)
    assert states(store, earlier, later) == [QUEUED, PLANNED]
    assert run_of(store, earlier.run_id).available_at == NINE


@pytest.mark.parametrize(
    ("late", "is_queued"),
    [(0 * SECOND, True), (IN_TIME - MILLISECOND, True), (IN_TIME, False), (DAY, False)],
    ids=str,
)
def test_what_is_late_is_not_queued_but_read(store: Store, late: timedelta, is_queued: bool) -> None:
    [run] = planned(NINE)
    create_with(store, run)
    assert late_ids(store, now=NINE + late) == ([] if is_queued else [run.run_id])
    assert fall_due(store, now=NINE + late) == PlannedOutcome(queued=int(is_queued))
    assert states(store, run) == [QUEUED if is_queued else PLANNED]


@pytest.mark.parametrize(
    ("next_due", "is_queued"),
    [(None, True), (NINE + SECOND, True), (NINE, True), (NINE - MILLISECOND, False)],
    ids=str,
)
def test_a_run_in_time_waits_for_what_its_schedule_owes_before_it(
    store: Store, next_due: datetime | None, is_queued: bool
) -> None:
    [run] = planned(NINE)
    moved = Cursor(version=1, scheduled_at=NINE - HOUR, due_at=next_due)
    commit(store, replace(change_of(create_with(store, run)), cursor=moved))
    assert late_ids(store) == ([] if is_queued else [run.run_id])
    assert fall_due(store) == PlannedOutcome(queued=int(is_queued))


def test_a_backfilled_run_is_queued_however_late_and_whatever_is_owed(store: Store) -> None:
    runs = [replace(run, origin="backfill") for run in planned(NINE - 3 * DAY, NINE)]
    schedule = create_with(store, *runs)
    commit(store, replace(change_of(schedule), cursor=cursor(NINE - 9 * DAY)))
    assert late_ids(store) == []
    assert fall_due(store) == PlannedOutcome(queued=2)
    assert [delivery.available_at for delivery in deliveries(store)] == [NINE - 3 * DAY, NINE]


@pytest.mark.parametrize("status", [ScheduleStatus.PAUSED, ScheduleStatus.ERROR])
def test_runs_of_a_suspended_schedule_are_held_but_for_those_of_a_backfill(
    store: Store, status: ScheduleStatus
) -> None:
    late, due, later = planned(NINE - DAY, NINE, NINE + HOUR)
    [asked_for] = [replace(run, origin="backfill") for run in planned(NINE - HOUR)]
    set_status(store, create_with(store, late, due, later, asked_for), status)
    assert late_ids(store) == []
    assert fall_due(store) == PlannedOutcome(queued=1, held=2)
    assert states(store, late, due, later, asked_for) == [HELD, HELD, PLANNED, QUEUED]
    assert run_of(store, due.run_id) == replace(due, state=HELD)
    assert [delivery.run_id for delivery in deliveries(store)] == [asked_for.run_id]
    assert fall_due(store) == NOTHING


def test_runs_of_an_ended_schedule_are_dropped_whatever_their_origin(store: Store) -> None:
    late, due, later = planned(NINE - DAY, NINE, NINE + HOUR)
    [asked_for] = [replace(run, origin="backfill") for run in planned(NINE - HOUR)]
    schedule = set_status(store, create_with(store, late, due, later, asked_for), ENDED)
    assert late_ids(store) == []
    assert fall_due(store) == PlannedOutcome(dropped=3)
    assert states(store, late, due, later, asked_for) == [SKIPPED, SKIPPED, PLANNED, SKIPPED]
    assert run_of(store, due.run_id) == replace(due, state=SKIPPED, reason="ended", finished_at=NINE)
    assert deliveries(store) == []
    again = planned_run_at(schedule, NINE + 2 * HOUR, period_key=due.period_key)
    plan(store, record_of(store, schedule).schedule, again)


def test_only_planned_runs_fall_due(store: Store) -> None:
    runs = planned(*(NINE - minutes * MINUTE for minutes in range(4)))
    schedule = create_with(store, *runs)
    changes = (
        change_to(runs[0], HELD),
        change_to(runs[1], SKIPPED, reason="on_request"),
        change_to(runs[2], RunState.CANCELLED),
        change_to(runs[3], QUEUED),
    )
    commit(store, replace(change_of(schedule), run_changes=changes))
    before = contents(store)
    assert (fall_due(store), late_ids(store)) == (NOTHING, [])
    assert contents(store) == before


def test_each_outcome_takes_its_own_share_of_the_limit_oldest_first(store: Store) -> None:
    """A backlog of one kind keeps the others waiting for nothing."""
    runs = {
        id_: [
            planned_run_at(new_schedule(id_).schedule, NINE + number * HOUR, due=NINE - number * MILLISECOND)
            for number in range(4)
        ]
        for id_ in ("a", "b", "c")
    }
    for id_, status in (("a", ACTIVE), ("b", ScheduleStatus.PAUSED), ("c", ENDED)):
        set_status(store, create_with(store, *runs[id_], id_=id_), status)
    two_of_each = PlannedOutcome(queued=2, held=2, dropped=2)
    assert fall_due(store, limit=2) == two_of_each
    for id_, state in (("a", QUEUED), ("b", HELD), ("c", SKIPPED)):
        assert states(store, *runs[id_]) == [PLANNED, PLANNED, state, state]
    assert fall_due(store, limit=2) == two_of_each
    assert fall_due(store, limit=2) == NOTHING


def test_runs_of_one_instant_fall_due_by_their_id(store: Store) -> None:
    for id_ in ("b", "a_1", "a-1", "a1"):
        create_with(store, *planned(NINE, id_=id_), id_=id_)
    assert late_ids(store, now=NINE + DAY) == [
        f"{id_}.1.20260110T090000Z" for id_ in ("a-1", "a1", "a_1", "b")
    ]
    fall_due(store, limit=3)
    assert [delivery.run_id.partition(".")[0] for delivery in deliveries(store)] == ["a-1", "a1", "a_1"]


def test_late_runs_are_read_oldest_first_in_pages_that_end(store: Store) -> None:
    late = planned(*(NINE - hours * HOUR for hours in range(1, 5)))
    create_with(store, *late)
    ids = [run.run_id for run in reversed(late)]
    assert late_ids(store) == ids
    assert late_ids(store, limit=2) == ids[:2]
    assert late_ids(store, limit=0) == []


def test_a_late_run_is_read_with_all_that_judging_it_needs(store: Store) -> None:
    schedule = new_schedule().schedule
    run = replace(planned_run_at(schedule, NINE - HOUR), second_pass=True, carried_by=1)
    schedule = create_with(store, run)
    paused = commit(store, pause(schedule, at=NINE - DAY))
    resumed = commit(store, resume(paused, at=NINE - MINUTE, paused_at=NINE - DAY))
    moved = replace(change_of(resumed), cursor=Cursor(version=1, scheduled_at=FAR, due_at=NINE - 2 * HOUR))
    held = change_to(planned_run_at(schedule, NINE - 5 * HOUR), HELD).run
    parked = commit(store, replace(moved, runs=(held,)))
    commit(store, edit(parked, new_version(number=2, effective_from=FAR - HOUR)))
    [due] = store.read_due(0, now=NINE, limit=1)
    assert isinstance(due, DueSchedule)
    assert due.parked
    assert due.successor is not None
    # Both are the business of the schedule's own step.
    wanted = PlannedDue(run=run, due=replace(due, successor=None, parked=()))
    assert store.read_planned(0, now=NINE, limit=10) == [wanted]


def test_a_late_run_is_judged_by_its_own_version(store: Store) -> None:
    """The cursor may be another's by then."""
    new, run = new_schedule(), planned(NINE - HOUR)[0]
    second = new_version(number=2, effective_from=NINE - MINUTE)
    edited = edit(create_with(store, run), second, cursor=cursor(FAR, version=2))
    third = replace(edited, versions=(second, new_version(number=3, effective_from=FAR)))
    schedule = commit(store, third)
    [late] = store.read_planned(0, now=NINE, limit=10)
    assert isinstance(late, PlannedDue)
    assert late.due == DueSchedule(
        schedule=schedule,
        version=replace(new.first.version, effective_until=NINE - MINUTE),
        suspensions=(),
        job_overdue=LatestOnly(),
    )


def test_a_late_run_whose_version_is_lost_stops_only_its_schedule(store: Store) -> None:
    """I12."""
    [bad], [sound] = planned(NINE - DAY, id_="bad"), planned(NINE - HOUR)
    schedule = create_with(store, replace(bad, version=9), id_="bad")
    create_with(store, sound)
    first, second = store.read_planned(0, now=NINE, limit=10)
    assert isinstance(first, Unreadable)
    assert (first.schedule_id, first.status, first.cursor, first.revision) == (
        "bad",
        ACTIVE,
        schedule.cursor,
        schedule.revision,
    )
    assert "version 9 does not exist" in first.problem
    assert isinstance(second, PlannedDue)
    assert second.run == sound


def test_only_the_partition_of_the_fence_falls_due(store: Store) -> None:
    runs = [planned(NINE, id_=id_)[0] for id_ in ("a", "b")]
    for partition, run in enumerate(runs):
        create_with(store, run, id_=run.schedule_id, partition=partition)
    assert fall_due(store, partition=1) == PlannedOutcome(queued=1)
    assert states(store, *runs) == [PLANNED, QUEUED]
    assert (late_ids(store, now=NINE + DAY), late_ids(store, now=NINE + DAY, partition=1)) == (
        [runs[0].run_id],
        [],
    )
    assert late_ids(store, now=NINE + DAY, partition=2) == []


def test_nothing_falls_due_under_another_epoch(store: Store) -> None:
    """I6."""
    [run] = planned(NINE)
    create_with(store, run)
    stale = hold(store)[0]
    store.commit_releases("node-a", [stale], now=MADE_AT)
    [current] = hold(store, "node-b")
    before = contents(store)
    for fence in (stale, replace(current, epoch=current.epoch + 1), Fence(partition=99, epoch=1)):
        assert store.commit_planned(fence, now=NINE, limit=10) == NOTHING
    assert contents(store) == before
    assert store.commit_planned(current, now=NINE, limit=10) == PlannedOutcome(queued=1)


def test_a_planned_run_is_something_that_falls_due(store: Store) -> None:
    """Whatever the status of its schedule: it is to be queued, held or dropped."""
    for partition, status in enumerate(ScheduleStatus):
        run = planned(NINE + partition * HOUR, id_=f"s{partition}")[0]
        schedule = create_with(store, run, id_=f"s{partition}", partition=partition)
        set_status(store, schedule, status)
    assert earliest_due(store, range(4)) == {number: NINE + number * HOUR for number in range(4)}


def test_due_times_are_the_earlier_of_schedules_and_planned_runs(store: Store) -> None:
    schedule = create(store)
    moved = planned_run_at(schedule, NINE + DAY, due=NINE - HOUR)
    schedule = plan(
        store, schedule, moved, planned_run_at(schedule, NINE + HOUR), run_at(schedule, NINE - DAY)
    )
    assert earliest_due(store, [0]) == {0: NINE - HOUR}
    held = change_to(moved, HELD)
    commit(store, replace(change_of(schedule), run_changes=(held,)))
    assert earliest_due(store, [0]) == {0: NINE}
