"""Rules whose times come round after a whole number of days: WEEKLY, DAILY, HOURLY and MINUTELY.

With s slots (a day, hours or minutes) a day, the slots of a day of which every `interval`-th counts are the same again
after interval / gcd(interval, s) days; the days of weeks after 7 * interval. So a table from the day's number in that
round to its times says everything but which days of the year the other BY parts allow. A search leaps to and fro
between the days of the table and the allowed days, until they meet.

The allowed days come round after 146,097 days. A day of the table and one of theirs meet sooner or later if their
numbers agree modulo the greatest common divisor of both rounds, and never otherwise: that decides what can happen,
without a search.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from math import gcd, lcm

from rota.domain.rrule.days import PERIOD_DAYS, PERIOD_KEYS, AllowedDays, Period
from rota.domain.rrule.parts import CYCLE_DAYS, LAST_ORDINAL, Frequency, Rule

Table = dict[int, tuple[int, ...]]
"""From the number of a day in the round to its times, in seconds from midnight, in order."""

_DAY_SECONDS = 86_400
_SLOT_SECONDS = {Frequency.DAILY: _DAY_SECONDS, Frequency.HOURLY: 3600, Frequency.MINUTELY: 60}


class TableTimes:
    """The times of a WEEKLY, DAILY, HOURLY or MINUTELY rule whose days are filled in, without COUNT and UNTIL."""

    def __init__(self, rule: Rule) -> None:
        is_weekly = rule.frequency is Frequency.WEEKLY
        self._round, self._times_on = _table_of_weeks(rule) if is_weekly else _table_of_slots(rule)
        # The table says all about weekdays.
        self._days = AllowedDays(replace(rule, by_day=()))
        self._allows_all = self._days.allows_all
        self._table_days = sorted(self._times_on)
        self._common = gcd(self._round, CYCLE_DAYS)

    def next(self, after: datetime) -> datetime | None:
        """The first time later than `after`, which is at the earliest just before DTSTART; None: no more."""
        day = after.toordinal()
        times = self._times_on.get(day % self._round)
        if times is not None:
            clock = clock_of(after)
            if clock < times[-1] and (self._allows_all or self._days.first_from(day) == day):
                return datetime.fromordinal(day) + timedelta(seconds=times[bisect_right(times, clock)])
        found = self._day_from(day + 1)
        if found is None:
            return None
        return datetime.fromordinal(found) + timedelta(seconds=self._times_on[found % self._round][0])

    @property
    def is_possible(self) -> bool:
        """There is a time in an endless calendar."""
        residues = {day % self._common for day in self._table_days}
        return bool(residues) and (
            self._allows_all or any(day % self._common in residues for day in self._days.of_cycle())
        )

    @property
    def fills_every_hour(self) -> bool:
        """Each hour of each day that has a time has one."""
        return all(len({clock // 3600 for clock in times}) == 24 for times in self._times_on.values())

    def shares(self, period: Period) -> bool:
        """Two of the times, in an endless calendar, lie in one such period."""
        key = PERIOD_KEYS[period]
        pairs = [(apart, self._residues_with_another(apart)) for apart in range(PERIOD_DAYS[period])]
        if not any(residues for _, residues in pairs):
            return False
        days = self._days.of_cycle()
        allowed = days if isinstance(days, range) else frozenset(days)
        return any(
            day + apart in allowed and day % self._common in residues and key(day) == key(day + apart)
            for apart, residues in pairs
            if residues
            for day in allowed
        )

    def _residues_with_another(self, apart: int) -> frozenset[int]:
        """Modulo the common divisor, the days of the table that have another time so many days later."""
        return frozenset(
            day % self._common
            for day, times in self._times_on.items()
            if (day + apart) % self._round in self._times_on and (apart > 0 or len(times) > 1)
        )

    def _day_from(self, day: int) -> int | None:
        """The first day not before `day` that is in the table and allowed."""
        while (day := self._table_day_from(day)) <= LAST_ORDINAL:
            if self._allows_all:
                return day
            allowed = self._days.first_from(day)
            if allowed is None or allowed == day:
                return allowed
            day = allowed
        return None

    def _table_day_from(self, day: int) -> int:
        number = day % self._round
        if number in self._times_on:
            return day
        place = bisect_left(self._table_days, number)
        if place == len(self._table_days):
            return day - number + self._round + self._table_days[0]
        return day - number + self._table_days[place]


def picked(size: int, positions: Sequence[int]) -> Sequence[int]:
    """BYSETPOS: which of so many times, in order, stand at `positions` (1 is the first, -1 the last; none: all)."""
    if not positions:
        return range(size)
    indexes = {position - 1 if position > 0 else size + position for position in positions}
    return sorted(index for index in indexes if 0 <= index < size)


def _table_of_weeks(rule: Rule) -> tuple[int, Table]:
    """The positions of BYSETPOS are the same in every week, for a rule without BYMONTH."""
    round_ = 7 * rule.interval
    first = rule.dtstart.toordinal() - (rule.dtstart.weekday() - rule.week_start) % 7
    offsets = sorted((wanted.weekday - rule.week_start) % 7 for wanted in rule.by_day)
    clock_times = rule.clock_times
    if not rule.by_set_position:
        return round_, {(first + offset) % round_: clock_times for offset in offsets}
    table: dict[int, list[int]] = {}
    for index in picked(len(offsets) * len(clock_times), rule.by_set_position):
        place, number = divmod(index, len(clock_times))
        table.setdefault((first + offsets[place]) % round_, []).append(clock_times[number])
    return round_, {day: tuple(times) for day, times in table.items()}


def _table_of_slots(rule: Rule) -> tuple[int, Table]:
    slot_seconds = _SLOT_SECONDS[rule.frequency]
    per_day = _DAY_SECONDS // slot_seconds
    start = rule.dtstart.toordinal() * per_day + clock_of(rule.dtstart) // slot_seconds
    divisor = gcd(per_day, rule.interval)
    round_ = rule.interval // divisor
    inverse = pow(per_day // divisor, -1, round_)
    slots, times_in_slot = _slots_of_day(rule)
    times_in_slot = [times_in_slot[index] for index in picked(len(times_in_slot), rule.by_set_position)]
    table: dict[int, list[int]] = {}
    for slot in slots if times_in_slot else ():
        # Wanted: the day with day * per_day + slot = start, modulo the interval.
        steps, rest = divmod(start - slot, divisor)
        if rest == 0:
            times = (slot * slot_seconds + clock for clock in times_in_slot)
            table.setdefault(steps * inverse % round_, []).extend(times)
    return _on_weekdays(round_, {day: tuple(times) for day, times in table.items()}, rule)


def _on_weekdays(round_: int, table: Table, rule: Rule) -> tuple[int, Table]:
    """The table of whole weeks that has the days of BYDAY alone."""
    if not rule.by_day:
        return round_, table
    # Ordinal 1 is a Monday.
    residues = {(wanted.weekday + 1) % 7 for wanted in rule.by_day}
    in_weeks = lcm(round_, 7)
    days = ((later, times) for day, times in table.items() for later in range(day, in_weeks, round_))
    return in_weeks, {later: times for later, times in days if later % 7 in residues}


def _slots_of_day(rule: Rule) -> tuple[Sequence[int], Sequence[int]]:
    """The slots of a day that the BY parts allow, and the times of a slot in seconds from its start, in order."""
    if rule.frequency is Frequency.DAILY:
        return (0,), rule.clock_times
    hours = rule.by_hour or range(24)
    if rule.frequency is Frequency.HOURLY:
        return hours, [minute * 60 + second for minute in rule.minutes for second in rule.seconds]
    return [hour * 60 + minute for hour in hours for minute in rule.by_minute or range(60)], rule.seconds


def clock_of(local: datetime) -> int:
    """The time of day in whole seconds from midnight."""
    return local.hour * 3600 + local.minute * 60 + local.second
