"""A moment that a request names: an instant, or a local time in a version's zone."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from rota.domain.errors import FieldError, InvalidExpression, InvalidRequest
from rota.domain.instants import format_instant, parse_instant, parse_local
from rota.domain.schedule import Version
from rota.domain.zone import FIRST_YEAR, LAST_YEAR, Fold, Gap, Unambiguous, resolve_local_time
from rota.service.context import Context

FORMS = "an instant (2026-01-14T14:00:00Z) or a local time in the schedule's zone (2026-01-14T09:00)"
STAMP = re.compile(r"\d{8}T\d{6}Z", re.ASCII)


def parse_moment(context: Context, version: Version, text: str, *, field: str) -> datetime:
    """`2026-01-10T14:00:00Z`, the same as in a run's id (`20260110T140000Z`), or a local time in the version's zone.

    Of a local time that occurs twice, the first. Raises `InvalidRequest` naming `field`.
    """
    instant = _parse(context, version, text, field=field)
    if not FIRST_YEAR <= instant.year <= LAST_YEAR:
        message = f"Zones are computed for the years {FIRST_YEAR} to {LAST_YEAR}; give such a time."
        raise InvalidRequest(FieldError(field, message))
    return instant


def parse_in_windows(
    context: Context, versions: Sequence[Version], text: str, *, field: str
) -> list[datetime]:
    """What the text may mean: a local time is one of each version in whose window it then lies.

    Where it lies in none, it is the first version's. Raises `InvalidRequest` naming `field`.
    """
    instants: list[datetime] = []
    refused: InvalidRequest | None = None
    for version in versions:
        try:
            instant = parse_moment(context, version, text, field=field)
        except InvalidRequest as error:
            refused = (
                refused or error
            )  # A local time that one zone's clocks pass over may exist in the other.
            continue
        until = version.effective_until
        if version.effective_from <= instant and (until is None or instant < until):
            instants.append(instant)
    if refused is not None and not instants:
        raise refused
    return list(dict.fromkeys(instants)) or [parse_moment(context, versions[0], text, field=field)]


def parse_later_moment(
    context: Context, version: Version, text: str, *, field: str, now: datetime
) -> datetime:
    """A moment after `now`. Raises `InvalidRequest` naming `field`."""
    instant = parse_moment(context, version, text, field=field)
    if instant <= now:
        message = f"This time has passed ({format_instant(now)} is now); give a time to come."
        raise InvalidRequest(FieldError(field, message))
    return instant


def _parse(context: Context, version: Version, text: str, *, field: str) -> datetime:
    try:
        if STAMP.fullmatch(text):
            return datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        if text.endswith(("Z", "z")) or "+" in text or "-" in text[10:]:
            return parse_instant(text, whole=True)
        zone = context.zones.load(version.definition.timezone)
        match resolve_local_time(zone, parse_local(text)):
            case Unambiguous(instant=instant) | Fold(first=instant):
                return instant
            case Gap(starts_at=starts_at):
                message = f"{text} does not exist in {zone.name}: the clocks go forward at {format_instant(starts_at)}."
                raise InvalidRequest(FieldError(field, f"{message} Give another time."))
    except InvalidExpression as error:
        raise InvalidRequest(FieldError(field, f"{error.problem}; give {FORMS}.")) from error
    except (ValueError, OverflowError) as error:
        raise InvalidRequest(FieldError(field, f"{text!r} is no date and time; give {FORMS}.")) from error
