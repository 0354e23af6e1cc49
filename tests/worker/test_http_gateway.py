"""A worker over HTTP: servers that go away and come back, answers that are lost, reports that are refused, waiting."""

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Self

import pytest

from rota.clock import SystemClock
from rota.domain.job import RetryPolicy
from rota.domain.json_text import JsonText
from rota.domain.run import AttemptOutcome, RunState
from rota.domain.settlement import AttemptEnd
from rota.store.port import Wanted
from rota.worker.context import RunContext
from rota.worker.gateway import EndReport, ReportRefused
from rota.worker.http_gateway import HttpGateway
from rota.worker.worker import Worker
from tests.worker.scene import DEADLINE_SECONDS, Gate, Scene
from tests.worker.served import Served, free_port, running_server

LEASE = timedelta(seconds=30)
AT_ONCE = RetryPolicy(max_attempts=3, initial_delay=timedelta(0), jitter=0)


@pytest.fixture
def scene(server: Served) -> Iterator[Scene]:
    scene = Scene(server=server)
    yield scene
    scene.close()


class Loop:
    """A worker's loop over HTTP, with real waits, in a thread."""

    def __init__(self, scene: Scene, url: str, *, poll: timedelta = timedelta(seconds=20)) -> None:
        self.gateway = HttpGateway(url)
        self.worker = Worker(
            self.gateway,
            scene.app.registry,
            clock=SystemClock(),
            name="worker-1",
            concurrency=2,
            poll=poll,
            drain=timedelta(seconds=DEADLINE_SECONDS),
        )
        self.stop, self.wake = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.worker.run, args=(self.stop, self.wake))

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.wake.set()
        self.thread.join(DEADLINE_SECONDS)
        assert not self.thread.is_alive(), "the loop did not end in time"
        self.gateway.close()


def wait_until(is_reached: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(int(DEADLINE_SECONDS * 100)):
        if is_reached():
            return
        pause.wait(0.01)
    pytest.fail("it did not come to that in time")


def test_an_idle_worker_is_told_of_work_by_a_long_poll(server: Served) -> None:
    begun = threading.Event()
    scene = Scene(server=server)
    scene.app.job("sales")(lambda ctx: begun.set())
    with Loop(scene, server.url) as loop:
        wait_until(lambda: is_polling(loop))
        run_id = scene.queue("sales")
        # Long before its poll of 20 s is over.
        assert begun.wait(5)
        wait_until(lambda: scene.run(run_id).state is RunState.SUCCEEDED)
        wait_until(lambda: is_polling(loop))
    scene.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "rota-listener"]


def is_polling(loop: Loop) -> bool:
    listeners = loop.gateway._listeners
    return bool(listeners) and listeners[0]._asked is not None and listeners[0]._connection is not None


def test_a_worker_without_a_free_place_is_not_told_and_does_not_ask(server: Served) -> None:
    gate, later = Gate(), Gate()
    gates = iter([gate, later])
    scene = Scene(server=server)
    scene.app.job("sales", concurrency=1)(lambda ctx: next(gates).pass_through())
    with Loop(scene, server.url) as loop:
        first, second = scene.queue("sales"), scene.queue("sales")
        gate.wait_arrived()
        wait_until(lambda: is_polling(loop))
        claims = loop.worker._claims
        later_run = scene.queue("sales")
        assert not later._arrived.wait(0.3)
        # Of the job that has no place left it asks no more, whatever is queued of it.
        assert loop.worker._claims <= claims + 1
        later.open()
        gates = iter([later, later])
        gate.open()
        for run_id in (first, second, later_run):
            wait_until(lambda run_id=run_id: scene.run(run_id).state is RunState.SUCCEEDED)  # type: ignore[misc]  # bound early
    scene.close()


def test_a_server_that_restarts_under_a_worker_loses_nothing() -> None:
    scene, port, gate = Scene(), free_port(), Gate()

    def handle(ctx: RunContext) -> str:
        gate.pass_through()
        return f"attempt {ctx.attempt}"

    scene.app.job("sales", lease=LEASE)(handle)
    with running_server(scene.app.context, port=port) as server:
        loop = Loop(scene, server.url, poll=timedelta(seconds=1))
        loop.__enter__()
        run_id = scene.queue("sales")
        gate.wait_arrived()
    # While nobody answers, the handler ends, and something else is queued.
    gate.open()
    wait_until(lambda: bool(loop.worker._attempts.ended()) and loop.worker._failures > 0)
    other = scene.queue("sales")
    with running_server(scene.app.context, port=port):
        wait_until(lambda: scene.run(run_id).state is RunState.SUCCEEDED)
        wait_until(lambda: scene.run(other).state is RunState.SUCCEEDED)
        loop.__exit__()
    detail = scene.detail(run_id)
    assert [attempt.outcome for attempt in detail.attempts] == [AttemptOutcome.SUCCEEDED]
    assert detail.result == '"attempt 1"'


