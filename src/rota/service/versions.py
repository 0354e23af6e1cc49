"""Making a version: resolving what a definition asked for against the zone's rules, and refusing what can never run."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from rota.cadences import cadence_row_of, zone_rules_of
from rota.domain.cadence import Cadence, Fold, FoldAsked, Gap, Occurrence, resolve_fold
from rota.domain.definition import MAX_OCCURRENCES_MAX, FieldErrors
from rota.domain.errors import FieldError, InvalidExpression, InvalidRequest
from rota.domain.identity import ScheduleId
from rota.domain.instants import format_instant, format_local, whole_second_floor
from rota.domain.period import resolve_period
from rota.domain.recurrence import At, Cron, Every, Recurrence, RRule
from rota.domain.schedule import Boundary, CadenceRow, Definition, Version, last_of, next_named
from rota.domain.zone import LAST_YEAR, Zone, resolve_local_time
from rota.domain.zone import Gap as LocalGap
from rota.service.context import Actor, Context
from rota.store.port import NewVersion, ScheduleRecord

COUNTED_AHEAD = timedelta(days=100 * 365)
"""How far ahead `max_occurrences` is counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedVersion:
    new: NewVersion
    cadence: Cadence
    first: Occurrence
    """The first occurrence that it names."""

    @property
    def version(self) -> Version:
        return self.new.version


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a version stands among those of its schedule."""

    number: int
    effective_from: datetime
    boundary: Boundary = "keep_period"
    series: int = 1
    counts_from: datetime | None = None
    named_before: int = 0


def next_whole_second(now: datetime) -> datetime:
    """The first whole second after `now`: an edit or a start at an occurrence's very instant comes after it."""
    return whole_second_floor(now) + timedelta(seconds=1)


def resolve_version(
    context: Context,
    definition: Definition,
    place: Place,
    *,
    schedule_id: ScheduleId,
    now: datetime,
    actor: Actor,
) -> ResolvedVersion:
    """The version of that definition, everything resolved. Raises `InvalidRequest` for what can never run."""
    row, cadence = resolve_cadence(
        context, definition.timezone, definition.recurrence, gap=definition.gap, fold=definition.fold
    )
    if isinstance(definition.recurrence, At) and definition.fold == "both":
        problem = "A one-time schedule runs once; give first or second."
        raise InvalidRequest(FieldError("fold", problem))
    version = Version(
        schedule_id=schedule_id,
        number=place.number,
        definition=definition,
        cadence_id=row.cadence_id,
        fold=row.fold,
        period=resolve_period(definition.period, cadence),
        tzdata=context.zones.release(),
        fingerprint=row.fingerprint,
        effective_from=place.effective_from,
        effective_until=None,
        last_scheduled_at=None,
        created_at=now,
        actor=actor.name,
        reason=actor.reason,
        boundary=place.boundary,
        series=place.series,
        counts_from=place.counts_from,
        named_before=place.named_before,
    )
    before = place.effective_from - timedelta(seconds=1)
    version = replace(version, last_scheduled_at=_last_scheduled_at(version, cadence, after=before))
    first = next_named(version, cadence, before)
    if first is None:
        moment = f"{format_instant(before)} is now"
        if place.effective_from > next_whole_second(now) + timedelta(minutes=1):
            moment = f"the version takes over at {format_instant(place.effective_from)}"
        raise InvalidRequest(_why_never(context, definition, cadence, now=before, moment=moment))
    zone_rules = zone_rules_of(cadence.zone, version.tzdata)
    new = NewVersion(version=version, cadence=row, zone_rules=zone_rules)
    return ResolvedVersion(new=new, cadence=cadence, first=first)


def governing_version(record: ScheduleRecord, *, now: datetime) -> Version:
    """The version that holds for who asks at `now`: also one whose boundary has come while instants are owed before."""
    pending = record.pending
    return pending if pending is not None and pending.effective_from <= now else record.version


