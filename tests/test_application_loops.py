"""The loops of an application in its own process: pick-up, failure, and the signals that stop them."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rota import Rota
from rota.application.loops import LoopFailed
from rota.config import Settings
from rota.store.memory import MemoryStore
from rota.store.port import Delivery
from rota.testing import World

DEADLINE_SECONDS = 10.0
DAY = timedelta(days=1)
NOW = datetime(2026, 1, 10, 10, tzinfo=UTC)
RUN_ID = "report-7.1.20260110T090000Z"
DOCUMENT = {
    "schedules": {"report-8": {"job": "echo", "timezone": "UTC", "recurrence": {"cron": "0 9 * * *"}}}
}


@pytest.fixture
def stop() -> Iterator[threading.Event]:
    stop = threading.Event()
    yield stop
    stop.set()


def run_in_thread(app: Rota, stop: threading.Event) -> threading.Thread:
    thread = threading.Thread(target=app.run, args=(stop,))
    thread.start()
    return thread


class WatchedStore(MemoryStore):
    """Knows who has looked."""

    def __init__(self) -> None:
        super().__init__()
        self.dispatcher_looked, self.worker_looked = threading.Event(), threading.Event()

    def read_due_times(self, partitions: Sequence[int]) -> dict[int, datetime]:
        times = super().read_due_times(partitions)
        self.dispatcher_looked.set()
        return times

    def read_deliveries(self, jobs: Sequence[str], *, now: datetime, limit: int) -> list[Delivery]:
        deliveries = super().read_deliveries(jobs, now=now, limit=limit)
        self.worker_looked.set()
        return deliveries


def test_pick_up_waits_for_no_poll(stop: threading.Event) -> None:
    store = WatchedStore()
    app = Rota(settings=Settings(partitions=4, poll_seconds=60), store=store)
    begun = threading.Event()
    app.job("sales")(lambda context: begun.set())
    thread = run_in_thread(app, stop)
    # Both loops would sleep for a minute now.
    assert store.dispatcher_looked.wait(DEADLINE_SECONDS)
    assert store.worker_looked.wait(DEADLINE_SECONDS)
    at = app.context.clock.now().replace(microsecond=0) + timedelta(seconds=1)
    app.create_schedule(job="sales", timezone="UTC", recurrence={"every": timedelta(seconds=1), "anchor": at})
    assert begun.wait(DEADLINE_SECONDS), "nobody picked the run up"
    stop.set()
    thread.join(DEADLINE_SECONDS)
    assert not thread.is_alive()


@pytest.fixture
def app() -> Rota:
    """With a run that has ended."""
    world = World(now=NOW - timedelta(hours=2))
    world.app.create_schedule(id="report-7", job="echo", timezone="UTC", recurrence={"cron": "0 9 * * *"})
    world.pass_time(until=NOW)
    return world.app


def is_waking(app: Rota, call: Callable[[Rota], object]) -> bool:
    app._dispatcher_wake.clear()
    app._worker_wake.clear()
    call(app)
    assert app._dispatcher_wake.is_set() == app._worker_wake.is_set()
    return app._dispatcher_wake.is_set()


@pytest.mark.parametrize(
    "call",
    [
        lambda app: app.create_schedule(job="echo", timezone="UTC", recurrence={"every": "PT1M"}),
        lambda app: app.edit("report-7", timezone="Europe/London"),
        lambda app: app.apply(DOCUMENT),
        lambda app: app.plan("report-7", NOW + DAY),
        lambda app: app.move("report-7", NOW + timedelta(hours=23), NOW + timedelta(seconds=1)),
        lambda app: app.run_now("report-7"),
        lambda app: app.replay(RUN_ID, reason="asked for"),
        lambda app: app.backfill("report-7", NOW - 2 * DAY, NOW),
        lambda app: app.resume("report-7"),
        lambda app: app.end("report-7"),
        lambda app: app.apply_zones(),
    ],
)
def test_whatever_may_fall_due_at_once_wakes_the_loops(app: Rota, call: Callable[[Rota], object]) -> None:
    assert is_waking(app, call)


@pytest.mark.parametrize(
    "call",
    [
        lambda app: app.edit("report-7", timezone="Europe/London", dry_run=True),
        lambda app: app.apply(DOCUMENT, dry_run=True),
        lambda app: app.plan("report-7", NOW + DAY, dry_run=True),
        lambda app: app.backfill("report-7", NOW - 2 * DAY, NOW, dry_run=True),
        lambda app: app.pause("report-7", dry_run=True),
        lambda app: app.resume("report-7", dry_run=True),
        lambda app: app.apply_zones(dry_run=True),
    ],
)
def test_a_dry_run_writes_nothing_and_wakes_nobody(app: Rota, call: Callable[[Rota], object]) -> None:
    before = app.list_schedules(), app.runs(), app.versions("report-7"), app.history("report-7")
    assert not is_waking(app, call)
    assert (app.list_schedules(), app.runs(), app.versions("report-7"), app.history("report-7")) == before


class BrokenStore(MemoryStore):
    """Has a defect where workers read."""

    def read_deliveries(self, jobs: Sequence[str], *, now: datetime, limit: int) -> list[Delivery]:
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
