"""Which days of a year a rule's BY parts allow.

Every BY part about days names a set of days, and a day is allowed that is in all of them. What a part names depends on
the year's first weekday and length, and (for week numbers) on the lengths of the years beside it: 28 shapes of year,
each computed once.
"""

from bisect import bisect_left
from calendar import isleap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import accumulate, pairwise
from typing import Literal

from rota.domain.rrule.parts import CYCLE_YEARS, LAST_YEAR, Frequency, Rule, Weekday

MONTH_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_CYCLE_FROM = 2000

Period = Literal["month", "week", "day"]

PERIOD_KEYS: dict[Period, Callable[[int], object]] = {
    "month": lambda day: date.fromordinal(day).replace(day=1),
    # Ordinal 1 is a Monday.
    "week": lambda day: (day - 1) // 7,
    "day": lambda day: day,
}
"""What two days (ordinals) of the same calendar month, ISO week or day have in common."""
PERIOD_DAYS: dict[Period, int] = {"month": 31, "week": 7, "day": 1}


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
        self._rule = rule
        self._shapes: dict[_Shape, YearDays] = {}
        self._years: dict[int, YearDays] = {}
        """By the year's number in the cycle of the calendar."""
        self.allows_all = not (
            rule.by_month or rule.by_week_number or rule.by_year_day or rule.by_month_day or rule.by_day
        )

    def of_year(self, year: int) -> YearDays:
        days = self._years.get(year % CYCLE_YEARS)
        if days is None:
            shape = _Shape(
                weekday=date(year, 1, 1).weekday(),
                lengths=(_length(year - 1), _length(year), _length(year + 1)),
            )
            days = self._shapes.get(shape)
            if days is None:
                days = self._shapes[shape] = _allowed(self._rule, shape)
            self._years[year % CYCLE_YEARS] = days
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

    def of_cycle(self) -> Iterable[int]:
        """The allowed days (ordinals) of a cycle of the calendar, and of one year more to close the round.

        All of them are a `range`; else each is computed when asked for.
        """
        years = range(_CYCLE_FROM, _CYCLE_FROM + CYCLE_YEARS + 1)
        if self.allows_all:
            return range(date(years[0], 1, 1).toordinal(), date(years[-1], 12, 31).toordinal())
        return (
            date(year, 1, 1).toordinal() + offset for year in years for offset in self.of_year(year).of_year
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """All that the BY parts can tell of a year. Days are offsets from January 1st."""

    weekday: int
    """Of January 1st."""
    lengths: tuple[int, int, int]
    """Of the year before, this year and the year after, in days."""

    @property
    def year(self) -> range:
        return range(self.lengths[1])

    @property
    def months(self) -> tuple[range, ...]:
        lengths = (31, 28 + (self.lengths[1] == 366), *MONTH_LENGTHS[2:])
        return tuple(range(first, end) for first, end in pairwise(accumulate(lengths, initial=0)))

    def weeks_of_years(self, week_start: int) -> Iterator[range]:
        """The first days of the weeks of the year before, this year and the year after.

        Week 1 is the first with at least four days in its year.
        """
        before, this, after = self.lengths
        new_years = (-before, 0, this, this + after)
        firsts = [new_year + 3 - (self.weekday + new_year + 3 - week_start) % 7 for new_year in new_years]
        return (range(first, end, 7) for first, end in pairwise(firsts))


def _allowed(rule: Rule, shape: _Shape) -> YearDays:
    months = shape.months
    allowed = set(shape.year)
    if rule.by_month:
        allowed &= {day for month in rule.by_month for day in months[month - 1]}
    if rule.by_week_number:
        allowed &= _days_of_weeks(rule, shape)
    if rule.by_year_day:
        allowed &= {day for number in rule.by_year_day for day in _numbered(shape.year, number)}
    if rule.by_month_day:
        allowed &= {
            day for number in rule.by_month_day for month in months for day in _numbered(month, number)
        }
    if rule.by_day:
        spans = months if rule.frequency is Frequency.MONTHLY or rule.by_month else (shape.year,)
        allowed &= {
            day for wanted in rule.by_day for span in spans for day in _weekdays(wanted, span, shape.weekday)
        }
    return YearDays(
        of_year=tuple(sorted(allowed)),
        of_months=tuple(tuple(day - month.start for day in month if day in allowed) for month in months),
    )


def _days_of_weeks(rule: Rule, shape: _Shape) -> set[int]:
    """The days of the numbered weeks, whichever year the week belongs to."""
    return {
        first + offset
        for weeks in shape.weeks_of_years(rule.week_start)
        for number in rule.by_week_number
        for first in _numbered(weeks, number)
        for offset in range(7)
    }


def _weekdays(wanted: Weekday, span: range, weekday: int) -> Sequence[int]:
    """The wanted weekdays in a month or year whose year begins with `weekday`."""
    first = span.start + (wanted.weekday - weekday - span.start) % 7
    days = range(first, span.stop, 7)
    return days if wanted.ordinal == 0 else _numbered(days, wanted.ordinal)


def _numbered(days: Sequence[int], number: int) -> Sequence[int]:
    """The one with the number, 1 for the first or -1 for the last, if there are so many."""
    if abs(number) > len(days):
        return ()
    return (days[number - 1 if number > 0 else number],)


def _length(year: int) -> int:
    return 366 if isleap(year) else 365
