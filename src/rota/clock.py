"""Where time comes from: the wall clock for dates, the boot clock to judge it, and waiting.

Three rules. Stamps are aware UTC, truncated to milliseconds. Waiting never uses dates. Nothing else in Rota reads a
clock.
"""

import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from rota.domain.errors import InvalidExpression, RotaError
from rota.domain.instants import parse_instant

BOOT_ID_FILE = Path("/proc/sys/kernel/random/boot_id")


class ClockUnreadable(RotaError):
    """The file that `ROTA_CLOCK_FILE` names does not hold an instant; write one, such as 2026-01-10T14:00:00Z."""


class Clock(Protocol):
    def now(self) -> datetime:
        """The wall clock: aware UTC, truncated to milliseconds. It may leap either way."""
        ...

    def boot_seconds(self) -> float | None:
        """Seconds since the machine started, suspension included; None where there is no such clock."""
        ...

    def boot_id(self) -> str | None:
        """Names this start of the machine: boot seconds compare only under the same name."""
        ...

    def wait(self, wake: threading.Event, seconds: float) -> None:
        """Returns after `seconds`, or as soon as `wake` is set; never later, whatever the wall clock does."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        return truncate_to_millis(datetime.now(UTC))

    def boot_seconds(self) -> float | None:
        clock = getattr(time, "CLOCK_BOOTTIME", None)
        return None if clock is None else time.clock_gettime(clock)

    def boot_id(self) -> str | None:
        try:
            return BOOT_ID_FILE.read_text().strip()
        except OSError:
            return None

    def wait(self, wake: threading.Event, seconds: float) -> None:
        wake.wait(max(0.0, seconds))


class FileClock:
    """A clock that a file holds: several processes share a time that a demonstration moves by hand.

    Waiting is real, and short, so that a moved clock is noticed.
    """

    WAIT_SECONDS_MAX = 0.05

    def __init__(self, path: Path) -> None:
        self._path = path

    def now(self) -> datetime:
        try:
            return truncate_to_millis(parse_instant(self._path.read_text().strip()))
        except (OSError, InvalidExpression) as error:
            raise ClockUnreadable(f"The clock file {self._path} cannot be used: {error}.") from None

    def boot_seconds(self) -> float | None:
        return None

    def boot_id(self) -> str | None:
        return None

    def wait(self, wake: threading.Event, seconds: float) -> None:
        wake.wait(min(max(0.0, seconds), self.WAIT_SECONDS_MAX))


def truncate_to_millis(instant: datetime) -> datetime:
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)
