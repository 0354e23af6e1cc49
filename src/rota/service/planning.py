"""Occurrences decided ahead of their time: planned up to an instant, one of them skipped, one of them moved.

What is planned is a run that exists already: it keeps its version, instant, params and period key through any edit.
The rule is not touched, and neither is the cursor: when it reaches the instant it finds the run there.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from rota.domain.admission import RUNS_PER_ADMISSION_MAX, run_of, used_note
from rota.domain.cadence import Occurrence
from rota.domain.errors import Conflict, FieldError, InvalidRequest, NotFound
from rota.domain.identity import RunId
from rota.domain.instants import format_instant, format_local
from rota.domain.key_uses import PERIOD_REACH, KeyUse, probe_at, probe_of
from rota.domain.planned import dropped
from rota.domain.run import SETTLED, Run, RunChange, RunEvent, RunState, next_state
from rota.domain.schedule import ScheduleStatus, Version, next_named
from rota.service.changes import (
    RETRIES_MAX,
    change_of,
    change_schedule,
    event_of,
    get_schedule,
    is_as_left,
    is_committed,
    kept_changing,
)
from rota.service.context import NOBODY, Actor, Context
from rota.service.forecast import Reign, reigns_of
from rota.service.lookups import looked_up
from rota.service.moments import parse_in_windows, parse_later_moment
from rota.service.representation import Wire, named_to_wire, run_to_wire
from rota.store.port import ScheduleChange, ScheduleRecord

PLANNED_PER_REQUEST_MAX = 10_000
SHOWN_MAX = 100
_SECOND = timedelta(seconds=1)


@dataclass(slots=True, kw_only=True)
class Plan:
    """What a request to plan finds between the present and its end."""

    version: Version
    to_create: list[Occurrence]
    existing: int
    """Without those that the request itself created."""
    suppressed: list[Wire]


def plan_occurrences(
    context: Context, schedule_id: str, *, until: str, dry_run: bool = False, actor: Actor = NOBODY
) -> Wire:
    """Creates the occurrences up to `until` (inclusive) that are not there yet, as planned runs, in bounded commits.

    `until` is an instant, or a local time in the schedule's zone.

    Repeating it creates nothing twice; if it breaks off, what was created stays, and repeating it goes on. Raises
    `NotFound`, `InvalidRequest` (`until`), and `Conflict` for a schedule that has ended, is in error, or whose next
    version takes over before `until`.
    """
    record = get_schedule(context, schedule_id)
    now = context.clock.now()
    end = parse_later_moment(context, record.version, until, field="until", now=now)
    plan = _find(context, record, until=end, now=now)
    created: list[Run] = []
    if dry_run:
        created = [run_of(record.schedule, plan.version, item, planned_at=now) for item in plan.to_create]
    else:
        created = _create(context, record, plan, until=end, actor=actor)
    return {
        "schedule_id": record.schedule.schedule_id,
        "version": plan.version.number,
        "until": format_instant(end),
        "dry_run": dry_run,
        "created": len(created),
        "existing": plan.existing,
        "suppressed": plan.suppressed[:SHOWN_MAX],
        "runs": [run_to_wire(run) for run in created[:SHOWN_MAX]],
    }


def skip_occurrence(context: Context, schedule_id: str, *, scheduled_at: str, actor: Actor = NOBODY) -> Wire:
    """That one occurrence will not run ("not this Tuesday"): its run is there, skipped `on_request`, and uses its
    period, so that no edit brings it back. Skipping what is skipped on request changes nothing.

    `scheduled_at` is an instant, or a local time in the schedule's zone. Raises `NotFound` where the schedule names
    no such instant, and `Conflict` for what is past planning.
    """

    def plan(record: ScheduleRecord, now: datetime) -> ScheduleChange | None:
        instant = _instant_of(context, record, scheduled_at)
        run = _existing(context, record, instant)
        change = change_of(record.schedule, at=now)
        event = event_of(
            record.schedule, "occurrence.skip", actor, at=now, scheduled_at=format_instant(instant)
        )
        if run is None:
            made = _planned_run(context, record, instant, now=now)
            skipped = dropped(made, "on_request", now=now).run
            return _with_run(replace(change, event=event), skipped)
        if run.state is RunState.SKIPPED and run.reason == "on_request":
            return None
        if run.state not in (RunState.PLANNED, RunState.HELD):
            raise Conflict(_past_planning(run, "skipped"))
        return replace(change, run_changes=(dropped(run, "on_request", now=now),), event=event)

    return _shown(context, change_schedule(context, schedule_id, plan), scheduled_at)


def move_occurrence(
    context: Context, schedule_id: str, *, scheduled_at: str, to: str, actor: Actor = NOBODY
) -> Wire:
    """That one occurrence falls due at another time ("this Tuesday at 11:00"): it keeps its identity and its period.

    One that was skipped on request is restored by it; moved to its own time it is as it was.

    Both are instants, or local times in the schedule's zone. Raises `NotFound`, `InvalidRequest`
    (`to`), and `Conflict` for what is past planning, or is of a version that has not taken over yet.
    """

    def plan(record: ScheduleRecord, now: datetime) -> ScheduleChange | None:
        instant = _instant_of(context, record, scheduled_at)
        run = _existing(context, record, instant)
        is_skipped = run is not None and run.state is RunState.SKIPPED and run.reason == "on_request"
        if run is not None and run.state is not RunState.PLANNED and not is_skipped:
            raise Conflict(_past_planning(run, "moved"))
        _check_plannable(record)
        made = run or _planned_run(context, record, instant, now=now)
        _check_has_taken_over(record, made)
        due_at = parse_later_moment(context, record.version, to, field="to", now=now)
        if run is not None and run.due_at == due_at and not is_skipped:
            return None
        change = replace(
            change_of(record.schedule, at=now),
            event=event_of(
                record.schedule,
                "occurrence.move",
                actor,
                at=now,
                scheduled_at=format_instant(instant),
                due_at={"from": format_instant(made.due_at), "to": format_instant(due_at)},
            ),
        )
        moved = replace(made, due_at=due_at)
        if run is None:
            return _with_run(change, moved)
        if is_skipped:
            state = next_state(run.state, RunEvent.RESTORED)
            moved = replace(moved, state=state, reason=None, finished_at=None)
        return replace(change, run_changes=(RunChange(expected_state=run.state, run=moved),))

    return _shown(context, change_schedule(context, schedule_id, plan), scheduled_at)


def _find(
    context: Context,
    record: ScheduleRecord,
    *,
    until: datetime,
    now: datetime,
    created: Collection[RunId] = frozenset(),
) -> Plan:
    """What is to be planned from now on: nothing that is due already, nothing behind the version's window.

    `created` are the request's own runs.
    """
    schedule, version = record.schedule, record.version
    _check_plannable(record)
    if record.pending is not None and until >= record.pending.effective_from:
        raise Conflict(
            f"Version {record.pending.number} takes over at {format_instant(record.pending.effective_from)}: "
            "plan up to there, or when it has taken over.",
            field="until",
        )
    cadence = context.cadences.of_version(version)
    after, cursor = now - version.delay, schedule.cursor.scheduled_at
    if cursor is not None:
        after = max(after, cursor - _SECOND)
    named: list[Occurrence] = []
    while cursor is not None and (occurrence := next_named(version, cadence, after)) is not None:
        if occurrence.scheduled_at > until:
            break
        if len(named) == PLANNED_PER_REQUEST_MAX:
            message = f"More than {PLANNED_PER_REQUEST_MAX} occurrences lie before it; plan them in several requests."
            raise InvalidRequest(FieldError("until", message))
        named.append(occurrence)
        after = occurrence.scheduled_at
    return _sorted_out(context, version, named, created)


def _sorted_out(
    context: Context, version: Version, named: list[Occurrence], created: Collection[RunId]
) -> Plan:
    plan = Plan(version=version, to_create=[], existing=0, suppressed=[])
    for occurrence, probe, use in looked_up(context, version, named):
        if use is None:
            plan.to_create.append(occurrence)
        elif use.run_id == probe.run_id:
            plan.existing += probe.run_id not in created
        else:
            note = used_note(version, occurrence, use)
            plan.suppressed.append({**named_to_wire(version, occurrence), "note": note})
    return plan


def _create(
    context: Context, record: ScheduleRecord, plan: Plan, *, until: datetime, actor: Actor
) -> list[Run]:
    """Creates what is to be created in bounded commits, and leaves in `plan` what else there is.

    What was found holds as long as nobody else does anything to the schedule; else it is found anew.
    """
    created: list[Run] = []
    refused_in_a_row = 0
    while plan.to_create:
        made = _create_some(context, record, plan, until=until, is_first=not created, actor=actor)
        created += made
        refused_in_a_row = 0 if made else refused_in_a_row + 1
        if refused_in_a_row == RETRIES_MAX:
            raise kept_changing(record.schedule.schedule_id)
        latest, now = get_schedule(context, record.schedule.schedule_id), context.clock.now()
        if made and is_as_left(record, latest):
            decided = max(now - plan.version.delay, (latest.schedule.cursor.scheduled_at or now) - _SECOND)
            plan.to_create = [item for item in plan.to_create[len(made) :] if item.scheduled_at > decided]
        else:
            found = _find(context, latest, until=until, now=now, created={run.run_id for run in created})
            plan.to_create, plan.existing, plan.suppressed = found.to_create, found.existing, found.suppressed
            plan.version = found.version
        record = latest
    return created


def _create_some(
    context: Context, record: ScheduleRecord, plan: Plan, *, until: datetime, is_first: bool, actor: Actor
) -> list[Run]:
    """One bounded commit, of the soonest; nothing where the schedule changed meanwhile."""
    now = context.clock.now()
    chosen = plan.to_create[:RUNS_PER_ADMISSION_MAX]
    runs = [run_of(record.schedule, plan.version, occurrence, planned_at=now) for occurrence in chosen]
    event = event_of(record.schedule, "schedule.plan", actor, at=now, until=format_instant(until))
    change = replace(
        change_of(record.schedule, at=now),
        runs=tuple(runs),
        careful_until=runs[-1].scheduled_at + _SECOND,
        event=event if is_first else None,
    )
    return runs if is_committed(context, change) else []


def _check_plannable(record: ScheduleRecord) -> None:
    schedule = record.schedule
    if schedule.status in (ScheduleStatus.ENDED, ScheduleStatus.ERROR):
        problem = f"Schedule {schedule.schedule_id!r} is {schedule.status}; nothing more is planned."
        raise Conflict(problem)


def _check_has_taken_over(record: ScheduleRecord, run: Run) -> None:
    """Another version may still replace the one that waits: its run would then lie in nobody's window."""
    if record.pending is not None and run.version == record.pending.number:
        raise Conflict(f"Version {run.version} has not taken over yet: move it when it has.")


