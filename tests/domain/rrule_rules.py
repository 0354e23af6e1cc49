"""Generated recurrence rules, and their times by brute force: every day is asked, with words of its own.

Days are judged one by one by plain definitions, candidates are grouped into periods, and BYSETPOS picks from the list
of a period. Nothing is skipped or computed ahead, so it shares no idea with the engine.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import cache
from itertools import groupby

from hypothesis import strategies as st

WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
ONE_DAY = timedelta(days=1)
WINDOW_DAYS = {"YEARLY": 2500, "MONTHLY": 1200, "WEEKLY": 600, "DAILY": 500, "HOURLY": 40, "MINUTELY": 3}
MONDAY = date(1900, 1, 1)


@dataclass(frozen=True)
class GeneratedRule:
    dtstart: datetime
    frequency: str
    interval: int
    week_start: str
    numbers: dict[str, tuple[int, ...]]
    by_day: tuple[tuple[int, str], ...]

    @property
    def text(self) -> str:
        parts = [f"FREQ={self.frequency}", f"INTERVAL={self.interval}", f"WKST={self.week_start}"]
        parts += [f"{name}={','.join(map(str, values))}" for name, values in self.numbers.items()]
        if self.by_day:
            parts.append("BYDAY=" + ",".join(f"{ordinal or ''}{name}" for ordinal, name in self.by_day))
        return f"DTSTART:{self.dtstart:%Y%m%dT%H%M%S}\nRRULE:{';'.join(parts)}"

    @property
    def window_until(self) -> datetime:
        """Up to here brute force looks, from DTSTART on."""
        return self.dtstart + timedelta(days=WINDOW_DAYS[self.frequency])

    @property
    def has_mixed_ordinals(self) -> bool:
        return len({ordinal == 0 for ordinal, _ in self.by_day}) == 2

    @property
    def names_days(self) -> bool:
        return bool(self.by_day) or not self.numbers.keys().isdisjoint({"BYMONTHDAY", "BYYEARDAY"})


def times_by_brute_force(rule: GeneratedRule) -> list[datetime]:
    """The rule's times from DTSTART to the end of its window."""
    number_of = PERIOD_NUMBERS[rule.frequency]
    start = number_of(rule, rule.dtstart)
    found: list[datetime] = []
    for number, group in groupby(candidates(rule), key=lambda local: number_of(rule, local)):
        if (number - start) % rule.interval == 0:
            found += at_positions(list(group), rule.numbers.get("BYSETPOS"))
    return [local for local in found if rule.dtstart <= local < rule.window_until]


def candidates(rule: GeneratedRule) -> Iterator[datetime]:
    """What the BY parts allow, interval and positions aside, for whole periods around the window."""
    day = date(rule.dtstart.year, 1, 1) - timedelta(days=7)
    if rule.frequency in {"HOURLY", "MINUTELY"}:
        day = rule.dtstart.date()
    until = date(rule.window_until.year + 1, 1, 8)
    if rule.frequency not in {"YEARLY", "MONTHLY"}:
        until = rule.window_until.date() + timedelta(days=8)
    times = times_of_day(rule)
    while day < until:
        if is_allowed(rule, day):
            yield from (datetime.combine(day, at) for at in times)
        day += ONE_DAY


def times_of_day(rule: GeneratedRule) -> list[time]:
    every = {"HOURLY": {"BYHOUR"}, "MINUTELY": {"BYHOUR", "BYMINUTE"}}.get(rule.frequency, set())
    of_start = {"BYHOUR": rule.dtstart.hour, "BYMINUTE": rule.dtstart.minute, "BYSECOND": rule.dtstart.second}
    hours, minutes, seconds = (
        rule.numbers.get(name) or (range(24 if name == "BYHOUR" else 60) if name in every else (value,))
        for name, value in of_start.items()
    )
    return sorted(time(hour, minute, second) for hour in hours for minute in minutes for second in seconds)


def is_allowed(rule: GeneratedRule, day: date) -> bool:
    numbers, start, frequency = rule.numbers, rule.dtstart, rule.frequency
    if frequency == "YEARLY" and not rule.names_days and "BYWEEKNO" not in numbers:
        is_implied = day.day == start.day and ("BYMONTH" in numbers or day.month == start.month)
    elif frequency == "MONTHLY" and not rule.names_days:
        is_implied = day.day == start.day
    else:
        is_weekday_implied = not rule.names_days and (frequency == "WEEKLY" or "BYWEEKNO" in numbers)
        is_implied = not is_weekday_implied or day.weekday() == start.weekday()
    return (
        is_implied
        and ("BYMONTH" not in numbers or day.month in numbers["BYMONTH"])
        and (
            "BYWEEKNO" not in numbers
            or not week_numbers(day, rule.week_start).isdisjoint(numbers["BYWEEKNO"])
        )
        and ("BYYEARDAY" not in numbers or not numbers_in_year(day).isdisjoint(numbers["BYYEARDAY"]))
        and ("BYMONTHDAY" not in numbers or not numbers_in_month(day).isdisjoint(numbers["BYMONTHDAY"]))
        and (not rule.by_day or any(is_weekday(rule, day, *wanted) for wanted in rule.by_day))
    )


