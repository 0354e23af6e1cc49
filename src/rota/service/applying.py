"""Schedules as code: a document names schedules by id as they are to be; applying it makes them so.

What is not there is created, what differs is edited, what is marked `ended` is ended. Schedules that the document does
not name are left alone. Everything is planned before anything is written: one wrong schedule, and nothing is done.
Applying the same document again changes nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time

from rota.domain.definition import DEFINITION_FIELDS, FieldErrors
from rota.domain.edit_form import CONTROL_FIELDS, Edit, parse_edit
from rota.domain.errors import Conflict, FieldError, InvalidRequest, NotFound, RotaError, Stale
from rota.domain.identity import is_schedule_id
from rota.domain.instants import format_instant, format_local
from rota.domain.schedule import ScheduleStatus
from rota.service.changes import get_schedule
from rota.service.context import NOBODY, REASON_CHARACTERS_MAX, Actor, Context
from rota.service.creation import create_schedule, plan_creation
from rota.service.dry_runs import NEXT_SHOWN, told
from rota.service.editing import edit_schedule, plan_edit
from rota.service.forecast import Reign, forecast
from rota.service.health import UNAVAILABLE
from rota.service.representation import Wire
from rota.service.schedules import end_schedule
from rota.store.port import ScheduleRecord

DOCUMENT_FIELDS = frozenset({"schedules", "reason"})
ENTRY_FIELDS = DEFINITION_FIELDS | CONTROL_FIELDS | {"job", "labels", "ended"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One schedule of the document, as it is to be."""

    schedule_id: str
    fields: Mapping[str, object]
    is_ended: bool
    actor: Actor

    @property
    def body(self) -> dict[str, object]:
        """As for a creation."""
        fields = {name: value for name, value in self.fields.items() if name not in CONTROL_FIELDS}
        return {"id": self.schedule_id, **fields}


def apply_document(
    context: Context, document: Mapping[str, object], *, dry_run: bool = False, actor: Actor = NOBODY
) -> Wire:
    """What was done, or would be, schedule by schedule in the order of the document.

    Raises `InvalidRequest` with every field that is wrong (`schedules.<id>.<field>`); nothing is written then. Raises
    `Stale` or `Conflict`, which say what was done already, where a schedule changed after it was planned.
    """
    entries = _entries(document, actor)
    errors = FieldErrors()
    outcomes: list[Wire] = []
    for entry in entries:
        try:
            outcomes.append(_plan(context, entry))
        except InvalidRequest as error:
            for field in error.errors:
                errors.add(f"schedules.{entry.schedule_id}.{field.field}", field.message)
        except UNAVAILABLE:
            raise
        except RotaError as error:
            errors.add(f"schedules.{entry.schedule_id}", str(error))
    errors.raise_if_any()
    if not dry_run:
        _do_all(context, entries, outcomes)
    return {"dry_run": dry_run, "schedules": outcomes}


def _plan(context: Context, entry: Entry) -> Wire:
    """`created`, `edited`, `ended` or `unchanged`, with what a dry run tells."""
    now = context.clock.now()
    try:
        record = get_schedule(context, entry.schedule_id)
    except NotFound:
        return _plan_new(context, entry, now=now)
    return _plan_existing(context, entry, record, now=now)


def _plan_new(context: Context, entry: Entry, *, now: datetime) -> Wire:
    if entry.is_ended:
        return {**_outcome(entry, "unchanged"), "note": "there is no such schedule"}
    if _edit_of(entry).effective_from is not None:
        message = "There is no such schedule yet, and a new one takes over at once; give starts_at instead."
        raise InvalidRequest(FieldError("effective_from", message))
    record, new = plan_creation(context, entry.body, actor=entry.actor, now=now)
    version = new.first.version
    reign = Reign(version=version, cadence=context.cadences.of_version(version))
    seen = forecast(
        context,
        record.schedule,
        [reign],
        after=now,
        cursor=record.schedule.cursor.scheduled_at,
        count=NEXT_SHOWN,
    )
    return {**_outcome(entry, "created"), "version": 1, "next": seen.next, "skipped": seen.skipped}


def _plan_existing(context: Context, entry: Entry, record: ScheduleRecord, *, now: datetime) -> Wire:
    schedule = record.schedule
    if entry.is_ended:
        return _outcome(entry, "unchanged" if schedule.status is ScheduleStatus.ENDED else "ended")
    if schedule.status is ScheduleStatus.ENDED:
        raise Conflict(
            'It has ended, and its id is never used again; give "ended = true", or choose another id.'
        )
    job = entry.fields.get("job", schedule.job)
    if job != schedule.job:
        message = f"The job of a schedule cannot be changed from {schedule.job!r}; choose another id."
        raise InvalidRequest(FieldError("job", message))
    edit = _edit_of(entry)
    planned = plan_edit(context, record, edit, actor=entry.actor, now=now)
    if planned is None:
        return _outcome(entry, "unchanged")
    effects = told(context, record, planned, now=now)
    del effects["dry_run"]  # What is told of the whole document holds.
    return {**effects, **_outcome(entry, "edited")}


