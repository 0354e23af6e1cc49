"""Backfill: runs for a past range, on request.

It creates what the rule of the present version names in the past, wherever no run uses the period. Its runs are planned
some time apart, so that they do not take the place of what falls due.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from rota.domain.admission import RUNS_PER_ADMISSION_MAX, run_of
from rota.domain.cadence import Occurrence
from rota.domain.errors import Conflict, FieldError, InvalidRequest
from rota.domain.instants import format_instant, whole_second_floor
from rota.domain.key_uses import PERIOD_REACH
from rota.domain.run import Run
from rota.domain.schedule import ScheduleStatus, Version, next_named
from rota.service.changes import (
    RETRIES_MAX,
    change_of,
    event_of,
    get_schedule,
    is_as_left,
    is_committed,
    kept_changing,
)
from rota.service.context import NOBODY, Actor, Context
from rota.service.lookups import looked_up
from rota.service.moments import parse_moment
from rota.service.representation import Wire, run_to_wire
from rota.service.versions import governing_version
from rota.store.port import ScheduleRecord

BACKFILLED_PER_REQUEST_MAX = 10_000
SPACING_DEFAULT = timedelta(seconds=1)
SPACING_MAX = timedelta(days=1)
SHOWN_MAX = 100
_SECOND = timedelta(seconds=1)


@dataclass(slots=True, kw_only=True)
class _Range:
    """What a backfill finds in its range."""

    version: Version
    to_create: list[Occurrence]
    used: int = 0
    owed: int = 0
    """Counted up to as many as a request may create."""


def backfill(
    context: Context,
    schedule_id: str,
    *,
    from_: str,
    until: str,
    spacing: timedelta = SPACING_DEFAULT,
    dry_run: bool = False,
    actor: Actor = NOBODY,
) -> Wire:
    """Creates runs for the past instants in `[from_, until]` that the present version's rule names, in bounded commits.

    Left out are instants whose period a run uses, and those that admission still owes. The runs fall due `spacing`
    apart. Repeating it creates nothing twice; if it breaks off, repeating it goes on. Raises `NotFound`,
    `InvalidRequest` (`from`, `until`, `spacing`) and `Conflict` for a schedule that has ended or is in error.
    """
    _check_spacing(spacing)
    record = get_schedule(context, schedule_id)
    now = context.clock.now()
    version = governing_version(record, now=now)
    start = parse_moment(context, version, from_, field="from")
    end = parse_moment(context, version, until, field="until")
    _check_range(record, start, end, now=now)
    found = _find(context, record, version, start, end)
    total, first_due = len(found.to_create), whole_second_floor(now) + _SECOND
    created: list[Run] = []
    if not dry_run:
        created = _create(
            context, record, found, (start, end), first_due=first_due, spacing=spacing, actor=actor
        )
    shown = created or _runs_of(record, found, made=0, first_due=first_due, spacing=spacing, now=now)
    return {
        "schedule_id": record.schedule.schedule_id,
        "version": found.version.number,
        "from": format_instant(start),
        "until": format_instant(end),
        "dry_run": dry_run,
        "created": total if dry_run else len(created),
        "left_out": {"period_used": found.used, "owed": found.owed},
        "runs": [run_to_wire(run) for run in shown[:SHOWN_MAX]],
    }


def _check_spacing(spacing: timedelta) -> None:
    if not _SECOND <= spacing <= SPACING_MAX or spacing.microseconds:
        raise InvalidRequest(FieldError("spacing", "Give whole seconds, from PT1S to PT24H."))


def _check_range(record: ScheduleRecord, start: datetime, end: datetime, *, now: datetime) -> None:
    schedule = record.schedule
    if schedule.status in (ScheduleStatus.ENDED, ScheduleStatus.ERROR):
        raise Conflict(f"Schedule {schedule.schedule_id!r} is {schedule.status}; nothing is backfilled.")
    if end > now:
        message = f"A backfill is of the past ({format_instant(now)} is now); plan what is to come."
        raise InvalidRequest(FieldError("until", message))
    if start > end:
        raise InvalidRequest(FieldError("from", "It lies after until; give an earlier instant."))
    if start < schedule.history_from:
        message = (
            f"The history is kept from {format_instant(schedule.history_from)} on; give such an instant."
        )
        raise InvalidRequest(FieldError("from", message))


def _find(
    context: Context, record: ScheduleRecord, version: Version, start: datetime, end: datetime
) -> _Range:
    cursor = record.schedule.cursor.scheduled_at
    cadence = context.cadences.of_version(version)
    unwindowed = replace(version, effective_from=start, effective_until=None)
    found = _Range(version=version, to_create=[])
    named: list[Occurrence] = []
    after = start - _SECOND
    while (occurrence := next_named(unwindowed, cadence, after)) is not None:
        if occurrence.scheduled_at > end or found.owed == BACKFILLED_PER_REQUEST_MAX:
            break
        if len(named) == BACKFILLED_PER_REQUEST_MAX:
            message = (
                f"More than {BACKFILLED_PER_REQUEST_MAX} occurrences lie in the range; give a smaller one."
            )
            raise InvalidRequest(FieldError("until", message))
        if cursor is not None and occurrence.scheduled_at >= cursor:
            found.owed += 1
        else:
            named.append(occurrence)
        after = occurrence.scheduled_at
    for occurrence, _, use in looked_up(context, version, named, whole_life=True):
        if use is None:
            found.to_create.append(occurrence)
        else:
            found.used += 1
    return found


def _runs_of(
    record: ScheduleRecord,
    found: _Range,
    *,
    made: int,
    first_due: datetime,
    spacing: timedelta,
    now: datetime,
) -> list[Run]:
    """The next bounded commit's runs, behind as many as are `made`. They are a backlog that takes its turns."""
    return [
        replace(
            run_of(record.schedule, found.version, occurrence, planned_at=now, origin="backfill"),
            due_at=first_due + (made + place) * spacing,
            turn=made + place + 1,
        )
        for place, occurrence in enumerate(found.to_create[:RUNS_PER_ADMISSION_MAX])
    ]


