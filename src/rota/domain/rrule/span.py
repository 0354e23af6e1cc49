"""In which period a set has at most one time: by looking at its times for 400 years, and by proof beyond.

The calendar repeats after 400 years, which are whole weeks. A rule with interval 1 that has shown no two times in a
period by then never will; one with a longer interval names some of the same rule's times with interval 1. Rules whose
interval alone keeps their times apart need no look.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Literal

from rota.domain.rrule.parts import BEGINNING, Frequency, Rule
from rota.domain.rrule.periods import LAST_YEAR, Slots, engine_of

CoarsestPeriod = Literal["month", "week", "day", "instant"]

_CYCLE_YEARS = 401
_LEAP_YEAR = 2000
_KEYS: dict[CoarsestPeriod, Callable[[datetime], object]] = {
    "month": lambda local: (local.year, local.month),
    "week": lambda local: local.isocalendar()[:2],
    "day": datetime.date,
}
_DAYS_LONG: dict[CoarsestPeriod, int] = {"month": 31, "week": 7, "day": 1}


def coarsest_period(
    rule: Rule | None, next_: Callable[[datetime], datetime | None], *, settled_from: datetime
) -> CoarsestPeriod:
    """For the set whose times `next_` tells; after `settled_from` they are the rule's alone."""
    alive, has_ended = _look(next_, rule, settled_from=settled_from)
    if not has_ended and rule is not None:
        alive = {period for period in alive if _is_apart(rule, period) or _is_cyclic(rule, period)}
    return next((period for period in _KEYS if period in alive), "instant")


def _look(
    next_: Callable[[datetime], datetime | None], rule: Rule | None, *, settled_from: datetime
) -> tuple[set[CoarsestPeriod], bool]:
    """The periods in which no two neighbours fell for a cycle of the calendar, and whether there are no more times.

    It stops early where nothing is left to find out: all periods have fallen, or the rule's form proves the rest.
    """
    alive = set(_KEYS)
    until = _cycle_after(settled_from)
    previous = next_(BEGINNING)
    while previous is not None and previous <= until:
        if previous > settled_from and (rule is None or all(_is_apart(rule, period) for period in alive)):
            return alive, False
        following = next_(previous)
        if following is not None:
            alive = {period for period in alive if _KEYS[period](previous) != _KEYS[period](following)}
        if not alive:
            return alive, False
        previous = following
    return alive, previous is None


def _is_apart(rule: Rule, period: CoarsestPeriod) -> bool:
    """The rule's form alone keeps its times in different periods."""
    match rule.frequency:
        case Frequency.YEARLY | Frequency.MONTHLY:
            return period == "day" and len(rule.times) == 1
        case Frequency.WEEKLY:
            is_single = len(rule.by_day) == 1 or period == "day"
            days = 7 * rule.interval if len(rule.by_day) == 1 else 1
            return is_single and len(rule.times) == 1 and days >= _DAYS_LONG[period]
        case _:
            slots = Slots(rule)
            if slots.size_max > 1:
                return False
            is_far = rule.interval >= _DAYS_LONG[period] * slots.per_day
            return is_far or (period == "day" and slots.slots_per_day_max == 1)


def _is_cyclic(rule: Rule, period: CoarsestPeriod) -> bool:
    """The rule with interval 1 shows no two times in a period for a whole cycle of the calendar, so it never does."""
    if rule.interval == 1:
        return True
    dense = replace(rule, interval=1, count=None, until=None, dtstart=rule.dtstart.replace(year=_LEAP_YEAR))
    alive, _ = _look(engine_of(dense).next, dense, settled_from=dense.dtstart)
    return period in alive


def _cycle_after(local: datetime) -> datetime:
    return local.replace(year=min(local.year + _CYCLE_YEARS, LAST_YEAR), day=1)
