"""B43: killed at every statement around admission and an attempt, then restarted: one run, one delivery intent."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from rota.application import Rota
from rota.config import Settings
from rota.dispatch.dispatcher import Dispatcher
from rota.domain.job import RetryPolicy
from rota.domain.run import RunState
from rota.domain.schedule import ScheduleStatus
from rota.service.context import Context
from rota.service.creation import create_schedule
from rota.service.jobs import put_job
from rota.store.port import RunFilter
from rota.testing.clock import ManualClock
from rota.wiring import open_context
from rota.worker.context import RunContext
from rota.worker.registry import Registry
from tests.crash.kill import Ending, run_and_kill

pytestmark = pytest.mark.slow

NINE = datetime(2025, 6, 10, 9, tzinfo=UTC)
LEASE = timedelta(seconds=15)
RESTART = NINE + LEASE + timedelta(minutes=1)
POINTS_MAX = 400
RUN = "report.1.20250610T090000Z"


def opened(database: Path, now: datetime) -> Context:
    """Every process reads the clocks of the same machine, which was started an hour before."""
    clock = ManualClock(NINE - timedelta(hours=1))
    clock.set(now)
    return open_context(Settings(database_url=str(database), partitions=2), clock=clock)


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


def admit(database: Path, now: datetime, owner: str) -> None:
    context = opened(database, now)
    steps = dispatcher(context, owner)
    while steps.step(now).wake_at <= now:
        pass
    context.store.close()


def work(database: Path, now: datetime, started: Path) -> None:
    """A worker that notes each attempt that it starts, outside the database, as a mail server would."""
    registry = Registry()

    @registry.job("sales_report", lease=timedelta(seconds=15), retry=RetryPolicy(initial_delay=timedelta(0)))
    def sales_report(ctx: RunContext) -> dict[str, object]:
        ctx.progress(0.5, "half")
        with started.open("a") as file:
            file.write(f"{ctx.idempotency_key}\n")
        return {"attempt": ctx.attempt}

    context = opened(database, now)
    with Rota(store=context.store, clock=context.clock, registry=registry) as application:
        worker = application.build_worker(inline=True)
        while worker.step(now).wake_at <= now:
            pass
    context.store.close()


@pytest.fixture
def prepared() -> Iterator[Path]:
    """A database in which one schedule falls due at nine; where there is a disk in memory, there."""
    disk = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=disk if disk.is_dir() else None) as name:
        database = Path(name) / "prepared.db"
        context = opened(database, NINE - timedelta(hours=1))
        put_job(context, "sales_report", {"lease": "PT15S"})
        body = {"id": "report", "job": "sales_report", "timezone": "UTC", "recurrence": {"cron": "0 9 * * *"}}
        create_schedule(context, {**body, "overdue": {"policy": "catch_up_all"}})
        context.store.close()
        yield database


def kill_at_every_point(
    prepared: Path, work_on: Callable[[Path], None], check: Callable[[Path], None]
) -> int:
    """The number of points at which the work was killed, each on a database of its own."""
    for at in range(1, POINTS_MAX):
        database = prepared.with_name(f"killed-at-{at}.db")
        shutil.copy(prepared, database)
        ending = run_and_kill(partial(partial, work_on, database), at=at)
        check(database)
        if ending is Ending.FINISHED:
            return at - 1
    raise AssertionError("the work never came to its end")


def test_killed_at_any_statement_around_admission_one_run_and_one_outbox_row_are_left(prepared: Path) -> None:
    def check(database: Path) -> None:
        admit(database, RESTART, "restarted")
        context = opened(database, RESTART)
        [run] = context.store.list_runs(RunFilter(), before=None, limit=10)
        [delivery] = context.store.read_intents(["sales_report"], now=RESTART, limit=10)
        assert (run.run_id, run.state) == (RUN, RunState.QUEUED)
        assert (delivery.run_id, delivery.attempt) == (run.run_id, 1)
        record = context.store.get_schedule(run.schedule_id)
        assert record is not None
        assert record.schedule.status is ScheduleStatus.ACTIVE
        assert record.schedule.cursor.due_at == NINE + timedelta(days=1)
        context.store.close()

    killed = kill_at_every_point(prepared, lambda database: admit(database, NINE, "killed"), check)
    assert killed > 20


def test_killed_at_any_statement_of_an_attempt_the_run_is_finished_under_the_same_id(prepared: Path) -> None:
    admit(prepared, NINE, "dispatcher")

    def work_on(database: Path) -> None:
        work(database, NINE, database.with_suffix(".noted"))

    def check(database: Path) -> None:
        noted = database.with_suffix(".noted")
        admit(database, RESTART, "restarted")
        work(database, RESTART, noted)
        context = opened(database, RESTART)
        [run] = context.store.list_runs(RunFilter(), before=None, limit=10)
        assert (run.run_id, run.state) == (RUN, RunState.SUCCEEDED)
        assert context.store.read_intents(["sales_report"], now=RESTART, limit=10) == []
        assert run.attempt in {1, 2}
        assert set(noted.read_text().split()) == {RUN}, "delivered at least once, always under the same id"
        context.store.close()

    assert kill_at_every_point(prepared, work_on, check) > 20
