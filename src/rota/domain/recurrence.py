"""What a schedule repeats by: one of four kinds, as immutable values and as the JSON object `recurrence`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar, assert_never

from rota.domain.cron import compile_cron
from rota.domain.durations import format_duration, parse_duration
from rota.domain.errors import FieldError, InvalidExpression, InvalidRequest
from rota.domain.instants import (
    format_instant,
    format_local,
    parse_instant,
    parse_local,
    whole_second_floor,
)
from rota.domain.rrule import compile_rrule
from rota.domain.zone import FIRST_YEAR, LAST_YEAR

INTERVAL_MIN = timedelta(seconds=1)

_Parsed = TypeVar("_Parsed")

_WHOLE = frozenset({"expression", "local time", "instant", "interval", "duration", "year"})
"""Parts that are all of a field."""

_KINDS = ("at", "cron", "rrule", "every")


@dataclass(frozen=True, slots=True, kw_only=True)
class At:
    """Once. A naive `time` is a local time of the schedule's zone, an aware one is an instant."""

    time: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Cron:
    """By a cron expression, in normal form."""

    expression: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RRule:
    """By an RFC 5545 set (DTSTART, RRULE, RDATE, EXDATE), one property a line, in normal form."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Every:
    """In equal steps of elapsed time; `anchor` is the first instant. Both in whole seconds."""

    interval: timedelta
    anchor: datetime


Recurrence = At | Cron | RRule | Every


def parse_recurrence(value: Mapping[str, object], *, default_anchor: datetime) -> Recurrence:
    """The wire object as a value; raises `InvalidRequest` with the bad field.

    `default_anchor`, cut to the second, is the anchor of an `every` that names none.
    """
    kinds = [kind for kind in _KINDS if kind in value]
    if len(kinds) != 1:
        given_kinds = ", ".join(kinds) or "none of them"
        raise _invalid("recurrence", f"Give exactly one of {', '.join(_KINDS)}, not {given_kinds}.")
    kind = kinds[0]
    allowed = ("every", "anchor") if kind == "every" else (kind,)
    unknown = [key for key in value if key not in allowed]
    if unknown:
        raise InvalidRequest(*(_unknown(key, kind) for key in unknown))
    given = _text(value, kind)
    match kind:
        case "at":
            return _parse("recurrence.at", _parse_at, given)
        case "cron":
            return _parse("recurrence.cron", _parse_cron, given)
        case "rrule":
            return _parse("recurrence.rrule", _parse_rrule, given)
        case _:
            anchor = whole_second_floor(default_anchor)
            if "anchor" in value:
                anchor = _parse("recurrence.anchor", _parse_anchor, _text(value, "anchor"))
            return Every(interval=_parse("recurrence.every", _parse_interval, given), anchor=anchor)


def recurrence_to_wire(recurrence: Recurrence) -> dict[str, str]:
    """The canonical wire object; `parse_recurrence` reads it back to an equal value."""
    match recurrence:
        case At(time=time):
            return {"at": format_local(time) if time.tzinfo is None else format_instant(time)}
        case Cron(expression=expression):
            return {"cron": expression}
        case RRule(text=text):
            return {"rrule": text}
        case Every(interval=interval, anchor=anchor):
            return {"every": format_duration(interval, largest="hour"), "anchor": format_instant(anchor)}
        case _:
            assert_never(recurrence)


def _parse_at(text: str) -> At:
    # A local time has no offset: the only `Z`, `+` or later `-` that can follow the date is an instant's.
    is_instant = text.endswith(("Z", "z")) or "+" in text or "-" in text[10:]
    time = parse_instant(text, whole=True) if is_instant else parse_local(text)
    _refuse_far_years(time)
    return At(time=time)


def _parse_cron(text: str) -> Cron:
    return Cron(expression=compile_cron(text).expression)


def _parse_rrule(text: str) -> RRule:
    return RRule(text=compile_rrule(text).text)


def _parse_anchor(text: str) -> datetime:
    anchor = parse_instant(text, whole=True)
    _refuse_far_years(anchor)
    return anchor


def _parse_interval(text: str) -> timedelta:
    interval = parse_duration(text)
    if "D" in text or "W" in text:
        raise InvalidExpression(
            "interval",
            f"{text} reads as calendar days, which are not always 24 hours; use cron or rrule for those, "
            f"or {format_duration(interval, largest='hour')} for elapsed time",
        )
    if interval < INTERVAL_MIN:
        raise InvalidExpression("interval", "the shortest interval is PT1S")
    if interval.microseconds:
        raise InvalidExpression("interval", f"{text} has a fraction of a second; give whole seconds")
    return interval


def _refuse_far_years(time: datetime) -> None:
    if not FIRST_YEAR <= time.year <= LAST_YEAR:
        raise InvalidExpression("year", f"{time.year:04d} is too far away; give one by {LAST_YEAR}")


def _parse(field: str, parse: Callable[[str], _Parsed], text: str) -> _Parsed:
    try:
        return parse(text)
    except InvalidExpression as error:
        # The field says already that it is about the whole text.
        raise _invalid(field, error.problem if error.part in _WHOLE else str(error)) from error


def _text(value: Mapping[str, object], key: str) -> str:
    given = value[key]
    if not isinstance(given, str):
        raise _invalid(f"recurrence.{key}", "Give a string.")
    return given


def _unknown(key: str, kind: str) -> FieldError:
    if key == "anchor":
        return FieldError("recurrence.anchor", f"Only every has an anchor; leave it out beside {kind}.")
    return FieldError(f"recurrence.{key}", f"Unknown field beside {kind}; leave it out.")


def _invalid(field: str, message: str) -> InvalidRequest:
    return InvalidRequest(FieldError(field, message))
