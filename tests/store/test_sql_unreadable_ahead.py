"""Runs ahead of their time that make no sense in the SQL store: each stops only itself, or its schedule (I12)."""

from dataclasses import replace
from pathlib import Path

from rota.domain.due import DueSchedule
from rota.domain.identity import RunId, ScheduleId
from rota.domain.planned import PARKED_PER_ADMISSION_MAX
from rota.domain.run import Run, RunState
from rota.domain.schedule import Schedule
from rota.store.port import (
    AdmissionOutcome,
    ChangeOutcome,
    Fence,
    PlannedDue,
    PlannedOutcome,
    Unreadable,
)
from rota.store.sql import SqlStore
from tests.contract.builders import (
    DAY,
    HOUR,
    NINE,
    SECOND,
    admission,
    change_of,
    change_to,
    new_schedule,
    planned_run_at,
    run_at,
)
from tests.contract.steps import create, delivery_of, earliest_due, fence_of, queue_run, record_of, run_of
from tests.store.raw import execute

BAD = ScheduleId("bad")
GOOD = ScheduleId("good")
LATE = NINE + HOUR


def plan(store: SqlStore, schedule: Schedule, *made: Run) -> None:
    change = replace(change_of(schedule), expected_cursor=None, runs=made)
    assert store.commit_change(change) is ChangeOutcome.CHANGED


def plan_both(store: SqlStore) -> list[Run]:
    """A planned run of the bad schedule and one of the good, both due at nine."""
    made = []
    for id_ in (BAD, GOOD):
        schedule = create(store, new_schedule(id_, due=NINE + DAY))
        made.append(planned_run_at(schedule, NINE))
        plan(store, schedule, made[-1])
    return made


def test_a_late_run_that_makes_no_sense_is_told_with_its_schedule(store: SqlStore, path: Path) -> None:
    plan_both(store)
    execute(path, "UPDATE runs SET offset_seconds = 90000 WHERE schedule_id = 'bad'")
    bad, good = store.read_planned(0, now=LATE, limit=10)
    assert isinstance(bad, Unreadable)
    assert isinstance(good, PlannedDue)
    assert (bad.schedule_id, bad.revision, bad.cursor.due_at) == (BAD, 1, NINE + DAY)
    assert "run bad.1.20260110T090000Z" in bad.problem


def test_a_late_run_of_a_schedule_that_makes_no_sense_is_told_as_that_schedule(
    store: SqlStore, path: Path
) -> None:
    plan_both(store)
    execute(path, "UPDATE schedules SET labels = '' WHERE id = 'bad'")
    bad, good = store.read_planned(0, now=LATE, limit=10)
    assert isinstance(bad, Unreadable)
    assert isinstance(good, PlannedDue)
    assert "schedule bad" in bad.problem


def test_a_run_that_makes_no_sense_is_queued_in_time_with_the_others(store: SqlStore, path: Path) -> None:
    made = plan_both(store)
    execute(path, "UPDATE runs SET named_local = 1e18 WHERE schedule_id = 'bad'")
    assert fall_due(store, fence_of(store, 0)) == PlannedOutcome(queued=2)
    deliveries = store.read_intents(["sales_report"], now=NINE, limit=10)
    opened = store.commit_openings("worker-1", deliveries, now=NINE)
    assert [attempt and attempt.run.run_id for attempt in opened] == [None, made[1].run_id]


def test_an_intent_that_belongs_to_nothing_gives_way_to_that_of_a_run_that_falls_due(
    store: SqlStore, path: Path
) -> None:
    made = plan_both(store)
    leftover = "INSERT INTO outbox SELECT job, turn, due_at, run_id, 7 FROM runs WHERE schedule_id = 'bad'"
    execute(path, leftover)
    assert fall_due(store, fence_of(store, 0)) == PlannedOutcome(queued=2)
    expected = [replace(run, state=RunState.QUEUED, available_at=run.due_at) for run in made]
    waiting = store.read_intents(["sales_report"], now=NINE, limit=10)
    assert waiting == [delivery_of(run) for run in expected]


