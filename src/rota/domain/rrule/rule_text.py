"""The parts of an RRULE line: each read by its own rule, then judged together."""

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from rota.domain.errors import InvalidExpression
from rota.domain.rrule.parts import Frequency, Rule, Weekday

COUNT_MAX = 10_000
INTERVAL_MAX = 1_000_000
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
BLANKS = " \t"
"""What may stand around names and values."""

_NAME = re.compile(r"[A-Z0-9-]{1,40}", re.ASCII | re.IGNORECASE)
_DAY = re.compile(r"([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)", re.ASCII)
_UNTIL = re.compile(r"(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})(Z?)", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """What a part's numbers may be: `low` to `high`, and where they are counted from the end too, minus those."""

    field: str
    """The field of `Rule`."""
    low: int
    high: int
    is_signed: bool = False

    def read(self, text: str) -> int | None:
        """Of ASCII text. None for what grammar or range do not allow, such as a sign that means nothing."""
        sign, digits = (text[:1], text[1:]) if self.is_signed and text[:1] in {"+", "-"} else ("", text)
        is_number = digits.isdecimal() and len(digits) <= len(str(self.high))
        if not is_number or not self.low <= int(digits) <= self.high:
            return None
        return int(sign + digits)


LISTS = {
    "BYMONTH": Numbers(field="by_month", low=1, high=12),
    "BYWEEKNO": Numbers(field="by_week_number", low=1, high=53, is_signed=True),
    "BYYEARDAY": Numbers(field="by_year_day", low=1, high=366, is_signed=True),
    "BYMONTHDAY": Numbers(field="by_month_day", low=1, high=31, is_signed=True),
    "BYHOUR": Numbers(field="by_hour", low=0, high=23),
    "BYMINUTE": Numbers(field="by_minute", low=0, high=59),
    "BYSECOND": Numbers(field="by_second", low=0, high=59),
    "BYSETPOS": Numbers(field="by_set_position", low=1, high=366, is_signed=True),
}
_INTERVAL = Numbers(field="interval", low=1, high=INTERVAL_MAX)
_COUNT = Numbers(field="count", low=1, high=COUNT_MAX)


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
        # `%Y` would write the year 987 with three digits.
        parts.append(f"UNTIL={rule.until.year:04d}{rule.until:%m%dT%H%M%S}{'Z' if rule.until.tzinfo else ''}")
    if rule.by_day:
        parts.append(f"BYDAY={','.join(map(_format_day, rule.by_day))}")
    for name, allowed in LISTS.items():
        numbers: tuple[int, ...] = getattr(rule, allowed.field)
        if numbers:
            parts.append(f"{name}={','.join(map(str, numbers))}")
    if rule.week_start:
        parts.append(f"WKST={WEEKDAYS[rule.week_start]}")
    return ";".join(parts)


def clean_name(text: str, *, otherwise: str) -> str:
    """A name in capitals. `InvalidExpression` with the part `otherwise` for what cannot be one."""
    name = text.strip(BLANKS)
    if _NAME.fullmatch(name) is None:
        raise InvalidExpression(otherwise, f"{name[:40]!r} is not a name")
    return name.upper()


def _split(text: str) -> dict[str, str]:
    parts: dict[str, str] = {}
    for piece in text.split(";"):
        left, equals, value = piece.partition("=")
        if not equals:
            raise InvalidExpression("RRULE", f"{piece[:40]!r} is not a rule part NAME=VALUE")
        name = clean_name(left, otherwise="RRULE")
        if name in parts:
            raise InvalidExpression(name, "the part stands twice; keep one")
        value = value.strip(BLANKS)
        if not value or not value.isascii():
            # The capital of a letter beyond ASCII may lie within: that of a long s is S.
            raise InvalidExpression(name, "give it a value, of ASCII letters and digits")
        parts[name] = value.upper()
    return parts


def _with_part(rule: Rule, name: str, value: str) -> Rule:
    if name in LISTS:
        allowed = LISTS[name]
        numbers = tuple(sorted({_number(name, part, allowed) for part in value.split(",")}))
        # The field names are those of `Rule`, checked by the table's test.
        return replace(rule, **{allowed.field: numbers})  # type: ignore[arg-type]
    match name:
        case "INTERVAL":
            return replace(rule, interval=_number(name, value, _INTERVAL))
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
            raise InvalidExpression(name, "RFC 5545 has no such rule part; leave it out")


def _frequency(value: str) -> Frequency:
    if value == "SECONDLY":
        raise InvalidExpression("FREQ", "SECONDLY is finer than schedules go; use `every` with seconds")
    try:
        return Frequency(value)
    except ValueError:
        raise InvalidExpression("FREQ", f"give one of {', '.join(Frequency)}") from None


def _number(name: str, text: str, allowed: Numbers) -> int:
    number = allowed.read(text)
    if number is None:
        ranges = f"{allowed.low} to {allowed.high}"
        if allowed.is_signed:
            ranges += f" or -{allowed.high} to -{allowed.low}"
        raise InvalidExpression(name, f"{text[:20]!r} is not a number from {ranges}")
    return number


def _count(value: str) -> int:
    if value.isdecimal() and int(value[:9]) > COUNT_MAX:
        raise InvalidExpression("COUNT", f"at most {COUNT_MAX} are counted; give UNTIL for a longer series")
    return _number("COUNT", value, _COUNT)


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
    largest = max((abs(day.ordinal) for day in rule.by_day), default=0)
    has_ordinal, numbered = largest > 0, "a weekday with a number"
    ordinal_max = 5 if frequency is Frequency.MONTHLY or rule.by_month else 53
    finer = rule.by_second or rule.by_minute or rule.by_hour
    other_parts = (
        finer or rule.by_day or rule.by_month_day or rule.by_year_day or rule.by_week_number or rule.by_month
    )
    has_months = frequency in {Frequency.YEARLY, Frequency.MONTHLY}
    is_yearly, is_weekly = frequency is Frequency.YEARLY, frequency is Frequency.WEEKLY
    has_no_year = frequency in {Frequency.DAILY, Frequency.WEEKLY, Frequency.MONTHLY}
    refusals = [
        ("COUNT", rule.count is not None and rule.until is not None, "it must not stand beside UNTIL"),
        ("BYWEEKNO", rule.by_week_number and not is_yearly, "it goes with FREQ=YEARLY only"),
        ("BYYEARDAY", rule.by_year_day and has_no_year, f"it must not stand beside FREQ={frequency}"),
        ("BYMONTHDAY", rule.by_month_day and is_weekly, "it must not stand beside FREQ=WEEKLY"),
        ("BYDAY", has_ordinal and not has_months, f"{numbered} goes with FREQ=MONTHLY or YEARLY only"),
        ("BYDAY", has_ordinal and rule.by_week_number, f"{numbered} must not stand beside BYWEEKNO"),
        ("BYDAY", largest > ordinal_max, f"a month has at most {ordinal_max} of a weekday"),
        ("BYSETPOS", rule.by_set_position and not other_parts, "it needs another BY part to choose from"),
    ]
    for part, is_refused, problem in refusals:
        if is_refused:
            raise InvalidExpression(part, problem)