def _instant_of(context: Context, record: ScheduleRecord, scheduled_at: str) -> datetime:
    """The instant of an occurrence: of a local time the one that a version names, if one does."""
    first, *others = parse_in_windows(context, record.versions, scheduled_at, field="scheduled_at")
    if others:
        for reign in reigns_of(context, record):
            for instant in (first, *others):
                if _names(reign, instant) is not None:
                    return instant
    return first


def _existing(context: Context, record: ScheduleRecord, scheduled_at: datetime) -> Run | None:
    """The run of that instant, of whichever version: what exists keeps its version through an edit."""
    probes = [probe_at(version, scheduled_at) for version in record.versions]
    for use in context.store.read_key_uses(record.schedule.schedule_id, probes):
        detail = None if use is None else context.store.get_run(use.run_id)
        if detail is not None:
            return detail.run
    return None


def _planned_run(context: Context, record: ScheduleRecord, scheduled_at: datetime, *, now: datetime) -> Run:
    """The run of an occurrence that nothing was decided about. Raises `NotFound` and `Conflict`."""
    _check_plannable(record)
    schedule = record.schedule
    reign, occurrence = _named_at(context, record, scheduled_at)
    cursor = schedule.cursor.scheduled_at
    if scheduled_at + reign.version.delay <= now or cursor is None or scheduled_at < cursor:
        raise Conflict(
            f"The occurrence at {format_instant(scheduled_at)} has fallen due; it is no longer to be planned."
        )
    probe = probe_of(reign.version, occurrence)
    [use] = context.store.read_key_uses(schedule.schedule_id, [probe])
    if use is not None:
        raise Conflict(_will_not_take_place(reign, occurrence, use))
    return run_of(schedule, reign.version, occurrence, planned_at=now)


