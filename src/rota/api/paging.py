"""Pages of a list: where one begins, how long it is, and how it is answered."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rota.api.parameters import CURSOR, LIMIT, AskedQuery, whole_number
from rota.service.paging import LIMIT_DEFAULT, LIMIT_MAX, decode_cursor, encode_cursor
from rota.service.representation import Wire

Place = TypeVar("Place")
Filter = TypeVar("Filter")


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedPage(Generic[Place, Filter]):
    """What a query asks of a list."""

    limit: int
    place: Place
    """After which the page begins."""
    filter_: Filter


def asked_page(
    query: AskedQuery,
    *,
    parse_place: Callable[[object], Place],
    parse_filter: Callable[[Mapping[str, str]], Filter],
) -> AskedPage[Place, Filter]:
    """Raises `InvalidRequest` with every bad parameter, where the parsers raise it with those that are theirs."""

    def asked_place(asked: Mapping[str, str]) -> Place:
        return parse_place(decode_cursor(asked[CURSOR.name]) if CURSOR.name in asked else None)

    query.check(parse_filter, asked_place, asked_limit)
    return AskedPage(
        limit=asked_limit(query.values), place=asked_place(query.values), filter_=parse_filter(query.values)
    )


def no_filter(_: Mapping[str, str]) -> None:
    """The filter of a list that has none."""


def asked_limit(asked: Mapping[str, str]) -> int:
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
