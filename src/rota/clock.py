"""Where time comes from: the wall clock for dates, the boot clock to judge it, and waiting.

Three rules. Stamps are aware UTC, truncated to milliseconds. Waiting never uses dates. Nothing else in Rota reads a
clock.

Where many machines share a database with a clock of its own, that one is the wall clock of them all (`MeasuredClock`).
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
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


class MeasuredClock:
    """The database's clock, as this machine's boot clock extends the last measurement of it.

    A measurement asks for the time a few times and believes the fastest answer, which was given, as far as can be told,
    in the middle of its round trip. It can be wrong by half of that. So a later one that finds the clock earlier, but
    by no more than both can be wrong, takes nobody back: the time stands still until it has caught up. One that finds
    it earlier by more tells that the database's clock was set back, and is believed, as is any that finds it later.

    Whoever asks for the time `MEASURED_AFTER_SECONDS` after the last measurement makes the next one; the others do not
    wait for it. While the database cannot be asked, the last one holds. The machine's own wall clock is of no effect.
    """

    MEASURED_AFTER_SECONDS = 10.0
    ANSWERS = 3

    def __init__(self, machine: Clock, read_time: Callable[[], datetime | None]) -> None:
        """`read_time` answers with the database's clock. Raises what it raises; `ValueError` where there is none."""
        self._machine = machine
        self._read_time = read_time
        self._measuring = threading.Lock()
        self._lock = threading.Lock()
        self._offset = self._measure()
        self._told = datetime.min.replace(tzinfo=UTC)
        self._measure_at = self._steady_seconds() + self.MEASURED_AFTER_SECONDS

    def now(self) -> datetime:
        if self._steady_seconds() >= self._measure_at and self._measuring.acquire(blocking=False):
            try:
                self._measure_again()
            finally:
                self._measuring.release()
        with self._lock:
            self._told = max(self._told, self._offset.time_at(self._steady_seconds()))
            return truncate_to_millis(self._told)

    def boot_seconds(self) -> float | None:
        return self._machine.boot_seconds()

    def boot_id(self) -> str | None:
        return self._machine.boot_id()

    def wait(self, wake: threading.Event, seconds: float) -> None:
        self._machine.wait(wake, seconds)

    def _measure_again(self) -> None:
        try:
            offset = self._measure()
        except RotaError:
            # It is told by whoever needs the database for more than its time.
            return
        finally:
            self._measure_at = self._steady_seconds() + self.MEASURED_AFTER_SECONDS
        with self._lock:
            earlier_by = self._offset.epoch - offset.epoch
            if earlier_by > self._offset.error + offset.error:
                self._told = datetime.min.replace(tzinfo=UTC)
            self._offset = offset

    def _measure(self) -> "_Offset":
        return min((self._ask() for _ in range(self.ANSWERS)), key=lambda offset: offset.error)

    def _ask(self) -> "_Offset":
        before = self._steady_seconds()
        database_time = self._read_time()
        after = self._steady_seconds()
        if database_time is None:
            raise ValueError("This database has no clock of its own to measure.")
        middle = timedelta(seconds=(before + after) / 2)
        return _Offset(epoch=database_time - middle, error=timedelta(seconds=(after - before) / 2))

    def _steady_seconds(self) -> float:
        """The boot clock, which counts suspended time too; where there is none, one that nobody sets either."""
        seconds = self._machine.boot_seconds()
        return monotonic_seconds() if seconds is None else seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class _Offset:
    """What the database's clock showed, or would have, when the steady seconds began."""

    epoch: datetime
    error: timedelta
    """By how much `epoch` can be wrong, either way."""

    def time_at(self, steady_seconds: float) -> datetime:
        return self.epoch + timedelta(seconds=steady_seconds)


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


def monotonic_seconds() -> float:
    """Seconds from some moment on, which nobody sets: for how long something is ago in this process."""
    return time.monotonic()


def truncate_to_millis(instant: datetime) -> datetime:
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)