def is_weekday(rule: GeneratedRule, day: date, ordinal: int, name: str) -> bool:
    if WEEKDAYS[day.weekday()] != name:
        return False
    in_month = rule.frequency == "MONTHLY" or "BYMONTH" in rule.numbers
    span = days_of_month(day) if in_month else days_of_year(day.year)
    same = [other for other in span if other.weekday() == day.weekday()]
    return ordinal == 0 or ordinal in places(day, same)


@cache
def week_numbers(day: date, week_start: str) -> set[int]:
    first = first_of_week(day, week_start)
    week = [first + n * ONE_DAY for n in range(7)]
    year = max({other.year for other in week}, key=lambda year: sum(other.year == year for other in week))
    return places(first, weeks_of_year(year, week_start))


@cache
def weeks_of_year(year: int, week_start: str) -> list[date]:
    """The first days of the weeks with at least four days in the year."""
    firsts = sorted({first_of_week(day, week_start) for day in days_of_year(year)})
    return [first for first in firsts if sum((first + n * ONE_DAY).year == year for n in range(7)) >= 4]


@cache
def first_of_week(day: date, week_start: str) -> date:
    while WEEKDAYS[day.weekday()] != week_start:
        day -= ONE_DAY
    return day


@cache
def numbers_in_year(day: date) -> set[int]:
    return places(day, days_of_year(day.year))


@cache
def numbers_in_month(day: date) -> set[int]:
    return places(day, days_of_month(day))


def places(day: date, days: list[date]) -> set[int]:
    """Where the day stands, from the front and from the back."""
    return {days.index(day) + 1, days.index(day) - len(days)}


@cache
def days_of_year(year: int) -> list[date]:
    new_year = date(year, 1, 1)
    return [day for n in range(366) if (day := new_year + n * ONE_DAY).year == year]


@cache
def days_of_month(day: date) -> list[date]:
    first = day.replace(day=1)
    return [other for n in range(31) if (other := first + n * ONE_DAY).month == day.month]


def at_positions(times: list[datetime], positions: tuple[int, ...] | None) -> list[datetime]:
    if positions is None:
        return times
    return [at for n, at in enumerate(times) if n + 1 in positions or n - len(times) in positions]


PERIOD_NUMBERS: dict[str, Callable[[GeneratedRule, datetime], int]] = {
    "YEARLY": lambda _, local: local.year,
    "MONTHLY": lambda _, local: local.year * 12 + local.month,
    "WEEKLY": lambda rule, local: (first_of_week(local.date(), rule.week_start) - MONDAY).days // 7,
    "DAILY": lambda _, local: local.toordinal(),
    "HOURLY": lambda _, local: local.toordinal() * 24 + local.hour,
    "MINUTELY": lambda _, local: (local.toordinal() * 24 + local.hour) * 60 + local.minute,
}

SIGNED = {
    "BYMONTHDAY": [*range(-31, 0), *range(1, 32)],
    "BYYEARDAY": [*range(-366, 0), *range(1, 367)],
    "BYWEEKNO": [*range(-53, 0), *range(1, 54), 1, -1, 53, -53, 52, -52],
    "BYSETPOS": [-3, -2, -1, 1, 2, 3],
}
UNSIGNED = {"BYMONTH": range(1, 13), "BYHOUR": range(24), "BYMINUTE": range(60), "BYSECOND": range(60)}
RANGES = {**SIGNED, **UNSIGNED}
SIZES = {**dict.fromkeys(RANGES, 6), "BYHOUR": 2, "BYMINUTE": 2, "BYSECOND": 2}
EXCLUDED = {
    "MONTHLY": {"BYWEEKNO", "BYYEARDAY"},
    "WEEKLY": {"BYWEEKNO", "BYYEARDAY", "BYMONTHDAY"},
    "DAILY": {"BYWEEKNO", "BYYEARDAY"},
    "HOURLY": {"BYWEEKNO"},
    "MINUTELY": {"BYWEEKNO"},
}
"""By section 3.3.10 of RFC 5545."""


@st.composite
def rules(draw: st.DrawFn) -> GeneratedRule:
    frequency = draw(st.sampled_from([*WINDOW_DAYS]))
    names = [name for name in RANGES if name not in EXCLUDED.get(frequency, ())]
    chosen = draw(st.sets(st.sampled_from(names), max_size=3))
    numbers = {
        name: tuple(
            sorted(draw(st.sets(st.sampled_from(list(RANGES[name])), min_size=1, max_size=SIZES[name])))
        )
        for name in names
        if name in chosen
    }
    has_ordinals = frequency in {"YEARLY", "MONTHLY"} and "BYWEEKNO" not in numbers
    ordinals = st.sampled_from([0, 0, 1, 2, 3, -1, -2] if has_ordinals else [0])
    by_day = draw(st.lists(st.tuples(ordinals, st.sampled_from(WEEKDAYS)), max_size=4, unique=True))
    if not by_day and not numbers.keys() - {"BYSETPOS"}:
        numbers.pop("BYSETPOS", None)
    return GeneratedRule(
        dtstart=draw(st.datetimes(datetime(1996, 1, 1), datetime(2030, 1, 1))).replace(microsecond=0),
        frequency=frequency,
        interval=draw(st.sampled_from([1, 1, 1, 2, 3, 4, 5, 7, 10, 12, 24, 25, 45, 60, 90])),
        week_start=draw(st.sampled_from(WEEKDAYS)),
        numbers=numbers,
        by_day=tuple(by_day),
    )
