"""Attempts whose handlers run in threads while the test moves the clock: heartbeats, timeouts, stopping, fencing."""

import asyncio
import threading
from datetime import timedelta

import pytest

from rota.domain.identity import RunId
from rota.domain.job import RetryPolicy
from rota.domain.run import AttemptOutcome, Progress, RunState
from rota.worker.context import RunContext
from rota.worker.worker import Worker
from tests.worker.scene import DEADLINE_SECONDS, SECOND, Gate, Scene

LEASE = timedelta(seconds=30)
AT_ONCE = RetryPolicy(max_attempts=3, initial_delay=timedelta(0), jitter=0)


class Handler:
    """Waits at its gate, reports what it is told to on the way, and remembers its context."""

    def __init__(self) -> None:
        self.gate = Gate()
        self.contexts: list[RunContext] = []

    def __call__(self, context: RunContext) -> str:
        self.contexts.append(context)
        self.gate.pass_through()
        context.raise_if_cancelled()
        return f"attempt {context.attempt}"

    @property
    def context(self) -> RunContext:
        return self.contexts[-1]


@pytest.fixture
def handler() -> Handler:
    return Handler()


def begin(scene: Scene, worker: Worker, handler: Handler, job: str = "sales") -> RunId:
    """A run whose handler waits at its gate."""
    run_id = scene.queue(job)
    assert worker.step(scene.now).running == 1
    handler.gate.wait_arrived()
    return run_id


def lease_of(scene: Scene, run_id: RunId) -> timedelta:
    """How long the attempt's lease is from now."""
    return scene.detail(run_id).attempts[-1].lease_expires_at - scene.now


def is_settled(scene: Scene, run_id: RunId) -> bool:
    return scene.detail(run_id).attempts[-1].finished_at is not None


def outcomes(scene: Scene, run_id: RunId) -> list[AttemptOutcome | None]:
    return [attempt.outcome for attempt in scene.detail(run_id).attempts]


def test_a_handler_that_blocks_keeps_its_lease(any_scene: Scene, handler: Handler) -> None:
    any_scene.app.job("sales", lease=LEASE)(handler)
    worker = any_scene.worker()
    run_id = begin(any_scene, worker, handler)
    for _ in range(12):
        any_scene.clock.advance(LEASE / 3)
        worker.step(any_scene.now)
        assert lease_of(any_scene, run_id) == LEASE
        assert any_scene.world.dispatcher.step(any_scene.now).recovered == 0
    handler.gate.open()
    any_scene.step_until(worker, lambda: is_settled(any_scene, run_id))
    assert outcomes(any_scene, run_id) == [AttemptOutcome.SUCCEEDED]


def test_a_heartbeat_is_sent_after_a_third_of_the_lease_and_not_before(
    scene: Scene, handler: Handler
) -> None:
    scene.app.job("sales", lease=LEASE)(handler)
    worker = scene.worker()
    run_id = begin(scene, worker, handler)
    scene.clock.advance(timedelta(seconds=9.5))
    assert worker.step(scene.now).wake_at == scene.now + timedelta(seconds=0.5)
    assert lease_of(scene, run_id) == LEASE - timedelta(seconds=9.5)
    scene.clock.advance(timedelta(seconds=0.5))
    worker.step(scene.now)
    assert lease_of(scene, run_id) == LEASE
    scene.clock.advance(timedelta(seconds=9))
    worker.step(scene.now)
    assert lease_of(scene, run_id) == LEASE - timedelta(seconds=9)
    handler.gate.open()


def test_progress_waits_for_no_more_than_half_a_second(scene: Scene, handler: Handler) -> None:
    scene.app.job("sales", lease=LEASE)(handler)
    worker = scene.worker()
    run_id = begin(scene, worker, handler)
    worker.wake.clear()
    handler.context.progress(0.25, "read")
    assert worker.wake.is_set()
    assert worker.step(scene.now).wake_at == scene.now + timedelta(milliseconds=500)
    assert scene.run(run_id).progress is None
    handler.context.progress(0.5, "sorted")
    scene.clock.advance(timedelta(milliseconds=500))
    worker.step(scene.now)
    assert scene.run(run_id).progress == Progress(fraction=0.5, message="sorted")
    handler.gate.open()


def test_a_request_to_stop_reaches_the_handler_with_a_heartbeat(any_scene: Scene, handler: Handler) -> None:
    any_scene.app.job("sales", lease=LEASE)(handler)
    worker = any_scene.worker()
    run_id = begin(any_scene, worker, handler)
    any_scene.app.cancel_run(run_id)
    worker.step(any_scene.now)
    before_the_heartbeat = handler.context.is_cancelled
    any_scene.clock.advance(LEASE / 3)
    worker.step(any_scene.now)
    assert (before_the_heartbeat, handler.context.is_cancelled) == (False, True)
    handler.gate.open()
    any_scene.step_until(worker, lambda: is_settled(any_scene, run_id))
    assert any_scene.run(run_id).state is RunState.CANCELLED
    assert outcomes(any_scene, run_id) == [AttemptOutcome.CANCELLED]


