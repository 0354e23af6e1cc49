"""Updates of the tz data: which stored rules differ from this process's, and what takes the new ones up (I11).

A schedule was computed with the rules of its zone as they were. Where a newer release names other instants for it, it
gets a version with the same definition and the reason `tzdata`, which takes over at once and carries and suppresses as
any edit does; what it owed is then computed by the new rules. Where nothing changes for it, its versions are stamped
with the new rules. A version that has not taken over yet is resolved again: nothing was decided by it.

An older release than the stored one is never applied: that process is to be upgraded.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from rota.cadences import cadence_row_of, zone_rules_of
from rota.domain.cadence import Cadence
from rota.domain.errors import InvalidExpression, RotaError
from rota.domain.identity import ScheduleId
from rota.domain.schedule import ScheduleStatus, Version, ZoneRulesRow, last_of
from rota.domain.zone import fingerprint
from rota.service.changes import RETRIES_MAX, change_of, event_of, get_schedule
from rota.service.context import NOBODY, Actor, Context
from rota.service.dry_runs import told
from rota.service.editing import PlannedEdit, assemble
from rota.service.former_rules import Comparisons, boundary_by_new_rules
from rota.service.representation import Wire
from rota.service.versions import COUNTED_AHEAD, Place, ResolvedVersion, count_named, resolve_version
from rota.store.port import (
    ChangeOutcome,
    NewVersion,
    ScheduleChange,
    ScheduleRecord,
    StoreUnavailable,
    UsedZoneRules,
    ZoneRules,
)

REASON = "tzdata"
PAGE = 100
SHOWN_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferingZone:
    """Stored rules of a zone that this process does not have."""

    stored: UsedZoneRules
    here: ZoneRulesRow | None
    """None: this process does not know the zone."""

    @property
    def is_newer_here(self) -> bool:
        return self.here is not None and self.here.tzdata >= self.stored.tzdata


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneUpdate:
    """What taking up the new rules does to one schedule."""

    change: ScheduleChange
    edit: PlannedEdit | None
    """The version that it makes; None: it is stamped, its instants stay."""


def differing_zones(context: Context) -> list[DifferingZone]:
    """Cheap enough for every readiness check: it looks at zones, not at schedules."""
    found: list[DifferingZone] = []
    for stored in context.store.list_zone_rules():
        try:
            zone = context.zones.load(stored.timezone)
        except InvalidExpression:
            found.append(DifferingZone(stored=stored, here=None))
            continue
        if fingerprint(zone) != stored.fingerprint:
            here = zone_rules_of(zone, context.zones.release())
            found.append(DifferingZone(stored=stored, here=here))
    return found


def check_zones(context: Context) -> Wire:
    """Which zones differ, and how many schedules' instants change."""
    zones: list[Wire] = []
    comparisons = Comparisons(context)
    for zone in differing_zones(context):
        records = list(_records(context, zone.stored))
        now = context.clock.now()
        changed = sum(_changes_instants(context, record, comparisons, now=now) for record in records)
        zones.append({**_zone_to_wire(zone), "schedules": len(records), "schedules_changed": changed})
    return {"tzdata": context.zones.release(), "zones": zones}


def apply_zones(context: Context, *, dry_run: bool = False, actor: Actor = NOBODY) -> Wire:
    """Takes up this process's rules for every schedule that was computed with older ones, one commit for each.

    If it breaks off, what was done stays, and applying again goes on. A schedule that cannot take them up (its one
    local time has ceased to exist) is told with its problem, and left alone.
    """
    zones, comparisons = differing_zones(context), Comparisons(context)
    who = Actor(name=actor.name, reason=actor.reason or REASON)
    told_of: list[Wire] = []
    counts = {"version": 0, "restamped": 0, "failed": 0}
    for zone in zones:
        if not zone.is_newer_here:
            continue
        for record in _records(context, zone.stored):
            outcome = _apply(context, record, comparisons, who, dry_run=dry_run)
            if outcome is None:
                continue
            counts[str(outcome["outcome"])] += 1
            if len(told_of) < SHOWN_MAX:
                told_of.append(outcome)
    return {
        "dry_run": dry_run,
        "tzdata": context.zones.release(),
        "zones": [_zone_to_wire(zone) for zone in zones],
        "counts": counts,
        "schedules": told_of,
    }


