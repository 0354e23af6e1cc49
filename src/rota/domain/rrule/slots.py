"""DAILY, HOURLY and MINUTELY rules: equal slots, numbered from day 0, of which every `interval`-th counts.

With s slots a day, the slots of one day that count are the same again after interval / gcd(interval, s) days. So a table
from the day's number in that round to its times says everything about times of day. A search leaps to and fro between
the days that the table has and the days that the BY parts allow, until they meet.
"""

from bisect import bisect_left, bisect_right
from datetime import date, datetime, time
from math import gcd, lcm

from rota.domain.rrule.days import AllowedDays
from rota.domain.rrule.parts import CYCLE_DAYS, LAST_ORDINAL, Frequency, Rule


class Slots:
    """The times of a DAILY, HOURLY or MINUTELY rule."""

    def __init__(self, rule: Rule) -> None:
        self._days = AllowedDays(rule)
        self._round, self._times_on = _table_of(rule)
        self._table_days = sorted(self._times_on)
        # From then on the same days of the calendar's cycle would be seen again.
        self._reach = lcm(self._round, CYCLE_DAYS)

    @property
    def times_a_day_max(self) -> int:
        return max(map(len, self._times_on.values()))

    @property
    def days_apart(self) -> int:
        """How many days lie at least from one day with times to the next."""
        following = [*self._table_days[1:], self._table_days[0] + self._round]
        return min(later - earlier for earlier, later in zip(self._table_days, following, strict=True))

    def next(self, after: datetime) -> datetime | None:
        """The first time later than `after`, which is at the earliest just before DTSTART; None: no more."""
        day, clock = after.toordinal(), after.time()
        times = self._times_on.get(day % self._round)
        if times is not None and clock < times[-1] and self._allows(day):
            return datetime.combine(after, times[bisect_right(times, clock)])
        found = self._day_from(day + 1)
        if found is None:
            return None
        return datetime.combine(date.fromordinal(found), self._times_on[found % self._round][0])

    def _allows(self, day: int) -> bool:
        return self._days.allows_all or self._days.first_from(day) == day

    def _day_from(self, day: int) -> int | None:
        """The first day not before `day` that is in the table and allowed."""
        if not self._table_days:
            return None
        last = min(day + self._reach, LAST_ORDINAL)
        day = self._table_day_from(day)
        while day <= last:
            allowed = day if self._days.allows_all else self._days.first_from(day)
            if allowed is None or allowed == day:
                return allowed
            day = self._table_day_from(allowed)
        return None

    def _table_day_from(self, day: int) -> int:
        number = day % self._round
        if number in self._times_on:
            return day
        place = bisect_left(self._table_days, number)
        if place == len(self._table_days):
            return day - number + self._round + self._table_days[0]
        return day - number + self._table_days[place]


def _table_of(rule: Rule) -> tuple[int, dict[int, tuple[time, ...]]]:
    """How many days a round has, and the times of its days, by the day's ordinal modulo the round."""
    per_day, slots = _slots_of_day(rule)
    start = rule.dtstart.toordinal() * per_day
    start += (rule.dtstart.hour * 60 + rule.dtstart.minute) * per_day // 1440
    divisor = gcd(per_day, rule.interval)
    round_ = rule.interval // divisor
    inverse = pow(per_day // divisor, -1, round_)
    table: dict[int, list[time]] = {}
    for slot in slots:
        # Wanted: the day with day * per_day + slot = start, modulo the interval.
        steps, rest = divmod(start - slot, divisor)
        times = [] if rest else _picked(_times_of_slot(rule, slot, per_day), rule.by_set_position)
        if times:
            table.setdefault(steps * inverse % round_, []).extend(times)
    return round_, {day: tuple(times) for day, times in table.items()}


def _slots_of_day(rule: Rule) -> tuple[int, list[int]]:
    """How many slots a day has, and which of them the BY parts allow, in order."""
    hours = sorted(rule.by_hour) or range(24)
    match rule.frequency:
        case Frequency.DAILY:
            return 1, [0]
        case Frequency.HOURLY:
            return 24, list(hours)
        case _:
            minutes = sorted(rule.by_minute) or range(60)
            return 1440, [hour * 60 + minute for hour in hours for minute in minutes]


def _times_of_slot(rule: Rule, slot: int, per_day: int) -> list[time]:
    if per_day == 1:
        return list(rule.times)
    seconds = sorted(rule.by_second or (rule.dtstart.second,))
    if per_day == 24:
        minutes = sorted(rule.by_minute or (rule.dtstart.minute,))
        return [time(slot, minute, second) for minute in minutes for second in seconds]
    return [time(slot // 60, slot % 60, second) for second in seconds]


def _picked(times: list[time], positions: tuple[int, ...]) -> list[time]:
    """BYSETPOS: the times at `positions` (1: the first, -1: the last); all, where there are none."""
    if not positions:
        return times
    size = len(times)
    indexes = {position - 1 if position > 0 else size + position for position in positions}
    return [times[index] for index in sorted(indexes) if 0 <= index < size]
