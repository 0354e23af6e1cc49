"""Taking deliveries: read what is available, open attempts, and judge when it is worth looking again."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rota.store.port import Delivery, OpenedAttempt, WorkStore
from rota.worker.open_attempt import AttemptKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    opened: tuple[OpenedAttempt, ...] = ()
    may_be_more: bool = False
    """It is worth looking again as soon as there is a free slot."""
    next_at: datetime | None = None
    """When the next delivery becomes available; read only where nothing more is to be had now."""


class Claims:
    """Opens attempts of these jobs for one worker; one thread uses it."""

    def __init__(self, store: WorkStore, *, worker: str) -> None:
        self._store = store
        self._worker = worker
        self._refused: frozenset[AttemptKey] = frozenset()

    def take(self, jobs: Sequence[str], *, now: datetime, limit: int) -> Claim:
        """Up to `limit` attempts, as many as the store takes in one call."""
        limit = min(limit, self._store.elements_max)
        deliveries = self._store.read_deliveries(jobs, now=now, limit=limit)
        answers = self._store.commit_openings(self._worker, deliveries, now=now) if deliveries else []
        refused = frozenset(
            _key(delivery) for delivery, answer in zip(deliveries, answers, strict=True) if answer is None
        )
        # Refused is what another worker took in between. What is refused twice running is a row that nobody can open,
        # and looking again at once would find it again.
        is_contended = bool(refused) and refused != self._refused
        self._refused = refused
        opened = tuple(answer for answer in answers if answer is not None)
        if is_contended or (opened and len(deliveries) == limit):
            return Claim(opened=opened, may_be_more=True)
        next_at = self._store.read_next_delivery_time(jobs)
        if next_at is not None and next_at <= now:
            # It came after the read, unless it is one of those that cannot be opened.
            return Claim(opened=opened, may_be_more=not refused)
        return Claim(opened=opened, next_at=next_at)


def _key(delivery: Delivery) -> AttemptKey:
    return delivery.run_id, delivery.attempt
