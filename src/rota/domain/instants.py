"""Instants and local times as text and as numbers: aware UTC datetimes inside, RFC 3339 with `Z` outside."""

import re
from datetime import UTC, datetime, timedelta

from rota.domain.errors import InvalidExpression

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_DATE_AND_TIME = r"(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2})"
_INSTANT = re.compile(_DATE_AND_TIME + r":(\d{2})(?:\.(\d{1,9}))?(?:Z|([+-])(\d{2}):(\d{2}))", re.ASCII)
_LOCAL = re.compile(_DATE_AND_TIME + r"(?::(\d{2}))?", re.ASCII)
_OFFSET = re.compile(r"([+-])(\d{2}):(\d{2})(?::(\d{2}))?", re.ASCII)
_MILLISECOND = timedelta(milliseconds=1)
_SECOND = timedelta(seconds=1)


def parse_instant(text: str, *, whole: bool = False) -> datetime:
    """An RFC 3339 instant as aware UTC, cut to milliseconds; with `whole`, a fraction of a second is refused.

    Stricter than `datetime.fromisoformat`, which takes other separators, week dates and missing offsets.
    Raises `InvalidExpression`.
    """
    match = _INSTANT.fullmatch(text)
    if match is None:
        if _LOCAL.fullmatch(text) is not None:
            raise _wrong_instant(f"{text!r} has no offset; write it as 2026-01-10T14:00:00Z")
        raise _wrong_instant(
            f"{_shown(text)} is not an RFC 3339 instant with seconds, such as 2026-01-10T14:00:00Z"
        )
    year, month, day, hour, minute, second, fraction, sign, offset_hours, offset_minutes = match.groups()
    if whole and int(fraction or "0"):
        raise _wrong_instant(f"{text!r} has a fraction of a second; give a whole second")
    microsecond = int((fraction or "").ljust(3, "0")[:3]) * 1000
    try:
        local = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second), microsecond)
    except ValueError as error:
        raise _wrong_instant(f"{text!r} is no date and time: {error}") from error
    if sign is None:
        return local.replace(tzinfo=UTC)
    if int(offset_hours) > 23 or int(offset_minutes) > 59:
        raise _wrong_instant(f"{text!r} has an offset of a day or more")
    offset = timedelta(hours=int(offset_hours), minutes=int(offset_minutes))
    try:
        return (local - offset if sign == "+" else local + offset).replace(tzinfo=UTC)
    except OverflowError as error:
        raise _wrong_instant(f"{text!r} lies outside the years 1 to 9999 in UTC") from error


def format_instant(instant: datetime) -> str:
    """`2026-01-10T14:00:00Z`, with milliseconds only where they are not zero."""
    milliseconds = instant.microsecond // 1000
    fraction = f".{milliseconds:03d}" if milliseconds else ""
    return instant.astimezone(UTC).replace(tzinfo=None, microsecond=0).isoformat() + fraction + "Z"


def parse_local(text: str) -> datetime:
    """A wall-clock time without offset (`2026-01-14T09:00`, seconds optional) as a naive datetime.

    Raises `InvalidExpression`.
    """
    match = _LOCAL.fullmatch(text)
    if match is None:
        raise InvalidExpression("local time", f"{_shown(text)} is not a local time such as 2026-01-14T09:00")
    year, month, day, hour, minute, second = match.groups()
    try:
        return datetime(int(year), int(month), int(day), int(hour), int(minute), int(second or "0"))
    except ValueError as error:
        raise InvalidExpression("local time", f"{text!r} is no date and time: {error}") from error


def format_local(local: datetime) -> str:
    """`2026-01-14T09:00`, with seconds only where they are not zero."""
    return local.isoformat(timespec="seconds" if local.second else "minutes")


def format_offset(offset: timedelta) -> str:
    """`-05:00`; with seconds only where the zone has them (before standard time)."""
    seconds = round(offset.total_seconds())
    sign = "-" if seconds < 0 else "+"
    hours, rest = divmod(abs(seconds), 3600)
    minutes, rest = divmod(rest, 60)
    return f"{sign}{hours:02d}:{minutes:02d}" + (f":{rest:02d}" if rest else "")


def parse_offset(text: str) -> timedelta:
    """The inverse of `format_offset`. Raises `InvalidExpression`."""
    match = _OFFSET.fullmatch(text)
    if match is None:
        raise InvalidExpression("offset", f"{_shown(text)} is not an offset such as -05:00")
    sign, hours, minutes, seconds = match.groups()
    offset = timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds or "0"))
    return -offset if sign == "-" else offset


def whole_second_floor(instant: datetime) -> datetime:
    """The whole second at or before `instant`."""
    return instant.replace(microsecond=0)


def stamp(instant: datetime) -> str:
    """`20260110T090000Z`, as in run ids; a fraction of a second is left out."""
    utc = instant.astimezone(UTC)
    return f"{utc.year:04d}{utc.month:02d}{utc.day:02d}T{utc.hour:02d}{utc.minute:02d}{utc.second:02d}Z"


def to_millis(instant: datetime) -> int:
    """Milliseconds since 1970-01-01T00:00:00Z, rounded down, by whole numbers alone."""
    return (instant - EPOCH) // _MILLISECOND


def from_millis(millis: int) -> datetime:
    """The inverse of `to_millis`."""
    return EPOCH + timedelta(milliseconds=millis)


def _wrong_instant(problem: str) -> InvalidExpression:
    return InvalidExpression("instant", problem)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "…")
