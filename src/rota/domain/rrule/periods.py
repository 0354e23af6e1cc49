"""Rules whose times are chosen period by period: YEARLY, MONTHLY, and WEEKLY with BYMONTH and BYSETPOS.

Periods are numbered, and every `interval`-th counts. `next(after)` jumps to the period that holds `after`, takes the
first time there that is later, and goes on by whole intervals until it finds one, or has gone round the calendar in
vain, or the calendar ends. The times of a period are a product of days and times of day; BYSETPOS picks positions from
it without writing it out.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from math import gcd
from typing import Protocol

from rota.domain.rrule.days import PERIOD_KEYS, AllowedDays, Period
from rota.domain.rrule.parts import CYCLE_DAYS, CYCLE_YEARS, INSTANT, LAST_ORDINAL, LAST_YEAR, Frequency, Rule
from rota.domain.rrule.table import clock_of, picked


class Periods(Protocol):
    """One kind of period, numbered through the calendar."""

    last: int
    """The number of the last period."""
    in_cycle: int
    """How many a cycle of the calendar has."""
    days_max: int
    """How many allowed days a period can have."""

    def number_of(self, day: date) -> int:
        """The period that holds the day."""

    def days_of(self, number: int) -> tuple[int, Sequence[int]]:
        """The period's first day (ordinal) and its allowed days, as offsets from there."""


class PeriodTimes:
    """The times of such a rule, its days filled in, without COUNT and UNTIL.

    What it remembers is all that changes, so threads may share it.
    """

    fills_every_hour = False

    def __init__(self, rule: Rule) -> None:
        self._periods = _periods_of(rule)
        self._clock_times = rule.clock_times
        self._positions = rule.by_set_position
        self._start = self._periods.number_of(rule.dtstart)
        self._interval = rule.interval
        # From then on the same periods of the calendar's cycle would be seen again.
        self._reach = self._periods.in_cycle // gcd(self._periods.in_cycle, rule.interval) * rule.interval
        self._indexes: dict[int, Sequence[int]] = {}
        self._before_start = rule.dtstart - INSTANT

    def next(self, after: datetime) -> datetime | None:
        """The first time later than `after`, which is at the earliest just before DTSTART; None: no more."""
        day, clock, count = after.toordinal(), clock_of(after), len(self._clock_times)
        start, interval, days_of = self._start, self._interval, self._periods.days_of
        # Just before DTSTART, where it is the first instant of its period, is the period before the first one.
        number = start + max(0, self._periods.number_of(after) - start) // interval * interval
        for period in range(number, min(number + self._reach, self._periods.last) + 1, interval):
            first, offsets = days_of(period)
            place = bisect_left(offsets, day - first)
            passed = place * count
            if place < len(offsets) and first + offsets[place] == day:
                passed += bisect_right(self._clock_times, clock)
            index = self._index_from(passed, len(offsets) * count)
            if index is not None:
                place, index = divmod(index, count)
                return datetime.fromordinal(first + offsets[place]) + timedelta(
                    seconds=self._clock_times[index]
                )
        return None

    @property
    def is_possible(self) -> bool:
        """There is a time before the calendar ends."""
        times_max = self._periods.days_max * len(self._clock_times)
        if all(abs(position) > times_max for position in self._positions or (1,)):
            return False
        return self.next(self._before_start) is not None

    def shares(self, period: Period) -> bool:
        """Two of the times lie in one such period."""
        if period == "day" and not self._positions:
            return len(self._clock_times) > 1
        key = PERIOD_KEYS[period]
        previous = None
        for day in self._days_of_round():
            current = key(day)
            if current == previous:
                return True
            previous = current
        return False

    def _days_of_round(self) -> Iterator[int]:
        """The days of the times while calendar and interval go round together once, each as often as it has times."""
        count = len(self._clock_times)
        end = min(self._start + self._reach, self._periods.last)
        for period in range(self._start, end + 1, self._interval):
            first, offsets = self._periods.days_of(period)
            for index in self._indexes_of(len(offsets) * count):
                yield first + offsets[index // count]

    def _index_from(self, low: int, size: int) -> int | None:
        """Of so many times of a period, the first at one of the positions that is not before `low`."""
        indexes = self._indexes_of(size)
        place = bisect_left(indexes, low)
        return indexes[place] if place < len(indexes) else None

    def _indexes_of(self, size: int) -> Sequence[int]:
        """Periods have few different sizes: what stands at the positions is remembered for each."""
        indexes = self._indexes.get(size)
        if indexes is None:
            indexes = self._indexes[size] = picked(size, self._positions)
        return indexes


class _Years:
    last = LAST_YEAR
    in_cycle = CYCLE_YEARS
    days_max = 366

    def __init__(self, rule: Rule) -> None:
        self._days = AllowedDays(rule)

    def number_of(self, day: date) -> int:
        return day.year

    def days_of(self, number: int) -> tuple[int, Sequence[int]]:
        return date(number, 1, 1).toordinal(), self._days.of_year(number).of_year


class _Months:
    last = LAST_YEAR * 12 + 11
    in_cycle = CYCLE_YEARS * 12
    days_max = 31

    def __init__(self, rule: Rule) -> None:
        self._days = AllowedDays(rule)

    def number_of(self, day: date) -> int:
        return day.year * 12 + day.month - 1

    def days_of(self, number: int) -> tuple[int, Sequence[int]]:
        year, month = divmod(number, 12)
        return date(year, month + 1, 1).toordinal(), self._days.of_year(year).of_months[month]


class _Weeks:
    in_cycle = CYCLE_DAYS // 7

    def __init__(self, rule: Rule) -> None:
        # Ordinal 1 is a Monday.
        self._first = 1 + rule.week_start
        self._offsets = sorted((wanted.weekday - rule.week_start) % 7 for wanted in rule.by_day)
        self._months = frozenset(rule.by_month)
        self.days_max = len(self._offsets)
        self.last = (LAST_ORDINAL - self._first) // 7

    def number_of(self, day: date) -> int:
        return (day.toordinal() - self._first) // 7

    def days_of(self, number: int) -> tuple[int, Sequence[int]]:
        first = number * 7 + self._first
        low, high = (date.fromordinal(first + n).month for n in (self._offsets[0], self._offsets[-1]))
        if low == high:
            return first, self._offsets if low in self._months else ()
        return first, [n for n in self._offsets if date.fromordinal(first + n).month in self._months]


def _periods_of(rule: Rule) -> Periods:
    if rule.frequency is Frequency.YEARLY:
        return _Years(rule)
    return _Months(rule) if rule.frequency is Frequency.MONTHLY else _Weeks(rule)
