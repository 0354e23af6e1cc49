"""Guards: what keeps a handler from being called, and what that makes of the run."""

import asyncio

import pytest

from rota import Moot, PermanentFailure
from rota.domain.job import RetryPolicy
from rota.domain.run import RunState
from rota.worker.context import RunContext
from rota.worker.registry import Guard
from tests.worker.scene import Scene

ONE_TRY = RetryPolicy(max_attempts=1)


def guarded(scene: Scene, guard: Guard, *, is_async: bool = False) -> tuple[RunState, str | None, bool]:
    """The state and reason or error of a run, and whether its handler was called."""
    called: list[str] = []

    def handler(ctx: RunContext) -> None:
        called.append(ctx.run_id)

    async def async_handler(ctx: RunContext) -> None:
        handler(ctx)

    scene.app.job("expire", guard=guard, retry=ONE_TRY)(async_handler if is_async else handler)
    run_id = scene.queue("expire", reservation=7)
    scene.worker(inline=True).step(scene.now)
    run = scene.run(run_id)
    return run.state, run.reason or run.error, bool(called)


def refuse(ctx: RunContext) -> str:
    return f"reservation {ctx.params['reservation']} is confirmed"


async def refuse_async(ctx: RunContext) -> Moot:
    await asyncio.sleep(0)
    return Moot(refuse(ctx))


def fail(ctx: RunContext) -> None:
    raise PermanentFailure("no such reservation")


@pytest.mark.parametrize("is_async", [False, True])
def test_a_guard_that_gives_a_reason_makes_the_run_moot(any_scene: Scene, is_async: bool) -> None:
    assert guarded(any_scene, refuse, is_async=is_async) == (
        RunState.MOOT,
        "reservation 7 is confirmed",
        False,
    )


def test_an_async_guard_of_an_async_handler_is_awaited(scene: Scene) -> None:
    assert guarded(scene, refuse_async, is_async=True) == (
        RunState.MOOT,
        "reservation 7 is confirmed",
        False,
    )


@pytest.mark.parametrize("is_async", [False, True])
def test_a_guard_that_gives_none_lets_the_handler_go_on(scene: Scene, is_async: bool) -> None:
    assert guarded(scene, lambda ctx: None, is_async=is_async) == (RunState.SUCCEEDED, None, True)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_guard_that_raises_fails_the_attempt(scene: Scene, is_async: bool) -> None:
    assert guarded(scene, fail, is_async=is_async) == (
        RunState.FAILED,
        "PermanentFailure: no such reservation",
        False,
    )


@pytest.mark.parametrize("answer", [True, False, "", 0, {}])
def test_a_guard_that_answers_neither_none_nor_a_reason_fails_the_attempt(
    scene: Scene, answer: object
) -> None:
    state, error, was_called = guarded(scene, lambda ctx: answer)
    assert (state, was_called) == (RunState.FAILED, False)
    assert error is not None
    assert error.startswith(
        f"TypeError: The guard returned {type(answer).__name__}; it returns None to go on"
    )


def test_a_sync_handler_takes_no_async_guard(scene: Scene) -> None:
    with pytest.raises(TypeError, match="The guard of 'expire' is async and its handler is not"):
        scene.app.job("expire", guard=refuse_async)(lambda ctx: None)


def test_what_is_no_guard_is_refused_when_it_is_registered(scene: Scene) -> None:
    with pytest.raises(TypeError, match=r"The guard of 'expire' is called with one argument"):
        scene.app.job("expire", guard=lambda: None)(lambda ctx: None)  # type: ignore[arg-type]  # that is the point
