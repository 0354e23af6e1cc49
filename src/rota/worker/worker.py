"""The worker: takes deliveries, runs their handlers, keeps their leases, settles them.

One step. Collect the handlers that returned. End the attempts that ran too long. Send the heartbeats that are due, with
the progress that was reported; one goes ahead of a settlement where it carries the last progress, or where it matters
whether the run was asked to stop. Settle what ended. Then take as many deliveries as there are free slots, open their
attempts and start their handlers. No step waits for a handler, so heartbeats go on whatever handlers do.

An attempt is this worker's until it settles it, or until it is told that it is stale: then its handler is told to
stop and its end is forgotten (I6). A handler that goes on after its attempt ended keeps its slot until it returns.
Whatever has ended and could not be reported yet is kept and reported by a later step; if the process dies, the lease
runs out and the run gets a further attempt (I5, I7).
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from structlog.typing import FilteringBoundLogger

from rota.clock import Clock
from rota.domain.backoff import Backoff
from rota.domain.errors import RotaError
from rota.domain.job import Job
from rota.domain.run import AttemptOutcome
from rota.domain.settlement import AttemptEnd
from rota.stepping import step_until, step_until_done
from rota.store.port import HeartbeatOutcome, Wanted
from rota.telemetry import get_logger
from rota.wire.assignment import Assignment, AttemptId
from rota.worker.attempts import Attempts, EndedAttempt
from rota.worker.context import RunContext
from rota.worker.effects import Effects
from rota.worker.execution import Calls, InlineCalls, ThreadedCalls, stop_nothing
from rota.worker.gateway import Claim, Gateway, HeartbeatReport, ReportRefused
from rota.worker.open_attempt import Moment, OpenAttempt
from rota.worker.registry import Registry
from rota.worker.signals import Signals

BACKLOG_FIRST_EVERY = 4
"""One claim in so many asks for a backlog first, so that what is on time does not starve it."""

RETRY_FIRST, RETRY_LAST = timedelta(milliseconds=50), timedelta(seconds=1)
"""How soon a step that failed is repeated: at first, and when it went on failing."""

log = get_logger("worker")

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkReport:
    """What one step did, and when the next one is wanted (never later than the poll interval)."""

    opened: int
    settled: int
    running: int
    wake_at: datetime


class Worker:
    """Runs the jobs of a registry, up to `concurrency` attempts at a time. One thread runs it.

    `poll` is the longest it leaves the gateway alone, `drain` how long it waits for its attempts when it is stopped.
    `declared` jobs it makes known too, and does not work.
    With `inline` a step runs the handlers that it starts to their end, without threads: for tests.
    """

    def __init__(
        self,
        gateway: Gateway,
        registry: Registry,
        *,
        clock: Clock,
        name: str,
        concurrency: int,
        poll: timedelta,
        drain: timedelta,
        declared: Sequence[Job] = (),
        inline: bool = False,
    ) -> None:
        self.name = name
        self._gateway = gateway
        self._registry = registry
        self._clock = clock
        self._poll = poll
        self._drain_time = drain
        self._calls: Calls = InlineCalls() if inline else ThreadedCalls(concurrency)
        self._is_inline = inline
        self._claims = 0
        self._attempts = Attempts(concurrency)
        self._declared = declared
        self._registered: set[str] = set()
        self.wake = threading.Event()
        """Set where there is something to do before the time that a step named."""
        self._is_stopping = False
        self._failures = 0
        self._pauses = Backoff(
            initial_delay=min(RETRY_FIRST, poll), max_delay=min(RETRY_LAST, poll), jitter=0
        )

    def step(self, now: datetime) -> WorkReport:
        """One bounded piece of work at `now`. Raises what the gateway raises; nothing that ended is forgotten by it."""
        moment = self._moment(now)
        self._register_jobs(now)
        settled = self._finish(moment)
        claim = Claim() if self._is_stopping else self._claim(moment)
        if claim.assignments and self._is_inline:
            # In threads handlers go on, and the next step settles together what has ended till then.
            settled += self._finish(moment)
        return WorkReport(
            opened=len(claim.assignments),
            settled=settled,
            running=len(self._attempts.running()),
            wake_at=self._wake_at(moment, claim),
        )

    def run(self, stop: threading.Event, wake: threading.Event) -> None:
        """Steps until `stop` is set (set `wake` too, to end a wait), then drains: takes nothing more, waits for its
        attempts, and gives back those that are still open when the time is over.
        """
        self.wake = wake
        log.info("worker.start", worker=self.name, jobs=[job.name for job in self._registry.jobs()])
        with closing(self._gateway.subscribe(wake.set)):
            step_until(stop, wake, clock=self._clock, step=self._try_step)
        self._drain(wake)
        log.info("worker.stop", worker=self.name)

    def interrupt(self, now: datetime) -> None:
        """Ends every open attempt as interrupted, so that its run is queued again at once, and reports what it can."""
        self._is_stopping = True
        moment = self._moment(now)
        self._attempts.collect(moment)
        error = "The worker was stopped before the handler ended."
        for attempt in self._attempts.running():
            end = AttemptEnd(outcome=AttemptOutcome.INTERRUPTED, error=error)
            self._attempts.put_ended(attempt, end, moment=moment)
        self._report(moment)

    def close(self) -> None:
        """Ends its threads, as far as their handlers have ended; what is open stays open until its lease runs out."""
        self._calls.close()

    def _drain(self, wake: threading.Event) -> None:
        self._is_stopping = True
        step_until_done(
            lambda: not self._attempts.is_open,
            wake,
            clock=self._clock,
            step=self._try_step,
            within=self._drain_time,
        )
        try:
            self.interrupt(self._clock.now())
        except RotaError as error:
            log.warning("worker.ends_unreported", attempts=len(self._attempts.ended()), problem=str(error))
        self.close()

    def _try_step(self) -> float:
        """A step that the loop outlives; how many seconds it may wait now."""
        try:
            report = self.step(self._clock.now())
            wanted_in = report.wake_at - self._clock.now()
            self._failures = 0
        except RotaError as error:
            log.warning("worker.step_failed", problem=f"{type(error).__name__}: {error}")
            self._failures += 1
            wanted_in = self._pauses.delay_after(self._failures, seed=self.name)
        return min(self._poll.total_seconds(), max(0.0, wanted_in.total_seconds()))

    def _moment(self, now: datetime) -> Moment:
        return Moment(wall=now, boot_seconds=self._clock.boot_seconds())

    def _wake_at(self, moment: Moment, claim: Claim) -> datetime:
        now = moment.wall
        has_slot = not self._is_stopping and self._attempts.slots > 0
        if has_slot and claim.may_be_more:
            return now
        wanted = [
            now + self._poll,
            *(now + attempt.wanted_in(moment) for attempt in self._attempts.running()),
        ]
        if has_slot and claim.next_at is not None:
            wanted.append(claim.next_at)
        return min(wanted)

    def _register_jobs(self, now: datetime) -> None:
        for job in (*self._registry.jobs(), *self._declared):
            if job.name not in self._registered:
                self._gateway.register(job, now=now)
                self._registered.add(job.name)

    def _finish(self, moment: Moment) -> int:
        """Reports what ended and what goes on; how many attempts were settled."""
        self._attempts.collect(moment)
        self._attempts.time_out(moment)
        return self._report(moment)

    def _report(self, moment: Moment) -> int:
        """Heartbeats, then settlements; how many attempts were settled."""
        self._send_heartbeats(moment)
        return sum(self._settle(batch, moment) for batch in self._batches(self._attempts.ended()))

    def _settle(self, batch: Sequence[EndedAttempt], moment: Moment) -> int:
        try:
            answers = self._gateway.settle([ended.report() for ended in batch], now=moment.wall)
        except ReportRefused as refused:
            if len(batch) > 1:
                # Whichever it is: the others' ends are not to wait for it.
                return sum(self._settle([ended], moment) for ended in batch)
            return self._settle_instead(batch[0], refused, moment)
        logger = log.bind()
        for ended, was_current in zip(batch, answers, strict=True):
            self._attempts.forget(ended.attempt)
            _log_end(logger, ended, was_current=was_current)
        return sum(answers)

    def _settle_instead(self, ended: EndedAttempt, refused: ReportRefused, moment: Moment) -> int:
        """Of an end that will never be taken it is told that it was refused, and of that, nothing."""
        if ended.is_refused:
            log.error("attempt.unreported", run_id=ended.attempt.key[0], problem=str(refused))
            self._attempts.forget(ended.attempt)
            return 0
        return self._settle([self._attempts.put_refused(ended, str(refused))], moment)

    def _send_heartbeats(self, moment: Moment) -> None:
        for batch in self._batches(self._attempts.due_heartbeats(moment)):
            taken = [attempt.signals.take_progress() for attempt in batch]
            reports = [
                HeartbeatReport(assignment=attempt.assignment, progress=progress)
                for attempt, progress in zip(batch, taken, strict=True)
            ]
            try:
                outcomes = self._gateway.heartbeat(reports, now=moment.wall)
            except RotaError:
                for attempt, progress in zip(batch, taken, strict=True):
                    attempt.signals.give_back(progress)
                raise
            for attempt, outcome in zip(batch, outcomes, strict=True):
                self._heard(attempt, outcome, moment)

    def _heard(self, attempt: OpenAttempt, outcome: HeartbeatOutcome, moment: Moment) -> None:
        attempt.heard = moment
        if outcome is HeartbeatOutcome.CANCEL_REQUESTED:
            attempt.signals.request_cancel()
        elif outcome is HeartbeatOutcome.STALE:
            log.warning("attempt.stale", run_id=attempt.key[0], attempt=attempt.key[1])
            self._attempts.forget(attempt)

    def _claim(self, moment: Moment) -> Claim:
        wanted, slots = self._wanted(), self._attempts.slots
        if not wanted or slots <= 0:
            return Claim()
        self._claims += 1
        claim = self._gateway.claim(
            self.name,
            wanted,
            now=moment.wall,
            limit=min(slots, self._gateway.batch_max),
            backlog_first=self._claims % BACKLOG_FIRST_EVERY == 0,
        )
        logger = log.bind()  # Once for all: a logger that is not bound is made anew at each call.
        for assignment in claim.assignments:
            logger.debug(
                "attempt.open", run_id=assignment.run_id, attempt=assignment.attempt, job=assignment.job
            )
            self._start(assignment, moment)
        return claim

    def _wanted(self) -> list[Wanted]:
        """What there is place for, of each job."""
        wanted = []
        for entry in self._registry.fetched():
            name, limit = entry.job.name, None
            if entry.concurrency is not None:
                limit = entry.concurrency - self._attempts.count_of(name)
            if limit is None or limit > 0:
                wanted.append(Wanted(job=name, limit=limit))
        return wanted

    def _start(self, assignment: Assignment, moment: Moment) -> None:
        signals = Signals(self._notify)
        effects = Effects(self._gateway, assignment, signals, now=self._clock.now)
        attempt = OpenAttempt(
            assignment=assignment,
            context=RunContext(assignment, signals, effects),
            signals=signals,
            began=moment,
            heard=moment,
            stop=stop_nothing,
        )
        key = attempt.key
        if assignment.is_cancel_requested:
            # Asked to stop while an earlier attempt ran, which ended otherwise.
            signals.request_cancel()
            end = AttemptEnd(outcome=AttemptOutcome.CANCELLED)
            self._attempts.put_ended(attempt, end, moment=moment)
            return
        entry = self._registry.get(assignment.job)
        assert entry is not None  # noqa: S101 - only jobs of the registry are asked for
        self._attempts.put_running(attempt)
        attempt.stop = self._calls.start(entry, attempt.context, signals, partial(self._done, key))

    def _done(self, key: AttemptId, end: AttemptEnd) -> None:
        """Called from a handler's thread."""
        self._attempts.put_returned(key, end)
        self._notify()

    def _notify(self) -> None:
        # Whoever finds it set has put down already what it is set for.
        if not self.wake.is_set():
            self.wake.set()

    def _batches(self, elements: Sequence[T]) -> Iterator[Sequence[T]]:
        size = self._gateway.batch_max
        for start in range(0, len(elements), size):
            yield elements[start : start + size]


def _log_end(logger: FilteringBoundLogger, ended: EndedAttempt, *, was_current: bool) -> None:
    run = ended.attempt.assignment
    if not was_current:
        logger.warning(
            "attempt.stale", run_id=run.run_id, attempt=run.attempt, outcome=ended.end.outcome.value
        )
        return
    logger.info(
        "attempt.settle",
        run_id=run.run_id,
        attempt=run.attempt,
        job=run.job,
        outcome=ended.end.outcome.value,
        error=ended.end.error,
    )
