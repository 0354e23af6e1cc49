"""Schedules, their versions and their history in SQL."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from sqlalchemy import (
    Connection,
    RowMapping,
    Select,
    bindparam,
    case,
    delete,
    insert,
    literal,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from rota.domain.audit import AuditEvent
from rota.domain.identity import ScheduleId
from rota.domain.json_text import load_json
from rota.domain.schedule import Schedule, Suspension, Version
from rota.store.port import (
    Creation,
    Fence,
    IdempotencyRecord,
    NewSchedule,
    ScheduleFilter,
    ScheduleRecord,
    StatusChange,
)
from rota.store.sql import cells, rows
from rota.store.sql.batches import Part, holds
from rota.store.sql.engine import is_unique_violation
from rota.store.sql.pages import read_page, readable
from rota.store.sql.prepared import Prepared
from rota.store.sql.records import SELECT_RECORDS, read_suspensions, to_record, version_columns
from rota.store.sql.schema import (
    Instant,
    audit,
    cadences,
    idempotency,
    schedule_labels,
    schedules,
    suspensions,
    versions,
)


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
            key = None if new.idempotency is None else new.idempotency.key
            if key is not None and _read_idempotency(connection, key, now=now) is not None:
                return Creation.KEY_TAKEN
            same_id = select(schedules.c.id).where(schedules.c.id == new.schedule.schedule_id)
            if connection.execute(same_id).first() is not None:
                return Creation.ID_TAKEN
            _write_creation(connection, new)
            return Creation.CREATED

    def commit_status_change(self, change: StatusChange, *, fence: Fence | None = None) -> bool:
        with self._database.writing() as connection:
            if fence is not None and not holds(connection, fence):
                return False
            changed = update(schedules).where(
                schedules.c.id == change.schedule_id,
                schedules.c.status == change.expected_status.value,
                schedules.c.version == change.expected_cursor.version,
                schedules.c.next_scheduled_at.is_not_distinct_from(change.expected_cursor.scheduled_at),
                schedules.c.next_due.is_not_distinct_from(change.expected_cursor.due_at),
            )
            if fence is not None:
                changed = changed.where(schedules.c.partition == fence.partition)
            if change.careful_until is not None:
                raised = literal(change.careful_until, Instant)
                is_later = schedules.c.careful_until.is_(None) | (schedules.c.careful_until < raised)
                changed = changed.values(
                    careful_until=case((is_later, raised), else_=schedules.c.careful_until)
                )
            changed = changed.values(
                status=change.status.value,
                status_reason=change.status_reason,
                version=change.cursor.version,
                next_scheduled_at=change.cursor.scheduled_at,
                next_due=change.cursor.due_at,
                updated_at=change.event.at,
            )
            if connection.execute(changed).rowcount == 0:
                return False
            _write_history(connection, change)
            return True

    def commit_idempotency(self, record: IdempotencyRecord, *, now: datetime) -> bool:
        try:
            with self._database.writing() as connection:
                if _read_idempotency(connection, record.key, now=now) is not None:
                    return False
                _write_idempotency(connection, record)
                return True
        except IntegrityError as error:
            if not is_unique_violation(error):
                raise
            return False

    def get_idempotency(self, key: str, *, now: datetime) -> IdempotencyRecord | None:
        with self._database.reading() as connection:
            return _read_idempotency(connection, key, now=now)

    def get_schedule(self, schedule_id: ScheduleId) -> ScheduleRecord | None:
        """Raises `UnreadableRow`."""
        with self._database.reading() as connection:
            statement = SELECT_RECORDS.where(schedules.c.id == schedule_id)
            found = connection.execute(statement).mappings().all()
            return to_record(found[0], read_suspensions(connection, found)) if found else None

    def get_version(self, schedule_id: ScheduleId, number: int) -> Version | None:
        """Raises `UnreadableRow`."""
        with self._database.reading() as connection:
            statement = select(*version_columns()).where(
                versions.c.schedule_id == schedule_id, versions.c.number == number
            )
            row = connection.execute(statement).mappings().first()
        if row is None:
            return None
        with cells.reading(f"version {number} of schedule {schedule_id}"):
            return rows.to_version(row)

    def list_schedules(
        self, filter_: ScheduleFilter, *, after: ScheduleId | None, limit: int
    ) -> list[ScheduleRecord]:
        def records_after(last: RowMapping | None) -> Select[*tuple[object, ...]]:
            return _page(filter_, after=after if last is None else last["id"])

        def to_records(found: Sequence[RowMapping]) -> Iterator[ScheduleRecord]:
            suspended = read_suspensions(connection, found)
            return readable(found, lambda row: to_record(row, suspended))

        with self._database.reading() as connection:
            return read_page(connection, records_after, to_records, limit=limit)

    def list_audit(self, schedule_id: ScheduleId, *, limit: int) -> list[AuditEvent]:
        with self._database.reading() as connection:
            found = connection.execute(_LIST_AUDIT, {"id": schedule_id, "limit": limit}).mappings().all()
        return list(readable(found, _to_audit_event))


def _to_audit_event(row: RowMapping) -> AuditEvent:
    with cells.reading(f"an audit event of schedule {row['schedule_id']}"):
        return rows.to_audit_event(row)


def write_audit(connection: Connection, event: AuditEvent) -> None:
    _WRITE_AUDIT.execute(connection, [rows.audit_values(event)])


def _write_idempotency(connection: Connection, record: IdempotencyRecord) -> None:
    # Where there is a record of that key, it has expired.
    connection.execute(delete(idempotency).where(idempotency.c.key == record.key))
    _WRITE_IDEMPOTENCY.execute(connection, [rows.idempotency_values(record)])


def _write_creation(connection: Connection, new: NewSchedule) -> None:
    if new.idempotency is not None:
        _write_idempotency(connection, new.idempotency)
    _WRITE_SCHEDULE.execute(connection, [rows.schedule_values(new.schedule)])
    _WRITE_VERSION.execute(connection, [rows.version_values(new.version)])
    same_cadence = select(cadences.c.id).where(cadences.c.id == new.cadence.cadence_id)
    if connection.execute(same_cadence).first() is None:
        _WRITE_CADENCE.execute(connection, [rows.cadence_values(new.cadence)])
    _WRITE_LABEL.execute(connection, _label_values(new.schedule))
    write_audit(connection, new.event)


def _label_values(schedule: Schedule) -> list[rows.Values]:
    return [
        {"key": key, "value": value, "schedule_id": schedule.schedule_id}
        for key, value in load_json(schedule.labels).items()
    ]


def _write_history(connection: Connection, change: StatusChange) -> None:
    if change.suspension_closed is not None:
        _close_suspension(connection, change.schedule_id, change.suspension_closed)
    if change.suspension_opened is not None:
        _open_suspension(connection, change.schedule_id, change.suspension_opened)
    if change.window_closed_at is not None:
        latest = select(schedules.c.latest_version).where(schedules.c.id == change.schedule_id)
        connection.execute(
            update(versions)
            .where(
                versions.c.schedule_id == change.schedule_id, versions.c.number == latest.scalar_subquery()
            )
            .values(effective_until=change.window_closed_at)
        )
    write_audit(connection, change.event)


def _close_suspension(connection: Connection, schedule_id: ScheduleId, closed: Suspension) -> None:
    connection.execute(
        update(suspensions)
        .where(
            suspensions.c.schedule_id == schedule_id,
            suspensions.c.from_at == closed.from_,
            suspensions.c.until_at.is_(None),
        )
        .values(until_at=closed.until, reason=closed.reason, apply_overdue=closed.apply_overdue)
    )


def _open_suspension(connection: Connection, schedule_id: ScheduleId, opened: Suspension) -> None:
    # One that began at the same millisecond and ended since covers nothing that this one does not.
    connection.execute(
        delete(suspensions).where(
            suspensions.c.schedule_id == schedule_id, suspensions.c.from_at == opened.from_
        )
    )
    _WRITE_SUSPENSION.execute(connection, [rows.suspension_values(schedule_id, opened)])


def _read_idempotency(connection: Connection, key: str, *, now: datetime) -> IdempotencyRecord | None:
    statement = select(idempotency).where(idempotency.c.key == key, idempotency.c.expires_at > now)
    row = connection.execute(statement).mappings().first()
    if row is None:
        return None
    with cells.reading(f"idempotency key {key}"):
        return rows.to_idempotency(row)


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


_LIST_AUDIT = (
    select(audit)
    .where(audit.c.schedule_id == bindparam("id"))
    .order_by(audit.c.at.desc(), audit.c.id.desc())
    .limit(bindparam("limit"))
)
_WRITE_SCHEDULE = Prepared(insert(schedules))
_WRITE_VERSION = Prepared(insert(versions))
_WRITE_CADENCE = Prepared(insert(cadences))
_WRITE_LABEL = Prepared(insert(schedule_labels))
_WRITE_SUSPENSION = Prepared(insert(suspensions))
_WRITE_IDEMPOTENCY = Prepared(insert(idempotency))
_WRITE_AUDIT = Prepared(
    insert(audit).values({column.name: bindparam(column.name) for column in audit.c if column.name != "id"})
)
