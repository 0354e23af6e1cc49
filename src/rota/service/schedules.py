"""The life of a saved schedule: show, list, pause, resume, end."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from rota.domain.audit import AuditAction, AuditEvent
from rota.domain.errors import Conflict, NotFound, RotaError
from rota.domain.identity import ScheduleId, is_schedule_id
from rota.domain.job import Job
from rota.domain.run import Run
from rota.domain.schedule import Schedule, ScheduleStatus, Suspension
from rota.service.context import NOBODY, Actor, Context
from rota.service.representation import Wire, audit_to_wire, schedule_to_wire
from rota.service.versions import next_whole_second
from rota.store.port import (
    ScheduleFilter,
    ScheduleRecord,
    StatusChange,
)

RETRIES_MAX = 20
"""How often a change is tried anew where admission moved the schedule in between."""


PlanChange = Callable[[ScheduleRecord, datetime], StatusChange | None]
"""Decides a change from the schedule as read; None where nothing is to be changed."""


def get_schedule(context: Context, schedule_id: str) -> ScheduleRecord:
    """Raises `NotFound`."""
    record = context.store.get_schedule(ScheduleId(schedule_id)) if is_schedule_id(schedule_id) else None
    if record is None:
        raise NotFound("schedule", schedule_id)
    return record


def show_schedule(context: Context, schedule_id: str) -> dict[str, object]:
    """The schedule in wire form. Raises `NotFound`."""
    return record_to_wire(context, get_schedule(context, schedule_id))


def list_schedules(
    context: Context, filter_: ScheduleFilter, *, after: ScheduleId | None, limit: int
) -> list[dict[str, object]]:
    records = context.store.list_schedules(filter_, after=after, limit=limit)
    jobs = {name: _job(context, name) for name in {record.schedule.job for record in records}}
    return [schedule_to_wire(record, jobs[record.schedule.job]) for record in records]


def list_history(context: Context, schedule_id: str, *, limit: int) -> list[Wire]:
    """Who did what to the schedule, newest first. Raises `NotFound`."""
    record = get_schedule(context, schedule_id)
    return [
        audit_to_wire(event) for event in context.store.list_audit(record.schedule.schedule_id, limit=limit)
    ]


def pause_schedule(context: Context, schedule_id: str, *, actor: Actor = NOBODY) -> dict[str, object]:
    """Nothing is admitted from now on; nothing that happened is undone (I10). Pausing what is paused changes nothing.

    Raises `NotFound`, and `Conflict` for a schedule that has ended or is in error.
    """

    def plan(record: ScheduleRecord, now: datetime) -> StatusChange | None:
        schedule = record.schedule
        if schedule.status is ScheduleStatus.PAUSED:
            return None
        if schedule.status is not ScheduleStatus.ACTIVE:
            raise Conflict(
                f"Schedule {schedule_id!r} is {schedule.status}; only an active one can be paused."
            )
        return replace(
            _change(schedule, ScheduleStatus.PAUSED, "schedule.pause", actor, now=now),
            suspension_opened=Suspension(from_=now, until=None, reason="paused"),
        )

    return _change_status(context, schedule_id, plan)


def resume_schedule(
    context: Context, schedule_id: str, *, apply_overdue: bool = False, actor: Actor = NOBODY
) -> dict[str, object]:
    """Admission goes on. Instants before the pause follow the overdue policy; those in it are skipped as `paused`,
    or follow the policy too with `apply_overdue`. Resuming what is active changes nothing.

    A schedule in `error` is resumed in the same way, once its definition can be computed. Raises `NotFound`, and
    `Conflict` for one that has ended or still cannot be computed.
    """

    def plan(record: ScheduleRecord, now: datetime) -> StatusChange | None:
        schedule = record.schedule
        if schedule.status is ScheduleStatus.ACTIVE:
            return None
        if schedule.status is ScheduleStatus.ENDED:
            raise Conflict(f"Schedule {schedule_id!r} has ended; create a new one.")
        if schedule.status is ScheduleStatus.ERROR:
            _check_computable(context, record)
        return replace(
            _change(schedule, ScheduleStatus.ACTIVE, "schedule.resume", actor, now=now),
            suspension_closed=_closed_suspension(record, until=now, apply_overdue=apply_overdue),
            careful_until=now,
        )

    return _change_status(context, schedule_id, plan)


def end_schedule(context: Context, schedule_id: str, *, actor: Actor = NOBODY) -> dict[str, object]:
    """No further occurrence; the history stays and the id is never used again. Ending what has ended changes nothing.

    What fell due before the end and was not admitted is recorded as skipped (`ended`) by the dispatcher, in bounded
    steps. Raises `NotFound`.
    """

    def plan(record: ScheduleRecord, now: datetime) -> StatusChange | None:
        schedule = record.schedule
        if schedule.status is ScheduleStatus.ENDED:
            return None
        end = _window_end(context, schedule.schedule_id, now=now)
        owed = schedule.cursor.scheduled_at is not None and schedule.cursor.scheduled_at < end
        cursor = replace(schedule.cursor, scheduled_at=None, due_at=None)
        return replace(
            _change(schedule, ScheduleStatus.ENDED, "schedule.end", actor, now=now),
            status_reason="deleted",
            cursor=schedule.cursor if owed else cursor,
            suspension_closed=_closed_suspension(record, until=now, apply_overdue=False),
            window_closed_at=end,
        )

    return _change_status(context, schedule_id, plan)


def _window_end(context: Context, schedule_id: ScheduleId, *, now: datetime) -> datetime:
    """The end of the last window: after now, and after every instant that has its outcome already.

    The two differ under a clock that was set back: what was admitted before stays in the window of its version (I8).
    """
    end = next_whole_second(now)
    for entry in context.store.list_ledger(schedule_id, before=None, limit=1):
        decided_until = entry.scheduled_at + timedelta(seconds=1) if isinstance(entry, Run) else entry.until
        end = max(end, decided_until)
    return end


def _change_status(context: Context, schedule_id: str, plan: PlanChange) -> dict[str, object]:
    for _ in range(RETRIES_MAX):
        record = get_schedule(context, schedule_id)
        change = plan(record, context.clock.now())
        if change is None:
            return record_to_wire(context, record)
        if context.store.commit_status_change(change):
            return show_schedule(context, schedule_id)
    raise Conflict(f"Schedule {schedule_id!r} kept changing meanwhile; try again.")


def _change(
    schedule: Schedule, status: ScheduleStatus, action: AuditAction, actor: Actor, *, now: datetime
) -> StatusChange:
    return StatusChange(
        schedule_id=schedule.schedule_id,
        expected_status=schedule.status,
        expected_cursor=schedule.cursor,
        status=status,
        status_reason=None,
        cursor=schedule.cursor,
        event=AuditEvent(
            schedule_id=schedule.schedule_id, action=action, at=now, actor=actor.name, reason=actor.reason
        ),
    )


def _closed_suspension(record: ScheduleRecord, *, until: datetime, apply_overdue: bool) -> Suspension | None:
    for suspension in record.suspensions:
        if suspension.until is None:
            return replace(suspension, until=max(until, suspension.from_), apply_overdue=apply_overdue)
    return None


def _check_computable(context: Context, record: ScheduleRecord) -> None:
    try:
        context.cadences.of_version(record.version)
    except RotaError as error:
        raise Conflict(f"The schedule still cannot be computed: {error}") from error


def _job(context: Context, name: str) -> Job:
    return context.store.get_job(name) or Job(name=name)


def record_to_wire(context: Context, record: ScheduleRecord) -> Wire:
    """The schedule with its job's defaults resolved."""
    return schedule_to_wire(record, _job(context, record.schedule.job))
