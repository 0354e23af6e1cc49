"""What a single cell of a row, or member of a stored JSON object, holds.

The first three make a cell; the others read one, and return what they are named after or raise.
People have SQL consoles, so a row is not believed before it is read (I12).
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TypeVar

from rota.domain.errors import RotaError, UnreadableRow
from rota.domain.instants import from_millis, to_millis
from rota.domain.json_text import JsonText, check_storable

Made = TypeVar("Made")


INSTANTS_KEPT = 4_096
"""Of a burst many rows have the same few."""


SECONDS_OF_DAY = 86_400
ESCAPED_SURROGATE = "\\ud"
"""Only a text with one can hold half of a pair: encoded characters are whole."""


@lru_cache(maxsize=INSTANTS_KEPT)
def millis(instant: datetime) -> int:
    return to_millis(instant)


@lru_cache(maxsize=INSTANTS_KEPT)
def local_millis(local: datetime) -> int:
    """A naive local time, as if it were an instant in UTC."""
    return to_millis(local.replace(tzinfo=UTC))


def millis_or_none(instant: datetime | None) -> int | None:
    return None if instant is None else millis(instant)


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turns whatever is wrong with the shape of a row into `UnreadableRow`."""
    try:
        yield
    except UnreadableRow:
        raise
    except KeyError as error:
        raise UnreadableRow(f"The stored row of {what} cannot be read: it has no {error}.") from error
    except (RotaError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise UnreadableRow(f"The stored row of {what} cannot be read: {error}") from error


def text(cell: object) -> str:
    if not isinstance(cell, str):
        raise TypeError(f"{cell!r} is not a text")
    return cell


def text_or_none(cell: object) -> str | None:
    return None if cell is None else text(cell)


def json_text(cell: object) -> JsonText:
    """A text that is JSON: what reads it later does not ask."""
    _json_value(text(cell))
    return JsonText(text(cell))


def json_object(cell: object) -> JsonText:
    """The text of a JSON object."""
    members(_json_value(text(cell)))
    return JsonText(text(cell))


def json_texts(cell: object) -> JsonText:
    """The text of a JSON object whose members are texts."""
    for member in members(_json_value(text(cell))).values():
        text(member)
    return JsonText(text(cell))


def integer(cell: object) -> int:
    if not isinstance(cell, int):
        raise TypeError(f"{cell!r} is not a whole number")
    return cell


def number(cell: object) -> float:
    if not isinstance(cell, int | float) or not math.isfinite(cell):
        raise TypeError(f"{cell!r} is not a number")
    return cell


def instant(cell: object) -> datetime:
    return _instant(integer(cell))


def instant_or_none(cell: object) -> datetime | None:
    return None if cell is None else _instant(integer(cell))


def offset(cell: object) -> timedelta:
    """From UTC, in seconds: of less than a day, as any zone's."""
    seconds = integer(cell)
    if abs(seconds) >= SECONDS_OF_DAY:
        raise ValueError(f"{seconds} s is no offset from UTC")
    return timedelta(seconds=seconds)


def choice(cell: object, among: tuple[str, ...]) -> str:
    if not isinstance(cell, str) or cell not in among:
        raise ValueError(f"{cell!r} is none of {', '.join(among)}")
    return cell


def members(cell: object) -> Mapping[str, object]:
    """A JSON object."""
    if not isinstance(cell, dict):
        raise TypeError(f"{cell!r} is not a JSON object")
    return cell


@lru_cache(maxsize=INSTANTS_KEPT)
def _instant(millis_: int) -> datetime:
    return from_millis(millis_)


def _json_value(json_text: str) -> object:
    value = _DECODER.decode(json_text)
    if ESCAPED_SURROGATE in json_text:
        check_storable(value)
    return value


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def optional(cell: object, make: Callable[[object], Made]) -> Made | None:
    return None if cell is None else make(cell)
