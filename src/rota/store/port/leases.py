"""Partitions, how long they are held, and who is there to hold them."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from rota.domain.job_form import LEASE_MAX as JOB_LEASE_MAX

LEASE_MAX = timedelta(minutes=10)
"""The longest lease of a partition, or presence. The epoch makes it safe to take one that seems longer (I13)."""

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


def is_held(state: PartitionState, *, now: datetime) -> bool:
    """Whether somebody holds the partition at `now`."""
    return (
        state.owner is not None
        and state.expires_at is not None
        and not lease_has_ended(state.expires_at, now=now, longest=LEASE_MAX)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DueCount:
    """How much of a partition is due and not admitted: each counted up to a limit, at which there may be more."""

    schedules: int = 0
    planned: int = 0
    """Planned runs."""


class PresenceStore(Protocol):
    """Which dispatchers are there: what a fair share is computed from. Nothing rests on it but how work is shared."""

    def commit_presence(self, owner: str, *, now: datetime, ttl: timedelta) -> list[str]:
        """The owner is there until `now + ttl`. The owners that are there at `now`, by name, it among them.

        Those whose time has ended (`lease_has_ended`, `LEASE_MAX`) are forgotten.
        """

    def commit_absence(self, owner: str) -> None:
        """The owner is there no more."""

    def list_present(self, *, now: datetime) -> list[str]:
        """The owners that are there at `now`, by name: a read, for those who look often."""
