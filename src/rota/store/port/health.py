"""What the service keeps about itself."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockReading:
    """The last clock reading that was accepted, so that a restart can tell a leap from a long sleep."""

    wall: datetime
    boot_seconds: float | None
    boot_id: str | None


class HealthStore(Protocol):
    def ping(self) -> None:
        """Raises `StoreUnavailable` where the store cannot be used."""

    def get_clock_reading(self) -> ClockReading | None: ...
    def commit_clock_reading(self, reading: ClockReading) -> None: ...
    def prune_idempotency(self, *, now: datetime, limit: int) -> int:
        """Forgets up to `limit` expired records; how many it forgot."""
