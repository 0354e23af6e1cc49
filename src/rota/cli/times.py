"""Times as tables show them: local with its offset, and UTC."""

from collections.abc import Callable
from functools import cache

from rota.domain.errors import InvalidExpression, NotFound
from rota.domain.instants import format_local, format_offset, parse_instant
from rota.service.context import Context
from rota.service.schedules import show_version
from rota.zones import Zones

LocalOf = Callable[[object, object], str | None]
"""From a version's number and an instant in wire form to the local time in that version's zone, if it is known."""


def shown_local(local: object, offset: object) -> str:
    """`2026-01-10 09:00 -05:00`, of a wire form's two fields."""
    return f"{str(local).replace('T', ' ')} {offset}"


def local_of(zones: Zones, timezone: object, instant: object) -> str | None:
    """The local time of an instant in wire form; None where there is no instant, or no such zone here."""
    if instant is None:
        return None
    try:
        zone = zones.load(str(timezone))
        moment = parse_instant(str(instant))
        segment = zone.segment_at(moment)
    except (InvalidExpression, OverflowError):
        return None
    local = (moment + segment.offset).replace(tzinfo=None)
    return shown_local(format_local(local), format_offset(segment.offset))


def locals_of(context: Context, schedule_id: str) -> LocalOf:
    """Local times of one schedule, whose versions may be of different zones."""

    @cache
    def timezone_of(version: int) -> str | None:
        try:
            return str(show_version(context, schedule_id, version)["timezone"])
        except NotFound:
            return None

    def local(version: object, instant: object) -> str | None:
        return local_of(context.zones, timezone_of(version), instant) if isinstance(version, int) else None

    return local
