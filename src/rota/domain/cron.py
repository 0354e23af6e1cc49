"""Cron rules on naive local times: an expression is compiled once and then asked for the next time it names.

Five fields: minute, hour, day of month, month, day of week. The day rule is Vixie cron's: where either day
field starts with a star (`*/2` and `?` count), both must match a date; otherwise either is enough. A time is
found by looking up, not by walking: minutes and hours in tables, days in one set per shape of month, so the
cost does not depend on how far away `after` lies. Gaps, folds and zones are not known here.
"""

import re
from dataclasses import dataclass, field
from datetime import MAXYEAR, datetime
from typing import Literal

from rota.domain.cron_days import (
    SHAPE_OF_YEAR,
    DayTable,
    build_day_table,
    two_days_share_a_month,
    two_days_share_a_week,
)
from rota.domain.cron_fields import (
    HOUR,
    MINUTE,
    MONTH,
    parse_days_of_month,
    parse_days_of_week,
    parse_values,
    starts_with_star,
)
from rota.domain.errors import InvalidExpression

EXPRESSION_LENGTH_MAX = 256

_NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_BLANKS = " \t\r\n"
_NONE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class CronRule:
    """A compiled expression; immutable and without state, so any number of threads may share it.

    `expression` has single blanks between its fields and nicknames written out. `covers_every_hour` says that
    the hour field matches all 24 hours. Rules compare by expression. Made by `compile_cron` only.
    """

    expression: str
    covers_every_hour: bool = field(compare=False)
    _days: DayTable = field(repr=False, compare=False)
    _hours: int = field(repr=False, compare=False)
    _first_time: tuple[int, int] = field(repr=False, compare=False)
    _hour_after: tuple[int, ...] = field(repr=False, compare=False)
    _minute_after: tuple[int, ...] = field(repr=False, compare=False)
    _times_a_day: int = field(repr=False, compare=False)

    def next(self, after: datetime) -> datetime | None:
        """The first named time strictly later than `after`, both naive and local; None beyond year 9999."""
        if after.tzinfo is not None:
            raise ValueError("A cron rule computes on naive local times; `after` has a time zone.")
        year, month, day, hour = after.year, after.month, after.day, after.hour
        row = self._days[SHAPE_OF_YEAR[year % 400]]
        days = row[month]
        if days >> day & 1:
            if self._hours >> hour & 1:
                minute = self._minute_after[after.minute]
                if minute != _NONE:
                    return datetime(year, month, day, hour, minute)
            hour = self._hour_after[hour]
            if hour != _NONE:
                return datetime(year, month, day, hour, self._first_time[1])
        days = days >> (day + 1) << (day + 1)
        while not days:
            month += 1
            if month > 12:
                if year == MAXYEAR:
                    return None
                year += 1
                month = 1
                row = self._days[SHAPE_OF_YEAR[year % 400]]
            days = row[month]
        return datetime(year, month, (days & -days).bit_length() - 1, *self._first_time)

    def coarsest_period(self) -> Literal["month", "week", "day", "instant"]:
        """The coarsest of month, ISO week and day that never holds two of the named times, else `instant`."""
        if self._times_a_day > 1:
            return "instant"
        if not two_days_share_a_month(self._days):
            return "month"
        if not two_days_share_a_week(self._days):
            return "week"
        return "day"


def compile_cron(expression: str) -> CronRule:
    """Compile five fields or a nickname (`@daily`).

    `InvalidExpression` names the field that is wrong, or `expression`: also where no date can ever match.
    """
    fields = _split(expression)
    minutes, hours = parse_values(fields[0], MINUTE), parse_values(fields[1], HOUR)
    days = build_day_table(
        parse_days_of_month(fields[2]),
        parse_days_of_week(fields[4]),
        both_must_match=starts_with_star(fields[2]) or starts_with_star(fields[4]),
        months=parse_values(fields[3], MONTH),
    )
    if not any(map(any, days)):
        raise _refusal(
            f"No date ever has day of month {fields[2]}, month {fields[3]} and day of week {fields[4]}; "
            "choose days that these months have, or L for a month's last day."
        )
    return CronRule(
        expression=" ".join(fields),
        covers_every_hour=hours == HOUR.everything,
        _days=days,
        _hours=hours,
        _first_time=(_least(hours), _least(minutes)),
        _hour_after=_successors(hours, of=24),
        _minute_after=_successors(minutes, of=60),
        _times_a_day=minutes.bit_count() * hours.bit_count(),
    )


def _split(expression: str) -> list[str]:
    """The five fields of the expression, a nickname written out."""
    if len(expression) > EXPRESSION_LENGTH_MAX:
        raise _refusal(f"It has {len(expression)} characters; write at most {EXPRESSION_LENGTH_MAX}.")
    # Digits of other scripts and no-break spaces look right and are not; `int` and `split` would take them.
    foreign = [character for character in expression if not character.isascii()]
    if foreign:
        raise _refusal(f"It holds the character {foreign[0]!a}; write ASCII digits, letters and blanks only.")
    stripped = expression.strip(_BLANKS)
    if stripped.startswith("@"):
        stripped = _written_out(stripped)
    fields = re.split(f"[{_BLANKS}]+", stripped) if stripped else []
    if len(fields) == 5:
        return fields
    if fields and "TZ=" in fields[0]:
        raise _refusal("It names a time zone; leave that out and give the zone as `timezone`.")
    count = f"It has {len(fields)} field{'' if len(fields) == 1 else 's'}"
    five = "minute, hour, day of month, month and day of week"
    if len(fields) in (6, 7):
        raise _refusal(
            f"{count}; write five, {five}: there are no seconds and no years, and Sunday is 0 or 7."
        )
    raise _refusal(f"{count}; write five: {five}.")


def _written_out(nickname: str) -> str:
    fields = _NICKNAMES.get(nickname.lower())
    if fields is not None:
        return fields
    if nickname.lower() == "@reboot":
        raise _refusal("@reboot is no time; start the work where the service starts, or name a time.")
    if nickname.lower().startswith("@every"):
        raise _refusal("@every is elapsed time, not cron; give the recurrence as `every`, as in PT15M.")
    raise _refusal(f"{nickname!r} is not known; write one of {', '.join(_NICKNAMES)}, or five fields.")


def _successors(values: int, *, of: int) -> tuple[int, ...]:
    """For each number below `of` the least value in the set that is greater, or `_NONE`."""
    return tuple(_least(values >> (number + 1) << (number + 1)) for number in range(of))


def _least(values: int) -> int:
    return (values & -values).bit_length() - 1 if values else _NONE


def _refusal(problem: str) -> InvalidExpression:
    return InvalidExpression("expression", problem)
