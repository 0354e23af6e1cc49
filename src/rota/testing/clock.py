"""A clock that stands still until a test moves it."""

import threading
from datetime import UTC, datetime, timedelta
from itertools import count

from rota.clock import truncate_to_millis

_machines = count(1)


class ManualClock:
    """The wall clock and the boot clock of a machine whose time a test decides. Threads may share it.

    `advance` and `set` let time pass: both clocks move. `leap` moves the wall clock alone, as one who sets it does.
    Each clock is another start of the machine: nothing is told of one by the readings of another.
    """

    def __init__(self, now: datetime) -> None:
        self._lock = threading.Lock()
        self._now = truncate_to_millis(as_utc(now))
        self._since_boot = timedelta(0)
        self._boot_id = f"manual-{next(_machines)}"

    def now(self) -> datetime:
        return self._now

    def boot_seconds(self) -> float | None:
        return self._since_boot.total_seconds()

    def boot_id(self) -> str | None:
        return self._boot_id

    def wait(self, wake: threading.Event, seconds: float) -> None:
        """Returns at once: nobody waits for a time that only a test moves."""

    def advance(self, duration: timedelta) -> None:
        """Time passes. Raises `ValueError` for a negative duration, which is a `leap`."""
        if duration < timedelta(0):
            raise ValueError(f"Time does not pass backwards; use leap({duration!r}) to set the clock back.")
        with self._lock:
            self._now = truncate_to_millis(self._now + duration)
            self._since_boot += duration

    def set(self, instant: datetime) -> None:
        """Time passes until `instant`. Raises `ValueError` where that lies in the past."""
        self.advance(as_utc(instant) - self._now)

    def leap(self, duration: timedelta) -> None:
        """The wall clock is set forward, or back with a negative duration, while no time passes."""
        with self._lock:
            self._now = truncate_to_millis(self._now + duration)


def as_utc(instant: datetime) -> datetime:
    if instant.tzinfo is None or instant.utcoffset() is None:
        raise ValueError(f"{instant.isoformat()} has no zone; give datetime(2026, 1, 10, 14, tzinfo=UTC).")
    return instant.astimezone(UTC)
