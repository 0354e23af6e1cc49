"""The clock rule: no admission on a forward leap that nothing explains.

Readings of the wall clock that were accepted form a line: the last one, extended by the boot clock, which counts
suspended time too and which nobody sets. A wall clock more than `LEAP_MAX` ahead of that line has leapt. Nothing is
admitted then, until the clock is set right (it is back at the line) or an operator declares the present time right (the
line is moved). A clock behind the line only makes work late; the line stays, so that setting it right again is no leap.

The line is stored, so that a restart under a leapt clock is judged too. There is one for each start of a machine, since
boot clocks of others tell nothing about it. A declaration takes all of them away: each machine finds none, and begins
its own anew. After a restart of the machine, or on a machine without a boot clock, there is nothing to judge by and the
reading is accepted.

Where the wall clock is the database's, all machines judge the same clock, each by its own line.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from rota.clock import Clock
from rota.domain.instants import format_instant
from rota.store.port import ClockReading

LEAP_MAX = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockLeap:
    """The wall clock is ahead of what it should show."""

    wall: datetime
    expected: datetime

    def __str__(self) -> str:
        return (
            f"The clock shows {format_instant(self.wall)} where {format_instant(self.expected)} was expected. Nothing "
            "is admitted until it is set right, or declared right by `rota doctor --confirm-clock`."
        )


def read_clock(clock: Clock) -> ClockReading:
    return ClockReading(wall=clock.now(), boot_seconds=clock.boot_seconds(), boot_id=clock.boot_id())


def judge_clock(accepted: ClockReading | None, reading: ClockReading) -> ClockLeap | None:
    """Whether `reading` is a leap, measured against the last accepted one; None: it is not, or cannot be told."""
    expected = _expected(accepted, reading)
    if expected is None or reading.wall - expected <= LEAP_MAX:
        return None
    return ClockLeap(wall=reading.wall, expected=expected)


def extend_line(accepted: ClockReading | None, reading: ClockReading) -> ClockReading:
    """The line through an accepted reading: it never falls back behind where it was."""
    expected = _expected(accepted, reading)
    if expected is None or reading.wall >= expected:
        return reading
    return ClockReading(wall=expected, boot_seconds=reading.boot_seconds, boot_id=reading.boot_id)


def _expected(accepted: ClockReading | None, reading: ClockReading) -> datetime | None:
    if accepted is None or accepted.boot_id is None or accepted.boot_id != reading.boot_id:
        return None
    if accepted.boot_seconds is None or reading.boot_seconds is None:
        return None
    return accepted.wall + timedelta(seconds=reading.boot_seconds - accepted.boot_seconds)
