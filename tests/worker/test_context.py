"""What a handler is told about its run, and what it may say."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from rota.domain.job import RetryPolicy
from rota.domain.run import Progress
from rota.testing import World
from rota.wire.assignment import assignment_of
from rota.wire.reports import PROGRESS_MESSAGE_CHARACTERS_MAX
from rota.worker.context import RunContext
from rota.worker.effects import Effects
from rota.worker.outcome import CancelledRun
from rota.worker.signals import Signals
from tests.worker.scene import Scene


class Notified:
    """Counts how often a worker is woken."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> None:
        self.times += 1


@pytest.fixture
def notified() -> Notified:
    return Notified()


@pytest.fixture
def signals(notified: Notified) -> Signals:
    return Signals(notified)


@pytest.fixture
def context(scene: Scene, signals: Signals) -> RunContext:
    """Of an attempt that no worker looks after."""
    run_id = scene.queue("echo")
    deliveries = scene.store.read_intents(["echo"], now=scene.now, limit=1)
    [opened] = scene.store.commit_openings("worker-1", deliveries, now=scene.now)
    assert opened is not None
    assert opened.run.run_id == run_id
    assignment = assignment_of(opened.run, opened.version, opened.job)
    effects = Effects(scene.gateway, assignment, signals, now=scene.clock.now)
    return RunContext(assignment, signals, effects)


def told_to_a_handler(cron: str, *, timezone: str, now: datetime, gap: str = "skip") -> RunContext:
    """The context of the first occurrence of a rule."""
    contexts: list[RunContext] = []
    world = World(now=now)
    world.app.job("look")(contexts.append)
    created = world.app.create_schedule(
        id="look-7",
        job="look",
        timezone=timezone,
        recurrence={"cron": cron},
        params={"report": "sales"},
        gap=gap,
    )
    world.pass_time(datetime.fromisoformat(str(created["next_due"])))
    [context] = contexts
    return context


def test_a_handler_is_told_what_its_run_is() -> None:
    context = told_to_a_handler(
        "0 9 * * *", timezone="America/New_York", now=datetime(2026, 1, 10, tzinfo=UTC)
    )
    assert context.run_id == "look-7.1.20260110T140000Z"
    assert context.idempotency_key == "look-7.1.20260110T140000Z"
    assert context.schedule_id == "look-7"
    assert context.version == 1
    assert context.job == "look"
    assert context.attempt == 1
    assert context.scheduled_at == datetime(2026, 1, 10, 14, tzinfo=UTC)
    assert context.scheduled_local == datetime(2026, 1, 10, 9)
    assert context.named_local == datetime(2026, 1, 10, 9)
    assert context.timezone == "America/New_York"
    assert context.offset == timedelta(hours=-5)
    assert context.period_key == "day:2026-01-10"
    assert context.params == {"report": "sales"}
    assert repr(context) == "RunContext('look-7.1.20260110T140000Z', attempt=1)"


# Europe/London, 2026-03-29T01:00Z: 01:00 -> 02:00.
def test_a_handler_is_told_the_named_local_time_beside_the_one_that_a_gap_made_of_it() -> None:
    now = datetime(2026, 3, 28, 12, tzinfo=UTC)
    context = told_to_a_handler("30 1 * * *", timezone="Europe/London", now=now, gap="forward")
    assert context.named_local == datetime(2026, 3, 29, 1, 30)
    assert context.scheduled_local == datetime(2026, 3, 29, 2)
    assert context.scheduled_at == datetime(2026, 3, 29, 1, tzinfo=UTC)
    assert context.offset == timedelta(hours=1)


def test_params_are_a_copy_that_the_next_attempt_does_not_share(scene: Scene) -> None:
    seen: list[tuple[int, str, dict[str, object]]] = []
    changed: list[object] = []

    @scene.app.job("sales", retry=RetryPolicy(max_attempts=2, initial_delay=timedelta(0)))
    def handle(context: RunContext) -> None:
        seen.append((context.attempt, context.idempotency_key, dict(context.params)))
        context.params["report"] = "changed"
        changed.append(context.params["report"])
        raise ValueError

    run_id = scene.queue("sales", report="sales")
    worker = scene.worker(inline=True)
    worker.step(scene.now)
    worker.step(scene.now)
    assert seen == [(1, run_id, {"report": "sales"}), (2, run_id, {"report": "sales"})]
    assert changed == ["changed", "changed"]


@pytest.mark.parametrize("fraction", [0, 1, 0.0, 0.25, 1.0])
def test_progress_from_nothing_to_all_is_taken(
    context: RunContext, signals: Signals, fraction: float
) -> None:
    context.progress(fraction)
    assert signals.take_progress() == Progress(fraction=fraction)


@pytest.mark.parametrize("fraction", [-0.001, 1.001, 50, float("nan"), float("inf")])
def test_progress_outside_of_nothing_to_all_is_refused(context: RunContext, fraction: float) -> None:
    with pytest.raises(ValueError, match=r"Give a fraction from 0 to 1"):
        context.progress(fraction)


@pytest.mark.parametrize(
    ("report", "sentence"),
    [
        (lambda context: context.progress("0.5"), "as a number from 0 to 1, not as str"),
        (lambda context: context.progress(True), "as a number from 0 to 1, not as bool"),
        (lambda context: context.progress(0.5, 7), "Give the message as a text, not as int"),
    ],
)
def test_progress_that_is_no_number_is_refused(
    context: RunContext, report: Callable[[RunContext], None], sentence: str
) -> None:
    with pytest.raises(TypeError, match=sentence):
        report(context)


def test_a_progress_message_is_made_storable(context: RunContext, signals: Signals) -> None:
    context.progress(0.5, "a\x00" + "b" * PROGRESS_MESSAGE_CHARACTERS_MAX)
    progress = signals.take_progress()
    assert progress is not None
    assert progress.message is not None
    assert progress.message.startswith("a\ufffdb")
    assert len(progress.message) == PROGRESS_MESSAGE_CHARACTERS_MAX


def test_only_the_latest_progress_is_kept_and_the_worker_is_woken_once(
    context: RunContext, signals: Signals, notified: Notified
) -> None:
    context.progress(0.1)
    context.progress(0.2, "second")
    assert notified.times == 1
    assert signals.take_progress() == Progress(fraction=0.2, message="second")
    assert signals.take_progress() is None
    context.progress(0.3)
    assert notified.times == 2


def test_progress_that_could_not_be_sent_is_kept_unless_there_is_newer(
    context: RunContext, signals: Signals
) -> None:
    context.progress(0.1)
    taken = signals.take_progress()
    signals.give_back(taken)
    assert signals.take_progress() == Progress(fraction=0.1)
    context.progress(0.2)
    signals.give_back(taken)
    assert signals.take_progress() == Progress(fraction=0.2)


def test_an_attempt_that_goes_on_is_not_cancelled(context: RunContext) -> None:
    assert not context.is_cancelled
    context.raise_if_cancelled()


def test_a_cancel_request_is_seen_by_the_handler(context: RunContext, signals: Signals) -> None:
    signals.request_cancel()
    assert context.is_cancelled
    with pytest.raises(CancelledRun, match="was asked to stop"):
        context.raise_if_cancelled()


def test_the_end_of_the_attempt_is_seen_by_its_handler(context: RunContext, signals: Signals) -> None:
    signals.end()
    assert context.is_cancelled
    with pytest.raises(CancelledRun, match=r"Attempt 1 of run .* is over"):
        context.raise_if_cancelled()
