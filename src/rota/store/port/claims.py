"""One claim of a worker: take what is available, and judge when it is worth looking again."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rota.store.port.work import OpenedAttempt, Wanted, WorkStore

HELD_FOR = timedelta(milliseconds=20)
"""How soon it is looked again for what others hold: about as long as the commit of a large batch takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    opened: Sequence[OpenedAttempt] = ()
    may_be_more: bool = False
    """It is worth looking again at once, for who can take more."""
    next_at: datetime | None = None
    """When to look again where nothing more is to be had now: when the next intent becomes available."""


def claim_attempts(
    store: WorkStore,
    worker: str,
    wanted: Sequence[Wanted],
    *,
    now: datetime,
    limit: int,
    backlog_first: bool = False,
) -> Claimed:
    """Opens up to `limit` attempts, as many as the store takes in one call."""
    limit = min(limit, store.elements_max)
    opened = store.commit_claims(worker, wanted, now=now, limit=limit, backlog_first=backlog_first)
    if len(opened) == limit:
        return Claimed(opened=opened, may_be_more=True)
    jobs = _unsatisfied(wanted, opened)
    next_at = store.read_next_intent_time(jobs) if jobs else None
    if next_at is None or next_at > now:
        return Claimed(opened=opened, next_at=next_at)
    if opened:
        return Claimed(opened=opened, may_be_more=True)  # It came since, or lay behind what opened nothing.
    # Another worker is about to take it, or somebody changes its run: to ask at once would be to ask all the time.
    return Claimed(next_at=now + HELD_FOR)


def _unsatisfied(wanted: Sequence[Wanted], opened: Sequence[OpenedAttempt]) -> list[str]:
    """The jobs of which more was asked for than was given: what is left of the others is for somebody else."""
    if all(each.limit is None for each in wanted):
        return [each.job for each in wanted]
    given: dict[str, int] = {}
    for attempt in opened:
        given[attempt.run.job] = given.get(attempt.run.job, 0) + 1
    return [each.job for each in wanted if each.limit is None or given.get(each.job, 0) < each.limit]