def count_named(version: Version, cadence: Cadence, *, until: datetime) -> int:
    """How many instants the versions up to this one name before `until`, counted as far as it may ever matter."""
    count, after = version.named_before, version.effective_from - timedelta(seconds=1)
    while count <= MAX_OCCURRENCES_MAX:
        occurrence = next_named(version, cadence, after)
        if occurrence is None or occurrence.scheduled_at >= until:
            break
        count, after = count + 1, occurrence.scheduled_at
    return count


def _last_scheduled_at(version: Version, cadence: Cadence, *, after: datetime) -> datetime | None:
    """The instant that `max_occurrences` ends with: those that earlier versions named count too."""
    limit = version.definition.max_occurrences
    if limit is None:
        return None
    left = limit - version.named_before
    if left <= 0:
        message = f"{version.named_before} occurrences have been named already; give a larger number, or leave it out."
        raise InvalidRequest(FieldError("max_occurrences", message))
    return last_of(version, cadence, occurrences=left, after=after, horizon=COUNTED_AHEAD)


def resolve_cadence(
    context: Context, timezone: str, recurrence: Recurrence, *, gap: Gap, fold: FoldAsked
) -> tuple[CadenceRow, Cadence]:
    """The compiled cadence and its row. Raises `InvalidRequest` naming `timezone` or the recurrence's field."""
    errors = FieldErrors()
    zone = errors.attempt("timezone", lambda: context.zones.load(timezone))
    resolved: Fold | None = None
    try:
        resolved = resolve_fold(fold, recurrence)
    except InvalidExpression as error:
        errors.add(f"recurrence.{kind_of(recurrence)}", str(error))
    if zone is None or resolved is None:
        raise InvalidRequest(*errors.errors)
    row = cadence_row_of(recurrence, zone, gap=gap, fold=resolved)
    return row, Cadence(recurrence, zone, gap=gap, fold=resolved)


def kind_of(recurrence: Recurrence) -> str:
    """The wire name of a recurrence's kind."""
    match recurrence:
        case At():
            return "at"
        case Cron():
            return "cron"
        case RRule():
            return "rrule"
        case Every():
            return "every"


def _why_never(
    context: Context, definition: Definition, cadence: Cadence, *, now: datetime, moment: str
) -> FieldError:
    """The field that keeps a version from ever falling due after `now`, told as `moment`, and what to do about it."""
    recurrence = definition.recurrence
    if isinstance(recurrence, At):
        zone = context.zones.load(definition.timezone)
        return _why_at_never(recurrence, zone, definition, now=now, moment=moment)
    if cadence.next(now) is None:
        return FieldError(
            f"recurrence.{kind_of(recurrence)}",
            f"The rule has no occurrence any more ({moment}); give one that goes on, or a later UNTIL.",
        )
    if definition.ends_at is not None and definition.ends_at <= now:
        return FieldError("ends_at", f"The end has passed ({moment}); give a later one.")
    return FieldError("ends_at", "The rule has no occurrence before this end; give a later one.")


def _why_at_never(
    recurrence: At, zone: Zone, definition: Definition, *, now: datetime, moment: str
) -> FieldError:
    if recurrence.time.tzinfo is None:
        try:
            resolution = resolve_local_time(zone, recurrence.time)
        except OverflowError:
            return FieldError(
                "recurrence.at", f"This time is too far away; give one before the end of {LAST_YEAR}."
            )
        if isinstance(resolution, LocalGap) and definition.gap == "skip":
            return FieldError(
                "recurrence.at",
                f"{format_local(recurrence.time)} does not exist in {zone.name}: the clocks go forward at "
                f'{format_instant(resolution.starts_at)}. Give another time, or "gap": "forward".',
            )
    cadence = Cadence(recurrence, zone, gap=definition.gap, fold=resolve_fold(definition.fold, recurrence))
    if cadence.next(now) is not None:
        bound = "starts_at" if definition.starts_at is not None and definition.ends_at is None else "ends_at"
        return FieldError(bound, "The one occurrence lies outside starts_at and ends_at; widen them.")
    return FieldError("recurrence.at", f"This time has passed ({moment}); give a time to come.")
