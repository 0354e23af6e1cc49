"""B43: killed at every statement around admission and around an attempt, then restarted: one run, one delivery intent."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rota.config import Settings
from rota.dispatch.dispatcher import Dispatcher
from rota.domain.run import AttemptOutcome, RunState
from rota.domain.schedule import ScheduleStatus
from rota.service.context import Context
from rota.service.jobs import put_job
from rota.service.schedules import create_schedule
from rota.store.port import RunFilter
from rota.testing.clock import ManualClock
from rota.wiring import open_context
from tests.crash.kill import Ending, run_and_kill

pytestmark = pytest.mark.slow

NINE = datetime(2025, 6, 10, 9, tzinfo=UTC)
LEASE = timedelta(seconds=15)
RESTART = NINE + LEASE + timedelta(minutes=1)
POINTS_MAX = 400
SETTINGS = {"partitions": 2}


def opened(database: Path, now: datetime) -> Context:
    return open_context(Settings(database=str(database), **SETTINGS), clock=ManualClock(now))  # type: ignore[arg-type]


def dispatcher(context: Context, owner: str) -> Dispatcher:
    return Dispatcher(
        context.store,
        cadences=context.cadences,
        clock=context.clock,
        owner=owner,
        lease=LEASE,
        poll=timedelta(seconds=1),
        page=100,
    )


def prepare(database: Path) -> None:
    context = opened(database, NINE - timedelta(hours=1))
    put_job(context, "sales_report", {"lease": "PT15S"})
    body = {"id": "report", "job": "sales_report", "timezone": "UTC", "recurrence": {"cron": "0 9 * * *"}}
    create_schedule(context, {**body, "overdue": {"policy": "catch_up_all"}})
    context.store.close()


def admit(database: Path, now: datetime, owner: str) -> None:
    context = opened(database, now)
    steps = dispatcher(context, owner)
    while steps.step(now).wake_at <= now:
        pass
    context.store.close()


def kill_at_every_point(
    prepare_and_work: Callable[[Path], Callable[[], None]], check: Callable[[Path], None], folder: Path
) -> int:
    """The number of points at which the work was killed, each on a database of its own."""
    for at in range(1, POINTS_MAX):
        database = folder / f"killed-at-{at}.db"
        ending = run_and_kill(prepare_and_work(database), at=at)
        check(database)
        if ending is Ending.FINISHED:
            return at - 1
    raise AssertionError("the work never came to its end")


def test_killed_at_any_statement_around_admission_one_run_and_one_outbox_row_are_left(tmp_path: Path) -> None:
    def work_on(database: Path) -> Callable[[], None]:
        prepare(database)
        return lambda: admit(database, NINE, "killed")

    def check(database: Path) -> None:
        admit(database, RESTART, "restarted")
        context = opened(database, RESTART)
        [run] = context.store.list_runs(RunFilter(), before=None, limit=10)
        [delivery] = context.store.read_deliveries(["sales_report"], now=RESTART, limit=10)
        assert (run.run_id, run.state) == ("report.1.20250610T090000Z", RunState.QUEUED)
        assert (delivery.run_id, delivery.attempt) == (run.run_id, 1)
        record = context.store.get_schedule(run.schedule_id)
        assert record is not None
        assert record.schedule.status is ScheduleStatus.ACTIVE
        assert record.schedule.cursor.due_at == NINE + timedelta(days=1)
        context.store.close()

    assert kill_at_every_point(work_on, check, tmp_path) > 20
