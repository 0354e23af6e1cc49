"""In which period a set has at most one time: by looking at its first times, and by proof for the rest.

A short look finds most periods with two times. What it leaves is decided by the rule's form, for an endless calendar
and without EXDATE, COUNT and UNTIL: an answer that is never coarser than true. Where that is too fine because COUNT or
UNTIL ends the set before two times meet, a long look decides.
"""

from collections.abc import Callable, Iterable
from datetime import datetime, time, timedelta
from typing import Literal, Protocol

from rota.domain.rrule.days import PERIOD_KEYS, Period
from rota.domain.rrule.parts import BEGINNING, INSTANT

CoarsestPeriod = Literal["month", "week", "day", "instant"]

SHORT_LOOK, LONG_LOOK = 200, 15_000
"""How many times are looked at. The long look has room for the longest COUNT with all its RDATEs."""

Next = Callable[[datetime], datetime | None]


class RuleTimes(Protocol):
    """What tells the times of a rule."""

    def next(self, after: datetime) -> datetime | None:
        """The first time later than `after`."""

    def shares(self, period: Period) -> bool:
        """Two of the times lie in one such period."""


def coarsest_period(
    next_: Next, rule: RuleTimes | None, *, rdates: Iterable[datetime], is_endless: bool
) -> CoarsestPeriod:
    """For the set whose times `next_` tells: those of `rule` and `rdates`, without EXDATE."""
    alive, has_ended = _look(next_, tuple(PERIOD_KEYS), looks=SHORT_LOOK)
    if has_ended:
        return _coarsest(alive)
    proven = next((period for period in alive if not _may_share(next_, rule, rdates, period)), None)
    if is_endless or (alive and proven == alive[0]):
        return proven or "instant"
    alive, has_ended = _look(next_, alive, looks=LONG_LOOK)
    return _coarsest(alive) if has_ended else proven or "instant"


def _look(next_: Next, periods: tuple[Period, ...], *, looks: int) -> tuple[tuple[Period, ...], bool]:
    """The periods that no two of the first times share, and whether those were all."""
    previous = next_(BEGINNING)
    for _ in range(looks):
        following = None if previous is None else next_(previous)
        if previous is None or following is None:
            return periods, True
        earlier, later = previous.toordinal(), following.toordinal()
        periods = tuple(
            period for period in periods if PERIOD_KEYS[period](earlier) != PERIOD_KEYS[period](later)
        )
        if not periods:
            break
        previous = following
    return periods, False


def _may_share(next_: Next, rule: RuleTimes | None, rdates: Iterable[datetime], period: Period) -> bool:
    if rule is not None and rule.shares(period):
        return True
    key = PERIOD_KEYS[period]
    for rdate in rdates:
        first = next_(_beginning_of(period, rdate) - INSTANT)
        second = None if first is None else next_(first)
        if second is not None and key(second.toordinal()) == key(rdate.toordinal()):
            return True
    return False


def _beginning_of(period: Period, local: datetime) -> datetime:
    days = {"month": local.day - 1, "week": local.weekday(), "day": 0}[period]
    return datetime.combine(local.date() - timedelta(days=days), time())


def _coarsest(periods: tuple[Period, ...]) -> CoarsestPeriod:
    return periods[0] if periods else "instant"