def test_an_attempt_that_runs_too_long_is_followed_by_another(any_scene: Scene, handler: Handler) -> None:
    any_scene.app.job("sales", timeout=5 * SECOND, retry=AT_ONCE)(handler)
    worker = any_scene.worker(concurrency=1)
    run_id = begin(any_scene, worker, handler)
    any_scene.clock.advance(5 * SECOND - timedelta(milliseconds=1))
    assert worker.step(any_scene.now).wake_at == any_scene.now + timedelta(milliseconds=1)
    any_scene.clock.advance(timedelta(milliseconds=1))
    assert worker.step(any_scene.now).settled == 1
    run = any_scene.run(run_id)
    assert (run.state, run.error) == (RunState.QUEUED, "The attempt ran for longer than its timeout, PT5S.")
    assert outcomes(any_scene, run_id) == [AttemptOutcome.TIMED_OUT]
    assert handler.context.is_cancelled


def test_a_handler_that_outlives_its_attempt_keeps_its_slot_and_is_not_heard(
    scene: Scene, handler: Handler
) -> None:
    scene.app.job("sales", timeout=5 * SECOND, retry=AT_ONCE)(handler)
    worker = scene.worker(concurrency=1)
    run_id = begin(scene, worker, handler)
    scene.clock.advance(5 * SECOND)
    assert worker.step(scene.now).opened == 0
    late, handler.gate = handler.gate, Gate()
    handler.gate.open()
    late.open()
    scene.step_until(worker, lambda: scene.run(run_id).state is RunState.SUCCEEDED)
    detail = scene.detail(run_id)
    assert [attempt.outcome for attempt in detail.attempts] == [
        AttemptOutcome.TIMED_OUT,
        AttemptOutcome.SUCCEEDED,
    ]
    assert detail.result == '"attempt 2"'


def test_a_timeout_cancels_an_async_handler(scene: Scene) -> None:
    begun, cancelled = threading.Event(), threading.Event()

    async def handler(context: RunContext) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            assert context.is_cancelled
            cancelled.set()
            raise

    scene.app.job("sales", timeout=5 * SECOND, retry=AT_ONCE)(handler)
    worker = scene.worker(concurrency=1)
    run_id = scene.queue("sales")
    worker.step(scene.now)
    assert begun.wait(DEADLINE_SECONDS)
    scene.clock.advance(5 * SECOND)
    worker.step(scene.now)
    assert cancelled.wait(DEADLINE_SECONDS)
    # The slot is free again as soon as the handler has ended.
    scene.step_until(worker, lambda: scene.run(run_id).attempt == 2)
    assert outcomes(scene, run_id) == [AttemptOutcome.TIMED_OUT, None]
    worker.interrupt(scene.now)


def test_a_closed_worker_leaves_no_async_handler_behind(scene: Scene) -> None:
    begun, cancelled = threading.Event(), threading.Event()

    async def handler(context: RunContext) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    scene.app.job("sales")(handler)
    run_id = scene.queue("sales")
    worker = scene.worker()
    worker.step(scene.now)
    assert begun.wait(DEADLINE_SECONDS)
    worker.close()
    assert cancelled.is_set()
    # Its end is not made up: the lease runs out, as it does where a process dies.
    assert scene.run(run_id).state is RunState.RUNNING


def test_async_handlers_share_a_loop_and_the_slots(scene: Scene) -> None:
    threads: set[int] = set()
    running: list[RunContext] = []
    let_go = threading.Event()

    async def handler(context: RunContext) -> None:
        threads.add(threading.get_ident())
        running.append(context)
        await asyncio.to_thread(let_go.wait, DEADLINE_SECONDS)

    scene.app.job("sales")(handler)
    for _ in range(3):
        scene.queue("sales")
    worker = scene.worker(concurrency=2)
    report = worker.step(scene.now)
    assert (report.opened, report.running) == (2, 2)
    assert worker.step(scene.now).opened == 0
    let_go.set()
    scene.step_until(worker, lambda: len(running) == 3)
    assert len(threads) == 1


