"""Routes of schedules: create, list, show, pause, resume, end."""

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from rota.api import answer_shapes as answers
from rota.api import parameters as parameter
from rota.api import request_shapes as requests
from rota.api.answers import GivenContext, answer, path_of, schedule_answer
from rota.api.bodies import REASON_FIELDS, ObjectBody, OptionalBody, parse_flag, parse_reason, reason_alone
from rota.api.operations import Answer, operation
from rota.api.paging import asked_page, page_of
from rota.api.parameters import ActorName, DryRun, Query, read_query, reason_in
from rota.domain.definition import FieldErrors
from rota.domain.identity import ScheduleId
from rota.service import creation, dry_runs, schedules
from rota.service.context import Actor
from rota.service.queries import name_place_to_wire, parse_name_place, parse_schedule_filter

router = APIRouter(dependencies=[Depends(read_query)])

SHOWN = Answer(shape=answers.Schedule, description="The schedule as it is now.", headers=("ETag",))
SHOWN_OR_TOLD = Answer(
    shape=answers.Schedule,
    description="The schedule as it is now; with `dry_run`, what would come of it.",
    headers=("ETag",),
    dry_run=answers.DryRun,
)
RESUME_FIELDS = REASON_FIELDS | {"apply_overdue"}


@router.post(
    "/schedules",
    **operation(
        "schedule.create",
        summary="Create a schedule",
        answers={
            201: Answer(shape=answers.Schedule, description="It was created.", headers=("Location", "ETag")),
            200: Answer(
                shape=answers.Schedule,
                description="The same body had created it already; this is how it is now.",
                headers=("Location", "ETag"),
            ),
        },
        problems=(409,),
        parameters=(parameter.ACTOR, parameter.IDEMPOTENCY_KEY),
        body=requests.NewSchedule,
    ),
)
def create_schedule(context: GivenContext, request: Request, body: ObjectBody, actor: ActorName) -> Response:
    """Save a schedule and its version 1.

    It may be repeated safely: with an `Idempotency-Key`, or an `id` in the body, the schedule is made at most once.
    """
    created = creation.create_schedule(
        context,
        body,
        actor=Actor(name=actor),
        idempotency_key=request.headers.get(parameter.IDEMPOTENCY_KEY.name),
    )
    location = path_of(request, "schedule.show", schedule_id=created.schedule_id)
    return schedule_answer(created.body, status=201 if created.created else 200, location=location)


@router.get(
    "/schedules",
    **operation(
        "schedule.list",
        summary="List schedules",
        answers={200: Answer(shape=answers.SchedulePage, description="A page of them, by id.")},
        parameters=(parameter.STATUS, parameter.JOB, parameter.LABEL, parameter.CURSOR, parameter.LIMIT),
    ),
)
def list_schedules(context: GivenContext, query: Query) -> Response:
    """Schedules by id, ended ones included."""
    asked = asked_page(query, parse_place=parse_name_place, parse_filter=parse_schedule_filter)
    found = schedules.list_schedules(
        context,
        asked.filter_,
        after=None if asked.place is None else ScheduleId(asked.place),
        limit=asked.limit + 1,
    )
    return answer(page_of([(name_place_to_wire(str(item["id"])), item) for item in found], limit=asked.limit))


@router.get(
    "/schedules/{schedule_id}",
    **operation("schedule.show", summary="Show a schedule", answers={200: SHOWN}, problems=(404,)),
)
def show_schedule(context: GivenContext, schedule_id: str) -> Response:
    """The schedule with the definition that governs its next occurrence."""
    return schedule_answer(schedules.show_schedule(context, schedule_id))


@router.post(
    "/schedules/{schedule_id}/pause",
    **operation(
        "schedule.pause",
        summary="Pause a schedule",
        answers={200: SHOWN_OR_TOLD},
        problems=(404, 409),
        parameters=(parameter.DRY_RUN, parameter.ACTOR),
        body=requests.Reason,
        is_body_required=False,
    ),
)
def pause_schedule(
    context: GivenContext, schedule_id: str, dry_run: DryRun, body: OptionalBody, actor: ActorName
) -> Response:
    """Nothing is admitted from now on. What is queued or running goes on. Pausing what is paused changes nothing."""
    who = Actor(name=actor, reason=reason_alone(body))
    if dry_run:
        return answer(dry_runs.dry_run_pause(context, schedule_id, actor=who))
    return schedule_answer(schedules.pause_schedule(context, schedule_id, actor=who))


@router.post(
    "/schedules/{schedule_id}/resume",
    **operation(
        "schedule.resume",
        summary="Resume a schedule",
        answers={200: SHOWN_OR_TOLD},
        problems=(404, 409),
        parameters=(parameter.DRY_RUN, parameter.ACTOR),
        body=requests.Resumption,
        is_body_required=False,
    ),
)
def resume_schedule(
    context: GivenContext, schedule_id: str, dry_run: DryRun, body: OptionalBody, actor: ActorName
) -> Response:
    """Admission goes on, after a pause or after an error that was set right.

    What fell due before it stopped follows the overdue policy; what fell into the pause is skipped as `paused`, or
    follows the policy too with `apply_overdue`; so with planned runs that were held. Resuming what is active changes
    nothing.
    """
    errors = FieldErrors()
    errors.refuse_unknown(body, RESUME_FIELDS)
    reason = parse_reason(errors, body)
    apply_overdue = parse_flag(errors, body, "apply_overdue")
    errors.raise_if_any()
    who = Actor(name=actor, reason=reason)
    if dry_run:
        told = dry_runs.dry_run_resume(context, schedule_id, apply_overdue=apply_overdue, actor=who)
        return answer(told)
    resumed = schedules.resume_schedule(context, schedule_id, apply_overdue=apply_overdue, actor=who)
    return schedule_answer(resumed)


@router.delete(
    "/schedules/{schedule_id}",
    **operation(
        "schedule.end",
        summary="End a schedule",
        answers={200: SHOWN},
        problems=(403, 404, 409),
        parameters=(parameter.ACTOR, parameter.REASON),
    ),
)
def end_schedule(context: GivenContext, schedule_id: str, query: Query, actor: ActorName) -> Response:
    """No further occurrence. The schedule is shown as `ended`, its history stays, and its id is never used again.

    Ending what has ended changes nothing.
    """
    query.check(reason_in)
    who = Actor(name=actor, reason=reason_in(query.values))
    return schedule_answer(schedules.end_schedule(context, schedule_id, actor=who))
