"""Pages of a list, and the opaque text that names a place in it: the base64url of canonical JSON."""

import base64
import binascii
from collections.abc import Sequence

from rota.api.parameters import CURSOR, LIMIT, LIMIT_DEFAULT, LIMIT_MAX, whole_number
from rota.domain.errors import FieldError, InvalidRequest, MalformedBody, TooLarge
from rota.domain.json_text import decode_json, encode_json
from rota.service.representation import Wire

CURSOR_BYTES_MAX = 4_096


def encode_cursor(place: Wire) -> str:
    """The text of a place, safe in a query."""
    return base64.urlsafe_b64encode(encode_json(place).encode()).decode().rstrip("=")


def decode_cursor(text: str) -> object:
    """The place that a text names; the use case judges its members. Raises `InvalidRequest` naming `cursor`."""
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        place: object = decode_json(
            base64.b64decode(padded, altchars=b"-_", validate=True), bytes_max=CURSOR_BYTES_MAX
        )
    except (UnicodeError, binascii.Error, MalformedBody, TooLarge):
        place = None
    if not isinstance(place, dict) or encode_cursor(place) != text:
        message = "Give a next_cursor of this list as it was, or leave it out."
        raise InvalidRequest(FieldError(CURSOR.name, message))
    return place


def asked_place(asked: dict[str, str]) -> object:
    """Where the page begins; None: at the beginning of the list."""
    return decode_cursor(asked[CURSOR.name]) if CURSOR.name in asked else None


def asked_limit(asked: dict[str, str]) -> int:
    """How many items the page has at most."""
    return whole_number(asked, LIMIT.name, default=LIMIT_DEFAULT, high=LIMIT_MAX)


def page_of(entries: Sequence[tuple[Wire, Wire]], *, limit: int) -> Wire:
    """A page of (place, item) pairs, of which one more than `limit` was read: that one tells of a further page."""
    shown = entries[:limit]
    has_more = len(entries) > limit
    return {
        "items": [item for _, item in shown],
        "next_cursor": encode_cursor(shown[-1][0]) if has_more else None,
    }
