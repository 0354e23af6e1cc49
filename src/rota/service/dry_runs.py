"""What a change would do, before anything is written: the same plan as the change itself, told instead of committed.

Every entry has the local time, its offset, the instant, the version and the period key. `kept` exists already or is
owed, and stays with its version; `carried` would be created with the old version, since nobody would run that period
else; `suppressed` would not run, since its period is used; `skipped` says why by its reason; `next` are the next ones
to fall due after the change, and of a version that waits the first ones after it takes over.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from rota.domain.admission import DueSchedule, Skip, plan_admission, probes_of
from rota.domain.cadence import Cadence
from rota.domain.edit_form import Edit
from rota.domain.instants import format_instant
from rota.domain.job import Job
from rota.domain.planned import judge_planned, newer_probes
from rota.domain.run import Run, RunState
from rota.domain.schedule import Cursor, ScheduleStatus, Suspension, Version
from rota.service.changes import get_schedule
from rota.service.context import NOBODY, Actor, Context
from rota.service.editing import PlannedEdit, check_expected, plan_edit
from rota.service.forecast import Forecast, Reign, forecast, reigns_of
from rota.service.representation import Wire, expected_run_to_wire, named_to_wire, skip_to_wire
from rota.service.schedules import plan_pause, plan_resumption
from rota.store.port import ScheduleChange, ScheduleRecord, read_uses

NEXT_SHOWN = 5
KEPT_SHOWN_MAX = 200
OWED_COMMITS_MAX = 20
"""Commits of the dispatcher that are foretold; a longer backlog is told as far as that."""


@dataclass(slots=True, kw_only=True)
class Owed:
    """What admission would do at once."""

    runs: list[Run] = field(default_factory=list)
    skips: list[Wire] = field(default_factory=list)
    is_complete: bool = True


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
        as_it_is = Owed()
        seen = _forecast_as_is(context, record, now=now)
        kept = _ahead(context, record, now=now)
        body = _body(record, "edit", kept=kept, carried=[], owed=as_it_is, seen=seen)
        return {**body, "changed": {} if planned is None else planned.changed}
    resolved, activation = planned.resolved, planned.activation
    new = Reign(version=resolved.version, cadence=resolved.cadence)
    owed, reigns = Owed(), [new]
    if activation is None and planned.before_cadence is not None:
        reigns = [Reign(version=planned.before, cadence=planned.before_cadence), new]
    activated = () if activation is None else activation.carried
    cursor = planned.change.cursor or record.schedule.cursor
    if record.schedule.status is ScheduleStatus.ACTIVE:
        # Of the new version too: what the rules of its zone kept from being admitted is owed by them now.
        as_changed = replace(record, schedule=replace(record.schedule, cursor=cursor))
        owed = foretell(context, as_changed, reigns[0], now=now)
    seen = Forecast()
    boundary = resolved.version.effective_from - timedelta(seconds=1)
    # Of a version that waits for long: what comes next, and what comes first when it takes over.
    for after in sorted({now, max(now, boundary)} if activation is None else {now}):
        seen.add(
            forecast(
                context,
                record.schedule,
                reigns,
                after=after,
                cursor=cursor.scheduled_at,
                count=NEXT_SHOWN,
                carried=activated,
                owed=owed.runs,
                now=now,
            )
        )
    carried = [*activated, *seen.carried]
    body = _body(record, "edit", kept=_ahead(context, record, now=now), carried=carried, owed=owed, seen=seen)
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
    seen = _forecast_as_is(context, record, now=now)
    body = _body(
        record, "pause", kept=_ahead(context, record, now=now), carried=[], owed=Owed(), seen=Forecast()
    )
    withheld = [{**entry, "reason": "paused"} for entry in seen.next if entry["state"] == "named"]
    return {**body, "changed": _status_changed(record, change), "skipped": withheld}


def dry_run_resume(
    context: Context, schedule_id: str, *, apply_overdue: bool = False, actor: Actor = NOBODY
) -> Wire:
    """What a resumption would admit and skip at once, and what comes after it."""
    record = get_schedule(context, schedule_id)
    now = context.clock.now()
    change = plan_resumption(context, record, actor, apply_overdue=apply_overdue, now=now)
    resumed = _resumed(record, change)
    owed, [owner, *later] = Owed(), reigns_of(context, record)
    held = [run for run in _ahead(context, record, now=now) if run.state is RunState.HELD]
    if change is not None:
        for run in held:
            judged = _judged(context, resumed, run, now=now)
            if judged.state is RunState.SKIPPED:
                owed.skips.append({**expected_run_to_wire(judged), "reason": judged.reason})
            else:
                owed.runs.append(judged)
        _foretell_into(owed, context, resumed, owner, now=now)
    seen = forecast(
        context,
        record.schedule,
        [owner, *later],
        after=now,
        cursor=record.schedule.cursor.scheduled_at,
        count=NEXT_SHOWN,
    )
    kept = [run for run in _ahead(context, record, now=now) if run.state is not RunState.HELD]
    body = _body(record, "resume", kept=kept, carried=[], owed=owed, seen=seen)
    return {**body, "changed": _status_changed(record, change)}


def foretell(context: Context, record: ScheduleRecord, reign: Reign, *, now: datetime) -> Owed:
    """What the dispatcher would do with the instants that are owed by the reign's version."""
    owed = Owed()
    _foretell_into(owed, context, record, reign, now=now)
    return owed


