"""Pages of a list, as the HTTP API gives them: a cursor of the one is a cursor of the other."""

import base64
import binascii
from collections.abc import Callable, Sequence

from rota.domain.errors import FieldError, InvalidRequest, MalformedBody, TooLarge
from rota.domain.json_text import decode_json, encode_json
from rota.service.representation import Wire

LIMIT_DEFAULT = 50
LIMIT_MAX = 200
CURSOR_BYTES_MAX = 4_096

ReadPage = Callable[[object, int], Sequence[tuple[Wire, Wire]]]
"""From the place where a page begins (None: at the beginning) and a limit, to pairs of place and item."""


def read_pages(read: ReadPage, *, cursor: str | None, limit: int | None, walk_all: bool) -> Wire:
    """One page; or, with `walk_all`, one that holds them all. Raises `InvalidRequest`."""
    size = checked_limit(limit, default=LIMIT_MAX if walk_all else LIMIT_DEFAULT)
    place = None if cursor is None else decode_cursor(cursor)
    items: list[Wire] = []
    while True:
        entries = read(place, size + 1)
        shown = entries[:size]
        items += [item for _, item in shown]
        if len(entries) <= size:
            return {"items": items, "next_cursor": None}
        place = shown[-1][0]
        if not walk_all:
            return {"items": items, "next_cursor": encode_cursor(shown[-1][0])}


def checked_limit(limit: int | None, *, default: int = LIMIT_DEFAULT) -> int:
    """Raises `InvalidRequest`."""
    if limit is not None and not 1 <= limit <= LIMIT_MAX:
        raise InvalidRequest(FieldError("limit", f"Give a whole number from 1 to {LIMIT_MAX}."))
    return default if limit is None else limit


def encode_cursor(place: Wire) -> str:
    return base64.urlsafe_b64encode(encode_json(place).encode()).decode().rstrip("=")


def decode_cursor(text: str) -> object:
    """The place; the use case judges its members. Raises `InvalidRequest` naming `cursor`."""
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        decoded = base64.b64decode(padded, altchars=b"-_", validate=True)
        place: object = decode_json(decoded, bytes_max=CURSOR_BYTES_MAX)
    except (UnicodeError, binascii.Error, MalformedBody, TooLarge):
        place = None
    if not isinstance(place, dict) or encode_cursor(place) != text:
        raise InvalidRequest(
            FieldError("cursor", "Give a next_cursor of this list as it was, or leave it out.")
        )
    return place
