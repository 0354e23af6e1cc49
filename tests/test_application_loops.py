"""The loops of an application in its own process: pick-up, failure, and the signals that stop them."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import Queue
from typing import NoReturn

import pytest

from rota import Rota
from rota.application.loops import LoopFailed
from rota.config import Settings
from rota.store.memory import MemoryStore
from rota.store.port import Notice, OpenedAttempt, Store, Wanted
from rota.store.sql import open_sql_store
from rota.store.sql.listener import ListeningThread
from rota.testing import ManualClock, World
from tests.postgresql import Databases

DEADLINE_SECONDS = 10.0
DAY = timedelta(days=1)
NOW = datetime(2026, 1, 10, 10, tzinfo=UTC)
RUN_ID = "report-7.1.20260110T090000Z"


def document(**fields: object) -> dict[str, object]:
    return {"schedules": {"report-8": {"job": "echo", "timezone": "UTC", **fields}}}


@pytest.fixture
def stop() -> Iterator[threading.Event]:
    stop = threading.Event()
    yield stop
    stop.set()


def run_in_thread(app: Rota, stop: threading.Event) -> threading.Thread:
    thread = threading.Thread(target=app.run, args=(stop,))
    thread.start()
    return thread


class Apart:
    """The loops of one application, and another that asks: on PostgreSQL each with a store of its own."""

    def __init__(self, working: Store, asking: Store, *, poll_seconds: float) -> None:
        settings = Settings(partitions=4, poll_seconds=poll_seconds)
        self.working, self.asking = (Rota(settings=settings, store=store) for store in (working, asking))
        self._handled: Queue[str] = Queue()
        self.working.job("sales")(lambda context: self._handled.put(str(context.schedule_id)))
        self.working.register_jobs()

    def create(self, id_: str) -> None:
        """A schedule whose only occurrence is due within two seconds."""
        at = self.asking.context.clock.now().replace(microsecond=0) + timedelta(seconds=2)
        self.asking.create_schedule(
            id=id_, job="sales", timezone="UTC", recurrence={"at": at.isoformat().replace("+00:00", "Z")}
        )

    def assert_handled(self, id_: str) -> None:
        assert self._handled.get(timeout=DEADLINE_SECONDS) == id_, "nobody picked the run up"


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    """Of those who work and of those who ask."""
    if request.param != "postgresql":
        store = (
            MemoryStore() if request.param == "memory" else open_sql_store(f"sqlite:///{tmp_path}/rota.db")
        )
        yield store, store
        store.close()
        return
    databases: Databases = request.getfixturevalue("postgresql")
    url = databases.lend()
    opened = open_sql_store(url), open_sql_store(url)
    yield opened
    for store in opened:
        store.close()
    databases.give_back(url)


def test_pick_up_waits_for_no_poll(stores: tuple[Store, Store], stop: threading.Event) -> None:
    apart = Apart(*stores, poll_seconds=60)
    thread = run_in_thread(apart.working, stop)
    # After the first, whenever that came, both loops would sleep for a minute.
    for id_ in ("first", "second", "third"):
        apart.create(id_)
        apart.assert_handled(id_)
    apart.asking.create_schedule(id="later", job="sales", timezone="UTC", recurrence={"cron": "0 0 1 1 *"})
    for _ in range(2):
        apart.asking.run_now("later")
        apart.assert_handled("later")
    stop.set()
    thread.join(DEADLINE_SECONDS)
    assert not thread.is_alive()


def test_where_nothing_can_be_heard_looking_is_enough(
    postgresql: Databases, stop: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(thread: ListeningThread) -> NoReturn:
        raise OSError("This pooler lends a connection for a transaction only.")

    monkeypatch.setattr(ListeningThread, "_listening", fail)
    url = postgresql.lend()
    store = open_sql_store(url)
    apart = Apart(store, store, poll_seconds=0.2)
    thread = run_in_thread(apart.working, stop)
    for id_ in ("first", "second"):
        apart.create(id_)
        apart.assert_handled(id_)
    stop.set()
    thread.join(DEADLINE_SECONDS)
    assert not thread.is_alive()
    store.close()
    postgresql.give_back(url)


@pytest.fixture
def app() -> Rota:
    """With a run that has ended."""
    world = World(now=NOW - timedelta(hours=2))
    world.app.create_schedule(id="report-7", job="echo", timezone="UTC", recurrence={"cron": "0 9 * * *"})
    world.pass_time(until=NOW)
    return world.app


def heard_of(app: Rota, call: Callable[[Rota], object]) -> set[Notice]:
    """The notices that come of a call."""
    heard: set[Notice] = set()
    with closing(app.context.store.subscribe(heard.add)):
        call(app)
    return heard


def pause_and_miss_one(app: Rota) -> None:
    app.pause("report-7")
    clock = app.context.clock
    assert isinstance(clock, ManualClock)
    clock.advance(DAY)


@pytest.mark.parametrize(
    ("call", "notice"),
    [
        (
            lambda app: app.create_schedule(job="echo", timezone="UTC", recurrence={"every": "PT1M"}),
            Notice.DUE,
        ),
        (lambda app: app.edit("report-7", recurrence={"every": "PT1M"}), Notice.DUE),
        (lambda app: app.apply(document(recurrence={"every": "PT1M"})), Notice.DUE),
        (lambda app: app.move("report-7", NOW + timedelta(hours=23), NOW + timedelta(seconds=1)), Notice.DUE),
        (lambda app: app.backfill("report-7", NOW - 2 * DAY, NOW), Notice.DUE),
        (lambda app: app.run_now("report-7"), Notice.QUEUED),
        (lambda app: app.replay(RUN_ID, reason="asked for"), Notice.QUEUED),
    ],
)
def test_whatever_may_fall_due_at_once_is_heard_of(
    app: Rota, call: Callable[[Rota], object], notice: Notice
) -> None:
    assert heard_of(app, call) == {notice}


def test_what_fell_due_in_a_pause_is_heard_of_at_its_end(app: Rota) -> None:
    pause_and_miss_one(app)
    assert heard_of(app, lambda app: app.resume("report-7")) == {Notice.DUE}


def test_an_end_that_leaves_planned_runs_to_be_decided_is_heard_of(app: Rota) -> None:
    app.plan("report-7", NOW + DAY)
    assert heard_of(app, lambda app: app.end("report-7")) == {Notice.DUE}


@pytest.mark.parametrize(
    "call",
    [
        lambda app: app.create_schedule(job="echo", timezone="UTC", recurrence={"cron": "0 9 * * *"}),
        lambda app: app.edit("report-7", timezone="Europe/London"),
        lambda app: app.apply(document(recurrence={"cron": "0 9 * * *"})),
        lambda app: app.plan("report-7", NOW + DAY),
        lambda app: app.pause("report-7"),
    ],
)
def test_what_falls_due_later_wakes_nobody(app: Rota, call: Callable[[Rota], object]) -> None:
    assert heard_of(app, call) == set()


@pytest.mark.parametrize(
    "call",
    [
        lambda app: app.edit("report-7", recurrence={"every": "PT1M"}, dry_run=True),
        lambda app: app.apply(document(recurrence={"every": "PT1M"}), dry_run=True),
        lambda app: app.plan("report-7", NOW + DAY, dry_run=True),
        lambda app: app.backfill("report-7", NOW - 2 * DAY, NOW, dry_run=True),
        lambda app: app.pause("report-7", dry_run=True),
        lambda app: app.resume("report-7", dry_run=True),
        lambda app: app.apply_zones(dry_run=True),
    ],
)
def test_a_dry_run_writes_nothing_and_wakes_nobody(app: Rota, call: Callable[[Rota], object]) -> None:
    before = app.list_schedules(), app.runs(), app.versions("report-7"), app.history("report-7")
    assert heard_of(app, call) == set()
    assert (app.list_schedules(), app.runs(), app.versions("report-7"), app.history("report-7")) == before


class BrokenStore(MemoryStore):
    """Has a defect where workers claim."""

    def commit_claims(
        self,
        worker: str,
        wanted: Sequence[Wanted],
        *,
        now: datetime,
        limit: int,
        backlog_first: bool = False,
    ) -> list[OpenedAttempt]:
        raise ZeroDivisionError


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_loop_that_fails_stops_the_others(stop: threading.Event) -> None:
    app = Rota(settings=Settings(partitions=1), store=BrokenStore())
    with pytest.raises(LoopFailed, match="The worker of this process failed"):
        app.run(stop)
    assert stop.is_set()


PROGRAM = """
import os, sys, threading
from rota import Rota

app = Rota(sys.argv[1])
let_go = threading.Event()

@app.job("sales")
def handle(context):
    os.write(1, b"begun")
    threading.Timer(0.3, let_go.set).start()
    let_go.wait(10)
    return "done"

app.create_schedule(id="report-7", job="sales", timezone="UTC", recurrence={"every": "PT1S"}, max_occurrences=1)
app.run()
app.close()
"""


@pytest.mark.slow
def test_a_signal_stops_the_loops_after_the_handlers_have_ended(tmp_path: Path) -> None:
    path = tmp_path / "rota.db"
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        assert process.stdout is not None
        while b"begun" not in os.read(process.stdout.fileno(), 4_096):
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        try:
            assert process.wait(DEADLINE_SECONDS) == 0
        finally:
            process.kill()
    with Rota(path) as app:
        [run] = app.runs()
        assert app.get_run(str(run["run_id"]))["result"] == "done"
