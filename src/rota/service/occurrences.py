"""Occurrences to come and gone: preview of a definition, upcoming ones of a schedule, its ledger."""

from collections.abc import Mapping
from datetime import datetime
from typing import cast, get_args

from rota.domain.cadence import Cadence, FoldAsked, Gap, Occurrence
from rota.domain.definition import FieldErrors, parse_choice, parse_rule
from rota.domain.errors import Conflict, FieldError, InvalidRequest
from rota.domain.identity import ScheduleId
from rota.domain.instants import format_instant, parse_instant, whole_second_floor
from rota.domain.run import Run
from rota.domain.schedule import ScheduleStatus
from rota.service.changes import get_schedule
from rota.service.context import Context
from rota.service.forecast import Forecast, forecast, reigns_of
from rota.service.representation import (
    Wire,
    occurrence_to_wire,
    run_to_wire,
    skip_to_wire,
    skipped_local_to_wire,
)
from rota.service.versions import resolve_cadence
from rota.store.port import LedgerKey

PREVIEW_FIELDS = frozenset({"timezone", "recurrence", "gap", "fold", "after", "count"})
PREVIEW_COUNT_DEFAULT = 10
PREVIEW_COUNT_MAX = 1_000
SKIPPED_SHOWN_MAX = 100


def preview(context: Context, body: Mapping[str, object]) -> Wire:
    """The next occurrences of a definition that is not saved, strictly after `after`. Raises `InvalidRequest`."""
    now = context.clock.now()
    errors = FieldErrors()
    errors.refuse_unknown(body, PREVIEW_FIELDS)
    after = _after(errors, body, now=now)
    count = _count(errors, body)
    timezone, recurrence = parse_rule(errors, body, default_anchor=whole_second_floor(after))
    gap = cast("Gap", parse_choice(errors, body, "gap", get_args(Gap), default="skip"))
    fold = cast("FoldAsked", parse_choice(errors, body, "fold", get_args(FoldAsked), default="auto"))
    if errors.errors or timezone is None or recurrence is None:
        raise InvalidRequest(*errors.errors)
    row, cadence = resolve_cadence(context, timezone, recurrence, gap=gap, fold=fold)
    occurrences = _next_occurrences(cadence, after=after, count=count)
    return {
        "timezone": row.timezone,
        "gap": row.gap,
        "fold": row.fold,
        "tzdata": context.zones.release(),
        "occurrences": [occurrence_to_wire(occurrence) for occurrence in occurrences],
        "skipped": _skipped(cadence, after=after, occurrences=occurrences, count=count),
    }


def list_upcoming(context: Context, schedule_id: str, *, count: int) -> Wire:
    """What comes next, after now: planned runs and what the schedule's versions name, as far as nothing suppresses it.

    Raises `NotFound`, `InvalidRequest`, and `Conflict` for one in error.
    """
    record = get_schedule(context, schedule_id)
    if not 1 <= count <= PREVIEW_COUNT_MAX:
        raise InvalidRequest(FieldError("count", f"Give a whole number from 1 to {PREVIEW_COUNT_MAX}."))
    schedule = record.schedule
    if schedule.status is ScheduleStatus.ERROR:
        raise Conflict(f"Schedule {schedule_id!r} is in error: {schedule.status_reason}")
    seen = Forecast()
    if schedule.status is not ScheduleStatus.ENDED:
        seen = forecast(
            context,
            schedule,
            reigns_of(context, record),
            after=context.clock.now(),
            cursor=schedule.cursor.scheduled_at,
            count=count,
        )
    return {
        "schedule_id": schedule.schedule_id,
        "status": schedule.status.value,
        "occurrences": seen.next,
        "suppressed": seen.suppressed,
        "skipped": seen.skipped,
    }


def list_ledger(
    context: Context, schedule_id: str, *, before: LedgerKey | None, limit: int
) -> list[tuple[LedgerKey, Wire]]:
    """What became of the schedule's occurrences, newest first, each with its place for paging. Raises `NotFound`."""
    record = get_schedule(context, schedule_id)
    entries = context.store.list_ledger(ScheduleId(record.schedule.schedule_id), before=before, limit=limit)
    return [
        (LedgerKey(instant=entry.scheduled_at, id_=entry.run_id), run_to_wire(entry))
        if isinstance(entry, Run)
        else (LedgerKey(instant=entry.from_, id_=""), skip_to_wire(entry))
        for entry in entries
    ]


def _next_occurrences(cadence: Cadence, *, after: datetime, count: int) -> list[Occurrence]:
    occurrences: list[Occurrence] = []
    while len(occurrences) < count and (occurrence := cadence.next(after)) is not None:
        occurrences.append(occurrence)
        after = occurrence.scheduled_at
    return occurrences


def _skipped(cadence: Cadence, *, after: datetime, occurrences: list[Occurrence], count: int) -> list[Wire]:
    """Named local times that do not exist, up to the last occurrence shown (or a while on, where the rule ends)."""
    if not occurrences:
        until = after.replace(year=min(after.year + 30, 9999), month=1, day=1)
    elif len(occurrences) < count:
        last = occurrences[-1].scheduled_at
        until = last.replace(year=min(last.year + 1, 9999), month=1, day=1)
    else:
        until = occurrences[-1].scheduled_at
    skipped = cadence.skipped_in_gaps(after=after, until=until, limit=SKIPPED_SHOWN_MAX)
    return [skipped_local_to_wire(local) for local in skipped]


def _after(errors: FieldErrors, body: Mapping[str, object], *, now: datetime) -> datetime:
    given = body.get("after")
    if given is None:
        return now
    if not isinstance(given, str):
        errors.add("after", f'Give an instant in UTC, such as "{format_instant(now)}".')
        return now
    return errors.attempt("after", lambda: parse_instant(given)) or now


def _count(errors: FieldErrors, body: Mapping[str, object]) -> int:
    given = body.get("count", PREVIEW_COUNT_DEFAULT)
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= PREVIEW_COUNT_MAX:
        errors.add("count", f"Give a whole number from 1 to {PREVIEW_COUNT_MAX}.")
        return PREVIEW_COUNT_DEFAULT
    return given
