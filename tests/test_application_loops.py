"""The loops of an application in its own process: pick-up, failure, and the signals that stop them."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from rota import Rota
from rota.application.loops import LoopFailed
from rota.config import Settings
from rota.store.memory import MemoryStore
from rota.store.port import Delivery

DEADLINE_SECONDS = 10.0


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
