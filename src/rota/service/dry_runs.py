"""What a change would do, before anything is written: the same plan as the change itself, told instead of committed.

Every entry has the local time, its offset, the instant, the version and the period key. `kept` exists already or is
owed, and stays with its version; `carried` would be created with the old version, since nobody would run that period
else; `suppressed` would not run, since its period is used; `skipped` says why by its reason; `next` are the next ones
to fall due after the change, and of a version that waits the first ones after it takes over.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from rota.domain.edit_form import Edit
from rota.domain.instants import format_instant
from rota.domain.run import Run
from rota.domain.schedule import ScheduleStatus, Suspension
from rota.service.backlog import Owed, as_careful, as_it_stands, foretell
from rota.service.changes import get_schedule
from rota.service.context import NOBODY, Actor, Context
from rota.service.editing import PlannedEdit, check_expected, plan_edit
from rota.service.forecast import Forecast, Reign, ahead_to_wire, forecast, reigns_of
from rota.service.representation import Wire
from rota.service.schedules import plan_pause, plan_resumption
from rota.store.port import ScheduleChange, ScheduleRecord

NEXT_SHOWN = 5
KEPT_SHOWN_MAX = 200


def dry_run_edit(
    context: Context,
    schedule_id: str,
    edit: Edit,
    *,
    expected_version: int | None = None,
    actor: Actor = NOBODY,
) -> Wire:
    """Raises as `edit_schedule` does."""
    record = get_schedule(context, schedule_id)
    now = context.clock.now()
    check_expected(record, expected_version)
    planned = plan_edit(context, record, edit, actor=actor, now=now)
    return told(context, record, planned, now=now)


def told(context: Context, record: ScheduleRecord, planned: PlannedEdit | None, *, now: datetime) -> Wire:
    """A planned edit in wire form; None: it changes nothing."""
    if planned is None or planned.resolved is None:
        reigns = reigns_of(context, record)
        as_it_is = as_it_stands(context, record, reigns, now=now)
        seen = _forecast(context, record, as_it_is, after=now)
        body = _body(context, record, "edit", carried=[], owed=as_it_is, seen=seen)
        return {**body, "changed": {} if planned is None else planned.changed}
    resolved, activation = planned.resolved, planned.activation
    new = Reign(version=resolved.version, cadence=resolved.cadence)
    reigns = [new]
    if activation is None and planned.before_cadence is not None:
        reigns = [Reign(version=planned.before, cadence=planned.before_cadence), new]
    cursor = planned.change.cursor or record.schedule.cursor
    schedule = replace(as_careful(record.schedule, planned.change.careful_until), cursor=cursor)
    as_changed = replace(record, schedule=schedule)
    # Of the new version too: what the rules of its zone kept from being admitted is owed by them now.
    is_active = record.schedule.status is ScheduleStatus.ACTIVE
    owed = (foretell if is_active else as_it_stands)(context, as_changed, reigns, now=now)
    owed.carried = [*([] if activation is None else activation.carried), *owed.carried]
    owed.planned = list(planned.ahead)
    seen = Forecast()
    boundary = resolved.version.effective_from - timedelta(seconds=1)
    # Of a version that waits for long: what comes next, and what comes first when it takes over.
    for after in sorted({now, max(now, boundary)} if activation is None else {now}):
        seen.add(_forecast(context, record, owed, after=after, now=now))
    body = _body(context, record, "edit", carried=[*owed.carried, *seen.carried], owed=owed, seen=seen)
    return {
        **body,
        "version": resolved.version.number,
        "boundary": resolved.version.boundary,
        "effective_from": format_instant(resolved.version.effective_from),
        "is_pending": activation is None,
        "replaces": None if record.pending is None else record.pending.number,
        "changed": planned.changed,
        "changes_version": record.latest.number,
        "period": resolved.version.period,
    }


def dry_run_pause(context: Context, schedule_id: str, *, actor: Actor = NOBODY) -> Wire:
    """What a pause would hold back: the runs that are planned, and the instants that fall due first while it lasts."""
    record = get_schedule(context, schedule_id)
    now = context.clock.now()
    change = plan_pause(record, actor, now=now)
    as_it_is = as_it_stands(context, record, reigns_of(context, record), now=now)
    seen = _forecast(context, record, as_it_is, after=now)
    body = _body(context, record, "pause", carried=[], owed=as_it_is, seen=Forecast())
    withheld = [{**entry, "reason": "paused"} for entry in seen.next if entry["state"] == "named"]
    return {**body, "changed": _status_changed(record, change), "skipped": withheld}


def dry_run_resume(
    context: Context, schedule_id: str, *, apply_overdue: bool = False, actor: Actor = NOBODY
) -> Wire:
    """What a resumption would admit and skip at once, and what comes after it."""
    record = get_schedule(context, schedule_id)
    now = context.clock.now()
    change = plan_resumption(context, record, actor, apply_overdue=apply_overdue, now=now)
    reigns = reigns_of(context, record)
    if change is None:
        owed = as_it_stands(context, record, reigns, now=now)
    else:
        owed = foretell(context, _resumed(record, change), reigns, now=now)
    seen = _forecast(context, record, owed, after=now)
    body = _body(context, record, "resume", carried=owed.carried, owed=owed, seen=seen)
    return {**body, "changed": _status_changed(record, change)}


def _resumed(record: ScheduleRecord, change: ScheduleChange | None) -> ScheduleRecord:
    """The record as it would be with its suspension closed."""
    closed = None if change is None else change.suspension_closed
    suspensions: tuple[Suspension, ...] = tuple(
        closed if closed is not None and suspension.from_ == closed.from_ else suspension
        for suspension in record.suspensions
    )
    careful = as_careful(record.schedule, None if change is None else change.careful_until)
    schedule = replace(careful, status=ScheduleStatus.ACTIVE)
    return replace(record, schedule=schedule, suspensions=suspensions)


def _forecast(
    context: Context, record: ScheduleRecord, owed: Owed, *, after: datetime, now: datetime | None = None
) -> Forecast:
    """What comes after what is owed."""
    return forecast(
        context,
        record.schedule,
        owed.reigns,
        after=after,
        cursor=owed.cursor.scheduled_at,
        count=NEXT_SHOWN,
        carried=[*owed.planned, *owed.carried],
        owed=owed.runs,
        dropped=owed.dropped,
        now=now,
    )


def _status_changed(record: ScheduleRecord, change: ScheduleChange | None) -> Wire:
    if change is None or change.status is None:
        return {}
    return {"status": {"from": record.schedule.status.value, "to": change.status.value}}


def _body(
    context: Context,
    record: ScheduleRecord,
    operation: str,
    *,
    carried: Sequence[Run],
    owed: Owed,
    seen: Forecast,
) -> Wire:
    """The members that every dry run has."""

    def shown(run: Run) -> Wire:
        return ahead_to_wire(context, run, record.versions)

    return {
        "dry_run": True,
        "operation": operation,
        "schedule_id": record.schedule.schedule_id,
        "version": record.schedule.latest_version,
        "boundary": None,
        "effective_from": None,
        "is_pending": False,
        "replaces": None,
        "changed": {},
        "changes_version": record.schedule.latest_version,
        "period": record.latest.period,
        "kept": [
            *({**shown(run), "note": "owed: it is admitted at once"} for run in owed.runs),
            *(shown(run) for run in [*owed.planned, *owed.kept][:KEPT_SHOWN_MAX]),
        ],
        "carried": [shown(run) for run in carried],
        "suppressed": seen.suppressed,
        "skipped": [*owed.skips, *seen.skipped],
        "next": seen.next,
        "is_complete": owed.is_complete,
    }
