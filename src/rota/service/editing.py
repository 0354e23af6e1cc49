"""Editing a schedule: the next version, the boundary at which it takes over, and what it carries (I8, I9).

The protocol. An edit reads the schedule, and decides by what it read: the boundary is the first whole second after now,
after every instant that has its outcome, and after the version before took over. If the cursor stands at or past the
boundary, the same commit activates the new version (see `rota.domain.activation`): it closes the window before,
creates what is carried, and sets the cursor into the new version. So it does where what the cursor has still before it
is merely spread, and not due (`rota.service.not_yet_due`). Else instants are owed, or it is to wait for a later
boundary: the new version is pending, and the dispatcher activates it when the cursor is there and the boundary comes.

Either way the commit holds only while revision and cursor are as they were read. Admission is conditioned on the same
two and never crosses a boundary that it knows, so of an edit and an admission that were decided side by side the slower
one changes nothing and is decided anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from rota.domain.activation import Activation, occurrences_at_stake, plan_activation, stake_probes
from rota.domain.admission import cursor_at
from rota.domain.audit import AuditEvent
from rota.domain.cadence import Cadence
from rota.domain.edit_form import Edit, changed_members, merged_definition, merged_labels
from rota.domain.errors import Conflict, FieldError, InvalidRequest, RotaError, Stale, ZoneRulesDiffer
from rota.domain.instants import format_instant, whole_second_floor
from rota.domain.json_text import JsonText, load_json
from rota.domain.run import Run
from rota.domain.schedule import Cursor, Definition, ScheduleStatus, Version, last_decided, next_named
from rota.service.changes import change_of, change_schedule, event_of
from rota.service.context import NOBODY, Actor, Context
from rota.service.edit_refusals import check_once, why_ended, why_pending
from rota.service.forecast import uses_then
from rota.service.former_rules import boundary_by_new_rules, former_cadence
from rota.service.not_yet_due import planned_ahead
from rota.service.representation import Wire
from rota.service.schedules import check_params_size, record_to_wire
from rota.service.versions import Place, ResolvedVersion, count_named, next_whole_second, resolve_version
from rota.store.port import ScheduleChange, ScheduleRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedEdit:
    """An edit as it would be committed, with what a dry run tells of it."""

    change: ScheduleChange
    before: Version
    """The version that owns the cursor, with the window that it has after the edit."""
    before_cadence: Cadence | None
    resolved: ResolvedVersion | None
    """None: only labels change."""
    activation: Activation | None
    """None: the new version is pending."""
    changed: Wire
    ahead: tuple[Run, ...] = ()
    """Planned runs of the version before, which keep the new one from nothing (`rota.service.not_yet_due`)."""


def edit_schedule(
    context: Context,
    schedule_id: str,
    edit: Edit,
    *,
    expected_version: int | None = None,
    actor: Actor = NOBODY,
) -> Wire:
    """The schedule after the edit; one that changes nothing makes no version.

    `expected_version` is the latest version that the edit was made for. Raises `NotFound`, `Stale` where it is another
    by now, `InvalidRequest`, and `Conflict` for what has ended, for a version that waits to take over already, and for
    a one-time schedule that was planned or ran.
    """

    def plan(record: ScheduleRecord, now: datetime) -> ScheduleChange | None:
        check_expected(record, expected_version)
        planned = plan_edit(context, record, edit, actor=actor, now=now)
        return None if planned is None else planned.change

    return record_to_wire(context, change_schedule(context, schedule_id, plan))


def check_expected(record: ScheduleRecord, expected_version: int | None) -> None:
    """Raises `Stale`."""
    latest = record.schedule.latest_version
    if expected_version is not None and expected_version != latest:
        raise Stale(
            f"The latest version of {record.schedule.schedule_id!r} is {latest}, not {expected_version}: "
            "read the schedule again and decide anew."
        )


def plan_edit(
    context: Context, record: ScheduleRecord, edit: Edit, *, actor: Actor, now: datetime
) -> PlannedEdit | None:
    """What the edit would commit at `now`; None where it changes nothing. Raises as `edit_schedule` does."""
    schedule, latest = record.schedule, record.latest
    if schedule.status is ScheduleStatus.ENDED:
        raise Conflict(why_ended(context, record))
    labels = merged_labels(edit, schedule.labels)
    definition = merged_definition(edit, latest.definition, default_anchor=whole_second_floor(now))
    changed: Wire = changed_members(latest.definition, definition)
    if labels != schedule.labels:
        changed["labels"] = {"from": load_json(schedule.labels), "to": load_json(labels)}
    begins_anew = edit.boundary == "now" and not edit.is_whole
    is_new_version = definition != latest.definition or begins_anew or _moves_the_boundary(record, edit)
    if not is_new_version:
        return _plan_labels(record, labels, changed, actor, now=now) if changed else None
    check_params_size(context, record, definition)
    if record.pending is not None and not edit.replaces_pending:
        raise Conflict(why_pending(record.pending, now=now))
    return plan_version(
        context, record, definition, edit=edit, labels=labels, changed=changed, actor=actor, now=now
    )


def plan_version(
    context: Context,
    record: ScheduleRecord,
    definition: Definition,
    *,
    edit: Edit,
    labels: JsonText,
    changed: Wire,
    actor: Actor,
    now: datetime,
) -> PlannedEdit:
    """The next version of that definition and its place in time."""
    schedule, owner = record.schedule, record.version
    cadence = _cadence_before(context, record)
    if cadence is not None and cadence.zone is not context.zones.load(owner.definition.timezone):
        changed = {**changed, "tzdata": {"from": owner.tzdata, "to": context.zones.release()}}
    boundary, is_at_once = _boundary_of(context, record, edit, cadence, now=now)
    place = _place_of(record, edit, cadence, boundary)

    def planned_at(place: Place) -> PlannedEdit:
        resolved = resolve_version(
            context, definition, place, schedule_id=schedule.schedule_id, now=now, actor=actor
        )
        check_once(context, record, resolved)
        return assemble(
            context,
            record,
            resolved,
            cadence=cadence,
            is_at_once=is_at_once,
            labels=labels,
            changed=changed,
            actor=actor,
            now=now,
        )

    planned = planned_at(place)
    carried = () if planned.activation is None else planned.activation.carried
    if carried and definition.max_occurrences is not None:
        # They count too: the new rule names so many fewer.
        planned = planned_at(replace(place, named_before=place.named_before + len(carried)))
    return planned


def _place_of(record: ScheduleRecord, edit: Edit, cadence: Cadence | None, boundary: datetime) -> Place:
    owner, number = record.version, record.schedule.latest_version + 1
    is_fresh = edit.boundary == "now"
    return Place(
        number=number,
        effective_from=boundary,
        boundary=edit.boundary,
        series=number if is_fresh else owner.series,
        counts_from=boundary if is_fresh else owner.counts_from,
        named_before=owner.named_before if cadence is None else count_named(owner, cadence, until=boundary),
    )


def _moves_the_boundary(record: ScheduleRecord, edit: Edit) -> bool:
    """Whether the edit only has a version that waits take over at another instant."""
    pending = record.pending
    return pending is not None and (edit.at_once or edit.effective_from not in (None, pending.effective_from))


def assemble(
    context: Context,
    record: ScheduleRecord,
    resolved: ResolvedVersion,
    *,
    cadence: Cadence | None,
    is_at_once: bool,
    labels: JsonText,
    changed: Wire,
    actor: Actor,
    now: datetime,
) -> PlannedEdit:
    """The commit that makes the resolved version follow the one that owns the cursor.

    One that is to take over at once is activated by it, unless instants are owed before; one that is to wait can be
    replaced until its instant, so the cursor stays before it, or at the boundary.
    """
    schedule, new, boundary = record.schedule, resolved.version, resolved.version.effective_from
    before = replace(record.version, effective_until=boundary)
    cursor = _cursor_before(record, before, cadence)
    activation, ahead = None, None
    is_at_end = cursor.scheduled_at is None or cursor.scheduled_at >= boundary
    if is_at_once and not is_at_end:
        ahead = planned_ahead(context, record, before, cadence, cursor=cursor, now=now)
    if is_at_end or ahead is not None:
        cursor = Cursor(version=before.number, scheduled_at=boundary, due_at=boundary)
        if is_at_once:
            activation = _activate(
                context, record, before, resolved, cadence=cadence, ahead=ahead or [], now=now
            )
            cursor = activation.cursor
    change = replace(
        change_of(schedule, at=now),
        cursor=_looked_at_as(schedule.cursor, cursor),
        careful_until=None if activation is None else activation.careful_until,
        labels=labels if labels != schedule.labels else None,
        versions=(resolved.new,),
        windows=_closed_windows(record, boundary),
        runs=() if activation is None else (*(ahead or ()), *activation.carried),
        event=_event_of_edit(record, new, activation, changed, actor, now=now),
    )
    return PlannedEdit(
        change=change,
        before=before,
        before_cadence=cadence,
        resolved=resolved,
        activation=activation,
        changed=changed,
        ahead=tuple(ahead or ()),
    )


def _looked_at_as(before: Cursor, cursor: Cursor) -> Cursor:
    """The cursor, looked at as early as the one before it: parked runs are still to be decided."""
    return cursor.looked_at(before.due_at) if before.is_looked_at and before.due_at is not None else cursor


def _closed_windows(record: ScheduleRecord, boundary: datetime) -> tuple[tuple[int, datetime], ...]:
    """Where windows end, by the versions' numbers: the owner's, and that of a version that is replaced."""
    owner, pending = record.version, record.pending
    closed = ((owner.number, boundary),)
    return closed if pending is None else (*closed, (pending.number, pending.effective_from))


def _event_of_edit(
    record: ScheduleRecord,
    new: Version,
    activation: Activation | None,
    changed: Wire,
    actor: Actor,
    *,
    now: datetime,
) -> AuditEvent:
    return event_of(
        record.schedule,
        "schedule.edit",
        actor,
        at=now,
        version=new.number,
        boundary=new.boundary,
        effective_from=format_instant(new.effective_from),
        changed=changed,
        carried=[] if activation is None else [run.run_id for run in activation.carried],
        replaced=None if record.pending is None else record.pending.number,
    )


def _plan_labels(
    record: ScheduleRecord, labels: JsonText, changed: Wire, actor: Actor, *, now: datetime
) -> PlannedEdit:
    event = event_of(record.schedule, "schedule.edit", actor, at=now, changed=changed)
    change = replace(change_of(record.schedule, at=now), labels=labels, event=event)
    return PlannedEdit(
        change=change,
        before=record.version,
        before_cadence=None,
        resolved=None,
        activation=None,
        changed=changed,
    )


def _cadence_before(context: Context, record: ScheduleRecord) -> Cadence | None:
    """The owner's cadence, by the rules that it was computed with; None where the schedule is in error because it
    cannot be computed. Raises `ZoneRulesDiffer` where those rules are newer than this process's.
    """
    try:
        return context.cadences.of_version(record.version)
    except ZoneRulesDiffer:
        if context.zones.release() < record.version.tzdata:
            raise
        return former_cadence(context, record.version)
    except RotaError:
        if record.schedule.status is not ScheduleStatus.ERROR:
            raise
        return None


def _boundary_of(
    context: Context, record: ScheduleRecord, edit: Edit, cadence: Cadence | None, *, now: datetime
) -> tuple[datetime, bool]:
    """The first instant of the new version, and whether it is to take over at once.

    What the version before owed and cannot be computed with is its too.
    """
    cursor, owner = record.schedule.cursor.scheduled_at, record.version
    if cadence is None:
        if edit.effective_from is not None:
            message = "What is in error cannot go on until then; leave it out, and the new version takes over at once."
            raise InvalidRequest(FieldError("effective_from", message))
        return max(cursor or next_whole_second(now), next_whole_second(owner.effective_from)), True
    if cadence.zone is not context.zones.load(owner.definition.timezone):
        is_owed = cursor is not None and cursor <= now
        if edit.effective_from is not None or record.pending is not None or is_owed:
            # Raises: nobody may compute what the version before has still to do.
            context.cadences.of_version(owner)
        return boundary_by_new_rules(record, cadence, now=now), True
    decided = last_decided(owner, cadence, cursor=cursor, after=now)
    earliest = next_whole_second(max(now, owner.effective_from, decided or now))
    asked = edit.effective_from
    if asked is None and record.pending is not None and not edit.at_once and edit.boundary != "now":
        boundary = max(earliest, record.pending.effective_from)
        return boundary, boundary == earliest
    if asked is not None and asked < earliest and not edit.is_whole:
        message = (
            f"The new version can take over at {format_instant(earliest)} or later; give such an instant, or leave "
            "it out to take over at once."
        )
        raise InvalidRequest(FieldError("effective_from", message))
    # What describes a schedule as it is to be stays true when its instant has passed.
    boundary = earliest if asked is None else max(earliest, asked)
    return boundary, boundary == earliest


def _cursor_before(record: ScheduleRecord, before: Version, cadence: Cadence | None) -> Cursor:
    """The cursor in the version before, where its window has another end now."""
    cursor = record.schedule.cursor
    is_at_end = record.pending is not None and cursor.scheduled_at == record.version.effective_until
    if cadence is None or not is_at_end or cursor.scheduled_at is None:
        return cursor
    occurrence = next_named(before, cadence, cursor.scheduled_at - timedelta(microseconds=1))
    if occurrence is not None:
        return cursor_at(before, occurrence)
    boundary = before.effective_until
    return Cursor(version=before.number, scheduled_at=boundary, due_at=boundary)


def _activate(
    context: Context,
    record: ScheduleRecord,
    before: Version,
    resolved: ResolvedVersion,
    *,
    cadence: Cadence | None,
    ahead: Sequence[Run],
    now: datetime,
) -> Activation:
    schedule_id, new = record.schedule.schedule_id, resolved.version
    at_stake = [] if cadence is None else occurrences_at_stake(before, cadence, new, resolved.cadence)
    probes = stake_probes(before, new, at_stake)
    return plan_activation(
        record.schedule,
        before,
        new,
        resolved.cadence,
        at_stake=at_stake,
        uses=uses_then(context, schedule_id, probes, expected=ahead),
        last_run_at=context.store.get_last_run_time(schedule_id),
        now=now,
    )
