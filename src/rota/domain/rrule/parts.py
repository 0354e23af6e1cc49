"""The parts of an RRULE as a value, and the measures of the calendar that its times lie in."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum

BEGINNING = datetime(1, 1, 1)
"""Before every time of every rule."""
INSTANT = timedelta(microseconds=1)

LAST_YEAR = 9998
"""The calendar ends here, so that no sum of days leaves it."""
LAST_ORDINAL = date(LAST_YEAR, 12, 31).toordinal()

CYCLE_YEARS = 400
CYCLE_DAYS = 146_097
"""The calendar repeats after so many years and days, which are whole weeks."""


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
    def minutes(self) -> tuple[int, ...]:
        return self.by_minute or (self.dtstart.minute,)

    @property
    def seconds(self) -> tuple[int, ...]:
        return self.by_second or (self.dtstart.second,)

    @property
    def clock_times(self) -> tuple[int, ...]:
        """The times of day of a DAILY or coarser rule, in seconds from midnight, in order."""
        return tuple(
            hour * 3600 + minute * 60 + second
            for hour in self.by_hour or (self.dtstart.hour,)
            for minute in self.minutes
            for second in self.seconds
        )