def _do_all(context: Context, entries: Sequence[Entry], outcomes: Sequence[Wire]) -> None:
    done: list[str] = []
    for entry, outcome in zip(entries, outcomes, strict=True):
        try:
            _do(context, entry, outcome)
        except (Stale, Conflict) as error:
            so_far = ", ".join(done) or "nothing"
            message = (
                f"{entry.schedule_id}: {error} Done already: {so_far}. Apply the document again to go on."
            )
            raise type(error)(message) from error
        if outcome["outcome"] != "unchanged":
            done.append(f"{entry.schedule_id} ({outcome['outcome']})")


def _do(context: Context, entry: Entry, outcome: Wire) -> None:
    """An edit is of the version that it was planned for."""
    if outcome["outcome"] == "created":
        create_schedule(context, entry.body, actor=entry.actor)
    elif outcome["outcome"] == "edited":
        planned_for = int(str(outcome["changes_version"]))
        edit = _edit_of(entry)
        edit_schedule(context, entry.schedule_id, edit, expected_version=planned_for, actor=entry.actor)
    elif outcome["outcome"] == "ended":
        end_schedule(context, entry.schedule_id, actor=entry.actor)


def _edit_of(entry: Entry) -> Edit:
    fields = {name: value for name, value in entry.fields.items() if name != "job"}
    return replace(parse_edit({"labels": {}, **fields}), is_whole=True)


def _outcome(entry: Entry, outcome: str) -> Wire:
    return {"schedule_id": entry.schedule_id, "outcome": outcome}


def _entries(document: Mapping[str, object], actor: Actor) -> list[Entry]:
    """Raises `InvalidRequest`."""
    errors = FieldErrors()
    errors.refuse_unknown(document, DOCUMENT_FIELDS)
    reason = _reason(errors, document, "reason")
    schedules = document.get("schedules", {})
    if not isinstance(schedules, Mapping):
        errors.add("schedules", "Give a table for each schedule, such as [schedules.report-7].")
        schedules = {}
    entries: list[Entry] = []
    for schedule_id, given in schedules.items():
        field = f"schedules.{schedule_id}"
        if not is_schedule_id(schedule_id):
            errors.add(field, "An id has 1 to 80 of a-z, 0-9, '_' and '-', beginning with a letter or digit.")
        elif not isinstance(given, Mapping):
            errors.add(field, "Give a table of fields.")
        else:
            entries.append(_entry(errors, schedule_id, given, reason=reason, actor=actor))
    errors.raise_if_any()
    return entries


def _entry(
    errors: FieldErrors, schedule_id: str, given: Mapping[str, object], *, reason: str | None, actor: Actor
) -> Entry:
    errors.refuse_unknown(given, ENTRY_FIELDS, prefix=f"schedules.{schedule_id}.")
    is_ended = given.get("ended", False)
    if not isinstance(is_ended, bool):
        errors.add(f"schedules.{schedule_id}.ended", "Give true or false.")
    why = _reason(errors, given, f"schedules.{schedule_id}.reason") or reason
    fields = {name: _as_json(value) for name, value in given.items() if name not in ("ended", "reason")}
    who = Actor(name=actor.name, reason=why or actor.reason)
    return Entry(schedule_id=schedule_id, fields=fields, is_ended=bool(is_ended), actor=who)


def _reason(errors: FieldErrors, given: Mapping[str, object], field: str) -> str | None:
    reason = given.get("reason")
    if reason is None:
        return None
    if isinstance(reason, str) and 0 < len(reason) <= REASON_CHARACTERS_MAX and "\x00" not in reason:
        return reason
    errors.add(field, f"Give a text of 1 to {REASON_CHARACTERS_MAX} characters, or leave it out.")
    return None


def _as_json(value: object) -> object:
    """TOML has dates and times of its own: an offset makes one an instant, else it is local."""
    match value:
        case datetime():
            return format_local(value) if value.tzinfo is None else format_instant(value)
        case date() | time():
            return value.isoformat()
        case Mapping():
            return {name: _as_json(member) for name, member in value.items()}
        case list():
            return [_as_json(member) for member in value]
        case _:
            return value
