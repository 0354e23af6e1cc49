"""How an attempt's end settles its run: for good, or by a further attempt of the same run (I7)."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never

from rota.domain.identity import RunId
from rota.domain.job import RetryPolicy
from rota.domain.json_text import JsonText
from rota.domain.run import AttemptOutcome, Run, RunEvent, RunState, next_state

ERROR_CHARACTERS_MAX = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnd:
    """What became of an attempt, as its worker (or the recovery of lost ones) reports it."""

    outcome: AttemptOutcome
    result: JsonText | None = None
    error: str | None = None
    retryable: bool = True
    """False: the handler knows that trying again is useless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """One attempt's commit: applies only if it is still the run's current, open attempt (I6)."""

    run_id: RunId
    attempt: int
    end: AttemptEnd
    event: RunEvent
    settled_at: datetime
    retry_at: datetime | None
    """When the next attempt may start; set where `event` is RETRY_SCHEDULED."""
    only_if_expired: bool = False
    """Recovery: applies only if the attempt's lease has still run out at `settled_at`."""


def settle_attempt(
    *,
    run_id: RunId,
    attempt: int,
    end: AttemptEnd,
    retry: RetryPolicy,
    cancel_requested: bool,
    now: datetime,
    only_if_expired: bool = False,
) -> Settlement:
    """The settlement of attempt `attempt`: an end that is not final is retried until `max_attempts` are used up.

    An attempt that its worker gave back (`INTERRUPTED`) says nothing against the work: another follows at once,
    whatever their number.
    """
    event = _event_of(end, attempts_left=attempt < retry.max_attempts, cancel_requested=cancel_requested)
    retry_at = None
    if event is RunEvent.RETRY_SCHEDULED:
        interrupted = end.outcome is AttemptOutcome.INTERRUPTED
        retry_at = now if interrupted else now + retry.delay_before(attempt + 1, seed=run_id)
    return Settlement(
        run_id=run_id,
        attempt=attempt,
        end=end,
        event=event,
        settled_at=now,
        retry_at=retry_at,
        only_if_expired=only_if_expired,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """What the settlement of its current attempt makes of a run. What is None stays as it was, but for the error."""

    state: RunState
    error: str | None
    reason: str | None = None
    available_at: datetime | None = None
    finished_at: datetime | None = None


def end_of_run(settlement: Settlement, *, state: RunState, cancel_requested: bool) -> RunEnd:
    """What becomes of a run in this state, whatever else is known of it. Raises `IllegalTransition`.

    A request to stop that its worker had not heard of counts as if it had: an attempt that did not succeed cancels it.
    """
    event = settlement.event
    if cancel_requested and event in {RunEvent.RETRY_SCHEDULED, RunEvent.FAILED_FOR_GOOD}:
        event = RunEvent.CANCELLED
    state, error = next_state(state, event), settlement.end.error
    if event is RunEvent.RETRY_SCHEDULED:
        return RunEnd(state=state, error=error, available_at=settlement.retry_at)
    reason = error if event is RunEvent.FOUND_MOOT else None
    return RunEnd(state=state, error=error, reason=reason, finished_at=settlement.settled_at)


def settled_run(run: Run, settlement: Settlement) -> Run:
    """The run after its current attempt was settled. Raises `IllegalTransition`."""
    end = end_of_run(settlement, state=run.state, cancel_requested=run.cancel_requested_at is not None)
    return replace(
        run,
        state=end.state,
        error=end.error,
        reason=run.reason if end.reason is None else end.reason,
        available_at=end.available_at or run.available_at,
        finished_at=end.finished_at or run.finished_at,
    )


def _event_of(end: AttemptEnd, *, attempts_left: bool, cancel_requested: bool) -> RunEvent:
    match end.outcome:
        case AttemptOutcome.SUCCEEDED:
            return RunEvent.SUCCEEDED
        case AttemptOutcome.MOOT:
            return RunEvent.FOUND_MOOT
        case AttemptOutcome.CANCELLED:
            return RunEvent.CANCELLED
        case AttemptOutcome.INTERRUPTED:
            return RunEvent.CANCELLED if cancel_requested else RunEvent.RETRY_SCHEDULED
        case AttemptOutcome.FAILED | AttemptOutcome.TIMED_OUT | AttemptOutcome.LOST:
            if cancel_requested:
                return RunEvent.CANCELLED
            return RunEvent.RETRY_SCHEDULED if attempts_left and end.retryable else RunEvent.FAILED_FOR_GOOD
        case _:
            assert_never(end.outcome)
