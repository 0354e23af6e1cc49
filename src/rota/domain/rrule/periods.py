"""YEARLY, MONTHLY and WEEKLY rules: periods of days, numbered, of which every `interval`-th counts.

`next(after)` jumps to the period that holds `after`, takes the first time there that is later, and goes on by whole
intervals until it finds one, or has gone round the calendar in vain, or the calendar ends. The times of a period are a
product of days and times of day; BYSETPOS picks positions from it without writing it out.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from datetime import date, datetime, time
from math import gcd
from typing import Protocol

from rota.domain.rrule.days import AllowedDays
from rota.domain.rrule.parts import LAST_ORDINAL, LAST_YEAR, PERIODS_IN_CYCLE, Frequency, Rule


class Periods(Protocol):
    """One kind of period, numbered through the calendar."""

    last: int
    """The number of the last period."""

    def number_of(self, day: int) -> int:
        """The period that holds the day (ordinal)."""

    def days_of(self, number: int) -> tuple[int, Sequence[int]]:
        """The period's first day (ordinal) and its allowed days, as offsets from there."""


class Calendar:
    """The times of a YEARLY, MONTHLY or WEEKLY rule whose days are filled in."""

    def __init__(self, rule: Rule) -> None:
        self._periods = _periods_of(rule)
        self._times = rule.times
        self._positions = rule.by_set_position
        self._start = self._periods.number_of(rule.dtstart.toordinal())
        self._interval = rule.interval
        in_cycle = PERIODS_IN_CYCLE[rule.frequency]
        # From then on the same periods of the calendar's cycle would be seen again.
        self._reach = in_cycle // gcd(in_cycle, rule.interval) * rule.interval

    def next(self, after: datetime) -> datetime | None:
        """The first time later than `after`, which is at the earliest just before DTSTART; None: no more."""
        day, clock, periods, interval = after.toordinal(), after.time(), self._periods, self._interval
        number = self._start + (periods.number_of(day) - self._start) // interval * interval
        for number in range(number, min(number + self._reach, periods.last) + 1, interval):
            first, offsets = periods.days_of(number)
            index = _first_index(offsets, self._times, self._positions, day=day - first, clock=clock)
            if index is not None:
                place, index = divmod(index, len(self._times))
                return datetime.combine(date.fromordinal(first + offsets[place]), self._times[index])
        return None


class _Years:
    last = LAST_YEAR

    def __init__(self, rule: Rule) -> None:
        self._days = AllowedDays(rule)

    def number_of(self, day: int) -> int:
        return date.fromordinal(day).year

    def days_of(self, number: int) -> tuple[int, Sequence[int]]:
        return date(number, 1, 1).toordinal(), self._days.of_year(number).of_year


class _Months:
    last = LAST_YEAR * 12 + 11

    def __init__(self, rule: Rule) -> None:
        self._days = AllowedDays(rule)

    def number_of(self, day: int) -> int:
        at = date.fromordinal(day)
        return at.year * 12 + at.month - 1

    def days_of(self, number: int) -> tuple[int, Sequence[int]]:
        year, month = divmod(number, 12)
        return date(year, month + 1, 1).toordinal(), self._days.of_year(year).of_months[month]


class _Weeks:
    def __init__(self, rule: Rule) -> None:
        # Ordinal 1 is a Monday.
        self._monday = 1 + rule.week_start
        self._offsets = tuple(sorted({(wanted.weekday - rule.week_start) % 7 for wanted in rule.by_day}))
        self._months = frozenset(rule.by_month)
        self.last = self.number_of(LAST_ORDINAL)

    def number_of(self, day: int) -> int:
        return (day - self._monday) // 7

    def days_of(self, number: int) -> tuple[int, Sequence[int]]:
        first = number * 7 + self._monday
        if not self._months:
            return first, self._offsets
        offsets = [n for n in self._offsets if date.fromordinal(first + n).month in self._months]
        return first, offsets


def _periods_of(rule: Rule) -> Periods:
    if rule.frequency is Frequency.YEARLY:
        return _Years(rule)
    return _Months(rule) if rule.frequency is Frequency.MONTHLY else _Weeks(rule)


def _first_index(
    offsets: Sequence[int], times: Sequence[time], positions: Sequence[int], *, day: int, clock: time
) -> int | None:
    """Where in the product of days and times is the first at one of `positions` later than `clock` on `day`.

    Position 1 is the first of the product, -1 the last; no positions are all.
    """
    place = bisect_left(offsets, day)
    passed = place * len(times)
    if place < len(offsets) and offsets[place] == day:
        passed += bisect_right(times, clock)
    size = len(offsets) * len(times)
    if not positions:
        return passed if passed < size else None
    indexes = (position - 1 if position > 0 else size + position for position in positions)
    return min((index for index in indexes if passed <= index < size), default=None)
