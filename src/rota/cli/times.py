"""Times as tables show them: local with its offset, and UTC."""

from rota.domain.errors import InvalidExpression
from rota.domain.instants import format_local, parse_instant
from rota.service.representation import format_offset
from rota.zones import Zones


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
