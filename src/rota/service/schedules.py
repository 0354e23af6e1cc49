"""The life of a saved schedule: show, list, pause, resume, end."""

from dataclasses import replace
from datetime import datetime

from rota.domain.errors import Conflict, NotFound, RotaError, TooLarge
from rota.domain.identity import ScheduleId
from rota.domain.job import Job
from rota.domain.key_uses import LATEST
from rota.domain.run import RunState
from rota.domain.schedule import Definition, ScheduleStatus, Suspension, last_decided
from rota.service.changes import change_of, change_schedule, event_of, get_schedule
from rota.service.context import NOBODY, Actor, Context
from rota.service.representation import Wire, audit_to_wire, schedule_to_wire, version_to_wire
from rota.service.versions import next_whole_second
from rota.store.port import ScheduleChange, ScheduleFilter, ScheduleRecord


def show_schedule(context: Context, schedule_id: str) -> dict[str, object]:
    """The schedule in wire form. Raises `NotFound`."""
    return record_to_wire(context, get_schedule(context, schedule_id))


def list_schedules(
    context: Context, filter_: ScheduleFilter, *, after: ScheduleId | None, limit: int
) -> list[dict[str, object]]:
    records = context.store.list_schedules(filter_, after=after, limit=limit)
    jobs = {name: _job(context, name) for name in {record.schedule.job for record in records}}
    return [
        schedule_to_wire(record, jobs[record.schedule.job], next_due=_planned_before(context, record))
        for record in records
    ]


def list_history(context: Context, schedule_id: str, *, limit: int) -> list[Wire]:
    """Who did what to the schedule, newest first. Raises `NotFound`."""
    record = get_schedule(context, schedule_id)
    return [
        audit_to_wire(event) for event in context.store.list_audit(record.schedule.schedule_id, limit=limit)
    ]


def list_versions(context: Context, schedule_id: str, *, before: int | None, limit: int) -> list[Wire]:
    """Latest first, those with a number below `before`. Raises `NotFound`."""
    schedule = get_schedule(context, schedule_id).schedule
    job = _job(context, schedule.job)
    versions = context.store.list_versions(schedule.schedule_id, before=before, limit=limit)
    return [version_to_wire(version, job) for version in versions]


def show_version(context: Context, schedule_id: str, number: int) -> Wire:
    """Raises `NotFound`."""
    schedule = get_schedule(context, schedule_id).schedule
    version = context.store.get_version(schedule.schedule_id, number)
    if version is None:
        raise NotFound("version", f"{schedule_id}.{number}")
    return version_to_wire(version, _job(context, schedule.job))


def pause_schedule(context: Context, schedule_id: str, *, actor: Actor = NOBODY) -> Wire:
    """Nothing is admitted from now on; nothing that happened is undone (I10). Pausing what is paused changes nothing.

    Raises `NotFound`, and `Conflict` for a schedule that has ended or is in error.
    """

    def plan(record: ScheduleRecord, now: datetime) -> ScheduleChange | None:
        return plan_pause(record, actor, now=now)

    return record_to_wire(context, change_schedule(context, schedule_id, plan))


def plan_pause(record: ScheduleRecord, actor: Actor, *, now: datetime) -> ScheduleChange | None:
    """None for what is paused already. Raises `Conflict`."""
    schedule = record.schedule
    if schedule.status is ScheduleStatus.PAUSED:
        return None
    if schedule.status is not ScheduleStatus.ACTIVE:
        problem = f"Schedule {schedule.schedule_id!r} is {schedule.status}; only an active one can be paused."
        raise Conflict(problem)
    return replace(
        change_of(schedule, at=now),
        status=ScheduleStatus.PAUSED,
        suspension_opened=Suspension(from_=now, until=None, reason="paused"),
        event=event_of(schedule, "schedule.pause", actor, at=now),
    )


def resume_schedule(
    context: Context, schedule_id: str, *, apply_overdue: bool = False, actor: Actor = NOBODY
) -> Wire:
    """Admission goes on. Instants before the pause follow the overdue policy; those in it are skipped as `paused`,
    or follow the policy too with `apply_overdue`. The same holds for the planned runs that were held. Resuming what is
    active changes nothing.

    A schedule in `error` is resumed in the same way, once its definition can be computed. Raises `NotFound`, and
    `Conflict` for one that has ended or still cannot be computed.
    """

    def plan(record: ScheduleRecord, now: datetime) -> ScheduleChange | None:
        return plan_resumption(context, record, actor, apply_overdue=apply_overdue, now=now)

    return record_to_wire(context, change_schedule(context, schedule_id, plan))


