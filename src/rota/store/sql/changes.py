"""What is done to a schedule but for admission, in SQL: one transaction on its row, which is read under a lock first.

Edits, pauses and plans meet admissions there: whoever is second finds another revision, or another cursor.
"""

from sqlalchemy import Connection, RowMapping, bindparam, case, delete, insert, literal, select, update
from sqlalchemy.exc import IntegrityError

from rota.domain.identity import ScheduleId
from rota.domain.schedule import Suspension
from rota.store.port import ChangeOutcome, Fence, Notice, ScheduleChange, makes_due_soon
from rota.store.sql import cells, rows
from rota.store.sql.audit import write_audit
from rota.store.sql.batches import Part, holds
from rota.store.sql.columns import Instant
from rota.store.sql.engine import is_unique_violation
from rota.store.sql.idempotency import is_in_use, write_idempotency
from rota.store.sql.labels import rewrite_labels
from rota.store.sql.notices import notify
from rota.store.sql.prepared import Prepared
from rota.store.sql.run_changes import Stored, are_stale, read_stored, write_runs
from rota.store.sql.schema import schedules, suspensions
from rota.store.sql.versions import end_windows, follow_versions, restamp_versions, write_versions


class SqlChanges(Part):
    def commit_change(self, change: ScheduleChange, *, fence: Fence | None = None) -> ChangeOutcome:
        try:
            return self._change(change, fence=fence)
        except IntegrityError as error:
            if not is_unique_violation(error):
                raise
        # Another writer was faster with the idempotency key; by now it can be seen.
        return self._change(change, fence=fence)

    def _change(self, change: ScheduleChange, *, fence: Fence | None) -> ChangeOutcome:
        with self._database.writing() as connection:
            is_held = fence is None or holds(connection, fence)
            row = connection.execute(_READ_SCHEDULE, {"id": change.schedule_id}).mappings().first()
            # Before what may refuse: a repeated request is to be answered as it was, whatever has changed since. And
            # under the lock: the first request may be what was waited for.
            if is_in_use(connection, change.idempotency, now=change.at):
                return ChangeOutcome.KEY_TAKEN
            if not is_held or row is None or not _is_expected(row, change, fence):
                return ChangeOutcome.STALE
            stored = read_stored(connection, change.run_changes)
            if are_stale(change.run_changes, stored):
                return ChangeOutcome.STALE
            if any(cells.millis(run.scheduled_at) < row["history_from"] for run in change.runs):
                return ChangeOutcome.PRUNED
            if not _write_runs(connection, change, stored):
                return ChangeOutcome.KEY_USED
            _write_schedule(connection, change)
            _write_suspensions(connection, change)
            _write_versions(connection, change)
            if change.cursor is not None or change.versions or change.restamped:
                follow_versions(connection, [change.schedule_id])
            if change.labels is not None:
                rewrite_labels(connection, change.schedule_id, old=row["labels"], new=change.labels)
            if change.event is not None:
                write_audit(connection, change.event)
            write_idempotency(connection, change.idempotency, now=change.at)
            if makes_due_soon(change):
                notify(connection, Notice.DUE)
            return ChangeOutcome.CHANGED


def _is_expected(row: RowMapping, change: ScheduleChange, fence: Fence | None) -> bool:
    if row["revision"] != change.expected_revision or (fence and row["partition"] != fence.partition):
        return False
    expected = change.expected_cursor
    stands = (row["version"], row["next_scheduled_at"], row["next_due"])
    return expected is None or stands == (
        expected.version,
        cells.millis_or_none(expected.scheduled_at),
        cells.millis_or_none(expected.due_at),
    )


def _write_runs(connection: Connection, change: ScheduleChange, stored: Stored) -> bool:
    """Writes them before all else, so that nothing is written where a key of them is used (False)."""
    if not change.runs and not change.run_changes:
        return True
    try:
        with connection.begin_nested():
            write_runs(connection, change.runs, change.run_changes, stored)
    except IntegrityError as error:
        if not is_unique_violation(error):
            raise
        return False
    return True


def _write_schedule(connection: Connection, change: ScheduleChange) -> None:
    changed = update(schedules).where(schedules.c.id == change.schedule_id).values(updated_at=change.at)
    if change.expected_cursor is not None:
        changed = changed.values(revision=schedules.c.revision + 1)
    if change.status is not None:
        changed = changed.values(status=change.status.value, status_reason=change.status_reason)
    if change.cursor is not None:
        changed = changed.values(
            version=change.cursor.version,
            next_scheduled_at=change.cursor.scheduled_at,
            next_due=change.cursor.due_at,
        )
    if change.careful_until is not None:
        raised = literal(change.careful_until, Instant)
        is_later = schedules.c.careful_until.is_(None) | (schedules.c.careful_until < raised)
        changed = changed.values(careful_until=case((is_later, raised), else_=schedules.c.careful_until))
    if change.labels is not None:
        changed = changed.values(labels=change.labels)
    if change.versions:
        changed = changed.values(latest_version=change.versions[-1].version.number)
    connection.execute(changed)


def _write_versions(connection: Connection, change: ScheduleChange) -> None:
    write_versions(connection, change.versions)
    restamp_versions(connection, change.restamped)
    end_windows(connection, [(change.schedule_id, number, until) for number, until in change.windows])


def _write_suspensions(connection: Connection, change: ScheduleChange) -> None:
    if change.suspension_closed is not None:
        _close_suspension(connection, change.schedule_id, change.suspension_closed)
    if change.suspension_opened is not None:
        _open_suspension(connection, change.schedule_id, change.suspension_opened)


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


_READ_SCHEDULE = select(schedules).where(schedules.c.id == bindparam("id")).with_for_update()
_WRITE_SUSPENSION = Prepared(insert(suspensions))
