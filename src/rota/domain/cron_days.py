"""Which days of a month the two day fields of a cron rule name, for every shape that a month can have.

The days a rule names in a month depend only on the weekday of the 1st and on the month's length, and the
Gregorian calendar knows 14 shapes of year: seven weekdays for 1 January, leap or not. All of them come round
within 28 years, so a table of 14 x 12 sets of days is the whole calendar. An empty table proves that a rule
never matches, and what holds for each shape and for each turn of the year holds for ever.

A set of days is an integer whose bit `d` stands for day `d`. Weekdays count from Monday = 0.
"""

from calendar import isleap
from dataclasses import dataclass
from datetime import date
from typing import TypeAlias

# By shape of year (weekday of 1 January, plus 7 in a leap year), then by month (1 to 12; 0 is empty).
DayTable: TypeAlias = tuple[tuple[int, ...], ...]

# The calendar repeats itself after 400 years, to the weekday. Index: year % 400.
SHAPE_OF_YEAR: tuple[int, ...] = tuple(
    date(year, 1, 1).weekday() + 7 * isleap(year) for year in range(2000, 2400)
)

_COMMON_YEAR = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_LEAP_YEAR = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

_EVERY_SEVENTH = sum(1 << day for day in range(0, 35, 7))


@dataclass(frozen=True, slots=True, kw_only=True)
class DaysOfMonth:
    """The day-of-month field: `numbered` is a set of days, the rest are days or offsets from the last."""

    numbered: int
    before_last: tuple[int, ...] = ()  # L-n, L is 0
    nearest: tuple[int, ...] = ()  # nW
    nearest_before_last: tuple[int, ...] = ()  # L-nW, LW is 0

    def in_month(self, *, first_weekday: int, length: int) -> int:
        """The days named in a month of this shape; a day that the month lacks names none, with `W` too."""
        days = self.numbered & _whole_month(length)
        for offset in self.before_last:
            if offset < length:
                days |= 1 << (length - offset)
        targets = self.nearest + tuple(length - offset for offset in self.nearest_before_last)
        for day in targets:
            if 1 <= day <= length:
                days |= 1 << _nearest_working_day(day, first_weekday=first_weekday, length=length)
        return days


@dataclass(frozen=True, slots=True, kw_only=True)
class DaysOfWeek:
    """The day-of-week field: `weekdays` has bit 0 for Monday, `nth` pairs a weekday with 1 to 5."""

    weekdays: int
    nth: tuple[tuple[int, int], ...] = ()  # n#k
    last: tuple[int, ...] = ()  # nL

    def in_month(self, *, first_weekday: int, length: int) -> int:
        """The days named in a month of this shape; a fifth weekday that the month lacks names none."""
        days = 0
        for weekday in range(7):
            if self.weekdays >> weekday & 1:
                days |= _EVERY_SEVENTH << _first_of(weekday, first_weekday)
        days &= _whole_month(length)
        for weekday, number in self.nth:
            day = _first_of(weekday, first_weekday) + 7 * (number - 1)
            if day <= length:
                days |= 1 << day
        for weekday in self.last:
            first = _first_of(weekday, first_weekday)
            days |= 1 << (first + (length - first) // 7 * 7)
        return days


def build_day_table(
    days_of_month: DaysOfMonth, days_of_week: DaysOfWeek, *, both_must_match: bool, months: int
) -> DayTable:
    """The days that the rule names, by shape of year and month. `months` has bit `m` for month `m`."""
    known: dict[tuple[int, int], int] = {}
    table = []
    for shape in range(14):
        row = [0]
        first_weekday = shape % 7
        for month, length in enumerate(_month_lengths(shape), start=1):
            key = (first_weekday, length)
            if not months >> month & 1:
                row.append(0)
            else:
                if key not in known:
                    by_date = days_of_month.in_month(first_weekday=first_weekday, length=length)
                    by_weekday = days_of_week.in_month(first_weekday=first_weekday, length=length)
                    known[key] = by_date & by_weekday if both_must_match else by_date | by_weekday
                row.append(known[key])
            first_weekday = (first_weekday + length) % 7
        table.append(tuple(row))
    return tuple(table)


def two_days_share_a_month(table: DayTable) -> bool:
    """Whether some month, in some year, has two of the days."""
    return any(days.bit_count() > 1 for row in table for days in row)


def two_days_share_a_week(table: DayTable) -> bool:
    """Whether some ISO week, in some year or across a turn of the year, has two of the days."""
    for shape, row in enumerate(table):
        days_of_year, year_length = 0, 0
        for days, length in zip(row[1:], _month_lengths(shape), strict=True):
            days_of_year |= days >> 1 << year_length
            year_length += length
        # The year's last week may end in January, whose days do not depend on the leap day after them.
        next_january = table[(shape + year_length) % 7][1]
        days_of_year |= next_january >> 1 << year_length
        weeks = days_of_year << shape % 7
        while weeks:
            if (weeks & 0b1111111).bit_count() > 1:
                return True
            weeks >>= 7
    return False


def _month_lengths(shape: int) -> tuple[int, ...]:
    return _LEAP_YEAR if shape >= 7 else _COMMON_YEAR


def _whole_month(length: int) -> int:
    return (1 << (length + 1)) - 2


def _first_of(weekday: int, first_weekday: int) -> int:
    return (weekday - first_weekday) % 7 + 1


def _nearest_working_day(day: int, *, first_weekday: int, length: int) -> int:
    """Monday to Friday nearest to `day`, without leaving the month: Saturday the 1st moves to the 3rd."""
    weekday = (first_weekday + day - 1) % 7
    if weekday == 5:
        return day - 1 if day > 1 else day + 2
    if weekday == 6:
        return day + 1 if day < length else day - 2
    return day
