"""Creating a schedule: every field judged, everything written in one commit, a repeated request answered again."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from rota.domain.admission import cursor_at
from rota.domain.audit import AuditEvent
from rota.domain.definition import DEFINITION_FIELDS, FieldErrors, parse_definition, parse_labels
from rota.domain.errors import Conflict, InvalidRequest
from rota.domain.identity import ScheduleId, digest_of, is_schedule_id, partition_of, slot_of
from rota.domain.instants import EPOCH, whole_second_floor
from rota.domain.job import Job
from rota.domain.json_text import JsonText, encode_json, load_json
from rota.domain.schedule import Definition, Schedule, ScheduleStatus
from rota.ids import new_schedule_id
from rota.service.context import NOBODY, Actor, Context
from rota.service.idempotency import check_key, kept_answer, record_of
from rota.service.representation import in_shown_order, schedule_to_wire
from rota.service.schedules import check_size, record_to_wire
from rota.service.versions import Place, next_whole_second, resolve_version
from rota.store.port import Creation, NewSchedule, ScheduleRecord

SCHEDULE_FIELDS = DEFINITION_FIELDS | {"id", "job", "labels"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedSchedule:
    """The answer to a creation, as it was first given."""

    schedule_id: ScheduleId
    created: bool
    """False: the same body had created it already."""
    body: dict[str, object]


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
        check_key(idempotency_key)
        replayed = _replay(context, idempotency_key, digest, now=now)
        if replayed is not None:
            return replayed
    request = _parse_request(context, body, digest=digest, now=now)
    existing = None if request.named is None else _existing_same(context, request.named, digest)
    if existing is not None:
        return _keep_answer(context, existing, idempotency_key, digest, now=now)
    while True:
        schedule_id = request.named or new_schedule_id()
        record, new = _new_schedule(context, request, schedule_id=schedule_id, now=now, actor=actor)
        text = encode_json({"created": True, "body": schedule_to_wire(record, request.job)})
        if idempotency_key is not None:
            new = replace(new, idempotency=record_of(idempotency_key, digest, text, now=now))
        match context.store.commit_creation(new, now=now):
            case Creation.CREATED:
                return _answer_of(text)
            case Creation.KEY_TAKEN:
                replayed = _replay(context, idempotency_key or "", digest, now=now)
                if replayed is not None:
                    return replayed
            case Creation.ID_TAKEN:
                existing = _existing_same(context, schedule_id, digest)
                if existing is not None:
                    return _keep_answer(context, existing, idempotency_key, digest, now=now)


def plan_creation(
    context: Context, body: Mapping[str, object], *, actor: Actor, now: datetime
) -> tuple[ScheduleRecord, NewSchedule]:
    """The schedule that the body would create under the id that it names. Raises as `create_schedule` does."""
    request = _parse_request(context, body, digest=digest_of(encode_json(dict(body))), now=now)
    schedule_id = request.named or new_schedule_id()
    return _new_schedule(context, request, schedule_id=schedule_id, now=now, actor=actor)


def _keep_answer(
    context: Context, found: CreatedSchedule, key: str | None, digest: str, *, now: datetime
) -> CreatedSchedule:
    """A key belongs to the first body that it came with, also where that body's schedule was there already."""
    if key is None:
        return found
    answer = encode_json({"created": False, "body": found.body})
    if context.store.commit_idempotency(record_of(key, digest, answer, now=now), now=now):
        return found
    return _replay(context, key, digest, now=now) or found


def _replay(context: Context, key: str, digest: str, *, now: datetime) -> CreatedSchedule | None:
    answer = kept_answer(context, key, digest, now=now)
    return None if answer is None else _answer_of(answer)


def _answer_of(text: JsonText) -> CreatedSchedule:
    """An answer from its canonical text, at creation as at a replay: both are then the same bytes."""
    answer = load_json(text)
    body = in_shown_order(answer["body"])
    return CreatedSchedule(schedule_id=ScheduleId(str(body["id"])), created=answer["created"], body=body)


def _existing_same(context: Context, schedule_id: ScheduleId, digest: str) -> CreatedSchedule | None:
    """The schedule of that id if the same body made it. Raises `Conflict` where another did, or it has ended."""
    record = context.store.get_schedule(schedule_id)
    if record is None:
        return None
    if record.schedule.definition_digest != digest or record.schedule.status is ScheduleStatus.ENDED:
        ended = (
            " and has ended" if record.schedule.status is ScheduleStatus.ENDED else " with another definition"
        )
        raise Conflict(f"Schedule {schedule_id!r} exists already{ended}; choose another id.", field="id")
    return CreatedSchedule(schedule_id=schedule_id, created=False, body=record_to_wire(context, record))


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
    check_size(definition, job)
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
    place = Place(number=1, effective_from=next_whole_second(now))
    resolved = resolve_version(
        context, request.definition, place, schedule_id=schedule_id, now=now, actor=actor
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
        cursor=cursor_at(resolved.version, resolved.first),
        latest_version=1,
        created_at=now,
        updated_at=now,
        history_from=EPOCH,
        careful_until=None,
        definition_digest=request.digest,
    )
    event = AuditEvent(
        schedule_id=schedule_id, action="schedule.create", at=now, actor=actor.name, reason=actor.reason
    )
    new = NewSchedule(
        schedule=schedule,
        first=resolved.new,
        event=event,
        idempotency=None,
    )
    return ScheduleRecord(schedule=schedule, version=resolved.version, suspensions=()), new
