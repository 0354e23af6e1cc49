"""The life of a schedule: create, show, list, pause, resume, end."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from rota.domain.audit import AuditAction, AuditEvent
from rota.domain.definition import DEFINITION_FIELDS, FieldErrors, parse_definition, parse_labels
from rota.domain.errors import Conflict, FieldError, InvalidRequest, NotFound, RotaError, TooLarge
from rota.domain.identity import ScheduleId, digest_of, is_schedule_id, partition_of, slot_of
from rota.domain.instants import whole_second_floor
from rota.domain.job import Job
from rota.domain.json_text import JsonText, encode_json, load_json
from rota.domain.schedule import Definition, Schedule, ScheduleStatus, Suspension
from rota.ids import new_schedule_id
from rota.service.context import NOBODY, Actor, Context
from rota.service.representation import Wire, audit_to_wire, schedule_to_wire
from rota.service.versions import next_whole_second, resolve_first_version
from rota.store.port import (
    Creation,
    IdempotencyRecord,
    NewSchedule,
    ScheduleFilter,
    ScheduleRecord,
    StatusChange,
)

IDEMPOTENCY_KEPT = timedelta(hours=24)
IDEMPOTENCY_KEY_CHARACTERS_MAX = 255
SCHEDULE_FIELDS = DEFINITION_FIELDS | {"id", "job", "labels"}
RETRIES_MAX = 20
"""How often a change is tried anew where admission moved the schedule in between."""


class KeyReused(RotaError):
    """The Idempotency-Key was used with another body within 24 hours; choose a new key for a new request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedSchedule:
    """The answer to a creation, as it was first given."""

    schedule_id: ScheduleId
    created: bool
    """False: the same body had created it already."""
    body: dict[str, object]


PlanChange = Callable[[ScheduleRecord, datetime], StatusChange | None]
"""Decides a change from the schedule as read; None where nothing is to be changed."""


def create_schedule(
    context: Context,
    body: Mapping[str, object],
    *,
    actor: Actor = NOBODY,
    idempotency_key: str | None = None,
) -> CreatedSchedule:
    """Saves a schedule and its version 1, or answers again for a body that is repeated.

    Raises `InvalidRequest` (fields), `TooLarge` (params), `Conflict` (the id belongs to another schedule) and
    `KeyReused`. Nothing is written unless everything is.
    """
    now = context.clock.now()
    digest = digest_of(encode_json(dict(body)))
    if idempotency_key is not None:
        _check_idempotency_key(idempotency_key)
        replayed = _replay(context, idempotency_key, digest, now=now)
        if replayed is not None:
            return replayed
    request = _parse_request(context, body, digest=digest, now=now)
    existing = None if request.named is None else _existing_same(context, request.named, digest)
    if existing is not None:
        return existing
    while True:
        schedule_id = request.named or new_schedule_id()
        record, new = _new_schedule(context, request, schedule_id=schedule_id, now=now, actor=actor)
        # Read back from its canonical text, as a replay is: both answers are then the same bytes.
        answer: Wire = load_json(encode_json(schedule_to_wire(record, request.job)))
        if idempotency_key is not None:
            new = replace(new, idempotency=_idempotency(idempotency_key, digest, answer, now=now))
        match context.store.commit_creation(new, now=now):
            case Creation.CREATED:
                return CreatedSchedule(schedule_id=schedule_id, created=True, body=answer)
            case Creation.KEY_TAKEN:
                replayed = _replay(context, idempotency_key or "", digest, now=now)
                if replayed is not None:
                    return replayed
            case Creation.ID_TAKEN:
                existing = _existing_same(context, schedule_id, digest)
                if existing is not None:
                    return existing


def get_schedule(context: Context, schedule_id: str) -> ScheduleRecord:
    """Raises `NotFound`."""
    record = context.store.get_schedule(ScheduleId(schedule_id)) if is_schedule_id(schedule_id) else None
    if record is None:
        raise NotFound("schedule", schedule_id)
    return record


def show_schedule(context: Context, schedule_id: str) -> dict[str, object]:
    """The schedule in wire form. Raises `NotFound`."""
    return _to_wire(context, get_schedule(context, schedule_id))


def list_schedules(
    context: Context, filter_: ScheduleFilter, *, after: ScheduleId | None, limit: int
) -> list[dict[str, object]]:
    records = context.store.list_schedules(filter_, after=after, limit=limit)
    jobs = {name: _job(context, name) for name in {record.schedule.job for record in records}}
    return [schedule_to_wire(record, jobs[record.schedule.job]) for record in records]


def list_history(context: Context, schedule_id: str, *, limit: int) -> list[Wire]:
    """Who did what to the schedule, newest first. Raises `NotFound`."""
    record = get_schedule(context, schedule_id)
    return [
        audit_to_wire(event) for event in context.store.list_audit(record.schedule.schedule_id, limit=limit)
    ]


