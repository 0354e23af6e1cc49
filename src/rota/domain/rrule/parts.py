"""The parts of an RRULE as a value, defaults of DTSTART filled in."""

from dataclasses import dataclass
from datetime import datetime, time
from enum import StrEnum

BEGINNING = datetime(1, 1, 1)
"""Before every time of every rule."""


class Frequency(StrEnum):
    YEARLY = "YEARLY"
    MONTHLY = "MONTHLY"
    WEEKLY = "WEEKLY"
    DAILY = "DAILY"
    HOURLY = "HOURLY"
    MINUTELY = "MINUTELY"


@dataclass(frozen=True, slots=True, kw_only=True)
class Weekday:
    """A BYDAY value: `MO` has ordinal 0, `-1FR` has -1. Weekdays count from 0 for Monday."""

    weekday: int
    ordinal: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """An RRULE whose parts are valid together (RFC 5545, section 3.3.10). Empty: the part is absent."""

    frequency: Frequency
    dtstart: datetime
    interval: int = 1
    count: int | None = None
    until: datetime | None = None
    """Inclusive: a naive local time, or an aware UTC instant."""
    by_month: tuple[int, ...] = ()
    by_week_number: tuple[int, ...] = ()
    by_year_day: tuple[int, ...] = ()
    by_month_day: tuple[int, ...] = ()
    by_day: tuple[Weekday, ...] = ()
    by_hour: tuple[int, ...] = ()
    by_minute: tuple[int, ...] = ()
    by_second: tuple[int, ...] = ()
    by_set_position: tuple[int, ...] = ()
    week_start: int = 0

    @property
    def times(self) -> tuple[time, ...]:
        """The times of day of a DAILY or coarser rule, in order."""
        return tuple(
            time(hour, minute, second)
            for hour in sorted(self.by_hour or (self.dtstart.hour,))
            for minute in sorted(self.by_minute or (self.dtstart.minute,))
            for second in sorted(self.by_second or (self.dtstart.second,))
        )
