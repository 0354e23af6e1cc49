"""`ctx.once`: an effect that a run's attempts do once, as far as the ledger knows.

The protocol. *Begin*: the ledger notes, before anything happens, that this attempt begins the effect. *Do* it. *Record*
it with its result. A later attempt that finds it recorded returns the result and does nothing. One that finds it begun
and not recorded is in doubt: whoever began it died, lost its lease or failed between the two, and nobody knows whether
it came to pass. So doing it again is at least once, and refusing to is at most once; there is no third way, unless what
is changed takes the run's idempotency key itself.
"""

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Literal, TypeVar

from rota.domain.backoff import Backoff
from rota.domain.effect import EFFECTS_MAX, EffectBegin, EffectState
from rota.domain.errors import RotaError
from rota.domain.job import RESULT_BYTES_MAX
from rota.domain.json_text import JsonText, encode_json, load_json
from rota.wire.assignment import Assignment
from rota.wire.reports import NAME_CHARACTERS_MAX, is_name
from rota.worker.gateway import Gateway, named
from rota.worker.outcome import CancelledRun, EffectInDoubt, PermanentFailure, message_of
from rota.worker.signals import Signals

T = TypeVar("T")
IfInDoubt = Literal["again", "fail"]

TRIES = 6
BETWEEN_TRIES = Backoff(initial_delay=timedelta(milliseconds=200), max_delay=timedelta(seconds=5), jitter=0.2)
"""Some six seconds in all: a restart of the server is outlived, and a handler does not hang for long."""


class Effects:
    """The ledger of one attempt's run. Any thread may use it."""

    def __init__(
        self, gateway: Gateway, assignment: Assignment, signals: Signals, *, now: Callable[[], datetime]
    ) -> None:
        self._gateway = gateway
        self._attempt = named(assignment)
        self._signals = signals
        self._now = now

    def once(self, name: str, effect: Callable[[], object], *, if_in_doubt: IfInDoubt) -> object:
        """As `RunContext.once`."""
        _check(name, effect, if_in_doubt)
        if is_async(effect):
            return self._once_async(name, effect, if_in_doubt)
        is_done, result = self._begin(name, if_in_doubt)
        return result if is_done else self._record(name, effect())

    async def _once_async(self, name: str, effect: Callable[[], object], if_in_doubt: IfInDoubt) -> object:
        is_done, result = await asyncio.to_thread(self._begin, name, if_in_doubt)
        if is_done:
            return result
        awaitable = effect()
        value = await awaitable if isinstance(awaitable, Awaitable) else awaitable
        return await asyncio.to_thread(self._record, name, value)

    def _begin(self, name: str, if_in_doubt: IfInDoubt) -> tuple[bool, object]:
        """Whether it is done already, and its result then."""
        if self._signals.is_over:
            raise self._stale()

        def begin() -> EffectBegin:
            return self._gateway.begin_effect(self._attempt, name, now=self._now())

        # Of one whose answer was lost a repetition would say that it is in doubt.
        begun = self._try_again(begin) if if_in_doubt == "again" else begin()
        match begun.state:
            case EffectState.RECORDED:
                return True, None if begun.result is None else load_json(begun.result)
            case EffectState.STALE:
                raise self._stale()
            case EffectState.FULL:
                raise PermanentFailure(
                    f"The effect {name!r} was not begun: its run has {EFFECTS_MAX} already. Record what belongs "
                    "together as one."
                )
            case EffectState.IN_DOUBT if if_in_doubt == "fail":
                raise EffectInDoubt(
                    f"An attempt began the effect {name!r} of run {self._attempt.run_id} and recorded no end: it may "
                    "have come to pass. Find out, and replay the run where it did not."
                )
        return False, None

    def _record(self, name: str, value: object) -> object:
        """Records the effect as done; its result as later attempts will see it."""
        if inspect.isawaitable(value):
            if inspect.iscoroutine(value):
                value.close()
            raise PermanentFailure(
                f"The effect {name!r} returned an awaitable, which nobody awaits; give an `async def` function, or "
                "functools.partial of one, and await what `once` returns."
            )
        text, problem = _text_of(value)
        if not self._try_again(lambda: self._commit(name, text)):
            raise self._stale()
        if problem is not None:
            # It has come to pass, so it is recorded; only what it returned is lost.
            raise PermanentFailure(f"The effect {name!r} was done, but its result cannot be kept: {problem}")
        return None if text is None else load_json(text)

    def _commit(self, name: str, text: JsonText | None) -> bool:
        return self._gateway.record_effect(self._attempt, name, result=text, now=self._now())

    def _stale(self) -> CancelledRun:
        self._signals.end()
        return CancelledRun(
            f"Attempt {self._attempt.attempt} of run {self._attempt.run_id} is over; its effects are another's."
        )

    def _try_again(self, call: Callable[[], T]) -> T:
        """The call, repeated for a while where Rota is out of reach. It is one that may be repeated."""
        for failures in range(1, TRIES):
            try:
                return call()
            except RotaError:
                delay = BETWEEN_TRIES.delay_after(failures, seed=f"{self._attempt.run_id}/{failures}")
                threading.Event().wait(delay.total_seconds())
        return call()


def is_async(function: Callable[..., object]) -> bool:
    """Whether calling it gives a coroutine."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _check(name: str, effect: Callable[[], object], if_in_doubt: str) -> None:
    if not isinstance(name, str):
        raise TypeError('Name the effect: ctx.once("send-mail", send).')
    if not is_name(name):
        raise ValueError(f"Give the effect a name of 1 to {NAME_CHARACTERS_MAX} printable ASCII characters.")
    if not callable(effect):
        raise TypeError(
            f"The effect {name!r} is a {type(effect).__name__}; give a function without arguments."
        )
    if if_in_doubt not in ("again", "fail"):
        raise ValueError('Say if_in_doubt="again" or if_in_doubt="fail".')


def _text_of(value: object) -> tuple[JsonText | None, str | None]:
    """The result as it is kept, and why it cannot be."""
    if value is None:
        return None, None
    try:
        return encode_json(value, bytes_max=RESULT_BYTES_MAX), None
    except RotaError as error:
        return None, str(error)
    except (TypeError, ValueError, RuntimeError) as error:
        return None, message_of(error)
