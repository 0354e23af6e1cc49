"""Which days of a year a rule's BY parts allow.

Every BY part about days is a test of a day, and a day is allowed that passes all of them. What a test says depends on
the year's first weekday and length, and (for week numbers) on the lengths of the years beside it: 28 shapes of year,
each computed once. Any 28 years without a missing leap year have them all.
"""

from bisect import bisect_left
from calendar import isleap, monthrange
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta

from rota.domain.rrule.parts import CYCLE_YEARS, LAST_YEAR, Frequency, Rule, Weekday

DayTest = Callable[[date], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class YearDays:
    """The allowed days of one shape of year, in order."""

    of_year: tuple[int, ...]
    """As offsets from January 1st."""
    of_months: tuple[tuple[int, ...], ...]
    """Month by month, as offsets from its first day."""


class AllowedDays:
    """The allowed days of each year. Its memory of years is all that changes, so threads may share it."""

    def __init__(self, rule: Rule) -> None:
        self._tests = _tests_of(rule)
        self._shapes: dict[tuple[int, bool, bool, bool], YearDays] = {}
        self._years: dict[int, YearDays] = {}
        self.allows_all = not self._tests

    def of_year(self, year: int) -> YearDays:
        days = self._years.get(year)
        if days is None:
            days = self._years[year] = self._of_shape(year)
        return days

    def first_from(self, day: int) -> int | None:
        """The first allowed day (ordinal) that is not before `day`; None where the calendar has none."""
        first_year = date.fromordinal(day).year
        for year in range(first_year, min(first_year + CYCLE_YEARS, LAST_YEAR) + 1):
            new_year = date(year, 1, 1).toordinal()
            offsets = self.of_year(year).of_year
            place = bisect_left(offsets, day - new_year)
            if place < len(offsets):
                return new_year + offsets[place]
        return None

    def _of_shape(self, year: int) -> YearDays:
        first = date(year, 1, 1)
        key = (first.weekday(), isleap(year - 1), isleap(year), isleap(year + 1))
        days = self._shapes.get(key)
        if days is None:
            length = 366 if isleap(year) else 365
            allowed = [day for day in (first + timedelta(days=n) for n in range(length)) if self._allows(day)]
            days = self._shapes[key] = YearDays(
                of_year=tuple((day - first).days for day in allowed),
                of_months=tuple(
                    tuple(day.day - 1 for day in allowed if day.month == month) for month in range(1, 13)
                ),
            )
        return days

    def _allows(self, day: date) -> bool:
        return all(test(day) for test in self._tests)


def _tests_of(rule: Rule) -> tuple[DayTest, ...]:
    tests: list[DayTest] = []
    if rule.by_month:
        months = frozenset(rule.by_month)
        tests.append(lambda day: day.month in months)
    if rule.by_week_number:
        numbers, week_start = frozenset(rule.by_week_number), rule.week_start
        tests.append(lambda day: not numbers.isdisjoint(week_numbers(day, week_start)))
    if rule.by_year_day:
        year_days = frozenset(rule.by_year_day)
        tests.append(lambda day: not year_days.isdisjoint(_year_day_numbers(day)))
    if rule.by_month_day:
        month_days = frozenset(rule.by_month_day)
        tests.append(lambda day: not month_days.isdisjoint(_month_day_numbers(day)))
    if rule.by_day:
        by_day, in_month = rule.by_day, rule.frequency is Frequency.MONTHLY or bool(rule.by_month)
        tests.append(lambda day: any(_is_weekday(day, wanted, in_month=in_month) for wanted in by_day))
    return tuple(tests)


def week_numbers(day: date, week_start: int) -> tuple[int, int]:
    """The day's week number, from the front and (negative) from the back of the year that the week belongs to.

    Week 1 is the first with at least four days in the year.
    """
    fourth = day - timedelta(days=(day.weekday() - week_start) % 7) + timedelta(days=3)
    length = 366 if isleap(fourth.year) else 365
    ordinal = fourth.timetuple().tm_yday
    number = (ordinal - 1) // 7 + 1
    return number, -((length - ordinal) // 7 + 1)


def _year_day_numbers(day: date) -> tuple[int, int]:
    number = day.timetuple().tm_yday
    return number, number - (366 if isleap(day.year) else 365) - 1


def _month_day_numbers(day: date) -> tuple[int, int]:
    return day.day, day.day - monthrange(day.year, day.month)[1] - 1


def _is_weekday(day: date, wanted: Weekday, *, in_month: bool) -> bool:
    if day.weekday() != wanted.weekday:
        return False
    if wanted.ordinal == 0:
        return True
    first, last = _month_day_numbers(day) if in_month else _year_day_numbers(day)
    return wanted.ordinal in {(first - 1) // 7 + 1, -((-last - 1) // 7 + 1)}