def plan_zone_update(
    context: Context, record: ScheduleRecord, comparisons: Comparisons, actor: Actor, *, now: datetime
) -> ZoneUpdate | None:
    """None where this process has the rules already. Raises `InvalidRequest` where they leave nothing to run."""
    owner, pending = record.version, record.pending
    old = comparisons.former(owner)
    cursor = record.schedule.cursor.scheduled_at
    from_ = now if cursor is None else min(now, cursor)
    ends = _ends_of(owner, pending)
    if old is not None and not comparisons.names_the_same(owner, from_=from_, ends=ends):
        return _versioning(context, record, old, actor, now=now)
    stamped = [] if old is None else [_stamped_owner(context, owner, old, from_=from_)]
    if pending is not None and _differs(context, pending):
        stamped.append(_resolved_again(context, pending, now=now))
    return _stamping(record, stamped, actor, now=now) if stamped else None


def _versioning(
    context: Context, record: ScheduleRecord, old: Cadence, actor: Actor, *, now: datetime
) -> ZoneUpdate:
    """A version of the same definition, before one that waits to take over: that gets a new number behind it."""
    schedule, owner, pending = record.schedule, record.version, record.pending
    boundary = boundary_by_new_rules(record, old, now=now)
    place = Place(
        number=schedule.latest_version + 1,
        effective_from=boundary,
        series=owner.series,
        counts_from=owner.counts_from,
        named_before=count_named(owner, old, until=boundary),
    )
    resolved = resolve_version(
        context, owner.definition, place, schedule_id=schedule.schedule_id, now=now, actor=actor
    )
    if pending is not None:
        closed = replace(resolved.version, effective_until=pending.effective_from)
        resolved = replace(resolved, new=replace(resolved.new, version=closed))
    edit = assemble(
        context,
        record,
        resolved,
        cadence=old,
        is_at_once=True,
        labels=schedule.labels,
        changed={"tzdata": {"from": owner.tzdata, "to": resolved.version.tzdata}},
        actor=actor,
        now=now,
    )
    change = edit.change
    if pending is not None:
        change = _with_pending_again(context, change, resolved, pending, now=now)
    return ZoneUpdate(change=change, edit=replace(edit, change=change))


def _ends_of(owner: Version, pending: Version | None) -> list[datetime]:
    """The last instants that the owner may name."""
    takes_over = None if pending is None else pending.effective_from
    ends = [owner.definition.ends_at, owner.last_scheduled_at, takes_over]
    return [end for end in ends if end is not None]


def _with_pending_again(
    context: Context,
    change: ScheduleChange,
    forerunner: ResolvedVersion,
    pending: Version,
    *,
    now: datetime,
) -> ScheduleChange:
    """The version that waited, as it waits behind the new one: what that names by the new rules counts for it."""
    number = forerunner.version.number + 1
    again = replace(
        pending,
        number=number,
        series=number if pending.boundary == "now" else pending.series,
        named_before=count_named(forerunner.version, forerunner.cadence, until=pending.effective_from),
    )
    cursor = change.cursor
    if cursor is not None and cursor.scheduled_at is None:
        due_at = cursor.due_at or pending.effective_from
        cursor = replace(cursor, scheduled_at=pending.effective_from, due_at=due_at)
    return replace(
        change, versions=(*change.versions, _resolved_again(context, again, now=now)), cursor=cursor
    )


def _stamping(
    record: ScheduleRecord, stamped: list[NewVersion], actor: Actor, *, now: datetime
) -> ZoneUpdate:
    versions = [new.version for new in stamped]
    event = event_of(
        record.schedule,
        "schedule.restamp",
        actor,
        at=now,
        versions=[version.number for version in versions],
        tzdata=versions[0].tzdata,
    )
    change = replace(change_of(record.schedule, at=now), restamped=tuple(stamped), event=event)
    return ZoneUpdate(change=change, edit=None)


def _differs(context: Context, version: Version) -> bool:
    return fingerprint(context.zones.load(version.definition.timezone)) != version.fingerprint


