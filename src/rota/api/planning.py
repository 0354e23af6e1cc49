"""Routes that decide occurrences one by one: plan them ahead, skip one, move one, backfill a past range."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path
from starlette.responses import Response

from rota.api import answer_shapes as answers
from rota.api import parameters as parameter
from rota.api import request_shapes as requests
from rota.api.answers import GivenContext, answer
from rota.api.bodies import REASON_FIELDS, ObjectBody, OptionalBody, parse_reason, parse_text, reason_alone
from rota.api.operations import Answer, operation
from rota.api.parameters import ActorName, DryRun, read_query
from rota.domain.definition import FieldErrors, parse_optional_duration
from rota.service import backfill, planning
from rota.service.context import Actor

router = APIRouter(dependencies=[Depends(read_query)])

PLAN_FIELDS = REASON_FIELDS | {"until"}
MOVE_FIELDS = REASON_FIELDS | {"to"}
BACKFILL_FIELDS = REASON_FIELDS | {"from", "until", "spacing"}
DECIDED = Answer(shape=answers.Run, description="The run of the occurrence as it is now.")

ScheduledAt = Annotated[
    str,
    Path(
        description="The instant that the rule names, also as in a run's id, or a local time in the schedule's zone.",
        examples=["2026-01-13T14:00:00Z", "20260113T140000Z", "2026-01-13T09:00"],
    ),
]


@router.post(
    "/schedules/{schedule_id}/plan",
    **operation(
        "schedule.plan",
        summary="Plan occurrences ahead",
        answers={200: Answer(shape=answers.Planning, description="What was planned, or would be.")},
        problems=(404, 409),
        parameters=(parameter.DRY_RUN, parameter.ACTOR),
        body=requests.PlanRequest,
    ),
)
def plan_occurrences(
    context: GivenContext, schedule_id: str, dry_run: DryRun, body: ObjectBody, actor: ActorName
) -> Response:
    """Create the runs of the occurrences up to `until` now. They keep their version and instant through any edit.

    Planning what is planned changes nothing.
    """
    errors = FieldErrors()
    errors.refuse_unknown(body, PLAN_FIELDS)
    until = parse_text(errors, body, "until", such_as="2026-02-01T00:00:00Z")
    reason = parse_reason(errors, body)
    errors.raise_if_any()
    who = Actor(name=actor, reason=reason)
    return answer(planning.plan_occurrences(context, schedule_id, until=until, dry_run=dry_run, actor=who))


@router.post(
    "/schedules/{schedule_id}/occurrences/{scheduled_at}/skip",
    **operation(
        "occurrence.skip",
        summary="Skip an occurrence",
        answers={200: DECIDED},
        problems=(404, 409),
        parameters=(parameter.ACTOR,),
        body=requests.Reason,
        is_body_required=False,
    ),
)
def skip_occurrence(
    context: GivenContext, schedule_id: str, scheduled_at: ScheduledAt, body: OptionalBody, actor: ActorName
) -> Response:
    """This one will not run, and no edit brings its period back. Skipping it again changes nothing."""
    who = Actor(name=actor, reason=reason_alone(body))
    return answer(planning.skip_occurrence(context, schedule_id, scheduled_at=scheduled_at, actor=who))


@router.post(
    "/schedules/{schedule_id}/occurrences/{scheduled_at}/move",
    **operation(
        "occurrence.move",
        summary="Move an occurrence",
        answers={200: DECIDED},
        problems=(404, 409),
        parameters=(parameter.ACTOR,),
        body=requests.MoveRequest,
    ),
)
def move_occurrence(
    context: GivenContext, schedule_id: str, scheduled_at: ScheduledAt, body: ObjectBody, actor: ActorName
) -> Response:
    """This one falls due at another time; it keeps its identity and its period. The rule is not touched."""
    errors = FieldErrors()
    errors.refuse_unknown(body, MOVE_FIELDS)
    to = parse_text(errors, body, "to", such_as="2026-01-13T11:00")
    reason = parse_reason(errors, body)
    errors.raise_if_any()
    who = Actor(name=actor, reason=reason)
    return answer(planning.move_occurrence(context, schedule_id, scheduled_at=scheduled_at, to=to, actor=who))


@router.post(
    "/schedules/{schedule_id}/backfill",
    **operation(
        "schedule.backfill",
        summary="Backfill a past range",
        answers={200: Answer(shape=answers.Backfilling, description="What was created, or would be.")},
        problems=(404, 409),
        parameters=(parameter.DRY_RUN, parameter.ACTOR),
        body=requests.BackfillRequest,
    ),
)
def backfill_range(
    context: GivenContext, schedule_id: str, dry_run: DryRun, body: ObjectBody, actor: ActorName
) -> Response:
    """Create runs of what the present version's rule names in the range, wherever no run uses the period.

    They fall due `spacing` apart, so that they do not take the place of what falls due. Repeating it creates nothing
    twice.
    """
    errors = FieldErrors()
    errors.refuse_unknown(body, BACKFILL_FIELDS)
    from_ = parse_text(errors, body, "from", such_as="2026-01-05T00:00:00Z")
    until = parse_text(errors, body, "until", such_as="2026-01-09T23:59:59Z")
    spacing = parse_optional_duration(errors, body, "spacing")
    reason = parse_reason(errors, body)
    errors.raise_if_any()
    told = backfill.backfill(
        context,
        schedule_id,
        from_=from_,
        until=until,
        spacing=backfill.SPACING_DEFAULT if spacing is None else spacing,
        dry_run=dry_run,
        actor=Actor(name=actor, reason=reason),
    )
    return answer(told)
