"""A PostgreSQL server that crashes, and one that cuts connections off: work goes on by itself, nothing is lost or
doubled."""

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from signal import SIGQUIT

import psycopg
import pytest
from sqlalchemy import Connection, event
from sqlalchemy.engine import Engine
from starlette.testclient import TestClient

from rota import Rota
from rota.api.application import create_api
from rota.config import Settings
from rota.domain.errors import RotaError
from rota.domain.run import Run, RunState
from rota.service.context import Context
from rota.service.creation import create_schedule
from rota.service.jobs import put_job
from rota.store.port import RunFilter
from rota.store.sql import open_sql_store
from rota.testing.clock import ManualClock
from rota.wiring import open_context
from rota.worker.context import RunContext
from rota.worker.registry import Registry
from tests.conftest import NewDatabase
from tests.dispatch.conftest import dispatcher_on
from tests.postgresql import PostgresServer, running_server

pytestmark = pytest.mark.slow

JOB = "report"
LIMIT_SECONDS = 60.0
LOOK_SECONDS = 0.05
START = datetime(2026, 1, 12, 8, 0, 30, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
MINUTES = 25
CUT_OFF_ONCE_IN = 25
"""Statements."""


def runs_of(context: Context) -> list[Run]:
    return context.store.list_runs(RunFilter(), before=None, limit=100_000)


def wait_until(condition: Callable[[], bool]) -> None:
    """Looks again and again; fails where it does not come true in time."""
    never = threading.Event()
    for _ in range(round(LIMIT_SECONDS / LOOK_SECONDS)):
        if condition():
            return
        never.wait(LOOK_SECONDS)
    raise AssertionError("it never came true")


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with running_server() as server:
        yield server


def test_a_server_that_crashes_at_work_is_come_back_to_and_every_second_has_its_run(
    server: PostgresServer,
) -> None:
    effects: list[str] = []
    settings = Settings(database_url=server.url(), partitions=2, poll_seconds=0.1, lease_seconds=6)
    with Rota(settings=settings, registry=Registry()) as app, app_at_work(app, effects) as succeeded:
        ready = TestClient(create_api(app.context))
        wait_until(lambda: succeeded() >= 3)
        for _ in range(2):
            server.stop(SIGQUIT)
            answer = ready.get("/health/ready")
            assert answer.status_code == 503
            assert "\n" not in answer.json()["checks"]["store"]["problem"]
            server.start()
            wait_until(lambda: ready.get("/health/ready").status_code == 200)
            before = succeeded()
            wait_until(lambda before=before: succeeded() >= before + 3)  # type: ignore[misc]  # a default, not a parameter
        app.end("every-second")
        wait_until(lambda: {run.state for run in runs_of(app.context)} == {RunState.SUCCEEDED})
        runs = runs_of(app.context)
    instants = sorted(run.scheduled_at for run in runs)
    assert instants == [instants[0] + timedelta(seconds=number) for number in range(len(instants))]
    assert {run.run_id for run in runs} == set(effects)


@contextmanager
def app_at_work(app: Rota, effects: list[str]) -> Iterator[Callable[[], int]]:
    """It dispatches and works in threads of its own meanwhile; gives how many runs have succeeded."""

    @app.job(JOB, lease=timedelta(seconds=5))
    def handle(run: RunContext) -> None:
        effects.append(run.run_id)

    stop = threading.Event()
    loops = threading.Thread(target=app.run, args=(stop,), daemon=True)
    app.register_jobs()
    app.create_schedule(
        id="every-second",
        job=JOB,
        timezone="UTC",
        recurrence={"every": "PT1S"},
        overdue={"policy": "catch_up_all"},
    )
    loops.start()
    try:
        yield lambda: sum(run.state is RunState.SUCCEEDED for run in runs_of(app.context))
    finally:
        stop.set()
        loops.join(LIMIT_SECONDS)
        assert not loops.is_alive()


class Cutter:
    """Ends the server's side of connections, each before a statement that a seed chooses."""

    def __init__(self, url: str, seed: int) -> None:
        self._dice = random.Random(seed)
        self._admin = psycopg.connect(url, autocommit=True)
        self.is_cutting = True
        self.cut = 0

    def before_statement(self, connection: Connection, *_: object) -> None:
        if (
            connection.dialect.name == "postgresql"
            and self.is_cutting
            and not self._dice.randrange(CUT_OFF_ONCE_IN)
        ):
            self.cut += 1
            pid = connection.connection.driver_connection.info.backend_pid  # type: ignore[union-attr]  # psycopg's
            self._admin.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))

    def close(self) -> None:
        self._admin.close()


@pytest.fixture(params=range(2))
def cutter(request: pytest.FixtureRequest, new_database: NewDatabase) -> Iterator[tuple[str, Cutter]]:
    url = new_database("postgresql")
    cutter = Cutter(url, request.param)
    yield url, cutter
    cutter.close()


def test_whatever_statement_a_connection_is_lost_at_every_minute_has_one_run(
    cutter: tuple[str, Cutter],
) -> None:
    url, cuts = cutter
    clock = ManualClock(START)
    store = open_sql_store(url)
    context = open_context(Settings(partitions=2), store=store, clock=clock)
    put_job(context, JOB, {"lease": "PT15S"})
    body = {"id": "report", "job": JOB, "timezone": "UTC", "recurrence": {"cron": "* * * * *"}}
    create_schedule(context, {**body, "overdue": {"policy": "catch_up_all"}})
    registry = Registry()
    worked: Counter[str] = Counter()
    registry.job(JOB, lease=timedelta(seconds=15))(lambda run: worked.update([run.run_id]))
    event.listen(Engine, "before_cursor_execute", cuts.before_statement)
    try:
        with Rota(store=store, clock=clock, registry=registry) as app:
            failed = work_through(app, context, cuts)
    finally:
        event.remove(Engine, "before_cursor_execute", cuts.before_statement)
    runs = runs_of(context)
    store.close()
    assert failed > MINUTES / 4
    assert cuts.cut >= failed
    first = START.replace(second=0) + MINUTE
    assert sorted(run.scheduled_at for run in runs) == [first + n * MINUTE for n in range(MINUTES + 10)]
    assert {run.state for run in runs} == {RunState.SUCCEEDED}
    assert set(worked) == {run.run_id for run in runs}


def work_through(app: Rota, context: Context, cuts: Cutter) -> int:
    """Steps as the loops take them: one that fails is followed by another. How many failed."""
    clock = context.clock
    assert isinstance(clock, ManualClock)
    dispatcher = dispatcher_on(context, "d1")
    worker = app.build_worker(inline=True)
    failed = 0
    for number in range(2 * (MINUTES + 10)):
        cuts.is_cutting = number < 2 * MINUTES
        clock.advance(timedelta(seconds=30))
        for step in (dispatcher.step, worker.step, dispatcher.step, worker.step):
            try:
                step(clock.now())
            except RotaError:
                failed += 1
    return failed
