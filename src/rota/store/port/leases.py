"""Partitions and how long they are held."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from rota.domain.job_form import LEASE_MAX as JOB_LEASE_MAX

LEASE_MAX = timedelta(minutes=10)
"""The longest lease of a partition. The epoch makes it safe to take one that seems longer (I13)."""

ATTEMPT_LEASE_MAX = JOB_LEASE_MAX + LEASE_MAX
"""The longest lease of an attempt, and some room: its end is told by another process's clock than the one that asks."""


def lease_has_ended(expires_at: datetime, *, now: datetime, longest: timedelta) -> bool:
    """Whether a lease ran out by `now`, or ends so late that only a clock which was ahead can have written it."""
    return expires_at <= now or expires_at > now + longest


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """What every write of a dispatcher names (I6): a partition, and the epoch under which it was acquired."""

    partition: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    partition: int
    owner: str | None
    epoch: int
    expires_at: datetime | None
    checkpoint: datetime | None
    """Everything due up to here has been admitted: reported, never the lower bound of a scan."""
