"""Pages of a list, as the HTTP API gives them: a cursor of the one is a cursor of the other."""

from collections.abc import Callable, Sequence

from rota.domain.errors import FieldError, InvalidRequest
from rota.service.paging import LIMIT_DEFAULT, LIMIT_MAX, decode_cursor, encode_cursor
from rota.service.representation import Wire

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
