"""What a handler is given: the run it works on, the way to report progress, and the question whether to stop."""

import math
import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from rota.domain.json_text import load_json
from rota.domain.run import Progress
from rota.store.port import OpenedAttempt
from rota.worker.outcome import CancelledRun, storable

PROGRESS_MESSAGE_CHARACTERS_MAX = 500


class Signals:
    """What passes between a handler and its worker while an attempt runs. Threads may share it.

    Of progress only the latest is kept, and `notify` is called only where no report was waiting yet: a handler that
    reports in a tight loop wakes its worker once for each report that is sent.
    """

    def __init__(self, notify: Callable[[], None]) -> None:
        self._notify = notify
        self._lock = threading.Lock()
        self._progress: Progress | None = None
        self._is_cancel_requested = False
        self._is_over = False

    @property
    def is_cancel_requested(self) -> bool:
        """Somebody asked the run to stop."""
        return self._is_cancel_requested

    @property
    def is_over(self) -> bool:
        """The attempt is not this handler's any more: stale, timed out or interrupted."""
        return self._is_over

    @property
    def has_progress(self) -> bool:
        return self._progress is not None

    def report(self, progress: Progress) -> None:
        with self._lock:
            is_first, self._progress = self._progress is None, progress
        if is_first:
            self._notify()

    def take_progress(self) -> Progress | None:
        """What was reported since the last call."""
        with self._lock:
            progress, self._progress = self._progress, None
            return progress

    def give_back(self, progress: Progress | None) -> None:
        """Progress that could not be sent is kept, unless the handler has reported since."""
        with self._lock:
            self._progress = self._progress or progress

    def request_cancel(self) -> None:
        self._is_cancel_requested = True

    def end(self) -> None:
        self._is_over = True


class RunContext:
    """One attempt at one run, as its handler sees it. It works the same in sync and async handlers, from any thread.

    `idempotency_key` is the run's id, the same in every attempt: give it to whatever the handler changes, so that a
    repeated attempt changes it once.
    """

    def __init__(self, opened: OpenedAttempt, signals: Signals) -> None:
        self._run = opened.run
        self._version = opened.version
        self._signals = signals
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
        return self._version.definition.timezone

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
            self._params = load_json(self._version.definition.params)
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
