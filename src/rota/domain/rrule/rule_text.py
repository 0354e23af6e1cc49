"""The parts of an RRULE line: each read by its own rule, then judged together."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from rota.domain.errors import InvalidExpression
from rota.domain.rrule.parts import Frequency, Rule, Weekday

COUNT_MAX = 10_000
INTERVAL_MAX = 1_000_000
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
NUMBER_LENGTH_MAX = 7

_NUMBER = re.compile(r"[+-]?\d{1,7}", re.ASCII)
_DAY = re.compile(r"([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)", re.ASCII)
_UNTIL = re.compile(r"(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})(Z?)", re.ASCII)

LISTS = {
    "BYMONTH": ("by_month", range(1, 13)),
    "BYWEEKNO": ("by_week_number", [*range(-53, 0), *range(1, 54)]),
    "BYYEARDAY": ("by_year_day", [*range(-366, 0), *range(1, 367)]),
    "BYMONTHDAY": ("by_month_day", [*range(-31, 0), *range(1, 32)]),
    "BYHOUR": ("by_hour", range(24)),
    "BYMINUTE": ("by_minute", range(60)),
    "BYSECOND": ("by_second", range(60)),
    "BYSETPOS": ("by_set_position", [*range(-366, 0), *range(1, 367)]),
}
"""Each list part: the field of `Rule`, and the numbers allowed."""


def parse_rule(text: str, *, dtstart: datetime) -> Rule:
    """The rule as written; see `fill_in`. Raises `InvalidExpression` naming the part."""
    parts = _split(text)
    if "FREQ" not in parts:
        raise InvalidExpression("FREQ", "give it, such as FREQ=DAILY")
    rule = Rule(frequency=_frequency(parts.pop("FREQ")), dtstart=dtstart)
    for name, value in parts.items():
        rule = _with_part(rule, name, value)
    _refuse_combinations(rule)
    return rule


def fill_in(rule: Rule) -> Rule:
    """The rule with the days that DTSTART implies where no part names any (section 3.3.10)."""
    start = rule.dtstart
    if rule.by_day or rule.by_month_day or rule.by_year_day:
        return rule
    weekday = (Weekday(weekday=start.weekday()),)
    match rule.frequency:
        case Frequency.YEARLY if rule.by_week_number:
            return replace(rule, by_day=weekday)
        case Frequency.YEARLY:
            return replace(rule, by_month=rule.by_month or (start.month,), by_month_day=(start.day,))
        case Frequency.MONTHLY:
            return replace(rule, by_month_day=(start.day,))
        case Frequency.WEEKLY:
            return replace(rule, by_day=weekday)
        case _:
            return rule


def format_rule(rule: Rule) -> str:
    """The parts in one order, numbers sorted, defaults left out."""
    parts = [f"FREQ={rule.frequency}"]
    if rule.interval != 1:
        parts.append(f"INTERVAL={rule.interval}")
    if rule.count is not None:
        parts.append(f"COUNT={rule.count}")
    if rule.until is not None:
        parts.append(f"UNTIL={rule.until:%Y%m%dT%H%M%S}" + ("Z" if rule.until.tzinfo else ""))
    for name, (field, _) in LISTS.items():
        if name == "BYSETPOS":
            continue
        numbers: tuple[int, ...] = getattr(rule, field)
        if numbers:
            parts.append(f"{name}={','.join(map(str, numbers))}")
    if rule.by_day:
        parts.append(f"BYDAY={','.join(map(_format_day, rule.by_day))}")
    if rule.by_set_position:
        parts.append(f"BYSETPOS={','.join(map(str, rule.by_set_position))}")
    if rule.week_start:
        parts.append(f"WKST={WEEKDAYS[rule.week_start]}")
    return ";".join(parts)


def _split(text: str) -> dict[str, str]:
    parts: dict[str, str] = {}
    for piece in text.split(";"):
        name, equals, value = piece.partition("=")
        name = name.strip().upper()
        if not equals or not value:
            raise InvalidExpression(name[:40] or "RRULE", "a rule part is NAME=VALUE")
        if name in parts:
            raise InvalidExpression(name[:40], "the part stands twice; keep one")
        parts[name] = value.strip().upper()
    return parts


def _with_part(rule: Rule, name: str, value: str) -> Rule:
    if name in LISTS:
        field, allowed = LISTS[name]
        numbers = tuple(sorted({_number(name, part, allowed.__contains__) for part in value.split(",")}))
        # The field names are those of `Rule`, checked by the table's test.
        return replace(rule, **{field: numbers})  # type: ignore[arg-type]
    match name:
        case "INTERVAL":
            return replace(rule, interval=_number(name, value, lambda n: 1 <= n <= INTERVAL_MAX))
        case "COUNT":
            return replace(rule, count=_count(value))
        case "UNTIL":
            return replace(rule, until=_until(value))
        case "BYDAY":
            days = {_day(part) for part in value.split(",")}
            return replace(rule, by_day=tuple(sorted(days, key=lambda day: (day.weekday, day.ordinal))))
        case "WKST":
            if value not in WEEKDAYS:
                raise InvalidExpression("WKST", f"give one of {', '.join(WEEKDAYS)}")
            return replace(rule, week_start=WEEKDAYS.index(value))
        case "RSCALE" | "SKIP":
            raise InvalidExpression(name, "only the Gregorian calendar of RFC 5545 is read; leave it out")
        case _:
            raise InvalidExpression(name[:40], "RFC 5545 has no such rule part; leave it out")


def _frequency(value: str) -> Frequency:
    if value == "SECONDLY":
        raise InvalidExpression("FREQ", "SECONDLY is finer than schedules go; use `every` with seconds")
    try:
        return Frequency(value)
    except ValueError:
        raise InvalidExpression("FREQ", f"give one of {', '.join(Frequency)}") from None


def _number(name: str, text: str, is_allowed: Callable[[int], object]) -> int:
    if _NUMBER.fullmatch(text) is None or not is_allowed(int(text)):
        raise InvalidExpression(name, f"{text[:20]!r} is not allowed here (RFC 5545, section 3.3.10)")
    return int(text)


def _count(value: str) -> int:
    count = _number("COUNT", value, lambda number: number >= 1)
    if count > COUNT_MAX:
        raise InvalidExpression("COUNT", f"at most {COUNT_MAX} are counted; give UNTIL for a longer series")
    return count


def _until(value: str) -> datetime:
    match = _UNTIL.fullmatch(value)
    if match is None:
        raise InvalidExpression(
            "UNTIL", "give an instant such as 20261231T235959Z, or a local time without Z"
        )
    *digits, zulu = match.groups()
    year, month, day, hour, minute, second = map(int, digits)
    try:
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC if zulu else None)
    except ValueError:
        raise InvalidExpression("UNTIL", f"{value} is no date and time of the calendar") from None


def _day(text: str) -> Weekday:
    match = _DAY.fullmatch(text)
    if match is None:
        raise InvalidExpression("BYDAY", f"{text[:20]!r} is not a weekday such as MO, 2TU or -1FR")
    ordinal = match.group(1)
    if ordinal is not None and not 1 <= abs(int(ordinal)) <= 53:
        raise InvalidExpression("BYDAY", f"the ordinal of {text} lies outside 1 to 53 and -53 to -1")
    return Weekday(weekday=WEEKDAYS.index(match.group(2)), ordinal=int(ordinal or 0))


def _format_day(day: Weekday) -> str:
    return f"{day.ordinal or ''}{WEEKDAYS[day.weekday]}"


def _refuse_combinations(rule: Rule) -> None:
    """What section 3.3.10 says must not stand together."""
    frequency = rule.frequency
    has_ordinal = any(day.ordinal for day in rule.by_day)
    ordinal_max = 5 if frequency is Frequency.MONTHLY or rule.by_month else 53
    finer = rule.by_second or rule.by_minute or rule.by_hour
    other_parts = (
        finer or rule.by_day or rule.by_month_day or rule.by_year_day or rule.by_week_number or rule.by_month
    )
    coarse = {Frequency.YEARLY, Frequency.MONTHLY}
    refusals = [
        ("COUNT", rule.count is not None and rule.until is not None, "it must not stand beside UNTIL"),
        (
            "BYWEEKNO",
            rule.by_week_number and frequency is not Frequency.YEARLY,
            "it goes with FREQ=YEARLY only",
        ),
        (
            "BYYEARDAY",
            rule.by_year_day and frequency in {Frequency.DAILY, Frequency.WEEKLY, Frequency.MONTHLY},
            f"it must not stand beside FREQ={frequency}",
        ),
        (
            "BYMONTHDAY",
            rule.by_month_day and frequency is Frequency.WEEKLY,
            "it must not stand beside FREQ=WEEKLY",
        ),
        (
            "BYDAY",
            has_ordinal and frequency not in coarse,
            "a weekday with a number goes with FREQ=MONTHLY or YEARLY only",
        ),
        (
            "BYDAY",
            has_ordinal and rule.by_week_number,
            "a weekday with a number must not stand beside BYWEEKNO",
        ),
        (
            "BYDAY",
            any(abs(day.ordinal) > ordinal_max for day in rule.by_day),
            f"a month has at most {ordinal_max} of a weekday",
        ),
        ("BYSETPOS", rule.by_set_position and not other_parts, "it needs another BY part to choose from"),
    ]
    for part, is_refused, problem in refusals:
        if is_refused:
            raise InvalidExpression(part, problem)