def test_a_planned_run_whose_schedule_is_gone_is_dropped_so_that_it_is_not_due_for_ever(
    store: SqlStore, path: Path
) -> None:
    bad, _ = plan_both(store)
    execute(path, "DELETE FROM schedules WHERE id = 'bad'")
    fence = fence_of(store, 0)
    assert fall_due(store, fence) == PlannedOutcome(queued=1, dropped=1)
    assert (run_of(store, bad.run_id).state, run_of(store, bad.run_id).reason) == (RunState.SKIPPED, "ended")
    assert earliest_due(store, [0]) == {0: NINE + DAY}


def test_held_runs_that_make_no_sense_keep_the_place_of_no_other(store: SqlStore, path: Path) -> None:
    schedule = create(store)
    held = [
        replace(planned_run_at(schedule, NINE + number * SECOND), state=RunState.HELD)
        for number in range(PARKED_PER_ADMISSION_MAX + 2)
    ]
    plan(store, schedule, *held)
    resumed = replace(change_of(schedule), cursor=replace(schedule.cursor, due_at=NINE - HOUR))
    assert store.commit_change(resumed) is ChangeOutcome.CHANGED
    execute(path, "UPDATE runs SET offset_seconds = 90000 WHERE scheduled_at % 5000 = 0")
    [due] = store.read_due(0, now=NINE, limit=10)
    assert isinstance(due, DueSchedule)
    readable = [run for number, run in enumerate(held) if number % 5]
    assert list(due.parked) == readable[:PARKED_PER_ADMISSION_MAX]


def test_what_lies_ahead_is_listed_over_what_makes_no_sense(store: SqlStore, path: Path) -> None:
    schedule = create(store)
    planned = [planned_run_at(schedule, NINE + number * HOUR) for number in range(6)]
    skipped = [
        replace(
            run,
            run_id=RunId(f"{run.run_id}.x"),
            state=RunState.SKIPPED,
            reason="on_request",
            period_key=f"k{place}",
        )
        for place, run in enumerate(planned)
    ]
    plan(store, schedule, *planned, *skipped)
    execute(path, "UPDATE runs SET offset_seconds = 90000 WHERE (scheduled_at / 3600000) % 3 != 0")
    everything = [run for pair in zip(planned, skipped, strict=True) for run in pair]
    good = [run for run in everything if (run.scheduled_at - NINE) // HOUR % 3 == 0]
    assert len(good) == 4
    for limit in (1, 2, 3, 100):
        assert store.list_ahead(schedule.schedule_id, from_=NINE, limit=limit) == good[:limit]


def test_an_instant_beyond_all_dates_is_no_last_run(store: SqlStore, path: Path) -> None:
    schedule = create(store)
    plan(store, schedule, run_at(schedule, NINE), run_at(schedule, NINE + DAY))
    execute(path, "UPDATE runs SET scheduled_at = 1e18 WHERE run_id LIKE '%20260111%'")
    assert store.get_last_run_time(schedule.schedule_id) == NINE


def test_a_queued_run_that_lost_its_intent_can_be_changed(store: SqlStore, path: Path) -> None:
    run = queue_run(store)
    execute(path, "DELETE FROM outbox")
    schedule = record_of(store, new_schedule().schedule).schedule
    change = replace(change_of(schedule), run_changes=(change_to(run, RunState.CANCELLED),))
    assert store.commit_change(change) is ChangeOutcome.CHANGED
    assert run_of(store, run.run_id).state is RunState.CANCELLED


def test_a_schedule_that_lost_its_version_owns_no_instant(store: SqlStore, path: Path) -> None:
    schedules = [create(store, new_schedule(id_)) for id_ in (BAD, GOOD)]
    execute(path, "DELETE FROM versions WHERE schedule_id = 'bad'")
    outcomes = store.commit_admissions(fence_of(store, 0), [admission(each) for each in schedules], now=NINE)
    assert outcomes == [AdmissionOutcome.NOT_OWNED, AdmissionOutcome.ADMITTED]


def fall_due(store: SqlStore, fence: Fence) -> PlannedOutcome:
    return store.commit_planned(fence, now=NINE, limit=10)
