"""The attempt that a message asks for, opened by whoever has received it: a Celery task, a consumer of a queue, a web
handler.

A message may come twice, late, or for a run that somebody has cancelled. Opening the attempt that it names settles all
of that: one of them opens it, all others are told that there is nothing to do.
"""

import threading
from collections.abc import Mapping
from datetime import timedelta
from types import TracebackType

from rota.clock import Clock
from rota.domain.backoff import Backoff
from rota.domain.definition import FieldErrors
from rota.domain.durations import format_duration
from rota.domain.errors import FieldError, InvalidRequest, RotaError
from rota.domain.run import AttemptOutcome
from rota.domain.settlement import AttemptEnd
from rota.store.port import HeartbeatOutcome
from rota.telemetry import get_logger
from rota.wire.assignment import Assignment
from rota.wire.reports import NamedAttempt, parse_attempt, storable
from rota.worker.context import RunContext
from rota.worker.effects import Effects
from rota.worker.execution import call_to_its_end
from rota.worker.gateway import EndReport, Gateway, HeartbeatReport, ReportRefused
from rota.worker.open_attempt import Moment, OpenAttempt
from rota.worker.outcome import CancelledRun, end_of_error, end_of_result
from rota.worker.registry import RegisteredJob
from rota.worker.signals import Signals

STANDING_SECONDS = 0.05
SETTLE_TRIES = 8
BETWEEN_TRIES = Backoff(initial_delay=timedelta(milliseconds=200), max_delay=timedelta(seconds=5), jitter=0.2)
"""Some twenty seconds in all; after that the attempt's lease runs out, and the run is tried again."""

log = get_logger("worker")


def read_message(message: object) -> NamedAttempt:
    """The attempt that a message asks for, whatever else it says. Raises `InvalidRequest` for what is no message."""
    if not isinstance(message, Mapping):
        raise InvalidRequest(FieldError("message", 'It is no object such as {"run_id": ..., "attempt": 1}.'))
    errors = FieldErrors()
    attempt = parse_attempt(errors, message)
    errors.raise_if_any()
    return attempt


def open_session(gateway: Gateway, message: object, *, worker: str, clock: Clock) -> "AttemptSession | None":
    """The attempt, open; None where it is a duplicate, or where its run was asked to stop: it is settled as cancelled
    then. Raises `InvalidRequest` for what is no message.
    """
    assignment = gateway.open(worker, read_message(message), now=clock.now())
    if assignment is None:
        return None
    session = AttemptSession(gateway, assignment, clock=clock)
    if not assignment.is_cancel_requested:
        return session
    # Asked to stop while an earlier attempt ran, which ended otherwise.
    session.end(AttemptEnd(outcome=AttemptOutcome.CANCELLED))
    return None


