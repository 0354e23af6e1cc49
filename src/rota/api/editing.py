"""Routes that change definitions: edit one schedule, apply a document of several."""

from fastapi import APIRouter, Depends
from starlette.responses import Response

from rota.api import answer_shapes as answers
from rota.api import parameters as parameter
from rota.api import request_shapes as requests
from rota.api.answers import GivenContext, answer, schedule_answer
from rota.api.bodies import MERGE_PATCH_MEDIA_TYPE, ObjectBody, parse_reason
from rota.api.operations import JSON_MEDIA_TYPE, Answer, operation
from rota.api.parameters import ActorName, DryRun, read_query
from rota.api.preconditions import IfMatch, expected_version, precondition_checked
from rota.api.schedules import SHOWN_OR_TOLD
from rota.domain.definition import FieldErrors
from rota.domain.edit_form import parse_edit
from rota.domain.errors import InvalidRequest
from rota.service import applying, dry_runs, editing
from rota.service.context import Actor

router = APIRouter(dependencies=[Depends(read_query)])


@router.patch(
    "/schedules/{schedule_id}",
    **operation(
        "schedule.edit",
        summary="Edit a schedule",
        answers={200: SHOWN_OR_TOLD},
        problems=(404, 409, 412, 428),
        parameters=(parameter.DRY_RUN, parameter.IF_MATCH, parameter.ACTOR),
        body=requests.EditFields,
        body_types=(MERGE_PATCH_MEDIA_TYPE, JSON_MEDIA_TYPE),
    ),
)
def edit_schedule(
    context: GivenContext,
    schedule_id: str,
    *,
    dry_run: DryRun,
    body: ObjectBody,
    precondition: IfMatch,
    actor: ActorName,
) -> Response:
    """Make the next version by a merge-patch of the latest one. A patch that changes nothing makes no version.

    What has its outcome, or was planned, keeps its version. Of each period one occurrence runs, of whichever version.
    """
    errors = FieldErrors()
    reason = parse_reason(errors, body)
    edit = errors.attempt("", lambda: parse_edit(body))
    if errors.errors or edit is None:
        raise InvalidRequest(*errors.errors)
    who = Actor(name=actor, reason=reason)
    expected = expected_version(context, schedule_id, precondition)
    with precondition_checked():
        if dry_run:
            told = dry_runs.dry_run_edit(context, schedule_id, edit, expected_version=expected, actor=who)
            return answer(told)
        edited = editing.edit_schedule(context, schedule_id, edit, expected_version=expected, actor=who)
    return schedule_answer(edited)


@router.post(
    "/apply",
    **operation(
        "schedule.apply",
        summary="Apply a document of schedules",
        answers={
            200: Answer(
                shape=answers.Application, description="What was done, or would be, schedule by schedule."
            )
        },
        problems=(409,),
        parameters=(parameter.DRY_RUN, parameter.ACTOR),
        body=requests.Document,
    ),
)
def apply_document(context: GivenContext, dry_run: DryRun, body: ObjectBody, actor: ActorName) -> Response:
    """Create what is not there, edit what differs, end what is marked `ended`; all else is left alone.

    Everything is planned before anything is written: with one wrong schedule nothing is done. Applying the same
    document again changes nothing.
    """
    return answer(applying.apply_document(context, body, dry_run=dry_run, actor=Actor(name=actor)))
