"""Versions in SQL, with the cadences and zone rules that many of them share."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from sqlalchemy import (
    Connection,
    RowMapping,
    Select,
    Table,
    and_,
    bindparam,
    case,
    insert,
    null,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from rota.domain.identity import ScheduleId
from rota.domain.schedule import Version
from rota.store.port import NewVersion
from rota.store.sql import cells, rows
from rota.store.sql.batches import Part
from rota.store.sql.bounds import FOLLOWED
from rota.store.sql.engine import is_unique_violation
from rota.store.sql.pages import read_page, readable
from rota.store.sql.prepared import Prepared
from rota.store.sql.records import version_columns
from rota.store.sql.schema import cadences, schedules, versions, zone_rules

WindowEnd = tuple[ScheduleId, int, datetime]
"""A version, by its schedule and number, and its `effective_until`."""


class SqlVersions(Part):
    def get_version(self, schedule_id: ScheduleId, number: int) -> Version | None:
        """Raises `UnreadableRow`."""
        statement = _versions_of(schedule_id).where(versions.c.number == number)
        with self._database.reading() as connection:
            row = connection.execute(statement).mappings().first()
        return None if row is None else _to_version(row)

    def list_versions(self, schedule_id: ScheduleId, *, before: int | None, limit: int) -> list[Version]:
        latest = _versions_of(schedule_id).order_by(versions.c.number.desc())

        def versions_before(last: RowMapping | None) -> Select[*tuple[object, ...]]:
            number = before if last is None else last["version_number"]
            return latest if number is None else latest.where(versions.c.number < number)

        with self._database.reading() as connection:
            return read_page(connection, versions_before, _to_versions, limit=limit)


def write_versions(connection: Connection, new: Sequence[NewVersion]) -> None:
    """Writes them with what they share, where that is not there yet."""
    _WRITE_VERSION.execute(connection, [rows.version_values(each.version) for each in new])
    _write_shared(connection, new)


def restamp_versions(connection: Connection, restamped: Sequence[NewVersion]) -> None:
    """Writes them in place of those with their numbers, and what they share, where that is not there yet."""
    values = [
        {**rows.version_values(each.version), **_key_of(each.version.schedule_id, each.version.number)}
        for each in restamped
    ]
    _RESTAMP.change_each(connection, values)
    _write_shared(connection, restamped)


def end_windows(connection: Connection, ends: Iterable[WindowEnd]) -> None:
    _END_WINDOW.execute(
        connection,
        [
            {**_key_of(schedule_id, number), "effective_until": cells.millis(until)}
            for schedule_id, number, until in ends
        ],
    )


def follow_versions(connection: Connection, ids: Sequence[ScheduleId]) -> None:
    """Repeats in these schedules what the versions of their cursors say.

    To be called wherever another version owns the cursor, or the one that does is written anew. A schedule that lost
    its version says nothing, so that it is looked at alone (I12).
    """
    _FOLLOW.execute(connection, [{"key_id": id_} for id_ in ids])


def _write_shared(connection: Connection, new: Sequence[NewVersion]) -> None:
    for each in new:
        _write_missing(connection, cadences, rows.cadence_values(each.cadence))
        _write_missing(connection, zone_rules, rows.zone_rules_values(each.zone_rules))


def _write_missing(connection: Connection, table: Table, values: rows.Values) -> None:
    has_key = and_(*(column == values[column.name] for column in table.primary_key))
    if connection.execute(select(*table.primary_key).where(has_key)).first() is not None:
        return
    try:
        with connection.begin_nested():
            connection.execute(insert(table), dict(values))
    except IntegrityError as error:
        # Another writer was faster; what it wrote under this key is the same.
        if not is_unique_violation(error):
            raise


def _key_of(schedule_id: ScheduleId, number: int) -> rows.Values:
    return {"key_schedule_id": schedule_id, "key_number": number}


def _versions_of(schedule_id: ScheduleId) -> Select[*tuple[object, ...]]:
    return select(*version_columns()).where(versions.c.schedule_id == schedule_id)


def _to_versions(found: Sequence[RowMapping]) -> Iterator[Version]:
    return readable(found, _to_version)


def _to_version(row: RowMapping) -> Version:
    with cells.reading(f"version {row['version_number']} of schedule {row['version_schedule_id']}"):
        return rows.to_version(row)


_IS_VERSION = (versions.c.schedule_id == bindparam("key_schedule_id")) & (
    versions.c.number == bindparam("key_number")
)
_WRITE_VERSION = Prepared(insert(versions))
_RESTAMP = Prepared(
    update(versions)
    .where(_IS_VERSION)
    .values({column.name: bindparam(column.name) for column in versions.c if not column.primary_key})
)
# Without a cadence a schedule stands at no beat: of runs that may not overlap the planner decides.
_FOLLOWED = {"cadence_id": case((versions.c.overlap == "allow", versions.c.cadence_id), else_=null())}
_FOLLOW = Prepared(
    update(schedules)
    .where(schedules.c.id == bindparam("key_id"))
    .values(
        {
            name: select(_FOLLOWED.get(name, versions.c[name]))
            .where(versions.c.schedule_id == schedules.c.id, versions.c.number == schedules.c.version)
            .scalar_subquery()
            for name in FOLLOWED
        }
    )
)
_END_WINDOW = Prepared(
    update(versions).where(_IS_VERSION).values(effective_until=bindparam("effective_until"))
)
