"""A schedule that cannot be read or planned: it is put into `error` with the message, and all others go on (I12)."""

from dataclasses import replace
from datetime import datetime

from rota.domain.audit import AuditEvent
from rota.domain.schedule import ScheduleStatus, Suspension
from rota.store.port import StatusChange, Unreadable

PROBLEM_CHARACTERS_MAX = 1_000


def problem_of(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:PROBLEM_CHARACTERS_MAX]


def error_change(row: Unreadable, *, now: datetime) -> StatusChange:
    """The change that takes the schedule out of admission, with its cursor kept for when it is resumed.

    One that has ended already only loses its cursor: what it still owed cannot be named any more.
    """
    change = StatusChange(
        schedule_id=row.schedule_id,
        expected_status=row.status,
        expected_cursor=row.cursor,
        status=ScheduleStatus.ERROR,
        status_reason=row.problem,
        cursor=row.cursor,
        event=AuditEvent(
            schedule_id=row.schedule_id, action="schedule.error", at=now, actor="rota", reason=row.problem
        ),
        suspension_opened=Suspension(from_=now, until=None, reason="error"),
    )
    if row.status is ScheduleStatus.ENDED:
        gone = replace(row.cursor, scheduled_at=None, due_at=None)
        return replace(change, status=ScheduleStatus.ENDED, cursor=gone, suspension_opened=None)
    return change