def plan_resumption(
    context: Context, record: ScheduleRecord, actor: Actor, *, apply_overdue: bool, now: datetime
) -> ScheduleChange | None:
    """None for what is active already. Raises `Conflict`."""
    schedule = record.schedule
    if schedule.status is ScheduleStatus.ACTIVE:
        return None
    if schedule.status is ScheduleStatus.ENDED:
        raise Conflict(f"Schedule {schedule.schedule_id!r} has ended; create a new one.")
    if schedule.status is ScheduleStatus.ERROR:
        _check_computable(context, record)
    closed = _closed_suspension(record, until=now, apply_overdue=apply_overdue)
    return replace(
        change_of(schedule, at=now),
        status=ScheduleStatus.ACTIVE,
        suspension_closed=closed,
        # Due since the suspension began: the runs that were held in it are decided first.
        cursor=schedule.cursor.looked_at(now if closed is None else closed.from_),
        careful_until=now,
        event=event_of(schedule, "schedule.resume", actor, at=now, apply_overdue=apply_overdue),
    )


def end_schedule(context: Context, schedule_id: str, *, actor: Actor = NOBODY) -> Wire:
    """No further occurrence; the history stays and the id is never used again. Ending what has ended changes nothing.

    What fell due before the end and was not admitted, and what was planned, is recorded as skipped (`ended`) by the
    dispatcher, in bounded steps. Raises `NotFound`.
    """

    def plan(record: ScheduleRecord, now: datetime) -> ScheduleChange | None:
        schedule = record.schedule
        if schedule.status is ScheduleStatus.ENDED:
            return None
        end = _window_end(context, record, now=now)
        owed = schedule.cursor.scheduled_at is not None and schedule.cursor.scheduled_at < end
        scheduled_at = schedule.cursor.scheduled_at if owed else None
        return replace(
            change_of(schedule, at=now),
            status=ScheduleStatus.ENDED,
            status_reason="deleted",
            # Due at once: the dispatcher looks for planned runs too.
            cursor=replace(schedule.cursor, scheduled_at=scheduled_at).looked_at(now),
            suspension_closed=_closed_suspension(record, until=now, apply_overdue=False),
            windows=_ended_windows(record, end),
            event=event_of(schedule, "schedule.end", actor, at=now),
        )

    return record_to_wire(context, change_schedule(context, schedule_id, plan))


def _window_end(context: Context, record: ScheduleRecord, *, now: datetime) -> datetime:
    """The end of the last window: after now, after every instant that has its outcome already, and never before it
    began.

    They differ under a clock that was set back: what was admitted before stays in the window of its version (I8).
    """
    cursor = record.schedule.cursor.scheduled_at
    try:
        cadence = context.cadences.of_version(record.version)
        decided = last_decided(record.version, cadence, cursor=cursor, after=now)
    except Exception:  # noqa: BLE001 - I12: what cannot be computed any more can still be ended
        decided = None
    return max(next_whole_second(decided or now), record.version.effective_from)


def _ended_windows(record: ScheduleRecord, end: datetime) -> tuple[tuple[int, datetime], ...]:
    """A version that had not taken over by then never does: its window is empty."""
    pending = record.pending
    if pending is None:
        return ((record.version.number, end),)
    if pending.effective_from < end:
        return ((pending.number, end),)
    return ((record.version.number, end), (pending.number, pending.effective_from))


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
    job = _job(context, record.schedule.job)
    return schedule_to_wire(record, job, next_due=_planned_before(context, record))


def _planned_before(context: Context, record: ScheduleRecord) -> datetime | None:
    """When a planned run falls due before the instant of the cursor; most schedules have none and are not asked."""
    schedule = record.schedule
    if schedule.careful_until is None:
        return None
    ahead = context.store.list_ahead(schedule.schedule_id, from_=LATEST, limit=1)
    instant = schedule.cursor.scheduled_at
    soonest = [run.due_at for run in ahead if run.state is RunState.PLANNED]
    return next((due for due in soonest if instant is None or due < instant), None)


def check_params_size(context: Context, record: ScheduleRecord, definition: Definition) -> None:
    """Raises `TooLarge`."""
    check_size(definition, _job(context, record.schedule.job))


def check_size(definition: Definition, job: Job) -> None:
    """Raises `TooLarge`."""
    params_bytes = len(definition.params.encode())
    if params_bytes > job.params_bytes_max:
        raise TooLarge(
            f"The params have {params_bytes} bytes as JSON; {job.name!r} takes at most {job.params_bytes_max}.",
            field="params",
        )
