"""Periods: of each, a schedule uses at most one occurrence, through all its versions (I2, I9)."""

from typing import Literal, assert_never

from rota.domain.cadence import Cadence, Occurrence
from rota.domain.errors import FieldError, InvalidRequest
from rota.domain.instants import format_instant

Period = Literal["day", "week", "month", "instant", "once"]
PeriodAsked = Literal["auto", "day", "week", "month", "instant", "once"]

_COARSE_TO_FINE = ("month", "week", "day", "instant")
_FOLD_SUFFIX = "/fold"


def resolve_period(asked: PeriodAsked, cadence: Cadence) -> Period:
    """`auto` is the coarsest period in which the cadence has at most one occurrence.

    `InvalidRequest` for a period in which it can have two.
    """
    coarsest = cadence.coarsest_period()
    if asked == "auto":
        return coarsest
    if coarsest == "once":
        if asked in ("once", "instant"):
            return "once"
        raise _refused(f"A one-time schedule has the period once, not {asked}; leave the field out.")
    if asked == "once":
        raise _refused(
            f"Only a one-time schedule has the period once; {coarsest} is the coarsest that works."
        )
    is_too_coarse = _COARSE_TO_FINE.index(asked) < _COARSE_TO_FINE.index(coarsest)
    # Months and weeks do not nest: a rule that keeps the one may not keep the other.
    if is_too_coarse or (asked == "week" and coarsest == "month" and cadence.two_share_a_week()):
        raise _refused(f"The rule can name two times in one {asked}; {coarsest} is the coarsest that works.")
    return asked


def period_key(period: Period, occurrence: Occurrence, *, series: int = 1) -> str:
    """The period by the local time that the rule names, in its own zone, before gap and fold.

    A second pass under fold `both` has a key of its own; a series that an edit began anew bears the number of that
    edit's version behind each key.
    """
    key = _bare_key(period, occurrence)
    return key if series == 1 else f"{key}#{series}"


def _bare_key(period: Period, occurrence: Occurrence) -> str:
    local = occurrence.named_local
    match period:
        case "once":
            return "once"
        case "instant":
            return f"instant:{format_instant(occurrence.scheduled_at)}"
        case "day":
            key = f"day:{local.date().isoformat()}"
        case "week":
            week = local.isocalendar()
            key = f"week:{week.year:04d}-W{week.week:02d}"
        case "month":
            key = f"month:{local.year:04d}-{local.month:02d}"
        case _:
            assert_never(period)
    return key + _FOLD_SUFFIX if occurrence.second_pass else key


def _refused(message: str) -> InvalidRequest:
    return InvalidRequest(FieldError("period", message))
