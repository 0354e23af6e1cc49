"""Schedules in SQL: made, found and listed, each with its versions and suspensions."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from sqlalchemy import Connection, RowMapping, Select, insert, select
from sqlalchemy.exc import IntegrityError

from rota.domain.identity import ScheduleId
from rota.domain.overlap import Places
from rota.store.port import Creation, NewSchedule, Notice, ScheduleFilter, ScheduleRecord, is_soon
from rota.store.sql import rows
from rota.store.sql.audit import write_audit
from rota.store.sql.batches import Part
from rota.store.sql.bounds import followed_values
from rota.store.sql.engine import is_unique_violation
from rota.store.sql.idempotency import is_in_use, write_idempotency
from rota.store.sql.labels import write_labels
from rota.store.sql.notices import notify
from rota.store.sql.pages import read_page, readable
from rota.store.sql.places import read_places
from rota.store.sql.prepared import Prepared
from rota.store.sql.records import SELECT_RECORDS, read_beside, to_record
from rota.store.sql.schema import schedule_labels, schedules
from rota.store.sql.versions import write_versions


class SqlSchedules(Part):
    def commit_creation(self, new: NewSchedule, *, now: datetime) -> Creation:
        try:
            return self._create(new, now=now)
        except IntegrityError as error:
            if not is_unique_violation(error):
                raise
        # Another writer was faster with one of the keys; by now its rows can be seen.
        return self._create(new, now=now)

    def _create(self, new: NewSchedule, *, now: datetime) -> Creation:
        with self._database.writing() as connection:
            # The key first: a repeated request finds its own schedule, and is to be answered as it was.
            if is_in_use(connection, new.idempotency, now=now):
                return Creation.KEY_TAKEN
            same_id = select(schedules.c.id).where(schedules.c.id == new.schedule.schedule_id)
            if connection.execute(same_id).first() is not None:
                return Creation.ID_TAKEN
            _write_creation(connection, new, now=now)
            return Creation.CREATED

    def get_schedule(self, schedule_id: ScheduleId) -> ScheduleRecord | None:
        """Raises `UnreadableRow`."""
        with self._database.reading() as connection:
            statement = SELECT_RECORDS.where(schedules.c.id == schedule_id)
            found = connection.execute(statement).mappings().all()
            return to_record(found[0], read_beside(connection, found)) if found else None

    def read_places(self, schedule_id: ScheduleId) -> Places:
        with self._database.reading() as connection:
            return read_places(connection, [schedule_id]).get(schedule_id, ())

    def list_schedules(
        self, filter_: ScheduleFilter, *, after: ScheduleId | None, limit: int
    ) -> list[ScheduleRecord]:
        def records_after(last: RowMapping | None) -> Select[*tuple[object, ...]]:
            return _page(filter_, after=after if last is None else last["id"])

        def to_records(found: Sequence[RowMapping]) -> Iterator[ScheduleRecord]:
            beside = read_beside(connection, found)
            return readable(found, lambda row: to_record(row, beside))

        with self._database.reading() as connection:
            return read_page(connection, records_after, to_records, limit=limit)


def _write_creation(connection: Connection, new: NewSchedule, *, now: datetime) -> None:
    write_idempotency(connection, new.idempotency, now=now)
    values = {**rows.schedule_values(new.schedule), **followed_values(new.first.version)}
    _WRITE_SCHEDULE.execute(connection, [values])
    write_versions(connection, [new.first])
    write_labels(connection, new.schedule.schedule_id, new.schedule.labels)
    write_audit(connection, new.event)
    if is_soon(new.schedule.cursor.due_at, now=now):
        notify(connection, Notice.DUE)


def _page(filter_: ScheduleFilter, *, after: ScheduleId | None) -> Select[*tuple[object, ...]]:
    statement, id_ = SELECT_RECORDS, schedules.c.id
    if filter_.status is not None:
        statement = statement.where(schedules.c.status == filter_.status.value)
    if filter_.job is not None:
        statement = statement.where(schedules.c.job == filter_.job)
    if filter_.label is not None:
        key, value = filter_.label
        statement = statement.join(
            schedule_labels,
            (schedule_labels.c.key == key)
            & (schedule_labels.c.value == value)
            & (schedule_labels.c.schedule_id == schedules.c.id),
        )
        id_ = (
            schedule_labels.c.schedule_id
        )  # The same, in the order of the labels' key: nothing is to be sorted.
    if after is not None:
        statement = statement.where(id_ > after)
    return statement.order_by(id_)


_WRITE_SCHEDULE = Prepared(insert(schedules))
