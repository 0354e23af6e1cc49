"""Lists in the library: one page at a time, or all pages one after the other."""

from collections.abc import Callable, Iterator

from rota.domain.errors import FieldError, InvalidRequest
from rota.service.paging import LIMIT_MAX
from rota.service.representation import Wire


def given(**fields: str | None) -> dict[str, str]:
    """The filters that were asked for."""
    return {name: value for name, value in fields.items() if value is not None}


def walk(read: Callable[[Wire | None], list[Wire]]) -> Iterator[Wire]:
    """Every entry of the pages that `read` gives, each after the last entry of the one before."""
    page = read(None)
    while page:
        yield from page
        page = read(page[-1]) if len(page) == LIMIT_MAX else []


def checked_limit(limit: int) -> int:
    """Raises `InvalidRequest`."""
    if not 1 <= limit <= LIMIT_MAX:
        raise InvalidRequest(FieldError("limit", f"Give a whole number from 1 to {LIMIT_MAX}."))
    return limit