def _resolved_again(context: Context, version: Version, *, now: datetime) -> NewVersion:
    """A version that waits, by this process's rules: nothing was decided by it, so all of it follows them.

    Raises `InvalidRequest` where they leave nothing to run.
    """
    place = Place(
        number=version.number,
        effective_from=version.effective_from,
        boundary=version.boundary,
        series=version.series,
        counts_from=version.counts_from,
        named_before=version.named_before,
    )
    actor = Actor(name=version.actor, reason=version.reason)
    resolved = resolve_version(
        context, version.definition, place, schedule_id=version.schedule_id, now=now, actor=actor
    )
    kept = replace(resolved.version, created_at=version.created_at, effective_until=version.effective_until)
    return replace(resolved.new, version=kept)


def _stamped_owner(context: Context, owner: Version, old: Cadence, *, from_: datetime) -> NewVersion:
    """The version that owns the cursor, with this process's rules.

    It is compared no further than to the version that waits. If that is replaced by a later one, it goes on, so the
    instant that `max_occurrences` ends with is counted by the new rules, behind what was named by the old ones.
    """
    definition, zone, release = (
        owner.definition,
        context.zones.load(owner.definition.timezone),
        context.zones.release(),
    )
    row = cadence_row_of(definition.recurrence, zone, gap=definition.gap, fold=owner.fold)
    stamped = replace(owner, cadence_id=row.cadence_id, fingerprint=row.fingerprint, tzdata=release)
    if definition.max_occurrences is not None and owner.effective_until is not None:
        new = Cadence(definition.recurrence, zone, gap=definition.gap, fold=owner.fold)
        left = definition.max_occurrences - count_named(owner, old, until=from_)
        if left > 0:
            endless = replace(stamped, effective_until=None, last_scheduled_at=None)
            before = from_ - timedelta(microseconds=1)
            last = last_of(endless, new, occurrences=left, after=before, horizon=COUNTED_AHEAD)
            stamped = replace(stamped, last_scheduled_at=last)
    return NewVersion(version=stamped, cadence=row, zone_rules=zone_rules_of(zone, release))


def _records(context: Context, stored: UsedZoneRules) -> Iterator[ScheduleRecord]:
    rules = ZoneRules(timezone=stored.timezone, fingerprint=stored.fingerprint)
    after: ScheduleId | None = None
    while page := context.store.list_computed_with(rules, after=after, limit=PAGE):
        yield from page
        after = page[-1].schedule.schedule_id


def _changes_instants(
    context: Context, record: ScheduleRecord, comparisons: Comparisons, *, now: datetime
) -> bool:
    try:
        update = plan_zone_update(context, record, comparisons, NOBODY, now=now)
    except StoreUnavailable:
        raise
    except RotaError:
        return True
    return update is not None and update.edit is not None


def _apply(
    context: Context, record: ScheduleRecord, comparisons: Comparisons, actor: Actor, *, dry_run: bool
) -> Wire | None:
    schedule_id = record.schedule.schedule_id
    try:
        for _ in range(RETRIES_MAX):
            now = context.clock.now()
            update = plan_zone_update(context, record, comparisons, actor, now=now)
            if update is None or record.schedule.status is ScheduleStatus.ENDED:
                return None
            if dry_run or context.store.commit_change(update.change) is ChangeOutcome.CHANGED:
                return _update_to_wire(context, record, update, dry_run=dry_run, now=now)
            record = get_schedule(context, schedule_id)
    except StoreUnavailable:
        raise
    except RotaError as error:
        return {"schedule_id": schedule_id, "outcome": "failed", "problem": str(error)}
    return {"schedule_id": schedule_id, "outcome": "failed", "problem": "It kept changing; apply again."}


def _update_to_wire(
    context: Context, record: ScheduleRecord, update: ZoneUpdate, *, dry_run: bool, now: datetime
) -> Wire:
    body: Wire = {"schedule_id": record.schedule.schedule_id}
    if update.edit is None:
        return {**body, "outcome": "restamped"}
    if dry_run:
        body |= {**told(context, record, update.edit, now=now), "operation": "tzdata"}
    else:
        body["version"] = update.edit.change.versions[0].version.number
    return {**body, "outcome": "version"}


def _zone_to_wire(zone: DifferingZone) -> Wire:
    return {
        "timezone": zone.stored.timezone,
        "stored_tzdata": zone.stored.tzdata,
        "tzdata": None if zone.here is None else zone.here.tzdata,
        "is_newer_here": zone.is_newer_here,
    }
