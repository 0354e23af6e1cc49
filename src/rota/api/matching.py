"""Bodies of commands on all that matches: the members of a filter, why it is asked for, and where to go on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from rota.api.bodies import parse_reason
from rota.api.parameters import CURSOR
from rota.domain.definition import FieldErrors
from rota.service.paging import decode_cursor
from rota.service.queries import RUN_FILTERS, texts_of

IN_ORDER = (*RUN_FILTERS, CURSOR.name)
"""Every member but the reason, as errors are told of them; deliveries are chosen by some of these."""

Filter = TypeVar("Filter")
Place = TypeVar("Place")


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching(Generic[Filter, Place]):
    """What such a body says."""

    filter_: Filter
    place: Place | None
    """At which to go on."""
    reason: str | None


def parse_matching(
    body: Mapping[str, object],
    fields: frozenset[str],
    *,
    parse_filter: Callable[[Mapping[str, str]], Filter],
    parse_place: Callable[[object], Place],
) -> Matching[Filter, Place]:
    """The body that has these `fields`, the cursor maybe among them. Raises `InvalidRequest` with all that is wrong,
    where the parsers raise it with what is theirs.
    """
    errors = FieldErrors()
    errors.refuse_unknown(body, fields)
    texts = texts_of(errors, body, [name for name in IN_ORDER if name in fields])
    filter_ = errors.attempt("", lambda: parse_filter(texts))
    cursor = texts.get(CURSOR.name)
    place = errors.attempt(
        CURSOR.name, lambda: parse_place(None if cursor is None else decode_cursor(cursor))
    )
    reason = parse_reason(errors, body)
    errors.raise_if_any()
    assert filter_ is not None  # noqa: S101 - else there was an error
    return Matching(filter_=filter_, place=place, reason=reason)


def no_place(_: object) -> None:
    """Where to go on in a command that goes on by itself."""
