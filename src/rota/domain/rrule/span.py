"""In which period a set has at most one time: by the rule's form, or by looking at its times.

A look goes on until the calendar and the interval have gone round together; what has not shown two times in a period by
then never will. Where that would take too many looks, the answer is what the form proves, which may be finer than
true: DAILY;INTERVAL=2;BYDAY=MO,TU has one time a week, and is called `day`.
"""

from collections.abc import Callable
from datetime import datetime
from math import gcd
from typing import Literal

from rota.domain.rrule.parts import BEGINNING, CYCLE_YEARS, LAST_YEAR, PERIODS_IN_CYCLE, Frequency, Rule
from rota.domain.rrule.slots import Slots

CoarsestPeriod = Literal["month", "week", "day", "instant"]

LOOKS_MAX = 54 * (CYCLE_YEARS + 1)
"""One time a week while the calendar goes round: 0.3 s at worst."""

_KEYS: dict[CoarsestPeriod, Callable[[datetime], object]] = {
    "month": lambda local: (local.year, local.month),
    "week": lambda local: local.isocalendar()[:2],
    "day": datetime.date,
}
_DAYS_MAX: dict[CoarsestPeriod, int] = {"month": 31, "week": 7, "day": 1}


def coarsest_period(
    rule: Rule | None, next_: Callable[[datetime], datetime | None], *, settled_from: datetime
) -> CoarsestPeriod:
    """For the set whose times `next_` tells, and which after `settled_from` has the rule's times alone."""
    proven = () if rule is None else _proven_by_form(rule)
    until = _end_of_look(rule, settled_from)
    alive = tuple(_KEYS)
    previous = next_(BEGINNING)
    for _ in range(LOOKS_MAX):
        if previous is None or previous > until or not alive:
            return alive[0] if alive else "instant"
        if previous > settled_from and alive[0] in proven:
            return alive[0]
        following = next_(previous)
        if following is not None:
            alive = tuple(period for period in alive if _KEYS[period](previous) != _KEYS[period](following))
        previous = following
    return next((period for period in alive if period in proven), "instant")


def _end_of_look(rule: Rule | None, settled_from: datetime) -> datetime:
    """From there on, the same periods of the rule fall on the same places of the calendar's cycle again."""
    if rule is None:
        return datetime.max
    rounds = rule.interval // gcd(rule.interval, PERIODS_IN_CYCLE[rule.frequency])
    year = settled_from.year + CYCLE_YEARS * rounds + 1
    return datetime.max if year > LAST_YEAR else settled_from.replace(year=year, day=1)


def _proven_by_form(rule: Rule) -> tuple[CoarsestPeriod, ...]:
    """The periods that two of the rule's times never share, told without looking at any."""
    match rule.frequency:
        case Frequency.YEARLY | Frequency.MONTHLY:
            return _proven_of_months(rule)
        case Frequency.WEEKLY:
            days_apart = _days_apart_in_weeks(rule)
        case _:
            slots = Slots(rule)
            days_apart = slots.days_apart if slots.times_a_day_max == 1 else 0
    return tuple(period for period, days_max in _DAYS_MAX.items() if days_apart >= days_max)


def _proven_of_months(rule: Rule) -> tuple[CoarsestPeriod, ...]:
    is_ordinal = len(rule.by_day) == 1 and rule.by_day[0].ordinal != 0
    is_one_time = len(rule.times) == 1
    if is_one_time and (is_ordinal or len(rule.by_month_day) == 1 or len(rule.by_year_day) == 1):
        return "month", "week", "day"
    if len(rule.by_set_position) == 1:
        # One a month, but maybe on the last day of this and the first of the next.
        return "month", "day"
    return ("day",) if is_one_time else ()


def _days_apart_in_weeks(rule: Rule) -> int:
    """How many days lie at least from one day with a time to the next; 0: a day may have several times."""
    if len(rule.by_day) == 1 and len(rule.times) == 1:
        return 7 * rule.interval
    if len(rule.by_set_position) == 1:
        return 7 * rule.interval - 6
    return 1 if len(rule.times) == 1 else 0