def _named_at(context: Context, record: ScheduleRecord, scheduled_at: datetime) -> tuple[Reign, Occurrence]:
    reigns = reigns_of(context, record)
    for reign in reigns:
        occurrence = _names(reign, scheduled_at)
        if occurrence is not None:
            return reign, occurrence
    hint = "The schedule names none after it."
    for reign in reigns:  # Their windows follow one another: the first that names one names the next.
        following = next_named(reign.version, reign.cadence, scheduled_at)
        if following is not None:
            instant, local = format_instant(following.scheduled_at), format_local(following.local)
            hint = f"The next one after it is at {instant} ({local} in {reign.version.definition.timezone})."
            break
    raise NotFound("occurrence", format_instant(scheduled_at), hint=hint)


def _names(reign: Reign, instant: datetime) -> Occurrence | None:
    occurrence = next_named(reign.version, reign.cadence, instant - _SECOND)
    return occurrence if occurrence is not None and occurrence.scheduled_at == instant else None


def _with_run(change: ScheduleChange, run: Run) -> ScheduleChange:
    # Whatever the period: another version's occurrence of it may come that much later.
    careful_until = run.scheduled_at + PERIOD_REACH["month"]
    return replace(change, runs=(run,), careful_until=careful_until)


def _shown(context: Context, record: ScheduleRecord, scheduled_at: str) -> Wire:
    instant = _instant_of(context, record, scheduled_at)
    run = _existing(context, record, instant)
    if run is None:
        raise NotFound("occurrence", format_instant(instant))
    return run_to_wire(run)


def _past_planning(run: Run, done: str) -> str:
    if run.state is RunState.HELD:
        hint = "resume the schedule first"
    elif run.state in SETTLED:
        hint = "replay the run"
    else:
        hint = "cancel the run"
    return f"The occurrence is {run.state} (run {run.run_id}) and can no longer be {done}; {hint}."


def _will_not_take_place(reign: Reign, occurrence: Occurrence, use: KeyUse) -> str:
    return f"That occurrence will not take place: {used_note(reign.version, occurrence, use)}."
