"""Taking deliveries: claim what is available, and judge when it is worth looking again."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rota.store.port import OpenedAttempt, WorkStore

HELD_FOR = timedelta(milliseconds=20)
"""How soon it is looked again for what others hold: about as long as the commit of a large batch takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    opened: Sequence[OpenedAttempt] = ()
    may_be_more: bool = False
    """It is worth looking again as soon as there is a free slot."""
    next_at: datetime | None = None
    """When to look again where nothing more is to be had now: when the next delivery becomes available."""


class Claims:
    """Opens attempts for one worker; one thread uses it."""

    def __init__(self, store: WorkStore, *, worker: str) -> None:
        self._store = store
        self._worker = worker

    def take(self, jobs: Sequence[str], *, now: datetime, limit: int) -> Claim:
        """Up to `limit` attempts, as many as the store takes in one call."""
        limit = min(limit, self._store.elements_max)
        opened = self._store.commit_claims(self._worker, jobs, now=now, limit=limit)
        if len(opened) == limit:
            return Claim(opened=opened, may_be_more=True)
        next_at = self._store.read_next_delivery_time(jobs)
        if next_at is None or next_at > now:
            return Claim(opened=opened, next_at=next_at)
        if opened:
            return Claim(opened=opened, may_be_more=True)  # It came since, or lay behind what opened nothing.
        # Another worker is about to take it, or somebody changes its run: to ask at once would be to ask all the time.
        return Claim(next_at=now + HELD_FOR)
