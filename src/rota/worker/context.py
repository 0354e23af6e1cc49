"""What a handler is given: the run it works on, the way to report progress, and the question whether to stop."""

import math
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import TypeVar, overload

from rota.domain.json_text import load_json
from rota.domain.run import Progress
from rota.wire.assignment import Assignment
from rota.wire.reports import PROGRESS_MESSAGE_CHARACTERS_MAX, storable
from rota.worker.effects import Effects, IfInDoubt
from rota.worker.outcome import CancelledRun
from rota.worker.signals import Signals

T = TypeVar("T")


class RunContext:
    """One attempt at one run, as its handler sees it. It works the same in sync and async handlers, from any thread.

    `idempotency_key` is the run's id, the same in every attempt: give it to whatever the handler changes, so that a
    repeated attempt changes it once.
    """

    def __init__(self, assignment: Assignment, signals: Signals, effects: Effects) -> None:
        self._run = assignment
        self._signals = signals
        self._effects = effects
        self._params: dict[str, object] | None = None

    def __repr__(self) -> str:
        return f"RunContext({self.run_id!r}, attempt={self.attempt})"

    @property
    def run_id(self) -> str:
        return self._run.run_id

    @property
    def idempotency_key(self) -> str:
        """The run id: the same in every attempt."""
        return self._run.run_id

    @property
    def schedule_id(self) -> str:
        return self._run.schedule_id

    @property
    def version(self) -> int:
        """The version of the schedule that the run belongs to; a later edit does not change it (I8)."""
        return self._run.version

    @property
    def job(self) -> str:
        return self._run.job

    @property
    def attempt(self) -> int:
        """1 at the first try."""
        return self._run.attempt

    @property
    def scheduled_at(self) -> datetime:
        """The occurrence's instant (aware UTC), however late it runs."""
        return self._run.scheduled_at

    @property
    def scheduled_local(self) -> datetime:
        """The same instant as a local time (naive) in the schedule's zone."""
        return self._run.local

    @property
    def named_local(self) -> datetime:
        """The local time (naive) that the rule names: another than `scheduled_local` only where a gap moved it."""
        return self._run.named_local

    @property
    def timezone(self) -> str:
        return self._run.timezone

    @property
    def offset(self) -> timedelta:
        """`scheduled_local` less this is UTC."""
        return self._run.offset

    @property
    def period_key(self) -> str:
        return self._run.period_key

    @property
    def params(self) -> dict[str, object]:
        """The params of the run's version: a copy for this attempt, which may be changed without effect elsewhere."""
        if self._params is None:
            self._params = load_json(self._run.params)
        return self._params

    def progress(self, fraction: float, message: str | None = None) -> None:
        """Reports how far the work is, from 0 to 1; it is sent within about half a second, the latest report only.

        Raises `ValueError` for a fraction outside of 0 to 1, and `TypeError` for what is no number or text.
        """
        if isinstance(fraction, bool) or not isinstance(fraction, int | float):
            raise TypeError(f"Give the fraction as a number from 0 to 1, not as {type(fraction).__name__}.")
        if not math.isfinite(fraction) or not 0 <= fraction <= 1:
            raise ValueError(f"Give a fraction from 0 to 1; {fraction} is outside of it.")
        if message is not None and not isinstance(message, str):
            raise TypeError(f"Give the message as a text, not as {type(message).__name__}.")
        shown = None if message is None else storable(message, characters_max=PROGRESS_MESSAGE_CHARACTERS_MAX)
        self._signals.report(Progress(fraction=float(fraction), message=shown))

    @overload
    def once(
        self, name: str, effect: Callable[[], Awaitable[T]], *, if_in_doubt: IfInDoubt = "again"
    ) -> Awaitable[T]: ...
    @overload
    def once(self, name: str, effect: Callable[[], T], *, if_in_doubt: IfInDoubt = "again") -> T: ...
    def once(self, name: str, effect: Callable[[], object], *, if_in_doubt: IfInDoubt = "again") -> object:
        """Does an effect that the run's attempts are to do once, and returns its result, a JSON value or None.

        Where an earlier attempt recorded it, the recorded result is returned and nothing is done. Where one began it
        and recorded no end, it may have come to pass or not: it is done `again`, or the run is to `fail`
        (`EffectInDoubt`). Of an async function what comes back is to be awaited.

        Raises what the effect raises, `CancelledRun` where the attempt is no longer this worker's, `PermanentFailure`
        where its result cannot be kept, and `TypeError` or `ValueError` for what is no name or no function.
        """
        return self._effects.once(name, effect, if_in_doubt=if_in_doubt)

    @property
    def is_cancelled(self) -> bool:
        """Whether to stop: the run was asked to, or this attempt timed out, was interrupted or has been replaced."""
        return self._signals.is_cancel_requested or self._signals.is_over

    def raise_if_cancelled(self) -> None:
        """Raises `CancelledRun` where `is_cancelled`."""
        if self._signals.is_cancel_requested:
            raise CancelledRun(f"Run {self.run_id} was asked to stop.")
        if self._signals.is_over:
            raise CancelledRun(
                f"Attempt {self.attempt} of run {self.run_id} is over; its result is not awaited."
            )