def test_a_wall_clock_that_leaps_times_nothing_out(scene: Scene, handler: Handler) -> None:
    scene.app.job("sales", timeout=timedelta(minutes=5))(handler)
    worker = scene.worker()
    run_id = begin(scene, worker, handler)
    scene.clock.leap(timedelta(hours=8))
    worker.step(scene.now)
    assert outcomes(scene, run_id) == [None]
    scene.clock.leap(timedelta(hours=-9))
    scene.clock.advance(timedelta(seconds=10))
    worker.step(scene.now)
    assert lease_of(scene, run_id) == LEASE
    handler.gate.open()
    scene.step_until(worker, lambda: is_settled(scene, run_id))


# I6; the worker's side of B40.
def test_a_worker_that_was_frozen_for_longer_than_its_lease_settles_nothing(any_scene: Scene) -> None:
    handlers = {"worker-a": Handler(), "worker-b": Handler()}

    def handle(context: RunContext) -> str:
        return handlers["worker-a" if context.attempt == 1 else "worker-b"](context)

    any_scene.app.job("sales", lease=LEASE, retry=AT_ONCE)(handle)
    frozen, other = any_scene.worker("worker-a"), any_scene.worker("worker-b")
    run_id = begin(any_scene, frozen, handlers["worker-a"])
    any_scene.clock.advance(LEASE)
    assert any_scene.world.dispatcher.step(any_scene.now).recovered == 1
    assert other.step(any_scene.now).opened == 1
    handlers["worker-b"].gate.wait_arrived()
    # It wakes: its handler returns, and its report is refused although nobody has settled yet.
    handlers["worker-a"].gate.open()
    any_scene.step_until(frozen, lambda: frozen.step(any_scene.now).running == 0)
    assert outcomes(any_scene, run_id) == [AttemptOutcome.LOST, None]
    assert any_scene.run(run_id).state is RunState.RUNNING
    handlers["worker-b"].gate.open()
    any_scene.step_until(other, lambda: is_settled(any_scene, run_id))
    detail = any_scene.detail(run_id)
    assert detail.result == '"attempt 2"'
    assert [attempt.worker for attempt in detail.attempts] == ["worker-a", "worker-b"]


def test_a_stale_heartbeat_tells_the_handler_to_stop(any_scene: Scene, handler: Handler) -> None:
    any_scene.app.job("sales", lease=LEASE, retry=AT_ONCE)(handler)
    worker = any_scene.worker()
    run_id = begin(any_scene, worker, handler)
    handler.context.progress(0.9, "of an attempt that is lost")
    any_scene.clock.advance(LEASE)
    assert any_scene.world.dispatcher.step(any_scene.now).recovered == 1
    first = handler.context
    worker.step(any_scene.now)
    assert first.is_cancelled
    handler.gate.open()
    any_scene.step_until(worker, lambda: any_scene.run(run_id).state is RunState.SUCCEEDED)
    assert outcomes(any_scene, run_id) == [AttemptOutcome.LOST, AttemptOutcome.SUCCEEDED]
    assert any_scene.run(run_id).progress is None


def test_a_lost_attempt_whose_run_was_asked_to_stop_is_not_tried_again(
    scene: Scene, handler: Handler
) -> None:
    scene.app.job("sales", lease=LEASE, retry=AT_ONCE)(handler)
    worker = scene.worker()
    run_id = begin(scene, worker, handler)
    scene.app.cancel_run(run_id)
    scene.clock.advance(LEASE)
    scene.world.dispatcher.step(scene.now)
    assert scene.run(run_id).state is RunState.CANCELLED
    worker.step(scene.now)
    assert handler.context.is_cancelled
    handler.gate.open()


def test_an_interrupted_attempt_is_queued_again_at_once(any_scene: Scene, handler: Handler) -> None:
    any_scene.app.job("sales")(handler)
    worker, next_worker = any_scene.worker("worker-1"), any_scene.worker("worker-2")
    run_id = begin(any_scene, worker, handler)
    worker.interrupt(any_scene.now)
    assert outcomes(any_scene, run_id) == [AttemptOutcome.INTERRUPTED]
    run = any_scene.run(run_id)
    assert (run.state, run.available_at) == (RunState.QUEUED, any_scene.now)
    assert handler.context.is_cancelled
    assert worker.step(any_scene.now).opened == 0
    handler.gate.open()
    any_scene.step_until(next_worker, lambda: any_scene.run(run_id).state is RunState.SUCCEEDED)


def test_threads_are_used_again(scene: Scene) -> None:
    threads: set[str] = set()
    scene.app.job("sales")(lambda context: threads.add(threading.current_thread().name))
    worker = scene.worker(concurrency=4)
    for _ in range(5):
        run_id = scene.queue("sales")
        scene.step_until(worker, lambda run_id=run_id: is_settled(scene, run_id))  # type: ignore[misc]  # bound early
    assert threads <= {"rota-handler-0", "rota-handler-1"}
