"""Making a version: resolving what a definition asked for against the zone's rules, and refusing what can never run."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from rota.cadences import cadence_row_of
from rota.domain.admission import cursor_at_first
from rota.domain.cadence import Cadence, Fold, FoldAsked, Gap, resolve_fold
from rota.domain.definition import FieldErrors
from rota.domain.errors import FieldError, InvalidExpression, InvalidRequest
from rota.domain.identity import ScheduleId
from rota.domain.instants import format_instant, format_local, whole_second_floor
from rota.domain.period import resolve_period
from rota.domain.recurrence import At, Cron, Every, Recurrence, RRule
from rota.domain.schedule import CadenceRow, Cursor, Definition, Version, last_of
from rota.domain.zone import Gap as LocalGap
from rota.domain.zone import Zone, resolve_local_time
from rota.service.context import Actor, Context

COUNTED_AHEAD = timedelta(days=100 * 365)
"""How far ahead `max_occurrences` is counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedVersion:
    version: Version
    cadence_row: CadenceRow
    cadence: Cadence
    cursor: Cursor


def next_whole_second(now: datetime) -> datetime:
    """The first whole second after `now`: an edit or a start at an occurrence's very instant comes after it."""
    return whole_second_floor(now) + timedelta(seconds=1)


def resolve_first_version(
    context: Context, definition: Definition, *, schedule_id: ScheduleId, now: datetime, actor: Actor
) -> ResolvedVersion:
    """Version 1, effective from the next whole second. Raises `InvalidRequest` for what can never run."""
    row, cadence = resolve_cadence(
        context, definition.timezone, definition.recurrence, gap=definition.gap, fold=definition.fold
    )
    if isinstance(definition.recurrence, At) and definition.fold == "both":
        problem = "A one-time schedule runs once; give first or second."
        raise InvalidRequest(FieldError("fold", problem))
    effective_from = next_whole_second(now)
    version = Version(
        schedule_id=schedule_id,
        number=1,
        definition=definition,
        cadence_id=row.cadence_id,
        fold=row.fold,
        period=resolve_period(definition.period, cadence),
        tzdata=context.zones.release(),
        fingerprint=row.fingerprint,
        effective_from=effective_from,
        effective_until=None,
        last_scheduled_at=None,
        created_at=now,
        actor=actor.name,
        reason=actor.reason,
    )
    before = effective_from - timedelta(seconds=1)
    if definition.max_occurrences is not None:
        last = last_of(
            version, cadence, occurrences=definition.max_occurrences, after=before, horizon=COUNTED_AHEAD
        )
        version = replace(version, last_scheduled_at=last)
    cursor = cursor_at_first(version, cadence, after=before)
    if cursor.scheduled_at is None:
        raise InvalidRequest(_why_never(context, definition, cadence, now=now))
    return ResolvedVersion(version=version, cadence_row=row, cadence=cadence, cursor=cursor)


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


def _why_never(context: Context, definition: Definition, cadence: Cadence, *, now: datetime) -> FieldError:
    """The field that keeps a new schedule from ever falling due, and what to do about it."""
    recurrence = definition.recurrence
    if isinstance(recurrence, At):
        zone = context.zones.load(definition.timezone)
        return _why_at_never(recurrence, zone, definition, now=now)
    if cadence.next(now) is None:
        return FieldError(
            f"recurrence.{kind_of(recurrence)}",
            "The rule has no occurrence after now; give one that goes on, or a later UNTIL.",
        )
    if definition.ends_at is not None and definition.ends_at <= now:
        return FieldError("ends_at", f"The end has passed ({format_instant(now)} is now); give a later one.")
    return FieldError("ends_at", "The rule has no occurrence before this end; give a later one.")


def _why_at_never(recurrence: At, zone: Zone, definition: Definition, *, now: datetime) -> FieldError:
    if recurrence.time.tzinfo is None:
        resolution = resolve_local_time(zone, recurrence.time)
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
    return FieldError(
        "recurrence.at", f"This time has passed ({format_instant(now)} is now); give a time to come."
    )