def pause_schedule(context: Context, schedule_id: str, *, actor: Actor = NOBODY) -> dict[str, object]:
    """Nothing is admitted from now on; nothing that happened is undone (I10). Pausing what is paused changes nothing.

    Raises `NotFound`, and `Conflict` for a schedule that has ended or is in error.
    """

    def plan(record: ScheduleRecord, now: datetime) -> StatusChange | None:
        schedule = record.schedule
        if schedule.status is ScheduleStatus.PAUSED:
            return None
        if schedule.status is not ScheduleStatus.ACTIVE:
            raise Conflict(
                f"Schedule {schedule_id!r} is {schedule.status}; only an active one can be paused."
            )
        return replace(
            _change(schedule, ScheduleStatus.PAUSED, "schedule.pause", actor, now=now),
            suspension_opened=Suspension(from_=now, until=None, reason="paused"),
        )

    return _change_status(context, schedule_id, plan)


def resume_schedule(
    context: Context, schedule_id: str, *, apply_overdue: bool = False, actor: Actor = NOBODY
) -> dict[str, object]:
    """Admission goes on. Instants before the pause follow the overdue policy; those in it are skipped as `paused`,
    or follow the policy too with `apply_overdue`. Resuming what is active changes nothing.

    A schedule in `error` is resumed in the same way, once its definition can be computed. Raises `NotFound`, and
    `Conflict` for one that has ended or still cannot be computed.
    """

    def plan(record: ScheduleRecord, now: datetime) -> StatusChange | None:
        schedule = record.schedule
        if schedule.status is ScheduleStatus.ACTIVE:
            return None
        if schedule.status is ScheduleStatus.ENDED:
            raise Conflict(f"Schedule {schedule_id!r} has ended; create a new one.")
        if schedule.status is ScheduleStatus.ERROR:
            _check_computable(context, record)
        return replace(
            _change(schedule, ScheduleStatus.ACTIVE, "schedule.resume", actor, now=now),
            suspension_closed=_closed_suspension(record, until=now, apply_overdue=apply_overdue),
            careful_until=now,
        )

    return _change_status(context, schedule_id, plan)


def end_schedule(context: Context, schedule_id: str, *, actor: Actor = NOBODY) -> dict[str, object]:
    """No further occurrence; the history stays and the id is never used again. Ending what has ended changes nothing.

    What fell due before the end and was not admitted is recorded as skipped (`ended`) by the dispatcher, in bounded
    steps. Raises `NotFound`.
    """

    def plan(record: ScheduleRecord, now: datetime) -> StatusChange | None:
        schedule = record.schedule
        if schedule.status is ScheduleStatus.ENDED:
            return None
        end = next_whole_second(now)
        owed = schedule.cursor.scheduled_at is not None and schedule.cursor.scheduled_at < end
        cursor = replace(schedule.cursor, scheduled_at=None, due_at=None)
        return replace(
            _change(schedule, ScheduleStatus.ENDED, "schedule.end", actor, now=now),
            status_reason="deleted",
            cursor=schedule.cursor if owed else cursor,
            suspension_closed=_closed_suspension(record, until=now, apply_overdue=False),
            window_closed_at=end,
        )

    return _change_status(context, schedule_id, plan)


def _change_status(context: Context, schedule_id: str, plan: PlanChange) -> dict[str, object]:
    for _ in range(RETRIES_MAX):
        record = get_schedule(context, schedule_id)
        change = plan(record, context.clock.now())
        if change is None:
            return _to_wire(context, record)
        if context.store.commit_status_change(change):
            return show_schedule(context, schedule_id)
    raise Conflict(f"Schedule {schedule_id!r} kept changing meanwhile; try again.")


def _change(
    schedule: Schedule, status: ScheduleStatus, action: AuditAction, actor: Actor, *, now: datetime
) -> StatusChange:
    return StatusChange(
        schedule_id=schedule.schedule_id,
        expected_status=schedule.status,
        expected_cursor=schedule.cursor,
        status=status,
        status_reason=None,
        cursor=schedule.cursor,
        event=AuditEvent(
            schedule_id=schedule.schedule_id, action=action, at=now, actor=actor.name, reason=actor.reason
        ),
    )


def _closed_suspension(record: ScheduleRecord, *, until: datetime, apply_overdue: bool) -> Suspension | None:
    for suspension in record.suspensions:
        if suspension.until is None:
            return replace(suspension, until=max(until, suspension.from_), apply_overdue=apply_overdue)
    return None


def _check_computable(context: Context, record: ScheduleRecord) -> None:
    try:
        context.cadences.of_version(record.version)
    except RotaError as error:
        raise Conflict(f"The schedule still cannot be computed: {error}") from error


def _check_idempotency_key(key: str) -> None:
    if not 0 < len(key) <= IDEMPOTENCY_KEY_CHARACTERS_MAX or not key.isprintable() or not key.isascii():
        message = f"Give 1 to {IDEMPOTENCY_KEY_CHARACTERS_MAX} printable ASCII characters."
        raise InvalidRequest(FieldError("Idempotency-Key", message))