class AttemptSession:
    """An open attempt. As a context manager it gives its context, sends heartbeats from a thread of its own, and
    settles at the end: as a success with `result` (a JSON value, None or `Moot`), or as the failure that was raised.

    `CancelledRun` does not leave the block, whatever else is raised does. One that is not entered is lost with its
    lease.
    """

    def __init__(self, gateway: Gateway, assignment: Assignment, *, clock: Clock) -> None:
        self.result: object = None
        self._gateway = gateway
        self._clock = clock
        self._wake = threading.Event()
        self._settling = threading.Lock()
        signals = Signals(self._wake.set)
        effects = Effects(gateway, assignment, signals, now=clock.now)
        moment = self._moment()
        self._attempt = OpenAttempt(
            assignment=assignment,
            context=RunContext(assignment, signals, effects),
            signals=signals,
            began=moment,
            heard=moment,
            stop=lambda: None,
        )
        self._is_settled = False
        self._thread = threading.Thread(target=self._keep, name="rota-heartbeats", daemon=True)

    @property
    def context(self) -> RunContext:
        return self._attempt.context

    def __enter__(self) -> RunContext:
        self._thread.start()
        return self.context

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        signals = self._attempt.signals
        if error is None:
            end = end_of_result(self.result)
        else:
            end = end_of_error(error, cancel_requested=signals.is_cancel_requested)
        self._close(end)
        return isinstance(error, CancelledRun)

    def run(self, entry: RegisteredJob) -> AttemptEnd:
        """Runs a job's guard and handler, sync or async, in this thread, and settles. What they raise stays within."""
        self._thread.start()
        end = call_to_its_end(entry, self.context, self._attempt.signals)
        self._close(end)
        return end

    def end(self, end: AttemptEnd) -> None:
        """Settles one that was not entered, and does no work of it."""
        self._settle(end)

    def give_back(self, reason: str) -> None:
        """Ends one that was not entered as interrupted: it is somebody else's to do, and costs the run no try."""
        self.end(AttemptEnd(outcome=AttemptOutcome.INTERRUPTED, error=storable(reason)))

    def _close(self, end: AttemptEnd) -> None:
        self._settle(end)
        self._wake.set()
        self._thread.join()

    def _keep(self) -> None:
        """The thread: heartbeats until it is settled."""
        while True:
            self._wake.clear()
            if self._is_settled:
                return
            moment = self._moment()
            if self._attempt.has_timed_out(moment):
                limit = format_duration(self._attempt.timeout or timedelta(0))
                error = f"The attempt ran for longer than its timeout, {limit}."
                self._attempt.signals.end()
                self._settle(AttemptEnd(outcome=AttemptOutcome.TIMED_OUT, error=error))
                return
            if self._attempt.is_heartbeat_due(moment) and not self._heartbeat(moment):
                return
            self._clock.wait(self._wake, self._attempt.wanted_in(moment).total_seconds())
            if not self._wake.is_set() and self._moment() == moment:
                # A clock that a test moves waits for nothing; this thread is not to spin meanwhile.
                self._wake.wait(STANDING_SECONDS)

    def _heartbeat(self, moment: Moment) -> bool:
        """Whether the attempt goes on."""
        signals = self._attempt.signals
        progress = signals.take_progress()
        try:
            report = HeartbeatReport(assignment=self._attempt.assignment, progress=progress)
            [outcome] = self._gateway.heartbeat([report], now=moment.wall)
        except RotaError as error:
            signals.give_back(progress)
            log.warning("attempt.heartbeat_failed", run_id=self.context.run_id, problem=str(error))
            self._wait_a_little(1)
            return True
        self._attempt.heard = moment
        if outcome is HeartbeatOutcome.CANCEL_REQUESTED:
            signals.request_cancel()
        elif outcome is HeartbeatOutcome.STALE:
            signals.end()
            log.warning("attempt.stale", run_id=self.context.run_id, attempt=self.context.attempt)
            return False
        return True

    def _settle(self, end: AttemptEnd) -> None:
        """Reports one end, the first; tries for a while, and leaves it to the lease then."""
        with self._settling:
            if self._is_settled:
                return
            self._is_settled = True
            if self._attempt.signals.has_progress:
                self._heartbeat(self._moment())
            ended_at = self._clock.now()
            is_refused = False
            for failures in range(1, SETTLE_TRIES + 1):
                try:
                    self._report(EndReport(assignment=self._attempt.assignment, end=end, ended_at=ended_at))
                except ReportRefused as refused:
                    if is_refused:
                        break
                    is_refused = True
                    error = storable(f"The end of the attempt ({end.outcome}) was refused: {refused}")
                    end = AttemptEnd(outcome=AttemptOutcome.FAILED, error=error, retryable=False)
                except RotaError as problem:
                    log.warning("attempt.settle_failed", run_id=self.context.run_id, problem=str(problem))
                    self._wait_a_little(failures)
                else:
                    return
            log.error("attempt.unreported", run_id=self.context.run_id, attempt=self.context.attempt)

    def _report(self, report: EndReport) -> None:
        [was_current] = self._gateway.settle([report], now=self._clock.now())
        end = report.end
        run_id, attempt = self._attempt.key
        if was_current:
            log.info(
                "attempt.settle",
                run_id=run_id,
                attempt=attempt,
                job=self.context.job,
                outcome=end.outcome.value,
                error=end.error,
            )
        else:
            log.warning("attempt.stale", run_id=run_id, attempt=attempt, outcome=end.outcome.value)

    def _wait_a_little(self, failures: int) -> None:
        delay = BETWEEN_TRIES.delay_after(failures, seed=f"{self.context.run_id}/{failures}")
        threading.Event().wait(delay.total_seconds())

    def _moment(self) -> Moment:
        return Moment(wall=self._clock.now(), boot_seconds=self._clock.boot_seconds())
