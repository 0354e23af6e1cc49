"""Pages of a list: where one begins, how long it is, and how it is answered."""

from collections.abc import Sequence

from rota.api.parameters import CURSOR, LIMIT, whole_number
from rota.service.paging import LIMIT_DEFAULT, LIMIT_MAX, decode_cursor, encode_cursor
from rota.service.representation import Wire


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
