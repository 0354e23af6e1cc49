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
        if is_committed(context, change):
            return get_schedule(context, schedule_id)
    raise kept_changing(schedule_id)


def kept_changing(schedule_id: str) -> Conflict:
    """The error of who decided anew `RETRIES_MAX` times in a row."""
    return Conflict(f"Schedule {schedule_id!r} kept changing meanwhile; try again.")


def commit(context: Context, change: ScheduleChange) -> ChangeOutcome:
    """Raises `Conflict` where a run would lie before the kept history."""
    outcome = context.store.commit_change(change)
    if outcome is ChangeOutcome.PRUNED:
        raise Conflict(
            f"The history of schedule {change.schedule_id!r} is kept from a later instant on; give a later one."
        )
    return outcome


def is_committed(context: Context, change: ScheduleChange) -> bool:
    """False: the schedule changed meanwhile. Raises as `commit` does, and `Conflict` where one of the runs exists
    though nobody was found to use its period: to decide anew would find the same again.
    """
    outcome = commit(context, change)
    if outcome is ChangeOutcome.KEY_USED:
        there = [run.run_id for run in change.runs if context.store.get_run(run.run_id) is not None]
        run_id = next(iter(there or [run.run_id for run in change.runs]), None)
        raise Conflict(
            f"The run {run_id} or its period key exists already, though nobody was found to use it; nothing was "
            f"written of this step. Look at the history of {change.schedule_id!r}."
        )
    return outcome is ChangeOutcome.CHANGED


def is_as_left(before: ScheduleRecord, latest: ScheduleRecord) -> bool:
    """Whether nothing but one commit of one's own was done to the schedule since it was read as `before`.

    Where each instant is a period of its own, admission may have gone on: its runs use nobody else's periods.
    """
    was, is_ = before.schedule, latest.schedule
    if is_.revision != was.revision + 1 or is_.cursor.version != was.cursor.version:
        return False
    return is_.cursor == was.cursor or (latest.version.period == "instant" and latest.pending is None)


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
