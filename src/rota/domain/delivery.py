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
    """Since when it is tried: its age is counted from here."""
    next_at: datetime | None
    """When a relay may take it: the end of its lease, of its backoff, or of `redeliver_after`. None: it is dead."""
    sent_at: datetime | None = None
    """When a sink last took it."""
    error: str | None = None
    """Why the last try failed."""


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


def taken(delivery: Delivery, *, until: datetime) -> Delivery:
    """The delivery as a relay takes it once more, whatever became of the try before."""
    return replace(delivery, state=DeliveryState.SENDING, tries=delivery.tries + 1, next_at=until)


def sent(delivery: Delivery, policy: DeliveryPolicy, *, now: datetime) -> Delivery:
    """The sink has taken it. It is no failure that it may have to be sent again."""
    return replace(
        delivery,
        state=DeliveryState.SENT,
        next_at=now + policy.redeliver_after,
        sent_at=now,
        error=None,
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
    """The try failed: another follows, no earlier than `retry_after` from now where the sink has asked for that, unless
    it is `is_final` or would come when the message is older than `max_age`. Then it is dead.
    """
    delay = policy.delay_after(delivery.tries, seed=f"{delivery.run_id}/{delivery.attempt}/{delivery.tries}")
    next_at = now + (delay if retry_after is None else max(delay, retry_after))
    if is_final or next_at > delivery.first_at + policy.max_age:
        return replace(delivery, state=DeliveryState.DEAD, next_at=None, error=error)
    return replace(delivery, state=DeliveryState.RETRYING, next_at=next_at, error=error)


def redriven(delivery: Delivery, *, now: datetime) -> Delivery:
    """A dead message as it begins anew: tried at once, its age counted from now."""
    return replace(delivery, state=DeliveryState.RETRYING, next_at=now, first_at=now)
