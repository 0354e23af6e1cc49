"""What the dispatcher would do at once with what is owed: told by dry runs, decided by the planners that it has itself.

In the dispatcher's order: planned runs that are late, and held ones where admission goes on, are judged first; then the
instants from the cursor on; and where the cursor reaches the boundary, the version that waits takes over, and its
instants follow.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from rota.domain.admission import Skip, plan_admission, probes_of
from rota.domain.cadence import Cadence
from rota.domain.definition import NO_SPREAD
from rota.domain.due import DueSchedule
from rota.domain.errors import ZoneRulesDiffer
from rota.domain.job import Job
from rota.domain.overlap import Places
from rota.domain.planned import judge_planned, newer_probes
from rota.domain.run import Run, RunState
from rota.domain.schedule import Cursor, Schedule, Version
from rota.service.context import Context
from rota.service.forecast import Reign, activation_then, uses_then
from rota.service.representation import Wire, expected_run_to_wire, named_to_wire, skip_to_wire
from rota.store.port import ScheduleRecord

AHEAD_LOOKED_AT_MAX = 400
"""Of the planned and held runs, so many: the soonest."""

OWED_COMMITS_MAX = 20
"""Commits of the dispatcher that are foretold; a longer backlog is told as far as that."""


@dataclass(slots=True, kw_only=True)
class Owed:
    """What admission would do at once, and how the schedule then stands."""

    reigns: list[Reign]
    cursor: Cursor
    kept: list[Run] = field(default_factory=list)
    """What was decided before its time, and stays as it is."""
    runs: list[Run] = field(default_factory=list)
    carried: list[Run] = field(default_factory=list)
    """What a version that takes over would carry, and is not due yet."""
    dropped: list[Run] = field(default_factory=list)
    """Planned and held runs as they are when they are skipped: they use no period any more."""
    skips: list[Wire] = field(default_factory=list)
    planned: list[Run] = field(default_factory=list)
    """What the change itself plans of what is not due yet."""
    places: Places = ()
    """The schedule's open runs, those that would be admitted among them."""
    is_complete: bool = True


def as_it_stands(context: Context, record: ScheduleRecord, reigns: Sequence[Reign], *, now: datetime) -> Owed:
    """Nothing is done: the schedule is not active, or does not become so."""
    ahead = context.store.list_ahead(record.schedule.schedule_id, from_=now, limit=AHEAD_LOOKED_AT_MAX)
    kept = [run for run in ahead if run.state is not RunState.SKIPPED]
    return Owed(reigns=list(reigns), cursor=record.schedule.cursor, kept=kept)


def foretell(context: Context, record: ScheduleRecord, reigns: Sequence[Reign], *, now: datetime) -> Owed:
    """What the dispatcher would do at once with an active schedule of these reigns."""
    pending = reigns[1].version if len(reigns) > 1 else None
    record = replace(record, version=reigns[0].version, pending=pending)
    owed = as_it_stands(context, record, reigns, now=now)
    if any(reign.version.definition.overlap != "allow" for reign in reigns):
        owed.places = context.store.read_places(record.schedule.schedule_id)
    ahead, owed.kept = owed.kept, []
    for run in ahead:
        if run.state is RunState.HELD or run.due_at <= now:
            _decide(owed, context, record, run, now=now)
        else:
            owed.kept.append(run)
    owed.is_complete = len(ahead) < AHEAD_LOOKED_AT_MAX or bool(owed.kept)
    for _ in range(OWED_COMMITS_MAX):
        instant, version = owed.cursor.scheduled_at, owed.reigns[0].version
        is_at_boundary = instant is not None and instant == version.effective_until
        if instant is None or instant + (NO_SPREAD if is_at_boundary else version.delay) > now:
            return owed
        if not is_at_boundary:
            _admit(owed, context, record, now=now)
        elif len(owed.reigns) > 1:
            record = _take_over(owed, context, record, now=now)
        else:
            return owed
    owed.is_complete = False
    return owed


def _decide(owed: Owed, context: Context, record: ScheduleRecord, run: Run, *, now: datetime) -> None:
    """A late planned run or a held one, by the policy of its own version."""
    schedule_id = record.schedule.schedule_id
    version = record.version
    if run.version != version.number:
        version = context.store.get_version(schedule_id, run.version) or version
    due = replace(_due(context, record), version=version, places=owed.places)
    try:
        cadence = context.cadences.of_version(version)
    except ZoneRulesDiffer:  # As for the dispatcher: no newer one is looked for.
        judgement = judge_planned(due, run, None, now=now)
    else:
        probes = newer_probes(due, cadence, run, now=now)
        uses = uses_then(context, schedule_id, probes, expected=owed.runs)
        judgement = judge_planned(due, run, cadence, now=now, uses=uses)
    judged, owed.places = judgement.change.run, judgement.places
    if judged.state is RunState.SKIPPED:
        owed.dropped.append(judged)
        owed.skips.append({**expected_run_to_wire(judged, version), "reason": judged.reason})
    else:
        owed.runs.append(judged)


def _admit(owed: Owed, context: Context, record: ScheduleRecord, *, now: datetime) -> None:
    """One commit's instants, of the version that owns the cursor."""
    schedule = replace(record.schedule, cursor=owed.cursor)
    due = replace(_due(context, record), schedule=schedule, places=owed.places)
    cadence = owed.reigns[0].cadence
    uses = uses_then(
        context,
        schedule.schedule_id,
        probes_of(due, cadence, now=now),
        expected=[*owed.runs, *owed.carried],
        dropped=owed.dropped,
    )
    admission = plan_admission(due, cadence, now=now, uses=uses)
    owed.runs += admission.runs
    owed.skips += [_skip_to_wire(skip, due.version, cadence) for skip in admission.skips]
    owed.cursor, owed.places = admission.cursor, admission.places


def _take_over(owed: Owed, context: Context, record: ScheduleRecord, *, now: datetime) -> ScheduleRecord:
    """The version that waits takes over, and what it carries is decided where it is due. The record as it is then."""
    before, new = owed.reigns
    activation = activation_then(
        context, record.schedule, before, new, expected=owed.runs, dropped=owed.dropped
    )
    owed.reigns, owed.cursor = [new], activation.cursor
    for run in activation.carried:
        if run.due_at <= now:
            _decide(owed, context, record, run, now=now)
        else:
            owed.carried.append(run)
    schedule = as_careful(record.schedule, activation.careful_until)
    return replace(record, schedule=schedule, version=new.version, pending=None)


def as_careful(schedule: Schedule, until: datetime | None) -> Schedule:
    """The schedule when a commit has raised its `careful_until`."""
    return replace(schedule, careful_until=max(filter(None, [schedule.careful_until, until]), default=None))


def _due(context: Context, record: ScheduleRecord) -> DueSchedule:
    job = context.store.get_job(record.schedule.job) or Job(name=record.schedule.job)
    return DueSchedule(
        schedule=record.schedule,
        version=record.version,
        suspensions=record.suspensions,
        job_overdue=job.overdue,
        successor=record.pending,
    )


def _skip_to_wire(skip: Skip, version: Version, cadence: Cadence) -> Wire:
    """A skip with the local time of its first instant."""
    first = cadence.at(skip.from_)
    named = {} if first is None else named_to_wire(version, first)
    return {**named, **skip_to_wire(skip), "state": "skipped"}
