"""A queue of runs for workers to take, and the ways in which a test looks at what they made of them."""

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rota.domain.identity import RunId
from rota.domain.run import Run, RunDetail
from rota.store.memory import MemoryStore
from rota.store.port import Store
from rota.testing import World
from rota.wire.assignment import Assignment
from rota.wire.reports import NamedAttempt
from rota.worker.gateway import Gateway
from rota.worker.http_gateway import HttpGateway
from rota.worker.store_gateway import StoreGateway
from rota.worker.worker import Worker
from tests.worker.served import Served

START = datetime(2026, 1, 10, 9, tzinfo=UTC)
SECOND = timedelta(seconds=1)
DEADLINE_SECONDS = 10.0
"""A test that waits this long for a thread has failed."""


class Scene:
    """An application with a store and a clock that stands still; its dispatcher steps only where a test says so."""

    def __init__(self, store: Store | None = None, *, server: Served | None = None) -> None:
        """With a `server`, its workers reach the store over HTTP."""
        self.world = World(now=START, store=store or MemoryStore())
        self.app = self.world.app
        self.store = self.world.store
        self.clock = self.world.clock
        self.gateway: Gateway = StoreGateway(self.store)
        if server is not None:
            server.serve(self.app.context)
            self.gateway = HttpGateway(server.url)
        self._queued = 0
        self._workers: list[Worker] = []

    @property
    def now(self) -> datetime:
        return self.clock.now()

    def queue(self, job: str, **params: object) -> RunId:
        """One run of that job, due now."""
        self._queued += 1
        schedule_id = f"{job}-{self._queued}"
        due = self.now + SECOND
        self.app.create_schedule(
            id=schedule_id, job=job, timezone="UTC", recurrence={"at": due}, params=params
        )
        self.clock.set(due)
        self.world.dispatcher.step(self.now)
        [run] = self.app.runs(schedule=schedule_id)
        return RunId(str(run["run_id"]))

    def worker(
        self,
        name: str = "worker-1",
        *,
        concurrency: int = 4,
        drain: timedelta = timedelta(seconds=DEADLINE_SECONDS),
        inline: bool = False,
    ) -> Worker:
        worker = Worker(
            self.gateway,
            self.app.registry,
            clock=self.clock,
            name=name,
            concurrency=concurrency,
            poll=SECOND,
            drain=drain,
            inline=inline,
        )
        self._workers.append(worker)
        return worker

    def close(self) -> None:
        """Ends the workers' threads; the store is its opener's to close."""
        for worker in self._workers:
            worker.close()
        self.gateway.close()

    def ask_to_stop_ahead(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whatever is opened is an attempt at a run that was asked to stop before, as by a race of the two."""
        open_ = type(self.gateway).open

        def opened(
            gateway: Gateway, worker: str, attempt: NamedAttempt, *, now: datetime
        ) -> Assignment | None:
            assignment = open_(gateway, worker, attempt, now=now)
            self.app.cancel_run(attempt.run_id)
            return None if assignment is None else replace(assignment, is_cancel_requested=True)

        monkeypatch.setattr(type(self.gateway), "open", opened)

    def detail(self, run_id: RunId) -> RunDetail:
        detail = self.store.get_run(run_id)
        assert detail is not None
        return detail

    def run(self, run_id: RunId) -> Run:
        return self.detail(run_id).run

    def step_until(self, worker: Worker, is_reached: Callable[[], bool]) -> None:
        """Steps as the worker's loop does, at the time that the clock shows, whenever the worker is woken."""
        while True:
            worker.wake.clear()
            worker.step(self.now)
            if is_reached():
                return
            assert worker.wake.wait(DEADLINE_SECONDS), "the worker was not woken in time"


class Gate:
    """A place where a handler waits until the test lets it go on, and where the test waits for the handler."""

    def __init__(self) -> None:
        self._arrived = threading.Event()
        self._opened = threading.Event()

    def pass_through(self) -> None:
        """For the handler."""
        self._arrived.set()
        assert self._opened.wait(DEADLINE_SECONDS), "the test did not let the handler go on"

    def wait_arrived(self) -> None:
        assert self._arrived.wait(DEADLINE_SECONDS), "the handler did not begin in time"

    def open(self) -> None:
        self._opened.set()
