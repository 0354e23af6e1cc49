"""Skips: ranges of the same schedule, version and reason that touch are one row, so that a long backlog stays small."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, bindparam, insert, select, tuple_, update

from rota.domain.admission import Skip
from rota.store.sql import cells, rows
from rota.store.sql.prepared import Prepared
from rota.store.sql.schema import skips

LOOKED_UP_AT_ONCE = 1_000
"""Of four variables each, of which SQLite takes 32,766 in a statement and PostgreSQL 65,535."""

_Place = tuple[str, int, str, datetime]
"""Where a range ends, or the next one of its kind begins: schedule, version, reason, instant."""


def write_skips(connection: Connection, written: Sequence[Skip]) -> None:
    """Each lengthens the row that ends where it begins, or becomes one."""
    if not written:
        return
    ranges = _read_touched(connection, written)
    lengthened: dict[int, _Range] = {}
    made: list[_Range] = []
    for skip in written:
        touched = ranges.pop(_place(skip, skip.from_), None)
        if touched is None:
            touched = _Range(skip)
            made.append(touched)
        else:
            touched.lengthen(skip)
            if touched.was_stored:
                lengthened[id(touched)] = touched
        ranges[_place(skip, skip.until)] = touched
    if lengthened:
        _LENGTHEN.execute(connection, [_length_values(range_.skip) for range_ in lengthened.values()])
    if made:
        _WRITE.execute(connection, [_values(range_.skip) for range_ in made])


class _Range:
    """A row, stored or to be."""

    def __init__(self, skip: Skip, *, was_stored: bool = False) -> None:
        self.skip = skip
        self.was_stored = was_stored

    def lengthen(self, by: Skip) -> None:
        self.skip = replace(
            self.skip,
            until=by.until,
            count=self.skip.count + by.count,
            note=self.skip.note if by.note is None else by.note,
        )


def _place(skip: Skip, instant: datetime) -> _Place:
    return skip.schedule_id, skip.version, skip.reason, instant


def _read_touched(connection: Connection, written: Sequence[Skip]) -> dict[_Place, _Range]:
    """The rows that end where one of `written` begins."""
    beginnings = list({_place(skip, skip.from_) for skip in written})
    return {
        _place(skip, skip.until): _Range(skip, was_stored=True)
        for first in range(0, len(beginnings), LOOKED_UP_AT_ONCE)
        for row in connection.execute(
            _READ_ENDING_AT, {"places": beginnings[first : first + LOOKED_UP_AT_ONCE]}
        ).mappings()
        for skip in [rows.to_skip(row)]
    }


def _values(skip: Skip) -> rows.Values:
    return {
        "schedule_id": skip.schedule_id,
        "from_at": cells.millis(skip.from_),
        "version": skip.version,
        "reason": skip.reason,
        "until_at": cells.millis(skip.until),
        "count": skip.count,
        "note": skip.note,
    }


def _length_values(skip: Skip) -> rows.Values:
    return {
        "key_schedule_id": skip.schedule_id,
        "key_from_at": cells.millis(skip.from_),
        "key_version": skip.version,
        "key_reason": skip.reason,
        "until_at": cells.millis(skip.until),
        "count": skip.count,
        "note": skip.note,
    }


_READ_ENDING_AT = select(skips).where(
    tuple_(skips.c.schedule_id, skips.c.version, skips.c.reason, skips.c.until_at).in_(
        bindparam("places", expanding=True)
    )
)
_LENGTHEN = Prepared(
    update(skips)
    .where(
        skips.c.schedule_id == bindparam("key_schedule_id"),
        skips.c.from_at == bindparam("key_from_at"),
        skips.c.version == bindparam("key_version"),
        skips.c.reason == bindparam("key_reason"),
    )
    .values(until_at=bindparam("until_at"), count=bindparam("count"), note=bindparam("note"))
)
_WRITE = Prepared(insert(skips))
