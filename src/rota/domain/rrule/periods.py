"""The periods of an RRULE by its FREQ: years, months, weeks, or slots of days.

Each kind answers `next(after)`: it jumps to the period that holds `after`, takes the first time there that is later,
and goes on by whole intervals until it finds one or the calendar ends. Times in a period are a product of days and times
of day; BYSETPOS picks positions from it without writing it out.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from math import gcd

from rota.domain.rrule.days import AllowedDays
from rota.domain.rrule.parts import Frequency, Rule

LAST_YEAR = 9998
"""The calendar ends here, so that no sum of days leaves it."""

LAST_ORDINAL = date(LAST_YEAR, 12, 31).toordinal()


class Calendar:
    """YEARLY, MONTHLY and WEEKLY: periods of days, each with the rule's times of day."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._days = AllowedDays(rule)
        self._times = rule.times
        self._positions = rule.by_set_position

    @property
    def is_possible(self) -> bool:
        """False: no day is allowed, so a search would be in vain."""
        return self._rule.frequency is Frequency.WEEKLY or self._days.is_possible

    @property
    def size_max(self) -> int:
        """How many times a period has at most: what BYSETPOS chooses from."""
        days = {Frequency.YEARLY: 366, Frequency.MONTHLY: 31}.get(
            self._rule.frequency, len(self._rule.by_day)
        )
        return days * len(self._times)

    def next(self, after: datetime) -> datetime | None:
        """The first time later than `after`, not before DTSTART's period; None: no more."""
        for days in self._periods_from(after):
            found = first_in_product(days, self._times, self._positions, after=after)
            if found is not None:
                return found
        return None

    def _periods_from(self, after: datetime) -> Iterator[Sequence[int]]:
        """The allowed days (ordinals) of the period that holds `after` and of those that follow."""
        match self._rule.frequency:
            case Frequency.YEARLY:
                return self._years_from(after)
            case Frequency.MONTHLY:
                return self._months_from(after)
            case _:
                return self._weeks_from(after)

    def _years_from(self, after: datetime) -> Iterator[Sequence[int]]:
        start, interval = self._rule.dtstart.year, self._rule.interval
        for year in range(start + (after.year - start) // interval * interval, LAST_YEAR + 1, interval):
            first = date(year, 1, 1).toordinal()
            yield [first + offset for offset in self._days.of_year(year)]

    def _months_from(self, after: datetime) -> Iterator[Sequence[int]]:
        start, interval = _month_index(self._rule.dtstart), self._rule.interval
        index = start + (_month_index(after) - start) // interval * interval
        for month in range(index, (LAST_YEAR + 1) * 12, interval):
            year, number = divmod(month, 12)
            new_year = date(year, 1, 1).toordinal()
            low = date(year, number + 1, 1).toordinal() - new_year
            high = 366 if number == 11 else date(year, number + 2, 1).toordinal() - new_year
            days = self._days.of_year(year)
            yield [new_year + offset for offset in days[bisect_left(days, low) : bisect_left(days, high)]]

    def _weeks_from(self, after: datetime) -> Iterator[Sequence[int]]:
        step = self._rule.interval * 7
        start = _week_of(self._rule.dtstart, self._rule.week_start)
        first = start + (after.toordinal() - start) // step * step
        offsets = sorted({(wanted.weekday - self._rule.week_start) % 7 for wanted in self._rule.by_day})
        months = frozenset(self._rule.by_month)
        for week in range(first, LAST_ORDINAL + 1, step):
            days = [week + offset for offset in offsets if 0 < week + offset <= LAST_ORDINAL]
            yield [day for day in days if date.fromordinal(day).month in months] if months else days


class Slots:
    """DAILY, HOURLY and MINUTELY: equal slots, numbered from day 0, of which every `interval`-th counts.

    A slot that counts must lie on an allowed day and be one of the allowed slots of a day; its times follow from the
    finer BY parts.
    """

    def __init__(self, rule: Rule) -> None:
        self._days = AllowedDays(rule)
        self._interval = rule.interval
        self._positions = rule.by_set_position
        self.per_day, self._allowed = _slots_of_day(rule)
        start_day = rule.dtstart.toordinal()
        self._first = start_day * self.per_day + _slot_at(rule.dtstart, self.per_day)
        steps_a_year = 366 * self.per_day // rule.interval
        self._goes_by_interval = rule.interval > self.per_day and steps_a_year < len(self._days.of_year(2024))
        self._times = {slot: _times_of_slot(rule, slot, self.per_day) for slot in self._allowed}
        self._by_residue: dict[int, list[int]] = {}
        for slot in self._allowed:
            self._by_residue.setdefault(slot % self._interval, []).append(slot)

    @property
    def is_possible(self) -> bool:
        """False: no day is allowed, or the interval meets no allowed slot of any day; a search would be in vain."""
        divisor = gcd(self.per_day, self._interval)
        return self._days.is_possible and any((slot - self._first) % divisor == 0 for slot in self._allowed)

    @property
    def size_max(self) -> int:
        """How many times a slot has at most: what BYSETPOS chooses from."""
        return max(map(len, self._times.values()))

    @property
    def slots_per_day_max(self) -> int:
        return max(map(len, self._by_residue.values()))

    def next(self, after: datetime) -> datetime | None:
        """The first time later than `after`, not before DTSTART's slot; None: no more."""
        start = max(after.toordinal() * self.per_day + _slot_at(after, self.per_day), self._first)
        for day, slots in self._slots_from(start):
            for slot in slots:
                found = first_in_product((day,), self._times[slot], self._positions, after=after)
                if found is not None:
                    return found
        return None

    def _slots_from(self, start: int) -> Iterator[tuple[int, Sequence[int]]]:
        """By the way that has fewer steps a year."""
        return self._by_interval(start) if self._goes_by_interval else self._by_day(start)

    def _by_interval(self, start: int) -> Iterator[tuple[int, Sequence[int]]]:
        """At most one slot a day counts: from each to the next."""
        index = self._first + -((self._first - start) // self._interval) * self._interval
        allowed = frozenset(self._allowed)
        for number in range(index, (LAST_ORDINAL + 1) * self.per_day, self._interval):
            day, slot = divmod(number, self.per_day)
            if slot in allowed and (self._days.allows_all or self._allows(day)):
                yield day, (slot,)

    def _by_day(self, start: int) -> Iterator[tuple[int, Sequence[int]]]:
        """Every allowed day, and on it the slots that the interval meets."""
        first_day, first_slot = divmod(start, self.per_day)
        for day in self._days_from(first_day):
            residue = (self._first - day * self.per_day) % self._interval
            slots = self._by_residue.get(residue)
            if slots is None:
                continue
            yield day, slots[bisect_left(slots, first_slot) :] if day == first_day else slots

    def _days_from(self, first_day: int) -> Iterator[int]:
        if self._days.allows_all:
            yield from range(first_day, LAST_ORDINAL + 1)
            return
        for year in range(date.fromordinal(first_day).year, LAST_YEAR + 1):
            new_year = date(year, 1, 1).toordinal()
            days = self._days.of_year(year)
            for offset in days[bisect_left(days, first_day - new_year) :]:
                yield new_year + offset

    def _allows(self, day: int) -> bool:
        year = date.fromordinal(day).year
        days = self._days.of_year(year)
        offset = day - date(year, 1, 1).toordinal()
        place = bisect_left(days, offset)
        return place < len(days) and days[place] == offset


def engine_of(rule: Rule) -> Calendar | Slots:
    """The engine of a rule whose days are filled in."""
    if rule.frequency in {Frequency.DAILY, Frequency.HOURLY, Frequency.MINUTELY}:
        return Slots(rule)
    return Calendar(rule)


def first_in_product(
    days: Sequence[int], times: Sequence[time], positions: Sequence[int], *, after: datetime
) -> datetime | None:
    """The first (day, time) later than `after` among those at `positions` (1: the first, -1: the last; empty: all)."""
    if not days:
        return None
    day = after.toordinal()
    # How many of the product lie at or before `after`.
    passed = bisect_left(days, day) * len(times)
    if passed < len(days) * len(times) and days[passed // len(times)] == day:
        passed += bisect_right(times, after.time())
    size = len(days) * len(times)
    if not positions:
        return _at(days, times, passed) if passed < size else None
    indexes = {position - 1 if position > 0 else size + position for position in positions}
    later = [index for index in indexes if passed <= index < size]
    return _at(days, times, min(later)) if later else None


def _at(days: Sequence[int], times: Sequence[time], index: int) -> datetime:
    place, number = divmod(index, len(times))
    return datetime.combine(date.fromordinal(days[place]), times[number])


def _slots_of_day(rule: Rule) -> tuple[int, tuple[int, ...]]:
    """How many slots a day has, and which of them the BY parts allow."""
    hours = sorted(rule.by_hour) or range(24)
    match rule.frequency:
        case Frequency.DAILY:
            return 1, (0,)
        case Frequency.HOURLY:
            return 24, tuple(hours)
        case _:
            minutes = sorted(rule.by_minute) or range(60)
            return 1440, tuple(hour * 60 + minute for hour in hours for minute in minutes)


def _slot_at(local: datetime, per_day: int) -> int:
    return (local.hour * 60 + local.minute) * per_day // 1440


def _times_of_slot(rule: Rule, slot: int, per_day: int) -> tuple[time, ...]:
    if per_day == 1:
        return rule.times
    seconds = sorted(rule.by_second or (rule.dtstart.second,))
    if per_day == 24:
        minutes = sorted(rule.by_minute or (rule.dtstart.minute,))
        return tuple(time(slot, minute, second) for minute in minutes for second in seconds)
    return tuple(time(slot // 60, slot % 60, second) for second in seconds)


def _month_index(local: datetime) -> int:
    return local.year * 12 + local.month - 1


def _week_of(local: datetime, week_start: int) -> int:
    return (local - timedelta(days=(local.weekday() - week_start) % 7)).toordinal()
