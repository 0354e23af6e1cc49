"""`ctx.once`: what a later attempt does not do again, what it cannot know, and what is refused."""

import functools
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

import pytest

from rota.domain.backoff import Backoff
from rota.domain.effect import EFFECTS_MAX
from rota.domain.identity import RunId
from rota.domain.job import RetryPolicy
from rota.domain.json_text import JsonText
from rota.domain.run import AttemptOutcome, RunState
from rota.store.memory import MemoryStore
from rota.store.port import OfAttempt, StoreUnavailable
from rota.worker import effects
from rota.worker.context import RunContext
from rota.worker.outcome import CancelledRun, EffectInDoubt
from tests.worker.scene import Scene

LEASE = timedelta(seconds=30)
AT_ONCE = RetryPolicy(max_attempts=3, initial_delay=timedelta(0), jitter=0)
NO_PAUSE = Backoff(initial_delay=timedelta(0), max_delay=timedelta(0), jitter=0)


class Mailer:
    """Counts what it was asked to send, and can die on the way."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.fails = False

    def send(self) -> dict[str, object]:
        if self.fails:
            raise ConnectionError("reset by peer")
        self.sent.append("mail")
        return {"message_id": len(self.sent)}

    async def send_async(self) -> dict[str, object]:
        return self.send()


@pytest.fixture
def mailer() -> Mailer:
    return Mailer()


def work_off(scene: Scene, steps: int = 3) -> None:
    worker = scene.worker(inline=True)
    for _ in range(steps):
        worker.step(scene.now)


def outcomes(scene: Scene, run_id: RunId) -> list[AttemptOutcome | None]:
    return [attempt.outcome for attempt in scene.detail(run_id).attempts]


def test_an_effect_that_was_recorded_is_not_repeated_by_a_later_attempt(
    any_scene: Scene, mailer: Mailer
) -> None:
    results: list[object] = []

    @any_scene.app.job("sales", retry=AT_ONCE)
    def handle(ctx: RunContext) -> None:
        results.append(ctx.once("send-mail", mailer.send))
        if ctx.attempt < 3:
            raise ValueError("after the mail")

    run_id = any_scene.queue("sales")
    work_off(any_scene)
    assert any_scene.run(run_id).state is RunState.SUCCEEDED
    assert mailer.sent == ["mail"]
    assert results == [{"message_id": 1}] * 3
    [effect] = any_scene.detail(run_id).effects
    assert (effect.name, effect.begun_by, effect.result) == ("send-mail", 1, '{"message_id":1}')


def test_an_async_effect_is_awaited(any_scene: Scene, mailer: Mailer) -> None:
    results: list[object] = []

    @any_scene.app.job("sales", retry=AT_ONCE)
    async def handle(ctx: RunContext) -> None:
        results.append(await ctx.once("send-mail", mailer.send_async))
        results.append(await ctx.once("other", functools.partial(mailer.send_async)))
        if ctx.attempt == 1:
            raise ValueError("after the mail")

    any_scene.queue("sales")
    work_off(any_scene)
    assert mailer.sent == ["mail", "mail"]
    assert results == [{"message_id": 1}, {"message_id": 2}] * 2


def test_names_tell_effects_apart_and_once_within_an_attempt_is_enough(scene: Scene, mailer: Mailer) -> None:
    @scene.app.job("sales")
    def handle(ctx: RunContext) -> list[object]:
        return [ctx.once(name, mailer.send) for name in ("first", "second", "first")]

    run_id = scene.queue("sales")
    work_off(scene, 1)
    assert scene.detail(run_id).result == '[{"message_id":1},{"message_id":2},{"message_id":1}]'


def test_an_effect_without_a_result_is_recorded_too(scene: Scene) -> None:
    calls: list[int] = []

    @scene.app.job("sales", retry=AT_ONCE)
    def handle(ctx: RunContext) -> None:
        assert ctx.once("note", lambda: calls.append(ctx.attempt)) is None
        if ctx.attempt == 1:
            raise ValueError

    scene.queue("sales")
    work_off(scene)
    assert calls == [1]


def test_an_effect_in_doubt_is_done_again_unless_its_handler_says_otherwise(
    any_scene: Scene, mailer: Mailer
) -> None:
    @any_scene.app.job("sales", retry=AT_ONCE)
    def handle(ctx: RunContext) -> object:
        mailer.fails = ctx.attempt == 1
        return ctx.once("send-mail", mailer.send)

    run_id = any_scene.queue("sales")
    work_off(any_scene)
    assert outcomes(any_scene, run_id) == [AttemptOutcome.FAILED, AttemptOutcome.SUCCEEDED]
    assert mailer.sent == ["mail"]


def test_an_effect_in_doubt_can_fail_its_run(any_scene: Scene, mailer: Mailer) -> None:
    @any_scene.app.job("sales", retry=AT_ONCE)
    def handle(ctx: RunContext) -> object:
        mailer.fails = ctx.attempt == 1
        return ctx.once("send-mail", mailer.send, if_in_doubt="fail")

    run_id = any_scene.queue("sales")
    work_off(any_scene)
    assert outcomes(any_scene, run_id) == [AttemptOutcome.FAILED, AttemptOutcome.FAILED]
    run = any_scene.run(run_id)
    assert run.state is RunState.FAILED
    assert run.error is not None
    assert run.error.startswith(
        f"{EffectInDoubt.__name__}: An attempt began the effect 'send-mail' of run {run_id}"
    )
    assert mailer.sent == []


# I6
def test_an_attempt_that_was_replaced_begins_no_effect(any_scene: Scene, mailer: Mailer) -> None:
    raised: list[CancelledRun] = []

    @any_scene.app.job("sales", lease=LEASE, retry=AT_ONCE)
    def handle(ctx: RunContext) -> None:
        if ctx.attempt > 1:
            return
        any_scene.clock.advance(LEASE)
        assert any_scene.world.dispatcher.step(any_scene.now).recovered == 1
        with pytest.raises(CancelledRun, match=r"Attempt 1 of run .* is over") as refused:
            ctx.once("send-mail", mailer.send)
        assert ctx.is_cancelled
        raised.append(refused.value)

    run_id = any_scene.queue("sales")
    work_off(any_scene)
    assert len(raised) == 1
    assert mailer.sent == []
    assert any_scene.run(run_id).state is RunState.SUCCEEDED


# I6
def test_an_attempt_that_was_replaced_while_it_did_an_effect_does_not_record_it(any_scene: Scene) -> None:
    @any_scene.app.job("sales", lease=LEASE, retry=AT_ONCE)
    def handle(ctx: RunContext) -> object:
        def send() -> str:
            if ctx.attempt == 1:
                any_scene.clock.advance(LEASE)
                any_scene.world.dispatcher.step(any_scene.now)
            return f"attempt {ctx.attempt}"

        return ctx.once("send-mail", send)

    run_id = any_scene.queue("sales")
    work_off(any_scene)
    detail = any_scene.detail(run_id)
    assert detail.result == '"attempt 2"'
    assert detail.effects[0].recorded_at == any_scene.now


@pytest.mark.parametrize(
    ("effect", "sentence"),
    [
        (object, "was done, but its result cannot be kept: A value of type object is not JSON."),
        (
            lambda: "x" * 300_000,
            "was done, but its result cannot be kept: The value has 300002 bytes as JSON",
        ),
        (lambda: float("nan"), "NaN and infinities are not JSON"),
    ],
)
def test_a_result_that_cannot_be_kept_fails_the_run_and_the_effect_is_not_repeated(
    scene: Scene, effect: Callable[[], object], sentence: str
) -> None:
    scene.app.job("sales", retry=AT_ONCE)(lambda ctx: ctx.once("odd", effect))
    run_id = scene.queue("sales")
    work_off(scene)
    assert outcomes(scene, run_id) == [AttemptOutcome.FAILED]
    assert sentence in str(scene.run(run_id).error)
    assert scene.detail(run_id).effects[0].recorded_at is not None


def test_a_sync_function_that_returns_an_awaitable_is_told_what_to_do(scene: Scene, mailer: Mailer) -> None:
    def lost() -> Awaitable[object]:
        return mailer.send_async()

    scene.app.job("sales")(lambda ctx: ctx.once("send-mail", lost))
    run_id = scene.queue("sales")
    work_off(scene, 1)
    assert "returned an awaitable, which nobody awaits" in str(scene.run(run_id).error)
    assert mailer.sent == []


def test_a_run_has_no_more_effects_than_are_kept(scene: Scene) -> None:
    @scene.app.job("sales")
    def handle(ctx: RunContext) -> None:
        for number in range(EFFECTS_MAX + 1):
            ctx.once(f"effect-{number}", lambda: None)

    run_id = scene.queue("sales")
    store = scene.store
    assert isinstance(store, MemoryStore)
    for number in range(EFFECTS_MAX - 1):
        store._effects[run_id, f"earlier-{number}"] = None  # type: ignore[assignment]  # only counted
    store._count = lambda attempt: len(store._effects)  # type: ignore[method-assign]  # they are no rows
    work_off(scene, 1)
    assert f"its run has {EFFECTS_MAX} already" in str(scene.store._runs[run_id].error)  # type: ignore[attr-defined]  # as above


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda ctx: ctx.once("", dict), "ValueError: Give the effect a name of 1 to 200"),
        (lambda ctx: ctx.once("a" * 201, dict), "ValueError: Give the effect a name of 1 to 200"),
        (lambda ctx: ctx.once("a\n", dict), "ValueError: Give the effect a name of 1 to 200"),
        (lambda ctx: ctx.once(dict, "mail"), 'TypeError: Name the effect: ctx.once("send-mail", send).'),
        (lambda ctx: ctx.once("mail", None), "TypeError: The effect 'mail' is a NoneType; give a function"),
        (lambda ctx: ctx.once("mail", dict, if_in_doubt="skip"), 'ValueError: Say if_in_doubt="again"'),
    ],
)
def test_what_is_no_effect_is_refused(scene: Scene, call: Callable[[RunContext], object], error: str) -> None:
    scene.app.job("sales", retry=RetryPolicy(max_attempts=1))(call)
    run_id = scene.queue("sales")
    work_off(scene, 1)
    assert str(scene.run(run_id).error).startswith(error)
    assert scene.detail(run_id).effects == ()


class ForgetfulStore(MemoryStore):
    """Cannot be reached for the next few records of an effect."""

    away = 0

    def commit_effect(self, attempt: OfAttempt, name: str, *, result: JsonText | None, now: datetime) -> bool:
        if self.away:
            self.away -= 1
            raise StoreUnavailable("The database is restarting.")
        return super().commit_effect(attempt, name, result=result, now=now)


def test_a_record_is_tried_again_while_the_store_is_away(
    mailer: Mailer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(effects, "BETWEEN_TRIES", NO_PAUSE)
    store = ForgetfulStore()
    scene = Scene(store)
    scene.app.job("sales")(lambda ctx: ctx.once("send-mail", mailer.send))
    run_id = scene.queue("sales")
    store.away = effects.TRIES - 1
    work_off(scene, 1)
    assert scene.run(run_id).state is RunState.SUCCEEDED
    assert mailer.sent == ["mail"]