def _replay(context: Context, key: str, digest: str, *, now: datetime) -> CreatedSchedule | None:
    record = context.store.get_idempotency(key, now=now)
    if record is None:
        return None
    if record.request_digest != digest:
        raise KeyReused(f"The Idempotency-Key {key!r} was used with another body; choose a new key.")
    answer = load_json(record.answer)
    return CreatedSchedule(schedule_id=ScheduleId(answer["id"]), created=True, body=answer)


def _existing_same(context: Context, schedule_id: ScheduleId, digest: str) -> CreatedSchedule | None:
    """The schedule of that id if the same body made it. Raises `Conflict` where another did, or it has ended."""
    record = context.store.get_schedule(schedule_id)
    if record is None:
        return None
    if record.schedule.definition_digest != digest or record.schedule.status is ScheduleStatus.ENDED:
        ended = (
            " and has ended" if record.schedule.status is ScheduleStatus.ENDED else " with another definition"
        )
        raise Conflict(f"Schedule {schedule_id!r} exists already{ended}; choose another id.")
    return CreatedSchedule(schedule_id=schedule_id, created=False, body=_to_wire(context, record))


@dataclass(frozen=True, slots=True, kw_only=True)
class _CreationRequest:
    """A body whose single fields are right."""

    named: ScheduleId | None
    job: Job
    labels: JsonText
    definition: Definition
    digest: str


def _parse_request(
    context: Context, body: Mapping[str, object], *, digest: str, now: datetime
) -> _CreationRequest:
    errors = FieldErrors()
    errors.refuse_unknown(body, SCHEDULE_FIELDS)
    given_id = body.get("id")
    if given_id is not None and not (isinstance(given_id, str) and is_schedule_id(given_id)):
        errors.add("id", "Give 1 to 80 of a-z, 0-9, '_' and '-', beginning with a letter or digit.")
    job = _requested_job(context, errors, body.get("job"))
    labels = errors.attempt("labels", lambda: parse_labels(body.get("labels")))
    fields = {name: value for name, value in body.items() if name in DEFINITION_FIELDS}
    anchor = whole_second_floor(now)
    definition = errors.attempt("", lambda: parse_definition(fields, default_anchor=anchor))
    errors.raise_if_any()
    if job is None or labels is None or definition is None:
        raise InvalidRequest(*errors.errors)
    params_bytes = len(definition.params.encode())
    if params_bytes > job.params_bytes_max:
        raise TooLarge(
            f"The params have {params_bytes} bytes as JSON; {job.name!r} takes at most {job.params_bytes_max}.",
            field="params",
        )
    named = ScheduleId(given_id) if isinstance(given_id, str) else None
    return _CreationRequest(named=named, job=job, labels=labels, definition=definition, digest=digest)


def _requested_job(context: Context, errors: FieldErrors, name: object) -> Job | None:
    if not isinstance(name, str):
        errors.add("job", "Give the name of a job.")
        return None
    job = context.store.get_job(name)
    if job is None:
        errors.add(
            "job", f"There is no job {name!r}; start a worker that has it, or create it by PUT /jobs/NAME."
        )
    return job


def _new_schedule(
    context: Context, request: _CreationRequest, *, schedule_id: ScheduleId, now: datetime, actor: Actor
) -> tuple[ScheduleRecord, NewSchedule]:
    resolved = resolve_first_version(
        context, request.definition, schedule_id=schedule_id, now=now, actor=actor
    )
    slot = slot_of(schedule_id)
    schedule = Schedule(
        schedule_id=schedule_id,
        partition=partition_of(slot, context.partition_count),
        slot=slot,
        job=request.job.name,
        labels=request.labels,
        status=ScheduleStatus.ACTIVE,
        status_reason=None,
        cursor=resolved.cursor,
        latest_version=1,
        created_at=now,
        updated_at=now,
        history_from=resolved.version.effective_from,
        careful_until=None,
        definition_digest=request.digest,
    )
    event = AuditEvent(
        schedule_id=schedule_id, action="schedule.create", at=now, actor=actor.name, reason=actor.reason
    )
    new = NewSchedule(
        schedule=schedule,
        version=resolved.version,
        cadence=resolved.cadence_row,
        event=event,
        idempotency=None,
    )
    return ScheduleRecord(schedule=schedule, version=resolved.version, suspensions=()), new


def _idempotency(key: str, digest: str, answer: dict[str, object], *, now: datetime) -> IdempotencyRecord:
    return IdempotencyRecord(
        key=key, request_digest=digest, answer=encode_json(answer), expires_at=now + IDEMPOTENCY_KEPT
    )


def _job(context: Context, name: str) -> Job:
    return context.store.get_job(name) or Job(name=name)


def _to_wire(context: Context, record: ScheduleRecord) -> dict[str, object]:
    return schedule_to_wire(record, _job(context, record.schedule.job))
