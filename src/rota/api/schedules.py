"""Routes of schedules: create, list, show, pause, resume, end, and what is to come and what became of it."""

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from rota.api import answer_shapes as answers
from rota.api import parameters as parameter
from rota.api import request_shapes as requests
from rota.api.answers import GivenContext, answer, path_of, schedule_answer
from rota.api.bodies import REASON_FIELDS, ObjectBody, OptionalBody, parse_flag, parse_reason, reason_alone
from rota.api.operations import Answer, operation
from rota.api.paging import asked_limit, asked_page, no_filter, page_of
from rota.api.parameters import ActorName, Query, asked_count, read_query, reason_in
from rota.domain.definition import FieldErrors
from rota.domain.identity import ScheduleId
from rota.service import creation, occurrences, schedules
from rota.service.context import Actor
from rota.service.queries import (
    ledger_place_to_wire,
    name_place_to_wire,
    parse_ledger_place,
    parse_name_place,
    parse_schedule_filter,
)

router = APIRouter(dependencies=[Depends(read_query)])

SHOWN = Answer(shape=answers.Schedule, description="The schedule as it is now.", headers=("ETag",))
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
        answers={200: SHOWN},
        problems=(404, 409),
        parameters=(parameter.ACTOR,),
        body=requests.Reason,
        is_body_required=False,
    ),
)
def pause_schedule(context: GivenContext, schedule_id: str, body: OptionalBody, actor: ActorName) -> Response:
    """Nothing is admitted from now on. What is queued or running goes on. Pausing what is paused changes nothing."""
    return schedule_answer(
        schedules.pause_schedule(context, schedule_id, actor=Actor(name=actor, reason=reason_alone(body)))
    )


@router.post(
    "/schedules/{schedule_id}/resume",
    **operation(
        "schedule.resume",
        summary="Resume a schedule",
        answers={200: SHOWN},
        problems=(404, 409),
        parameters=(parameter.ACTOR,),
        body=requests.Resumption,
        is_body_required=False,
    ),
)
def resume_schedule(
    context: GivenContext, schedule_id: str, body: OptionalBody, actor: ActorName
) -> Response:
    """Admission goes on, after a pause or after an error that was set right.

    What fell due before it stopped follows the overdue policy; what fell into the pause is skipped as `paused`, or
    follows the policy too with `apply_overdue`. Resuming what is active changes nothing.
    """
    errors = FieldErrors()
    errors.refuse_unknown(body, RESUME_FIELDS)
    reason = parse_reason(errors, body)
    apply_overdue = parse_flag(errors, body, "apply_overdue")
    errors.raise_if_any()
    resumed = schedules.resume_schedule(
        context, schedule_id, apply_overdue=apply_overdue, actor=Actor(name=actor, reason=reason)
    )
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


@router.get(
    "/schedules/{schedule_id}/upcoming",
    **operation(
        "schedule.upcoming",
        summary="List occurrences to come",
        answers={200: Answer(shape=answers.Upcoming, description="The next ones, soonest first.")},
        problems=(404, 409),
        parameters=(parameter.COUNT,),
    ),
)
def list_upcoming(context: GivenContext, schedule_id: str, query: Query) -> Response:
    """The next occurrences that the schedule's definition names after the present."""
    query.check(asked_count)
    return answer(occurrences.list_upcoming(context, schedule_id, count=asked_count(query.values)))


@router.get(
    "/schedules/{schedule_id}/occurrences",
    **operation(
        "schedule.occurrences",
        summary="List what became of occurrences",
        answers={
            200: Answer(shape=answers.LedgerPage, description="A page of runs and skips, newest first.")
        },
        problems=(404,),
        parameters=(parameter.CURSOR, parameter.LIMIT),
    ),
)
def list_occurrences(context: GivenContext, schedule_id: str, query: Query) -> Response:
    """Every occurrence that was decided: a run, or a skip with its reason. A long range of skips is one entry."""
    asked = asked_page(query, parse_place=parse_ledger_place, parse_filter=no_filter)
    entries = occurrences.list_ledger(context, schedule_id, before=asked.place, limit=asked.limit + 1)
    return answer(page_of([(ledger_place_to_wire(key), item) for key, item in entries], limit=asked.limit))


@router.get(
    "/schedules/{schedule_id}/history",
    **operation(
        "schedule.history",
        summary="List who did what",
        answers={200: Answer(shape=answers.History, description="The newest events, newest first.")},
        problems=(404,),
        parameters=(parameter.LIMIT,),
    ),
)
def list_history(context: GivenContext, schedule_id: str, query: Query) -> Response:
    """Who created, paused, resumed or ended the schedule or cancelled a run of it, when and why."""
    query.check(asked_limit)
    events = schedules.list_history(context, schedule_id, limit=asked_limit(query.values))
    return answer({"items": events, "next_cursor": None})
