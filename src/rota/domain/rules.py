"""What a recurrence compiles to: a rule over naive local times, or one over instants; no zones yet."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import assert_never

from rota.domain.cron import CronRule, compile_cron
from rota.domain.recurrence import At, Cron, Every, Recurrence, RRule
from rota.domain.rrule import RRuleSet, compile_rrule

_RULES_KEPT = 4096


@dataclass(frozen=True, slots=True)
class OneLocalTime:
    """A single local time."""

    local: datetime

    def next(self, after: datetime) -> datetime | None:
        """The local time, if it is later than `after`, both naive."""
        return self.local if self.local > after else None


@dataclass(frozen=True, slots=True)
class OneInstant:
    """A single instant."""

    instant: datetime

    def next(self, after: datetime) -> datetime | None:
        """The instant, if it is later than `after`."""
        return self.instant if self.instant > after else None


@dataclass(frozen=True, slots=True)
class Grid:
    """Instants in equal steps, the first of them the anchor, as in ISO 8601 `R/anchor/step`."""

    interval: timedelta
    anchor: datetime

    def next(self, after: datetime) -> datetime | None:
        """The first instant of the grid later than `after`; None past the calendar."""
        if after < self.anchor:
            return self.anchor
        steps = (after - self.anchor) // self.interval + 1
        try:
            return self.anchor + steps * self.interval
        except OverflowError:
            return None


LocalRule = CronRule | RRuleSet | OneLocalTime
InstantRule = Grid | OneInstant


@lru_cache(maxsize=_RULES_KEPT)
def compile_rule(recurrence: Recurrence) -> LocalRule | InstantRule:
    """Raises `InvalidExpression` where the recurrence was not made by `parse_recurrence`, and is wrong."""
    match recurrence:
        case Cron(expression=expression):
            return compile_cron(expression)
        case RRule(text=text):
            return compile_rrule(text)
        case Every(interval=interval, anchor=anchor):
            return Grid(interval, anchor)
        case At(time=time) if time.tzinfo is None:
            return OneLocalTime(time)
        case At(time=time):
            return OneInstant(time.astimezone(UTC))
        case _:
            assert_never(recurrence)
