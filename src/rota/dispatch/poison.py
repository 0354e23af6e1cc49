"""A schedule that cannot be read or planned: it is put into `error` with the message, and all others go on (I12)."""

from dataclasses import replace
from datetime import datetime, timedelta

from rota.domain.admission import Admission, Skip
from rota.domain.audit import AuditEvent
from rota.domain.schedule import ScheduleStatus, Suspension
from rota.store.port import ChangeOutcome, Fence, ScheduleChange, Store, Unreadable
from rota.telemetry import get_logger

PROBLEM_CHARACTERS_MAX = 1_000

log = get_logger("dispatch")


def problem_of(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:PROBLEM_CHARACTERS_MAX]


def error_change(row: Unreadable, *, now: datetime) -> ScheduleChange:
    """The change that takes the schedule out of admission, with its cursor kept for when it is resumed."""
    return ScheduleChange(
        schedule_id=row.schedule_id,
        expected_revision=row.revision,
        expected_cursor=row.cursor,
        at=now,
        status=ScheduleStatus.ERROR,
        status_reason=row.problem,
        event=AuditEvent(
            schedule_id=row.schedule_id, action="schedule.error", at=now, actor="rota", reason=row.problem
        ),
        suspension_opened=Suspension(from_=now, until=None, reason="error"),
    )


def put_into_error(store: Store, fence: Fence, row: Unreadable, *, now: datetime) -> bool:
    """False: somebody else changed the schedule meanwhile."""
    if store.commit_change(error_change(row, now=now), fence=fence) is not ChangeOutcome.CHANGED:
        return False
    log.error("schedule.error", schedule_id=row.schedule_id, problem=row.problem)
    return True


def abandonment_of(row: Unreadable, *, now: datetime) -> Admission:
    """What an ended schedule that cannot be computed still owed: one skip for the instant at its cursor and all after.

    How many they were cannot be known any more, so the skip counts the one that is known and says so (I4).
    """
    cursor = row.cursor
    skips: tuple[Skip, ...] = ()
    if cursor.scheduled_at is not None:
        skip = Skip(
            schedule_id=row.schedule_id,
            version=cursor.version,
            from_=cursor.scheduled_at,
            until=max(
                row.window_until or now.replace(microsecond=0), cursor.scheduled_at + timedelta(seconds=1)
            ),
            count=1,
            reason="error",
            note=f"At least this one: the others until the end could not be named. {row.problem}",
        )
        skips = (skip,)
    return Admission(
        schedule_id=row.schedule_id,
        expected_revision=row.revision,
        expected_cursor=cursor,
        runs=(),
        skips=skips,
        cursor=replace(cursor, scheduled_at=None, due_at=None),
        status=ScheduleStatus.ENDED,
        status_reason="deleted",
    )
