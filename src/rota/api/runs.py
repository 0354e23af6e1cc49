"""Routes of runs: list, show, cancel, ask for one, replay one."""

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from rota.api import answer_shapes, request_shapes
from rota.api import parameters as parameter
from rota.api.answers import GivenContext, answer, path_of
from rota.api.bodies import OptionalBody, reason_alone
from rota.api.operations import Answer, operation
from rota.api.paging import asked_page, page_of
from rota.api.parameters import ActorName, Query, read_query
from rota.service import requested, runs
from rota.service.context import Actor
from rota.service.queries import ledger_place_to_wire, parse_ledger_place, parse_run_filter
from rota.service.representation import Wire

router = APIRouter(dependencies=[Depends(read_query)])

SHOWN = Answer(shape=answer_shapes.RunDetail, description="The run with its attempts and its result.")
CREATED = {
    201: Answer(shape=answer_shapes.RunDetail, description="It was created.", headers=("Location",)),
    200: Answer(
        shape=answer_shapes.RunDetail,
        description="The same key had created it already; this is how it is now.",
        headers=("Location",),
    ),
}


@router.get(
    "/runs",
    **operation(
        "run.list",
        summary="List runs",
        answers={200: Answer(shape=answer_shapes.RunPage, description="A page of them, newest first.")},
        parameters=(
            parameter.SCHEDULE,
            parameter.STATE,
            parameter.JOB,
            parameter.ORIGIN,
            parameter.LABEL,
            parameter.CURSOR,
            parameter.LIMIT,
        ),
    ),
)
def list_runs(context: GivenContext, query: Query) -> Response:
    """Runs of all schedules, newest `scheduled_at` first."""
    asked = asked_page(query, parse_place=parse_ledger_place, parse_filter=parse_run_filter)
    found = runs.list_runs(context, asked.filter_, before=asked.place, limit=asked.limit + 1)
    return answer(page_of([(ledger_place_to_wire(key), item) for key, item in found], limit=asked.limit))


@router.get(
    "/runs/{run_id}",
    **operation("run.show", summary="Show a run", answers={200: SHOWN}, problems=(404,)),
)
def show_run(context: GivenContext, run_id: str) -> Response:
    """The run with its attempts, its result, and the version that made it."""
    return answer(runs.show_run(context, run_id))


@router.post(
    "/runs/{run_id}/cancel",
    **operation(
        "run.cancel",
        summary="Cancel a run",
        answers={200: SHOWN},
        problems=(404, 409),
        parameters=(parameter.ACTOR,),
        body=request_shapes.Reason,
        is_body_required=False,
    ),
)
def cancel_run(context: GivenContext, run_id: str, body: OptionalBody, actor: ActorName) -> Response:
    """A run that waits is cancelled at once. A running one is asked to stop; it is cancelled when its handler heeds it.

    Cancelling what is cancelled changes nothing.
    """
    return answer(runs.cancel_run(context, run_id, actor=Actor(name=actor, reason=reason_alone(body))))


@router.post(
    "/schedules/{schedule_id}/run",
    **operation(
        "run.request",
        summary="Run a schedule now",
        answers=CREATED,
        problems=(404, 409),
        parameters=(parameter.ACTOR, parameter.IDEMPOTENCY_KEY),
        body=request_shapes.Reason,
        is_body_required=False,
    ),
)
def request_run(
    context: GivenContext, request: Request, schedule_id: str, body: OptionalBody, actor: ActorName
) -> Response:
    """One run now, with the params that the schedule has now, also while it is paused. It uses up no period.

    It may be repeated safely with an `Idempotency-Key`.
    """
    created, run = requested.request_run(
        context,
        schedule_id,
        actor=Actor(name=actor, reason=reason_alone(body)),
        idempotency_key=request.headers.get(parameter.IDEMPOTENCY_KEY.name),
    )
    return _created(request, run, created=created)


@router.post(
    "/runs/{run_id}/replay",
    **operation(
        "run.replay",
        summary="Replay a run",
        answers=CREATED,
        problems=(404, 409),
        parameters=(parameter.ACTOR, parameter.IDEMPOTENCY_KEY),
        body=request_shapes.ReplayRequest,
    ),
)
def replay_run(
    context: GivenContext, request: Request, run_id: str, body: OptionalBody, actor: ActorName
) -> Response:
    """A new run of an occurrence whose run has ended, with the version and the params of that. It says why.

    It may be repeated safely with an `Idempotency-Key`.
    """
    created, run = requested.replay_run(
        context,
        run_id,
        actor=Actor(name=actor, reason=reason_alone(body)),
        idempotency_key=request.headers.get(parameter.IDEMPOTENCY_KEY.name),
    )
    return _created(request, run, created=created)


def _created(request: Request, run: Wire, *, created: bool) -> Response:
    location = path_of(request, "run.show", run_id=str(run["run_id"]))
    return answer(run, status=201 if created else 200, headers={"Location": location})
