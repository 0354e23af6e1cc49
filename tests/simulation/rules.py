"""Which instants a rule names, found by walking the clocks of its zone: nothing of the product is asked.

It reads the cron expressions that the lives use (numbers, lists, ranges and steps; never both kinds of day), under the
policy `gap: skip`.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """An instant, and the local time (naive) by which the rule names it."""

    instant: datetime
    local: datetime
    second_pass: bool
    """The clocks show it for the second time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A cron expression in a zone."""

    cron: str
    zone: ZoneInfo
    fold: str
    """`first`, or `both`."""

    def at(self, instant: datetime) -> Named | None:
        """What the rule names at that very instant."""
        shown = instant.astimezone(self.zone)
        if (shown.fold and self.fold == "first") or shown.second or shown.microsecond:
            return None
        minutes, hours, days, months, weekdays = _fields(self.cron)
        is_named = (
            shown.minute in minutes
            and shown.hour in hours
            and shown.day in days
            and shown.month in months
            and shown.isoweekday() % 7 in weekdays
        )
        if not is_named:
            return None
        local = shown.replace(tzinfo=None, fold=0)
        return Named(instant=instant, local=local, second_pass=bool(shown.fold))

    def between(self, from_: datetime, until: datetime) -> Iterator[Named]:
        """What it names in `[from_, until)`, in order."""
        # Offsets are whole quarters of an hour here, so minutes of five stay minutes of five.
        step = 5 * MINUTE if all(minute % 5 == 0 for minute in _fields(self.cron)[0]) else MINUTE
        instant = from_.replace(minute=0, second=0, microsecond=0)
        while instant < until:
            if instant >= from_ and (named := self.at(instant)) is not None:
                yield named
            instant += step


def period_of(period: str, local: datetime, instant: datetime, *, second_pass: bool) -> Hashable:
    """What two occurrences have in common that are of one period."""
    match period:
        case "day":
            return local.date(), second_pass
        case "week":
            return local.isocalendar()[:2], second_pass
        case "month":
            return (local.year, local.month), second_pass
        case "instant":
            return instant
        case _:
            raise ValueError(f"The lives have no rule of the period {period!r}.")


def key_text(period: str, local: datetime, instant: datetime, *, second_pass: bool, series: int) -> str:
    """The period key as a run bears it."""
    names = {
        "day": f"{local:day:%Y-%m-%d}",
        "week": f"{local:week:%G-W%V}",
        "month": f"{local:month:%Y-%m}",
        "instant": f"{instant:instant:%Y-%m-%dT%H:%M:%SZ}",
    }
    fold = "/fold" if second_pass and period != "instant" else ""
    return names[period] + fold + ("" if series == 1 else f"#{series}")


@lru_cache
def _fields(cron: str) -> tuple[frozenset[int], ...]:
    return tuple(_numbers(field, *bounds) for field, bounds in zip(cron.split(), RANGES, strict=True))


def _numbers(field: str, first: int, last: int) -> frozenset[int]:
    numbers: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        low, _, high = span.partition("-")
        if span == "*":
            numbers.update(range(first, last + 1, int(step or 1)))
        else:
            numbers.update(range(int(low), int(high or low) + 1, int(step or 1)))
    return frozenset(numbers)
