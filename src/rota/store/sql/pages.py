"""Lists that go on where a row cannot be read, so that a bad one hides only itself (I12)."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from sqlalchemy import Connection, RowMapping, Select

from rota.domain.errors import UnreadableRow

Made = TypeVar("Made")


def read_page(
    connection: Connection,
    rows_after: Callable[[RowMapping | None], Select[*tuple[object, ...]]],
    make: Callable[[Sequence[RowMapping]], Iterator[Made]],
    *,
    limit: int,
) -> list[Made]:
    """What `make` makes of the first `limit` rows that it can read; of others it makes nothing.

    `rows_after` has the rows after a given one (None: from the start) in the list's order. A row's place is in its key,
    which can be compared whatever the row holds.
    """
    made: list[Made] = []
    last: RowMapping | None = None
    while len(made) < limit:
        found = connection.execute(rows_after(last).limit(limit)).mappings().all()
        made += make(found)
        if len(found) < limit:
            break
        last = found[-1]
    return made[:limit]


def readable(found: Sequence[RowMapping], make: Callable[[RowMapping], Made]) -> Iterator[Made]:
    """What `make` makes of each row, without those that cannot be read."""
    for row in found:
        try:
            yield make(row)
        except UnreadableRow:
            continue
