"""A delivery: the message of one attempt on its way to a sink, and every transition of its state.

It begins when a relay takes the run's delivery intent, and is gone when the attempt is opened or the run is cancelled:
then nothing is left to be delivered. A relay holds what it sends by a lease, and its number of tries fences it: one
that comes too late with what became of try 3 changes nothing once try 4 has begun.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from rota.domain.identity import RunId, ScheduleId
from rota.domain.sink import DeliveryPolicy

REDELIVER_AFTER_MAX = timedelta(hours=1)
"""As far as the wait for a message that was sent grows, where it did not begin longer."""
DOUBLINGS_MAX = 20


class DeliveryState(StrEnum):
    SENDING = "sending"
    """A relay has it in hand."""
    RETRYING = "retrying"
    """The last try failed; the next one follows."""
    SENT = "sent"
    """The sink has it; it is sent again where its attempt is not opened in time."""
    DEAD = "dead"
    """It was tried for too long, or can never be sent; it waits for a person."""


IN_HAND = frozenset({DeliveryState.SENDING, DeliveryState.SENT})
"""Of deliveries that count against the `max_running` of their job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One message of one attempt."""

    run_id: RunId
    attempt: int
    """The attempt that the message asks for."""
    schedule_id: ScheduleId
    job: str
    state: DeliveryState
    tries: int
    """How often it was taken to be sent; it fences a relay."""
    first_at: datetime
    """Since when it could not be sent: its age is counted from here. What was sent, and is sent again, begins anew."""
    next_at: datetime | None
    """When a relay may take it: the end of its lease, of its backoff, or of `redeliver_after`. None: it is dead."""
    sent_at: datetime | None = None
    """When a sink last took it."""
    error: str | None = None
    """Why the last try failed, or that it was in vain: the sink has it again, and nobody opened its attempt."""
    failures: int = 0
    """Tries that failed, in a row: the next one waits the longer for it."""
    sends: int = 0
    """How often a sink took it, and nobody opened its attempt: it waits the longer before it is sent again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryEnd:
    """What became of one try. It counts where the delivery is still at that try, in the hands of that relay."""

    run_id: RunId
    attempt: int
    tries: int
    becomes: Delivery | None
    """None: it is given back, and is a delivery intent again, for the job's workers to fetch."""


def first_taken(
    *, run_id: RunId, attempt: int, schedule_id: ScheduleId, job: str, until: datetime, now: datetime
) -> Delivery:
    """The delivery that a relay makes of an intent, its own `until` its lease ends."""
    return Delivery(
        run_id=run_id,
        attempt=attempt,
        schedule_id=schedule_id,
        job=job,
        state=DeliveryState.SENDING,
        tries=1,
        first_at=now,
        next_at=until,
    )


def taken(delivery: Delivery, *, until: datetime, now: datetime) -> Delivery:
    """The delivery as a relay takes it once more, whatever became of the try before."""
    first_at = now if delivery.state is DeliveryState.SENT else delivery.first_at
    return replace(
        delivery, state=DeliveryState.SENDING, tries=delivery.tries + 1, first_at=first_at, next_at=until
    )


def sent(delivery: Delivery, policy: DeliveryPolicy, *, now: datetime) -> Delivery:
    """The sink has taken it. It is no failure that it may have to be sent again: each time it waits twice as long, an
    hour at most, so that a queue whose consumers are far behind is not filled with copies.
    """
    sends = delivery.sends + 1
    doubled = policy.redeliver_after * 2 ** min(delivery.sends, DOUBLINGS_MAX)
    return replace(
        delivery,
        state=DeliveryState.SENT,
        next_at=now + min(doubled, max(policy.redeliver_after, REDELIVER_AFTER_MAX)),
        sent_at=now,
        error=None if sends == 1 else f"It was sent {sends} times, and nobody has opened its attempt yet.",
        failures=0,
        sends=sends,
    )


def failed(
    delivery: Delivery,
    policy: DeliveryPolicy,
    *,
    error: str,
    now: datetime,
    retry_after: timedelta | None = None,
    is_final: bool = False,
) -> Delivery:
    """The try failed: another follows, no earlier than `retry_after` from now where the sink has asked for that.

    The last one is when the message is `max_age` old, however long the wait would be: where that fails, or one that
    took longer, or where the failure `is_final`, it is dead.
    """
    failures = delivery.failures + 1
    last_at = delivery.first_at + policy.max_age
    if is_final or now >= last_at:
        return replace(delivery, state=DeliveryState.DEAD, next_at=None, error=error, failures=failures)
    delay = policy.delay_after(failures, seed=f"{delivery.run_id}/{delivery.attempt}/{delivery.tries}")
    wait = delay if retry_after is None else max(delay, retry_after)
    return replace(
        delivery,
        state=DeliveryState.RETRYING,
        next_at=now + min(wait, last_at - now),
        error=error,
        failures=failures,
    )


def redriven(delivery: Delivery, *, now: datetime) -> Delivery:
    """A dead message as it begins anew: tried at once, its age counted from now, its waits as at first."""
    return replace(delivery, state=DeliveryState.RETRYING, next_at=now, first_at=now, failures=0, sends=0)
