"""Durations as ISO 8601 text (`PT15M`, `P1DT12H`) and as `timedelta`: elapsed time, so a day is 24 hours."""

import re
from datetime import timedelta
from typing import Literal

from rota.domain.errors import InvalidExpression

DURATION_MAX = timedelta(days=3653)
"""Ten years, leap days included."""

_SECOND = timedelta(seconds=1)
_NUMBER_LENGTH_MAX = 12
_WEEKS = re.compile(r"P(\d+)W", re.ASCII)
_DURATION = re.compile(
    r"P(?:(?P<years>\d+)Y)?(?:(?P<months>\d+)M)?(?:(?P<days>\d+)D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+)(?:\.(?P<fraction>\d{1,3}))?S)?)?",
    re.ASCII,
)


def parse_duration(text: str) -> timedelta:
    """Weeks alone, or days, hours, minutes and seconds (to the millisecond); at most `DURATION_MAX`.

    Zero is a duration; whether it makes sense is for the field to say. Raises `InvalidExpression`.
    """
    weeks = _WEEKS.fullmatch(text)
    if weeks is not None:
        return _bounded(text, weeks=_number(text, weeks[1]))
    match = _DURATION.fullmatch(text)
    if match is None or text == "P":
        shown = repr(text if len(text) <= 40 else text[:40] + "…")
        raise InvalidExpression(
            "duration", f"{shown} is not an ISO 8601 duration such as PT15M, PT1H30M, P2D"
        )
    parts = match.groupdict()
    for calendar_unit in ("years", "months"):
        if parts[calendar_unit] is not None:
            raise InvalidExpression(
                "duration", f"{text[:40]!r} counts {calendar_unit}, which differ in length; use days or less"
            )
    return _bounded(
        text,
        days=_number(text, parts["days"]),
        hours=_number(text, parts["hours"]),
        minutes=_number(text, parts["minutes"]),
        seconds=_number(text, parts["seconds"]),
        milliseconds=int((parts["fraction"] or "").ljust(3, "0")),
    )


def format_duration(duration: timedelta, *, largest: Literal["day", "hour"] = "day") -> str:
    """The one spelling of a duration (not negative, whole milliseconds): `PT15M`, `P7D`, `P1DT12H`, `PT0S`.

    With `largest="hour"` days are written as hours (`PT168H`).
    """
    days = duration.days if largest == "day" else 0
    whole_seconds, rest = divmod(duration - timedelta(days=days), _SECOND)
    minutes, seconds = divmod(whole_seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{rest.microseconds // 1000:03d}".rstrip("0").rstrip(".")
    time = f"{hours}H" * bool(hours) + f"{minutes}M" * bool(minutes)
    if seconds or fraction:
        time += f"{seconds}{fraction}S"
    if not days and not time:
        return "PT0S"
    return "P" + f"{days}D" * bool(days) + ("T" + time if time else "")


def _number(text: str, digits: str | None) -> int:
    if digits is None:
        return 0
    if len(digits) > _NUMBER_LENGTH_MAX:
        raise _too_long(text)
    return int(digits)


def _bounded(text: str, **parts: int) -> timedelta:
    try:
        duration = timedelta(**parts)
    except OverflowError as error:
        raise _too_long(text) from error
    if duration > DURATION_MAX:
        raise _too_long(text)
    return duration


def _too_long(text: str) -> InvalidExpression:
    return InvalidExpression("duration", f"{text[:40]!r} is longer than ten years; give a shorter one")
