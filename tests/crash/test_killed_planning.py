"""Killed in the middle of what takes several commits, and asked for again: nothing is there twice, nothing is missing.

What is planned falls due, is held in a pause and released, and is dropped when the schedule ends.
"""

from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from rota.domain.errors import Conflict
from rota.domain.run import RunState
from rota.domain.schedule import ScheduleStatus
from rota.service.backfill import backfill
from rota.service.planning import move_occurrence, plan_occurrences, skip_occurrence
from rota.service.schedules import end_schedule, pause_schedule, resume_schedule
from tests.crash.process import Process, kill_at_every_point, prepared_at
from tests.simulation.ledger import check_days

pytestmark = pytest.mark.slow

ID = "report"
CREATED = "2026-01-12T12:30:00Z"
FIRST = datetime.fromisoformat("2026-01-12T13:00:00Z")


def create_daily(process: Process) -> None:
    process.create(ID, "0 9 * * *", "Europe/London")


def create_hourly(process: Process) -> None:
    process.create(ID, "0 * * * *", "Europe/London")


def plan_thirty_hours(process: Process) -> None:
    plan_occurrences(process.context, ID, until="2026-01-13T18:00:00Z")


def states(process: Process) -> dict[datetime, tuple[RunState, str | None]]:
    runs = process.ledger(ID).runs.values()
    return {run.scheduled_at: (run.state, run.reason) for run in runs}


def hours(count: int) -> list[datetime]:
    return [FIRST + timedelta(hours=number) for number in range(count)]


def test_a_plan_that_is_killed_and_repeated_has_every_day_once(folder: Path) -> None:
    def plan(process: Process) -> None:
        plan_occurrences(process.context, ID, until="2026-03-13T12:00:00Z")

    def check(process: Process) -> None:
        planned = process.ledger(ID).runs
        assert len(planned) % 25 == 0 or len(planned) == 60, "the soonest first, in whole commits"
        plan(process)
        ledger = process.ledger(ID)
        check_days(ledger)
        assert len(ledger.runs) == 60
        assert {run.state for run in ledger.runs.values()} == {RunState.PLANNED}

    database = prepared_at(folder, [(CREATED, create_daily)])
    killed = kill_at_every_point(
        database, plan, check, at="2026-01-12T12:40:00Z", restart="2026-01-12T12:41:00Z"
    )
    assert killed > 20


def test_a_backfill_that_is_killed_and_repeated_has_every_day_once(folder: Path) -> None:
    def fill(process: Process) -> None:
        backfill(process.context, ID, from_="2025-12-01T00:00:00Z", until="2026-01-12T12:00:00Z")

    def check(process: Process) -> None:
        process.ledger(ID)
        fill(process)
        process.dispatch("2026-01-13T09:00:00Z")
        ledger = process.ledger(ID)
        check_days(ledger)
        assert len(ledger.runs) == 43 + 1
        assert {run.state for run in ledger.runs.values()} == {RunState.QUEUED}

    database = prepared_at(folder, [(CREATED, create_daily)])
    killed = kill_at_every_point(
        database, fill, check, at="2026-01-12T12:40:00Z", restart="2026-01-12T12:41:00Z"
    )
    assert killed > 20


def test_killed_while_planned_runs_fall_due_each_is_queued_once_with_its_intent(folder: Path) -> None:
    """One that was planned and comes in time, and the next, which was not planned."""

    def plan_one(process: Process) -> None:
        plan_occurrences(process.context, ID, until="2026-01-12T13:00:00Z")

    def dispatch(process: Process) -> None:
        process.dispatch("2026-01-12T13:00:00Z", "2026-01-12T14:00:00Z")

    def check(process: Process) -> None:
        process.ledger(ID)
        process.dispatch()
        assert states(process) == dict.fromkeys(hours(2), (RunState.QUEUED, None))

    database = prepared_at(folder, [(CREATED, create_hourly), (CREATED, plan_one)])
    killed = kill_at_every_point(
        database, dispatch, check, at="2026-01-12T12:59:59Z", restart="2026-01-12T14:01:00Z"
    )
    assert killed > 50


def test_killed_while_runs_are_held_and_released_none_is_forgotten(folder: Path) -> None:
    """Thirty fall due in the pause, the first of them in time: their release takes two commits, and the instant behind
    them follows."""

    def pause(process: Process) -> None:
        pause_schedule(process.context, ID)

    def resume(process: Process) -> None:
        resume_schedule(process.context, ID, apply_overdue=True)

    def hold_and_release(process: Process) -> None:
        process.dispatch("2026-01-12T13:00:00Z", "2026-01-13T19:00:00Z")
        resume(process)
        process.dispatch()

    def check(process: Process) -> None:
        ledger = process.ledger(ID)
        if ledger.record.schedule.status is ScheduleStatus.PAUSED:
            assert {run.state for run in ledger.runs.values()} <= {RunState.PLANNED, RunState.HELD}
        resume(process)
        process.dispatch()
        assert states(process) == dict.fromkeys(hours(31), (RunState.QUEUED, None))

    database = prepared_at(
        folder,
        [
            (CREATED, create_hourly),
            (CREATED, plan_thirty_hours),
            (CREATED, pause),
        ],
    )
    killed = kill_at_every_point(
        database, hold_and_release, check, at="2026-01-12T12:59:59Z", restart="2026-01-13T19:01:00Z"
    )
    assert killed > 60


def test_killed_in_a_skip_a_move_and_the_end_every_planned_run_has_its_one_outcome(folder: Path) -> None:
    def skip_and_move(process: Process) -> None:
        skip_occurrence(process.context, ID, scheduled_at="2026-01-12T14:00:00Z")
        move_occurrence(process.context, ID, scheduled_at="2026-01-12T15:00:00Z", to="2026-01-14T15:30:00Z")

    def skip_move_and_end(process: Process) -> None:
        skip_and_move(process)
        end_schedule(process.context, ID)
        process.dispatch()

    def check(process: Process) -> None:
        process.ledger(ID)
        with suppress(Conflict):  # the schedule has ended, so its runs may be skipped already
            skip_and_move(process)
        end_schedule(process.context, ID)
        process.dispatch()
        on_request = {hours(2)[1]: (RunState.SKIPPED, "on_request")}
        assert states(process) == {**dict.fromkeys(hours(30), (RunState.SKIPPED, "ended")), **on_request}
        moved = process.ledger(ID).runs["report.1.20260112T150000Z"]
        assert moved.due_at == datetime.fromisoformat("2026-01-14T15:30:00Z")

    database = prepared_at(folder, [(CREATED, create_hourly), (CREATED, plan_thirty_hours)])
    killed = kill_at_every_point(
        database, skip_move_and_end, check, at="2026-01-12T12:40:00Z", restart="2026-01-12T12:41:00Z"
    )
    assert killed > 60
