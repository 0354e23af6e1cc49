"""Recovery: an attempt whose lease ran out is lost; its run gets a further attempt, or has failed (I5, I7). And a run
that waits for nobody any more is queued."""

from collections.abc import Sequence
from datetime import datetime

from rota.domain.run import AttemptOutcome
from rota.domain.settlement import AttemptEnd, Settlement, settle_attempt
from rota.store.port import Fence, LostAttempt, Store
from rota.telemetry import get_logger

log = get_logger("dispatch")


def recover_lost(store: Store, fences: Sequence[Fence], *, now: datetime, limit: int) -> int:
    """Settles up to `limit` lost attempts in the partitions of `fences`; how many were settled."""
    if not fences:
        return 0
    lost = store.read_lost([fence.partition for fence in fences], now=now, limit=limit)
    if not lost:
        return 0
    settled = store.commit_settlements([_settle(attempt, now) for attempt in lost], fences=fences)
    for attempt, was_settled in zip(lost, settled, strict=True):
        if was_settled:
            log.warning(
                "attempt.lost",
                run_id=attempt.attempt.run_id,
                attempt=attempt.attempt.number,
                worker=attempt.attempt.worker,
            )
    return sum(settled)


def recover_freed(store: Store, fences: Sequence[Fence], *, now: datetime, limit: int) -> int:
    """Queues up to `limit` runs that wait for a run that is not open any more; how many there were."""
    freed = store.commit_freed(fences, now=now, limit=limit) if fences else 0
    if freed:
        log.warning(
            "run.freed",
            count=freed,
            problem="They waited for runs that had ended, and nobody had queued them.",
        )
    return freed


def _settle(lost: LostAttempt, now: datetime) -> Settlement:
    attempt = lost.attempt
    error = f"Nothing was heard of worker {attempt.worker} for {lost.job.lease.total_seconds():g} s."
    return settle_attempt(
        run_id=attempt.run_id,
        attempt=attempt.number,
        end=AttemptEnd(outcome=AttemptOutcome.LOST, error=error),
        retry=lost.job.retry,
        cancel_requested=lost.cancel_requested,
        now=now,
        only_if_expired=True,
    )