def _create(
    context: Context,
    record: ScheduleRecord,
    found: _Range,
    range_: tuple[datetime, datetime],
    *,
    first_due: datetime,
    spacing: timedelta,
    actor: Actor,
) -> list[Run]:
    """Creates what is to be created in bounded commits, and leaves in `found` what else there is.

    What was found holds as long as nobody else does anything to the schedule; else it is found anew.
    """
    created: list[Run] = []
    refused_in_a_row = 0
    while found.to_create:
        now = context.clock.now()
        made = _runs_of(record, found, made=len(created), first_due=first_due, spacing=spacing, now=now)
        is_made = _create_some(context, record, made, range_, is_first=not created, actor=actor)
        if is_made:
            created += made
            found.to_create = found.to_create[len(made) :]
        refused_in_a_row = 0 if is_made else refused_in_a_row + 1
        if refused_in_a_row == RETRIES_MAX:
            raise kept_changing(record.schedule.schedule_id)
        latest = get_schedule(context, record.schedule.schedule_id)
        if not is_made or not is_as_left(record, latest):
            again = _find(context, latest, found.version, *range_)
            found.to_create, found.owed = again.to_create, again.owed
            found.used = again.used - len(created)  # The request's own runs are not left out.
        record = latest
    return created


def _create_some(
    context: Context,
    record: ScheduleRecord,
    runs: list[Run],
    range_: tuple[datetime, datetime],
    *,
    is_first: bool,
    actor: Actor,
) -> bool:
    """False: the schedule changed meanwhile."""
    now, (start, end) = context.clock.now(), range_
    event = event_of(
        record.schedule,
        "schedule.backfill",
        actor,
        at=now,
        **{"from": format_instant(start), "until": format_instant(end)},
    )
    change = replace(
        change_of(record.schedule, at=now),
        runs=tuple(runs),
        careful_until=max(run.scheduled_at for run in runs) + PERIOD_REACH["month"],
        event=event if is_first else None,
    )
    return is_committed(context, change)
