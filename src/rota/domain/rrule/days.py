"""Which days of a year a rule's BY parts allow.

Every BY part about days is a test of a day, and a day is allowed that passes all of them. What a test says depends on
the year's first weekday and length alone (and, for week numbers, on the length of the year before), so a rule meets
few different years, and each is computed once.
"""

from calendar import isleap, monthrange
from collections.abc import Callable
from datetime import date, timedelta

from rota.domain.rrule.parts import Frequency, Rule, Weekday

DayTest = Callable[[date], bool]


class AllowedDays:
    """The allowed days of each year as offsets from January 1st, in order."""

    def __init__(self, rule: Rule) -> None:
        self._tests = _tests_of(rule)
        self._years: dict[tuple[int, bool, bool], tuple[int, ...]] = {}
        self.allows_all = not self._tests

    @property
    def is_possible(self) -> bool:
        """Some year has an allowed day: 28 years without a missing leap year have every shape of year but one.

        That one, a common year after a common year in which a leap year is due, has no day that no other year has.
        """
        return self.allows_all or any(self.of_year(year) for year in range(2000, 2028))

    def of_year(self, year: int) -> tuple[int, ...]:
        first = date(year, 1, 1)
        key = (first.weekday(), isleap(year), isleap(year - 1))
        days = self._years.get(key)
        if days is None:
            length = 366 if isleap(year) else 365
            days = tuple(offset for offset in range(length) if self.allows(first + timedelta(days=offset)))
            self._years[key] = days
        return days

    def allows(self, day: date) -> bool:
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
