"""Skips in SQL: ranges of one schedule, version, reason and note that touch are one row: a long backlog stays small."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from sqlalchemy import Connection, and_, bindparam, column, insert, select, update, values

from rota.domain.admission import Skip
from rota.store.sql import cells, rows
from rota.store.sql.prepared import Prepared
from rota.store.sql.schema import skips

LOOKED_UP_AT_ONCE = 512
"""Places of four variables each, of which SQLite takes 32,766 in a statement and PostgreSQL 65,535."""

_Place = tuple[str, int, str, int, str | None]
"""Where a range ends, or the next one of its kind begins: schedule, version, reason, milliseconds, note."""


def write_skips(connection: Connection, written: Sequence[Skip]) -> None:
    """Each lengthens the row that ends where it begins, or becomes one; those of a batch meet each other as well."""
    if not written:
        return
    ends = _read_touched(connection, written)
    lengthened: dict[_Place, _Range] = {}
    made: list[_Range] = []
    for skip in written:
        touched = ends.pop(_place(skip, cells.millis(skip.from_)), None)
        if touched is None:
            touched = _Range(skip=skip, stored_until=None)
            made.append(touched)
        else:
            touched.lengthen(skip)
            if touched.stored_until is not None:
                lengthened[_place(skip, touched.stored_until)] = touched
        ends[_place(skip, cells.millis(skip.until))] = touched
    _LENGTHEN.change_each(connection, [_length_values(range_) for range_ in lengthened.values()])
    _WRITE.execute(connection, [rows.skip_values(range_.skip) for range_ in made])


@dataclass(slots=True, kw_only=True)
class _Range:
    """A row as it is to be. Of a stored one, the count is what comes to its own."""

    skip: Skip
    stored_until: int | None

    def lengthen(self, by: Skip) -> None:
        self.skip = replace(self.skip, until=by.until, count=self.skip.count + by.count)


def _place(skip: Skip, millis: int) -> _Place:
    return skip.schedule_id, skip.version, skip.reason, millis, skip.note


def _place_of(key: Sequence[object]) -> _Place:
    schedule_id, version, reason, until, note = key
    return (
        cells.text(schedule_id),
        cells.integer(version),
        cells.text(reason),
        cells.integer(until),
        cells.text_or_none(note),
    )


def _read_touched(connection: Connection, written: Sequence[Skip]) -> dict[_Place, _Range]:
    """The stored ranges that end where one of `written` begins, as nothing yet that comes to them."""
    beginning = {_place(skip, cells.millis(skip.from_)): skip for skip in written}
    touched: dict[_Place, _Range] = {}
    for first in range(0, len(beginning), LOOKED_UP_AT_ONCE):
        places = list(beginning)[first : first + LOOKED_UP_AT_ONCE]
        # Filled up to a power of two with the last place, so that there are few different statements.
        count = 1 << (len(places) - 1).bit_length()
        places += places[-1:] * (count - len(places))
        for *key, from_ in _read_ending_at(count).read(connection, _place_values(places)):
            place = _place_of(key)
            skip = beginning.get(place)
            if skip is not None:  # Else it has another note.
                nothing = replace(skip, from_=cells.instant(from_), count=0)
                touched[place] = _Range(skip=nothing, stored_until=place[3])
    return touched


def _place_values(places: Sequence[_Place]) -> rows.Values:
    return {
        f"{name}_{number}": value
        for number, place in enumerate(places)
        for name, value in zip(("schedule_id", "version", "reason", "until_at"), place, strict=False)
    }


def _length_values(range_: _Range) -> rows.Values:
    skip = range_.skip
    return {
        "key_schedule_id": skip.schedule_id,
        "key_from_at": cells.millis(skip.from_),
        "key_version": skip.version,
        "key_reason": skip.reason,
        "key_until_at": range_.stored_until,
        "until_at": cells.millis(skip.until),
        "added": skip.count,
    }


@lru_cache(maxsize=16)
def _read_ending_at(count: int) -> Prepared:
    """The keys and notes of rows at `count` places, each a probe of the index.

    `IN` of four columns would use but the first of them; and for more than the index has, SQLite would rather read all
    skips of each schedule.
    """
    ending = (skips.c.schedule_id, skips.c.version, skips.c.reason, skips.c.until_at)
    places = [
        tuple(bindparam(f"{key.name}_{number}", type_=key.type) for key in ending) for number in range(count)
    ]
    wanted = values(*(column(key.name, key.type) for key in ending), name="wanted").data(places).cte()
    is_wanted = and_(*(key == wanted.c[key.name] for key in ending))
    return Prepared(select(*ending, skips.c.note, skips.c.from_at).select_from(wanted.join(skips, is_wanted)))


_LENGTHEN = Prepared(
    update(skips)
    .where(
        skips.c.schedule_id == bindparam("key_schedule_id"),
        skips.c.from_at == bindparam("key_from_at"),
        skips.c.version == bindparam("key_version"),
        skips.c.reason == bindparam("key_reason"),
        skips.c.until_at == bindparam("key_until_at"),
    )
    .values(until_at=bindparam("until_at"), count=skips.c.count + bindparam("added"))
)
_WRITE = Prepared(insert(skips))
