"""The dispatch protocol: runs that an end or a resumption has still to decide come with their due schedule."""

from dataclasses import replace
from datetime import datetime

import pytest

from rota.domain.due import DueSchedule
from rota.domain.planned import PARKED_PER_ADMISSION_MAX
from rota.domain.run import Run, RunState
from rota.domain.schedule import Cursor, ScheduleStatus
from rota.store.port import Store
from tests.contract.builders import (
    DAY,
    HOUR,
    MINUTE,
    NINE,
    SECOND,
    change_of,
    change_to,
    new_schedule,
    planned_run_at,
    run_at,
    status_change,
)
from tests.contract.steps import commit, create, due_ids, plan

HELD = RunState.HELD
ACTIVE, ENDED = ScheduleStatus.ACTIVE, ScheduleStatus.ENDED


def parked_in(store: Store) -> list[tuple[Run, ...]]:
    due = store.read_due(0, now=NINE, limit=10)
    return [entry.parked for entry in due if isinstance(entry, DueSchedule)]


def create_parking(
    store: Store, moved: Cursor, status: ScheduleStatus, *, id_: str = "report-7"
) -> list[Run]:
    """A schedule with a run in each state that it can wait in: held, planned and queued, and one dropped."""
    schedule = create(store, new_schedule(id_))
    runs = [planned_run_at(schedule, NINE - minutes * MINUTE) for minutes in range(4)]
    schedule = plan(store, schedule, *runs, run_at(schedule, NINE - DAY))
    held = [change_to(run, HELD) for run in runs[:2]]
    dropped = change_to(runs[3], RunState.SKIPPED, reason="paused")
    change = replace(status_change(schedule, status, at=NINE), cursor=moved, run_changes=(*held, dropped))
    commit(store, change)
    return [held[0].run, held[1].run, runs[2]]


WAITING = Cursor(version=1, scheduled_at=NINE + DAY, due_at=NINE)
NEVER = Cursor(version=1, scheduled_at=None, due_at=NINE)


@pytest.mark.parametrize("moved", [WAITING, NEVER], ids=str)
def test_a_resumed_schedule_comes_with_its_held_runs(store: Store, moved: Cursor) -> None:
    newest, oldest, _ = create_parking(store, moved, ACTIVE)
    assert parked_in(store) == [(oldest, newest)]


@pytest.mark.parametrize("moved", [WAITING, NEVER], ids=str)
def test_an_ended_schedule_comes_with_its_held_and_planned_runs(store: Store, moved: Cursor) -> None:
    newest, middle, oldest = create_parking(store, moved, ENDED)
    assert parked_in(store) == [(oldest, middle, newest)]


@pytest.mark.parametrize("status", [ACTIVE, ENDED])
@pytest.mark.parametrize("instant", [NINE, NINE - SECOND], ids=str)
def test_a_schedule_that_is_due_for_its_own_instant_comes_without(
    store: Store, status: ScheduleStatus, instant: datetime
) -> None:
    create_parking(store, Cursor(version=1, scheduled_at=instant, due_at=NINE), status)
    assert parked_in(store) == [()]


def test_parked_runs_are_those_of_the_schedule_itself(store: Store) -> None:
    one = create_parking(store, WAITING, ACTIVE, id_="a")
    other = create_parking(store, WAITING, ENDED, id_="b")
    empty = create(store, new_schedule("c"))
    commit(store, replace(change_of(empty), cursor=WAITING))
    assert parked_in(store) == [tuple(one[1::-1]), tuple(other[::-1]), ()]


def test_parked_runs_come_in_bounded_steps_by_due_instant_then_id(store: Store) -> None:
    schedule = create(store)
    runs = [
        planned_run_at(schedule, NINE - pair * HOUR + second * SECOND, due=NINE + pair * HOUR)
        for pair in range(PARKED_PER_ADMISSION_MAX // 2 + 2)
        for second in range(2)
    ]
    schedule = plan(store, schedule, *reversed(runs))
    commit(store, status_change(schedule, ENDED, at=NINE, cursor=NEVER))
    assert parked_in(store) == [tuple(runs[:PARKED_PER_ADMISSION_MAX])]


def test_a_schedule_is_due_for_its_parked_runs_before_its_instant(store: Store) -> None:
    create_parking(store, WAITING, ACTIVE)
    assert due_ids(store, now=NINE - SECOND) == []
    assert due_ids(store, now=NINE) == ["report-7"]
