"""The attempts that a worker has: those that run, those that ended, and handlers that outlive their attempts."""

from dataclasses import dataclass, replace
from datetime import datetime
from queue import Empty, SimpleQueue

from rota.domain.durations import format_duration
from rota.domain.run import AttemptOutcome
from rota.domain.settlement import AttemptEnd
from rota.telemetry import get_logger
from rota.wire.assignment import AttemptId
from rota.wire.reports import storable
from rota.worker.gateway import EndReport
from rota.worker.open_attempt import NOTHING, Moment, OpenAttempt

log = get_logger("worker")


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedAttempt:
    """An attempt whose end is not reported yet."""

    attempt: OpenAttempt
    end: AttemptEnd
    ended_at: datetime
    is_refused: bool = False
    """Its own end was refused; this one only says so."""

    def report(self) -> EndReport:
        return EndReport(
            assignment=self.attempt.assignment,
            end=self.end,
            ended_at=self.ended_at,
            is_cancel_requested=self.attempt.signals.is_cancel_requested,
        )

    def is_heartbeat_due(self) -> bool:
        """Ahead of the settlement: for the last progress, or to learn whether the run was asked to stop."""
        is_final = self.end.outcome in {AttemptOutcome.SUCCEEDED, AttemptOutcome.MOOT}
        return not is_final or self.attempt.signals.has_progress


class Attempts:
    """One thread uses it, but for `put_returned`, which handlers' threads call."""

    def __init__(self, concurrency: int) -> None:
        self._concurrency = concurrency
        self._running: dict[AttemptId, OpenAttempt] = {}
        self._ended: dict[AttemptId, EndedAttempt] = {}
        self._outliving: dict[AttemptId, OpenAttempt] = {}
        self._returned: SimpleQueue[tuple[AttemptId, AttemptEnd]] = SimpleQueue()

    @property
    def slots(self) -> int:
        """How many more handlers may be started; a handler that outlives its attempt keeps its slot."""
        return self._concurrency - len(self._running) - len(self._outliving)

    def count_of(self, job: str) -> int:
        """How many slots handlers of that job have."""
        held = [*self._running.values(), *self._outliving.values()]
        return sum(attempt.assignment.job == job for attempt in held)

    @property
    def is_open(self) -> bool:
        """Whether Rota still waits for the end of any."""
        return bool(self._running or self._ended)

    def running(self) -> list[OpenAttempt]:
        return list(self._running.values())

    def ended(self) -> list[EndedAttempt]:
        return list(self._ended.values())

    def put_running(self, attempt: OpenAttempt) -> None:
        self._running[attempt.key] = attempt

    def put_returned(self, key: AttemptId, end: AttemptEnd) -> None:
        """A handler returned or raised."""
        self._returned.put((key, end))

    def put_ended(self, attempt: OpenAttempt, end: AttemptEnd, *, moment: Moment) -> None:
        """The attempt has this end, to be reported; a handler that still runs outlives it."""
        if attempt.key in self._running:
            self._outlive(attempt)
        self._ended[attempt.key] = EndedAttempt(attempt=attempt, end=end, ended_at=moment.wall)

    def put_refused(self, ended: EndedAttempt, problem: str) -> EndedAttempt:
        """Its report will never be taken: it has failed for good instead, which the answer tells."""
        error = storable(f"The end of the attempt ({ended.end.outcome}) was refused: {problem}")
        end = AttemptEnd(outcome=AttemptOutcome.FAILED, error=error, retryable=False)
        self._ended[ended.attempt.key] = replace(ended, end=end, is_refused=True)
        return self._ended[ended.attempt.key]

    def forget(self, attempt: OpenAttempt) -> None:
        """Nothing is to be reported of it any more."""
        self._ended.pop(attempt.key, None)
        if attempt.key in self._running:
            self._outlive(attempt)

    def collect(self, moment: Moment) -> None:
        """Takes note of the handlers that returned since."""
        while True:
            try:
                key, end = self._returned.get_nowait()
            except Empty:
                return
            attempt = self._running.pop(key, None)
            if attempt is not None:
                self._ended[key] = EndedAttempt(attempt=attempt, end=end, ended_at=moment.wall)
            elif self._outliving.pop(key, None) is not None:
                log.info("handler.return_late", run_id=key[0], attempt=key[1])

    def time_out(self, moment: Moment) -> None:
        """Ends those that have run too long."""
        for attempt in self.running():
            if attempt.has_timed_out(moment):
                limit = format_duration(attempt.timeout or NOTHING)
                error = f"The attempt ran for longer than its timeout, {limit}."
                self.put_ended(
                    attempt, AttemptEnd(outcome=AttemptOutcome.TIMED_OUT, error=error), moment=moment
                )

    def due_heartbeats(self, moment: Moment) -> list[OpenAttempt]:
        due = [ended.attempt for ended in self._ended.values() if ended.is_heartbeat_due()]
        return due + [attempt for attempt in self._running.values() if attempt.is_heartbeat_due(moment)]

    def _outlive(self, attempt: OpenAttempt) -> None:
        del self._running[attempt.key]
        self._outliving[attempt.key] = attempt
        attempt.signals.end()
        attempt.stop()
        log.warning("handler.outlive", run_id=attempt.key[0], attempt=attempt.key[1], slots_left=self.slots)
