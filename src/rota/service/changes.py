"""Doing something to a schedule: read it, decide, commit on the condition that nothing moved; else decide anew.

Admission moves the cursor of a busy schedule all the time, so a change may have to be decided more than once. What a
person decided about is another matter: an edit names the version that it was made for (`If-Match`).
"""

from collections.abc import Callable
from datetime import datetime

from rota.domain.audit import AuditAction, AuditEvent
from rota.domain.errors import Conflict, NotFound
from rota.domain.identity import ScheduleId, is_schedule_id
from rota.domain.json_text import encode_json
from rota.domain.schedule import Schedule
from rota.service.context import Actor, Context
from rota.store.port import ChangeOutcome, ScheduleChange, ScheduleRecord

RETRIES_MAX = 20
"""How often a change is decided anew where admission moved the schedule in between."""

PlanChange = Callable[[ScheduleRecord, datetime], ScheduleChange | None]
"""Decides a change from the schedule as read; None where nothing is to be changed."""


def get_schedule(context: Context, schedule_id: str) -> ScheduleRecord:
    """Raises `NotFound`."""
    record = context.store.get_schedule(ScheduleId(schedule_id)) if is_schedule_id(schedule_id) else None
    if record is None:
        raise NotFound("schedule", schedule_id)
    return record


def change_schedule(context: Context, schedule_id: str, plan: PlanChange) -> ScheduleRecord:
    """The schedule after the change that `plan` decides. Raises what it raises, `NotFound`, and `Conflict`."""
    for _ in range(RETRIES_MAX):
        record = get_schedule(context, schedule_id)
        change = plan(record, context.clock.now())
        if change is None:
            return record
        if commit(context, change) is ChangeOutcome.CHANGED:
            return get_schedule(context, schedule_id)
    raise Conflict(f"Schedule {schedule_id!r} kept changing meanwhile; try again.")


def commit(context: Context, change: ScheduleChange) -> ChangeOutcome:
    """Raises `Conflict` where a run would lie before the kept history."""
    outcome = context.store.commit_change(change)
    if outcome is ChangeOutcome.PRUNED:
        raise Conflict(
            f"The history of schedule {change.schedule_id!r} is kept from a later instant on; give a later one."
        )
    return outcome


def event_of(
    schedule: Schedule, action: AuditAction, actor: Actor, *, at: datetime, **details: object
) -> AuditEvent:
    return AuditEvent(
        schedule_id=schedule.schedule_id,
        action=action,
        at=at,
        actor=actor.name,
        reason=actor.reason,
        details=encode_json(details),
    )


def change_of(schedule: Schedule, *, at: datetime) -> ScheduleChange:
    """A change that expects the schedule as it was read, to be given what it is to do."""
    return ScheduleChange(
        schedule_id=schedule.schedule_id,
        expected_revision=schedule.revision,
        expected_cursor=schedule.cursor,
        at=at,
    )
