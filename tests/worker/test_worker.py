"""The worker step by step, with handlers that run within the step: what it takes, what it settles, what it keeps."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import pytest

from rota.domain.job import RetryPolicy
from rota.domain.json_text import load_json
from rota.domain.run import AttemptOutcome, Progress, RunState
from rota.domain.settlement import AttemptEnd, Settlement, settle_attempt
from rota.store.memory import MemoryStore
from rota.store.port import (
    HELD_FOR,
    Fence,
    Heartbeat,
    HeartbeatOutcome,
    OpenedAttempt,
    StoreUnavailable,
    Wanted,
)
from rota.worker.context import RunContext
from rota.worker.outcome import CancelledRun, Moot, PermanentFailure
from rota.worker.registry import Handler
from tests.worker.scene import SECOND, Scene

ONE_TRY = RetryPolicy(max_attempts=1)


class FailingStore(MemoryStore):
    """Cannot be reached for the calls that a test names."""

    def __init__(self) -> None:
        super().__init__()
        self.failing: set[str] = set()

    def commit_heartbeats(self, heartbeats: Sequence[Heartbeat], *, now: datetime) -> list[HeartbeatOutcome]:
        self._fail_if_asked("heartbeats")
        return super().commit_heartbeats(heartbeats, now=now)

    def commit_settlements(
        self, settlements: Sequence[Settlement], *, fences: Sequence[Fence] = ()
    ) -> list[bool]:
        self._fail_if_asked("settlements")
        return super().commit_settlements(settlements, fences=fences)

    def _fail_if_asked(self, call: str) -> None:
        if call in self.failing:
            raise StoreUnavailable("The database is restarting.")


def settle(scene: Scene, handler: Handler, *, retry: RetryPolicy = ONE_TRY) -> tuple[RunState, str | None]:
    """The state and error of a run whose first attempt that handler has ended."""
    scene.app.job("sales", retry=retry)(handler)
    run_id = scene.queue("sales")
    scene.worker(inline=True).step(scene.now)
    run = scene.run(run_id)
    return run.state, run.error


def raising(error: BaseException) -> Callable[[RunContext], None]:
    def handler(context: RunContext) -> None:
        raise error

    return handler


def test_a_worker_makes_its_jobs_known_when_it_starts(any_scene: Scene) -> None:
    any_scene.app.job("sales", description="Sells.")(raising(ValueError()))
    assert any_scene.store.get_job("sales") is None
    any_scene.worker(inline=True).step(any_scene.now)
    job = any_scene.store.get_job("sales")
    assert job is not None
    assert job.description == "Sells."


def test_a_run_succeeds_with_what_its_handler_returns(any_scene: Scene) -> None:
    any_scene.app.job("sales")(lambda context: {"rows": 3, "for": context.params["customer"]})
    run_id = any_scene.queue("sales", customer="acme")
    report = any_scene.worker(inline=True).step(any_scene.now)
    assert (report.opened, report.settled, report.running) == (1, 1, 0)
    detail = any_scene.detail(run_id)
    assert detail.run.state is RunState.SUCCEEDED
    assert detail.result is not None
    assert load_json(detail.result) == {"rows": 3, "for": "acme"}
    [attempt] = detail.attempts
    assert (attempt.worker, attempt.outcome) == ("worker-1", AttemptOutcome.SUCCEEDED)


def test_an_async_handler_does_the_same(any_scene: Scene) -> None:
    async def handler(context: RunContext) -> dict[str, object]:
        await asyncio.sleep(0)
        context.progress(0.5, "half")
        return context.params

    any_scene.app.job("sales")(handler)
    run_id = any_scene.queue("sales", customer="acme")
    any_scene.worker(inline=True).step(any_scene.now)
    detail = any_scene.detail(run_id)
    assert detail.run.state is RunState.SUCCEEDED
    assert detail.run.progress == Progress(fraction=0.5, message="half")
    assert detail.result is not None
    assert load_json(detail.result) == {"customer": "acme"}


def test_the_last_progress_is_not_lost_at_the_end(any_scene: Scene) -> None:
    any_scene.app.job("sales")(lambda context: context.progress(1, "sent 3 mails"))
    run_id = any_scene.queue("sales")
    any_scene.worker(inline=True).step(any_scene.now)
    assert any_scene.run(run_id).progress == Progress(fraction=1, message="sent 3 mails")


def test_a_moot_run_is_no_success_and_no_failure(any_scene: Scene) -> None:
    any_scene.app.job("sales")(lambda context: Moot("already confirmed"))
    run_id = any_scene.queue("sales")
    any_scene.worker(inline=True).step(any_scene.now)
    run = any_scene.run(run_id)
    assert (run.state, run.reason) == (RunState.MOOT, "already confirmed")


def test_a_failed_attempt_is_followed_by_another_of_the_same_run_after_a_delay(any_scene: Scene) -> None:
    attempts: list[int] = []

    def handler(context: RunContext) -> str:
        attempts.append(context.attempt)
        if context.attempt == 1:
            raise ConnectionError("no route")
        return "done"

    retry = RetryPolicy(max_attempts=2, initial_delay=10 * SECOND, jitter=0)
    any_scene.app.job("sales", retry=retry)(handler)
    run_id = any_scene.queue("sales")
    worker = any_scene.worker(inline=True)
    report = worker.step(any_scene.now)
    run = any_scene.run(run_id)
    assert (run.state, run.error) == (RunState.QUEUED, "ConnectionError: no route")
    assert report.wake_at == any_scene.now + SECOND  # the poll, long before the retry
    any_scene.clock.advance(10 * SECOND - timedelta(milliseconds=1))
    assert worker.step(any_scene.now).wake_at == any_scene.now + timedelta(milliseconds=1)
    assert attempts == [1]
    any_scene.clock.advance(timedelta(milliseconds=1))
    worker.step(any_scene.now)
    detail = any_scene.detail(run_id)
    assert detail.run.state is RunState.SUCCEEDED
    assert [attempt.outcome for attempt in detail.attempts] == [
        AttemptOutcome.FAILED,
        AttemptOutcome.SUCCEEDED,
    ]


def test_a_permanent_failure_fails_the_run_at_once(scene: Scene) -> None:
    ended = settle(scene, raising(PermanentFailure("no such card")), retry=RetryPolicy())
    assert ended == (RunState.FAILED, "PermanentFailure: no such card")


def test_a_result_that_cannot_be_kept_fails_the_run_at_once(scene: Scene) -> None:
    state, error = settle(scene, lambda context: object(), retry=RetryPolicy())
    assert state is RunState.FAILED
    assert error == "The handler's result cannot be kept: A value of type object is not JSON."


def test_an_error_that_no_store_could_keep_is_cleaned(any_scene: Scene) -> None:
    state, error = settle(any_scene, raising(ValueError("a\x00b\udc80" + "c" * 10_000)))
    assert state is RunState.FAILED
    assert error is not None
    assert error.startswith("ValueError: a\ufffdb\ufffdccc")


@pytest.mark.parametrize(
    "error", [SystemExit(1), GeneratorExit(), asyncio.CancelledError(), CancelledRun("nobody asked")]
)
def test_whatever_a_handler_raises_ends_its_attempt_and_not_the_worker(
    scene: Scene, error: BaseException
) -> None:
    state, message = settle(scene, raising(error))
    assert state is RunState.FAILED
    assert message is not None
    assert message.startswith(type(error).__name__)


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError()])
def test_whatever_an_async_handler_raises_ends_its_attempt_and_not_the_worker(
    scene: Scene, error: BaseException
) -> None:
    async def handler(context: RunContext) -> None:
        raise error

    state, message = settle(scene, handler)
    assert (state, message) == (
        RunState.FAILED,
        f"{type(error).__name__}: 1" if error.args else type(error).__name__,
    )


def test_an_interrupt_at_the_keyboard_is_not_the_handler_that_runs_in_place(scene: Scene) -> None:
    with pytest.raises(KeyboardInterrupt):
        settle(scene, raising(KeyboardInterrupt()))


def test_a_sync_handler_that_returns_an_awaitable_is_told_what_to_do(scene: Scene) -> None:
    async def inner() -> None: ...

    state, error = settle(scene, lambda context: inner())
    assert state is RunState.FAILED
    assert error is not None
    assert "declare the handler with `async def`" in error


def test_a_delivery_of_a_job_without_a_handler_here_is_left_to_others(any_scene: Scene) -> None:
    any_scene.app.job("sales")(lambda context: None)
    run_id = any_scene.queue("sales")
    other = Scene(any_scene.store)
    other.clock.set(any_scene.now)
    worker = other.worker(inline=True)
    report = worker.step(other.now)
    assert (report.opened, any_scene.run(run_id).state) == (0, RunState.QUEUED)
    assert report.wake_at == other.now + SECOND


def test_a_delivery_that_was_opened_already_opens_nothing(any_scene: Scene) -> None:
    calls: list[str] = []
    any_scene.app.job("sales")(lambda context: calls.append(context.run_id))
    run_id = any_scene.queue("sales")
    deliveries = any_scene.store.read_intents(["sales"], now=any_scene.now, limit=10)
    any_scene.worker(inline=True).step(any_scene.now)
    assert any_scene.store.commit_openings("worker-2", deliveries, now=any_scene.now) == [None]
    any_scene.worker("worker-2", inline=True).step(any_scene.now)
    assert calls == [run_id]


def test_a_step_is_bounded_by_what_the_store_takes_and_asks_for_the_next(small_scene: Scene) -> None:
    small_scene.app.job("sales")(lambda context: None)
    run_ids = [small_scene.queue("sales") for _ in range(5)]
    worker = small_scene.worker(inline=True)
    opened = []
    for _ in range(3):
        report = worker.step(small_scene.now)
        opened.append((report.opened, report.wake_at == small_scene.now))
    assert opened == [(2, True), (2, True), (1, False)]
    assert {small_scene.run(run_id).state for run_id in run_ids} == {RunState.SUCCEEDED}


def test_an_idle_worker_comes_back_when_the_next_delivery_is_available(scene: Scene) -> None:
    retry = RetryPolicy(initial_delay=timedelta(milliseconds=300), jitter=0)
    scene.app.job("sales", retry=retry)(raising(ValueError()))
    scene.queue("sales")
    worker = scene.worker(inline=True)
    worker.step(scene.now)
    assert worker.step(scene.now).wake_at == scene.now + timedelta(milliseconds=300)


class ContendedStore(MemoryStore):
    """Another worker is about to take what is there."""

    is_contended = True

    def commit_claims(
        self,
        worker: str,
        wanted: Sequence[Wanted],
        *,
        now: datetime,
        limit: int,
        backlog_first: bool = False,
    ) -> list[OpenedAttempt]:
        if self.is_contended:
            return []
        return super().commit_claims(worker, wanted, now=now, limit=limit, backlog_first=backlog_first)


def test_a_worker_looks_soon_again_for_what_another_one_holds_but_does_not_spin() -> None:
    store = ContendedStore()
    scene = Scene(store)
    worker = scene.worker(inline=True)
    scene.queue("echo")
    for _ in range(2):
        assert worker.step(scene.now).wake_at == scene.now + HELD_FOR
    store.is_contended = False
    assert worker.step(scene.now).opened == 1
    assert worker.step(scene.now).wake_at == scene.now + SECOND


def test_a_run_that_was_asked_to_stop_before_its_retry_is_not_started_again(any_scene: Scene) -> None:
    calls: list[int] = []
    any_scene.app.job("sales")(lambda context: calls.append(context.attempt))
    run_id = any_scene.queue("sales")
    store, now = any_scene.store, any_scene.now
    [opened] = store.commit_openings("worker-0", store.read_intents(["sales"], now=now, limit=1), now=now)
    assert opened is not None
    any_scene.app.cancel_run(run_id)
    # The request came when the worker had asked for the last time, and was about to settle.
    unaware = settle_attempt(
        run_id=run_id,
        attempt=1,
        end=AttemptEnd(outcome=AttemptOutcome.FAILED, error="ValueError"),
        retry=RetryPolicy(initial_delay=timedelta(0)),
        cancel_requested=False,
        now=now,
    )
    assert store.commit_settlements([unaware]) == [True]
    any_scene.worker(inline=True).step(now)
    assert calls == []
    assert any_scene.run(run_id).state is RunState.CANCELLED


def test_a_failure_after_a_cancel_request_cancels_the_run(any_scene: Scene) -> None:
    def handler(context: RunContext) -> None:
        any_scene.app.cancel_run(context.run_id)
        raise ValueError("broken off")

    any_scene.app.job("sales")(handler)
    run_id = any_scene.queue("sales")
    any_scene.worker(inline=True).step(any_scene.now)
    run = any_scene.run(run_id)
    assert (run.state, run.error) == (RunState.CANCELLED, "ValueError: broken off")


def test_a_success_after_a_cancel_request_is_a_success(any_scene: Scene) -> None:
    any_scene.app.job("sales")(lambda context: str(any_scene.app.cancel_run(context.run_id)["state"]))
    run_id = any_scene.queue("sales")
    any_scene.worker(inline=True).step(any_scene.now)
    assert any_scene.run(run_id).state is RunState.SUCCEEDED


@pytest.mark.parametrize("call", ["heartbeats", "settlements"])
def test_what_ended_while_the_store_was_away_is_settled_later(call: str) -> None:
    store = FailingStore()
    scene = Scene(store)
    calls: list[str] = []

    def handler(context: RunContext) -> str:
        calls.append(context.run_id)
        context.progress(1, "done")
        return "kept"

    scene.app.job("sales")(handler)
    run_id = scene.queue("sales")
    worker = scene.worker(inline=True)
    store.failing.add(call)
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            worker.step(scene.now)
    assert scene.run(run_id).state is RunState.RUNNING
    ended_at = scene.now
    scene.clock.advance(SECOND)
    store.failing.clear()
    assert worker.step(scene.now).settled == 1
    detail = scene.detail(run_id)
    assert detail.run.state is RunState.SUCCEEDED
    assert detail.run.progress == Progress(fraction=1, message="done")
    assert detail.run.finished_at == ended_at
    assert detail.result == '"kept"'
    assert calls == [run_id]


# B44
def test_five_failing_attempts_are_one_run_and_the_series_goes_on(any_scene: Scene) -> None:
    retry = RetryPolicy(max_attempts=5, initial_delay=timedelta(minutes=1), jitter=0)
    any_scene.app.job("sales", retry=retry)(raising(ValueError("no data")))
    world = any_scene.world
    any_scene.app.create_schedule(
        id="sales-7", job="sales", timezone="UTC", recurrence={"cron": "30 9 * * *"}
    )
    world.pass_time(timedelta(hours=1))
    [run] = any_scene.app.runs(schedule="sales-7")
    shown = any_scene.app.get_run(str(run["run_id"]))
    assert (shown["state"], shown["attempt"], shown["error"]) == ("failed", 5, "ValueError: no data")
    assert isinstance(shown["attempts"], list)
    opened = [attempt["opened_at"][11:] for attempt in shown["attempts"]]
    assert opened == ["09:30:00Z", "09:31:00Z", "09:33:00Z", "09:37:00Z", "09:45:00Z"]
    assert [attempt["outcome"] for attempt in shown["attempts"]] == ["failed"] * 5
    assert any_scene.app.get_schedule("sales-7")["next_due"] == "2026-01-11T09:30:00Z"
    world.pass_time(timedelta(days=1))
    assert [run["scheduled_at"] for run in any_scene.app.runs(schedule="sales-7")] == [
        "2026-01-11T09:30:00Z",
        "2026-01-10T09:30:00Z",
    ]


def test_echo_returns_its_params_and_reports_progress(any_scene: Scene) -> None:
    run_id = any_scene.queue("echo", customer="acme")
    any_scene.worker(inline=True).step(any_scene.now)
    detail = any_scene.detail(run_id)
    assert detail.run.state is RunState.SUCCEEDED
    assert detail.result == '{"customer":"acme"}'
    assert detail.run.progress == Progress(fraction=1.0, message="returned them")
