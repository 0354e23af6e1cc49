"""What the service keeps about itself, and the clock that it goes by."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockReading:
    """The last clock reading that a machine accepted, so that a restart can tell a leap from a long sleep."""

    wall: datetime
    boot_seconds: float | None
    boot_id: str | None
    """Names the start of the machine; None where it cannot be told, and then nothing is kept."""


CLOCK_READINGS_MAX = 1_000
"""Readings kept, one for each start of a machine: more than there are machines at work, or they would lose theirs."""


class HealthStore(Protocol):
    def ping(self) -> None:
        """Raises `StoreUnavailable` where the store cannot be used."""

    def read_time(self) -> datetime | None:
        """The store's own clock; None where it has none, and the machine's is the clock. Raises `StoreUnavailable`."""

    def get_clock_reading(self, boot_id: str | None) -> ClockReading | None:
        """What was accepted last under that start of a machine."""

    def commit_clock_reading(self, reading: ClockReading) -> None:
        """In place of the one of the same `boot_id`; without one nothing is kept. A new one may send away the one with
        the earliest wall time, beyond `CLOCK_READINGS_MAX`.
        """

    def commit_clock_confirmation(self, reading: ClockReading) -> None:
        """In place of all of them: no machine has anything left to judge the present time by, but for this reading.

        Gives cause for `Notice.DUE`: dispatchers that had stopped for their clock look at once.
        """

    def prune_idempotency(self, *, now: datetime, limit: int) -> int:
        """Forgets up to `limit` expired records; how many it forgot."""