def test_a_worker_that_drains_waits_for_a_server_that_restarts() -> None:
    scene, port, gate = Scene(), free_port(), Gate()
    scene.app.job("sales", lease=LEASE)(lambda ctx: gate.pass_through())
    with running_server(scene.app.context, port=port) as server:
        loop = Loop(scene, server.url, poll=timedelta(milliseconds=100))
        loop.__enter__()
        run_id = scene.queue("sales")
        gate.wait_arrived()
    loop.stop.set()
    gate.open()
    wait_until(lambda: loop.worker._failures > 0)
    with running_server(scene.app.context, port=port):
        loop.__exit__()
    assert scene.run(run_id).state is RunState.SUCCEEDED


# I5
def test_a_claim_whose_answer_was_lost_costs_one_lease(scene: Scene) -> None:
    scene.app.job("sales", lease=LEASE, retry=AT_ONCE)(lambda ctx: ctx.attempt)
    run_id = scene.queue("sales")
    lost = scene.gateway.claim("worker-0", [Wanted(job="sales")], now=scene.now, limit=1)
    assert len(lost.assignments) == 1
    worker = scene.worker(inline=True)
    assert worker.step(scene.now).opened == 0
    scene.clock.advance(LEASE)
    scene.world.dispatcher.step(scene.now)
    assert worker.step(scene.now).settled == 1
    detail = scene.detail(run_id)
    assert [attempt.outcome for attempt in detail.attempts] == [AttemptOutcome.LOST, AttemptOutcome.SUCCEEDED]
    assert detail.result == "2"


# I6, B41
def test_a_report_that_comes_after_another_attempt_began_changes_nothing(scene: Scene) -> None:
    scene.app.job("sales", lease=LEASE, retry=AT_ONCE)(lambda ctx: None)
    run_id = scene.queue("sales")
    scene.world.app.register_jobs()

    def claim() -> EndReport:
        [assignment] = scene.gateway.claim("w", [Wanted(job="sales")], now=scene.now, limit=1).assignments
        end = AttemptEnd(outcome=AttemptOutcome.SUCCEEDED, result=JsonText(str(assignment.attempt)))
        return EndReport(assignment=assignment, end=end, ended_at=scene.now)

    late = claim()
    scene.clock.advance(LEASE)
    scene.world.dispatcher.step(scene.now)
    assert scene.gateway.settle([late], now=scene.now) == [False]
    current = claim()
    assert scene.gateway.settle([late], now=scene.now) == [False]
    assert scene.run(run_id).state is RunState.RUNNING
    assert scene.gateway.settle([late, current], now=scene.now) == [False, True]
    assert scene.detail(run_id).result == "2"
    # A report whose answer was lost is repeated, and told that it is over.
    assert scene.gateway.settle([current], now=scene.now) == [False]


def test_a_result_as_deep_and_as_large_as_is_kept_passes(scene: Scene) -> None:
    deep: object = "x"
    for _ in range(32):
        deep = [deep]
    results: dict[str, object] = {"deep": deep, "large": "ü" * 131_000}
    for name, result in results.items():
        scene.app.job(name)(lambda ctx, result=result: result)
    runs = [scene.queue(name) for name in (*results, "large", "large", "large", "large")]
    worker = scene.worker(concurrency=10, inline=True)
    assert worker.step(scene.now).settled == len(runs)
    assert {scene.run(run_id).state for run_id in runs} == {RunState.SUCCEEDED}


def test_a_report_that_is_refused_holds_up_no_other_and_fails_its_run(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle = HttpGateway.settle

    def refuse(self: HttpGateway, reports: list[EndReport], **rest: object) -> list[bool]:
        if any(report.end.result == '"poison"' for report in reports):
            raise ReportRefused("attempts.0.result: It is poison.")
        return settle(self, reports, **rest)  # type: ignore[arg-type]  # as they came

    monkeypatch.setattr(HttpGateway, "settle", refuse)
    for name in ("poison", "food"):
        scene.app.job(name, retry=AT_ONCE)(lambda ctx, name=name: name)
    poisoned, other = scene.queue("poison"), scene.queue("food")
    scene.worker(inline=True).step(scene.now)
    assert scene.run(other).state is RunState.SUCCEEDED
    run = scene.run(poisoned)
    assert run.state is RunState.FAILED
    assert run.error == "The end of the attempt (succeeded) was refused: attempts.0.result: It is poison."