def _foretell_into(
    owed: Owed, context: Context, record: ScheduleRecord, reign: Reign, *, now: datetime
) -> None:
    schedule = record.schedule
    for _ in range(OWED_COMMITS_MAX):
        due = replace(_due(context, record), schedule=schedule, version=reign.version)
        if not _is_owed(schedule.cursor, reign.version, now=now):
            return
        probes = probes_of(due, reign.cadence, now=now)
        uses = read_uses(context.store, schedule.schedule_id, probes)
        admission = plan_admission(due, reign.cadence, now=now, uses=uses)
        owed.runs += admission.runs
        owed.skips += [_skip_to_wire(skip, reign.version, reign.cadence) for skip in admission.skips]
        schedule = replace(schedule, cursor=admission.cursor)
    owed.is_complete = False


def _judged(context: Context, record: ScheduleRecord, run: Run, *, now: datetime) -> Run:
    """What becomes of a held run, by the policy of its own version."""
    schedule_id = record.schedule.schedule_id
    version = context.store.get_version(schedule_id, run.version) or record.version
    cadence = context.cadences.of_version(version)
    due = replace(_due(context, record), version=version)
    uses = read_uses(context.store, schedule_id, newer_probes(due, cadence, run, now=now))
    return judge_planned(due, run, cadence, now=now, uses=uses).run


def _is_owed(cursor: Cursor, version: Version, *, now: datetime) -> bool:
    instant = cursor.scheduled_at
    return instant is not None and instant <= now and instant != version.effective_until


def _due(context: Context, record: ScheduleRecord) -> DueSchedule:
    job = context.store.get_job(record.schedule.job) or Job(name=record.schedule.job)
    return DueSchedule(
        schedule=record.schedule,
        version=record.version,
        suspensions=record.suspensions,
        job_overdue=job.overdue,
        successor=record.pending,
    )


def _resumed(record: ScheduleRecord, change: ScheduleChange | None) -> ScheduleRecord:
    """The record as it would be with its suspension closed."""
    closed = None if change is None else change.suspension_closed
    suspensions: tuple[Suspension, ...] = tuple(
        closed if closed is not None and suspension.from_ == closed.from_ else suspension
        for suspension in record.suspensions
    )
    schedule = replace(record.schedule, status=ScheduleStatus.ACTIVE)
    return replace(record, schedule=schedule, suspensions=suspensions)


def _ahead(context: Context, record: ScheduleRecord, *, now: datetime) -> list[Run]:
    ahead = context.store.list_ahead(record.schedule.schedule_id, from_=now, limit=KEPT_SHOWN_MAX)
    return [run for run in ahead if run.state is not RunState.SKIPPED]


def _forecast_as_is(context: Context, record: ScheduleRecord, *, now: datetime) -> Forecast:
    return forecast(
        context,
        record.schedule,
        reigns_of(context, record),
        after=now,
        cursor=record.schedule.cursor.scheduled_at,
        count=NEXT_SHOWN,
    )


def _status_changed(record: ScheduleRecord, change: ScheduleChange | None) -> Wire:
    if change is None or change.status is None:
        return {}
    return {"status": {"from": record.schedule.status.value, "to": change.status.value}}


def _body(
    record: ScheduleRecord,
    operation: str,
    *,
    kept: Sequence[Run],
    carried: Sequence[Run],
    owed: Owed,
    seen: Forecast,
) -> Wire:
    """The members that every dry run has."""
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
            *({**expected_run_to_wire(run), "note": "owed: it is admitted at once"} for run in owed.runs),
            *(expected_run_to_wire(run) for run in kept),
        ],
        "carried": [expected_run_to_wire(run) for run in carried],
        "suppressed": seen.suppressed,
        "skipped": [*owed.skips, *seen.skipped],
        "next": seen.next,
        "is_complete": owed.is_complete,
    }


def _skip_to_wire(skip: Skip, version: Version, cadence: Cadence) -> Wire:
    """A skip with the local time of its first instant."""
    first = cadence.at(skip.from_)
    named = {} if first is None else named_to_wire(version, first)
    return {**named, **skip_to_wire(skip), "state": "skipped"}
