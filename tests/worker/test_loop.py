"""The worker's loop in a thread of its own, with handlers in theirs: what stops it, and what does not."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from rota.clock import FileClock
from rota.domain.instants import format_instant
from rota.domain.run import AttemptOutcome, RunState
from rota.domain.settlement import Settlement
from rota.store.memory import MemoryStore
from rota.store.port import Fence, Heartbeat, HeartbeatOutcome, StoreUnavailable
from rota.worker.context import RunContext
from rota.worker.worker import Worker
from tests.worker.scene import DEADLINE_SECONDS, Gate, Scene

LEASE = timedelta(seconds=30)
NO_TIME = timedelta(0)


class WatchedStore(MemoryStore):
    """Tells a test when heartbeats and settlements have been committed, and can be away."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = threading.Event()
        self.settled = threading.Event()
        self.refused = threading.Event()
        self.is_away = False

    def commit_heartbeats(self, heartbeats: Sequence[Heartbeat], *, now: datetime) -> list[HeartbeatOutcome]:
        outcomes = super().commit_heartbeats(heartbeats, now=now)
        self.heard.set()
        return outcomes

    def commit_settlements(
        self, settlements: Sequence[Settlement], *, fences: Sequence[Fence] = ()
    ) -> list[bool]:
        if self.is_away:
            self.refused.set()
            raise StoreUnavailable("The database is restarting.")
        answers = super().commit_settlements(settlements, fences=fences)
        self.settled.set()
        return answers


class Loop:
    """A worker's loop in a thread, on a clock that stands still in a file while its waits are real and short."""

    def __init__(self, scene: Scene, folder: Path, *, drain: timedelta) -> None:
        self._file = folder / "clock"
        self.move_clock(scene.now)
        self.worker = Worker(
            scene.gateway,
            scene.app.registry,
            clock=FileClock(self._file),
            name="worker-1",
            concurrency=2,
            poll=timedelta(seconds=1),
            drain=drain,
        )
        self.stop, self.wake = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.worker.run, args=(self.stop, self.wake))

    def move_clock(self, instant: datetime) -> None:
        moved = self._file.with_suffix(".new")
        moved.write_text(format_instant(instant))
        moved.replace(self._file)

    def ask_to_stop(self) -> None:
        """As the handler of SIGTERM does."""
        self.stop.set()
        self.wake.set()

    def join(self) -> None:
        self.thread.join(DEADLINE_SECONDS)
        assert not self.thread.is_alive(), "the loop did not end in time"


@contextmanager
def running_loop(
    scene: Scene, folder: Path, *, drain: timedelta = timedelta(seconds=DEADLINE_SECONDS)
) -> Iterator[Loop]:
    loop = Loop(scene, folder, drain=drain)
    loop.thread.start()
    try:
        yield loop
    finally:
        loop.ask_to_stop()
        loop.join()


def test_the_loop_takes_what_is_queued_when_it_is_woken(tmp_path: Path) -> None:
    store = WatchedStore()
    scene = Scene(store)
    with running_loop(scene, tmp_path) as loop:
        run_id = scene.queue("echo", customer="acme")
        loop.move_clock(scene.now)
        loop.wake.set()
        assert store.settled.wait(DEADLINE_SECONDS)
        assert scene.run(run_id).state is RunState.SUCCEEDED


def test_heartbeats_go_on_while_a_handler_blocks_and_while_the_worker_drains(tmp_path: Path) -> None:
    store, gate = WatchedStore(), Gate()
    scene = Scene(store)
    scene.app.job("sales", lease=LEASE)(lambda context: gate.pass_through())
    run_id = scene.queue("sales")
    with running_loop(scene, tmp_path) as loop:
        gate.wait_arrived()
        for is_stopping in (False, True):
            if is_stopping:
                loop.ask_to_stop()
            for _ in range(4):
                store.heard.clear()
                scene.clock.advance(LEASE / 3)
                loop.move_clock(scene.now)
                assert store.heard.wait(DEADLINE_SECONDS), "no heartbeat"
                assert scene.world.dispatcher.step(scene.now).recovered == 0
        later = scene.queue("sales")
        loop.move_clock(scene.now)
        gate.open()
        loop.join()
        assert scene.run(run_id).state is RunState.SUCCEEDED
        # What fell due while it was stopping is left to others.
        assert scene.run(later).state is RunState.QUEUED


def test_a_stopped_worker_gives_back_what_does_not_end_in_time(tmp_path: Path) -> None:
    scene, gate = Scene(), Gate()
    contexts: list[RunContext] = []

    def handler(context: RunContext) -> None:
        contexts.append(context)
        gate.pass_through()

    scene.app.job("sales")(handler)
    run_id = scene.queue("sales")
    with running_loop(scene, tmp_path, drain=NO_TIME) as loop:
        gate.wait_arrived()
        loop.ask_to_stop()
        loop.join()
        detail = scene.detail(run_id)
        assert [attempt.outcome for attempt in detail.attempts] == [AttemptOutcome.INTERRUPTED]
        assert detail.run.state is RunState.QUEUED
        assert contexts[0].is_cancelled
        gate.open()


def test_the_loop_outlives_a_store_that_is_away_and_settles_when_it_is_back(tmp_path: Path) -> None:
    store = WatchedStore()
    scene = Scene(store)
    run_id = scene.queue("echo")
    store.is_away = True
    with running_loop(scene, tmp_path) as loop:
        assert store.refused.wait(DEADLINE_SECONDS)
        # Stopping waits for it: the end is known, and only its report is missing.
        loop.ask_to_stop()
        store.refused.clear()
        assert store.refused.wait(DEADLINE_SECONDS)
        store.is_away = False
        loop.join()
    assert scene.run(run_id).state is RunState.SUCCEEDED


def test_a_stopped_worker_does_not_wait_for_ever_for_a_store_that_is_away(tmp_path: Path) -> None:
    store = WatchedStore()
    scene = Scene(store)
    run_id = scene.queue("echo")
    store.is_away = True
    with running_loop(scene, tmp_path, drain=NO_TIME) as loop:
        assert store.refused.wait(DEADLINE_SECONDS)
        loop.ask_to_stop()
        loop.join()
    # Its lease runs out, and the run gets a further attempt.
    assert scene.run(run_id).state is RunState.RUNNING


def test_an_async_handler_is_cancelled_when_the_worker_gives_up_waiting(tmp_path: Path) -> None:
    scene = Scene()
    begun, cancelled = threading.Event(), threading.Event()

    async def handler(context: RunContext) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    scene.app.job("sales")(handler)
    run_id = scene.queue("sales")
    with running_loop(scene, tmp_path, drain=NO_TIME) as loop:
        assert begun.wait(DEADLINE_SECONDS)
        loop.ask_to_stop()
        loop.join()
        assert cancelled.is_set()
    assert scene.run(run_id).state is RunState.QUEUED
    assert not [thread for thread in threading.enumerate() if thread.name == "rota-handler-loop"]
