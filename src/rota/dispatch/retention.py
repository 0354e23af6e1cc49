"""How a dispatcher gives up old history: some of it at a time, beside its work (`rota.store.port.retention`)."""

from datetime import datetime, timedelta

from rota.store.port import LedgerKey, PruneOutcome, RetentionStore
from rota.telemetry import get_logger

REST = timedelta(minutes=10)
"""After all that is old was looked at: what stays, such as the last run of each paused schedule, is looked at anew."""

log = get_logger("dispatch")


def prune(
    store: RetentionStore, *, now: datetime, keep: timedelta, limit: int, after: LedgerKey | None = None
) -> PruneOutcome:
    """One bounded batch of what is older than `keep` (and than the reach of a period behind that).

    `after` is where the batch before ended (`PruneOutcome.reached`).
    """
    outcome = store.prune_history(before=now - keep, after=after, limit=limit)
    if outcome.total:
        log.info(
            "history.prune",
            runs=outcome.runs,
            skips=outcome.skips,
            suspensions=outcome.suspensions,
            events=outcome.events,
        )
    return outcome


class Retention:
    """Walks through what is old, one batch a step; begins anew when it was at the end. One thread uses it.

    Several processes may do so side by side: each leaves alone what another one is at work on.
    """

    def __init__(self, store: RetentionStore, *, keep: timedelta | None, limit: int) -> None:
        """`keep` None: everything is kept."""
        self._store = store
        self._keep = keep
        self._limit = limit
        self._reached: LedgerKey | None = None
        self._rests_from: datetime | None = None

    def step(self, now: datetime) -> PruneOutcome | None:
        """One batch; None where nothing is to be done now."""
        if self._keep is None or self._is_resting(now):
            return None
        outcome = prune(self._store, now=now, keep=self._keep, limit=self._limit, after=self._reached)
        self._reached = outcome.reached
        self._rests_from = now if outcome.reached is None and not outcome.total else None
        return outcome

    def _is_resting(self, now: datetime) -> bool:
        """A clock that went back ends the rest too."""
        return self._rests_from is not None and self._rests_from <= now < self._rests_from + REST
