"""Routes of runs: list, show, ask for one; cancel and replay one, or many by a filter."""

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from rota.api import answer_shapes, request_shapes
from rota.api import parameters as parameter
from rota.api.answers import GivenContext, answer, path_of
from rota.api.bodies import REASON_FIELDS, ObjectBody, OptionalBody, reason_alone
from rota.api.matching import no_place, parse_matching
from rota.api.operations import Answer, operation
from rota.api.paging import asked_page, page_of
from rota.api.parameters import ActorName, DryRun, Query, read_query
from rota.service import bulk, requested, runs
from rota.service.context import Actor
from rota.service.queries import (
    RUN_FILTERS,
    ledger_place_to_wire,
    parse_ledger_place,
    parse_run_filter,
)
from rota.service.representation import Wire

router = APIRouter(dependencies=[Depends(read_query)])

CANCEL_FIELDS = REASON_FIELDS | set(RUN_FILTERS)
REPLAY_FIELDS = CANCEL_FIELDS | {"cursor"}
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
            parameter.FROM,
            parameter.UNTIL,
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
    "/runs/cancel",
    **operation(
        "run.cancel_many",
        summary="Cancel runs by a filter",
        answers={200: Answer(shape=answer_shapes.Cancellation, description="How many it were, or would be.")},
        parameters=(parameter.DRY_RUN, parameter.ACTOR),
        body=request_shapes.CancelRequest,
    ),
)
def cancel_runs(context: GivenContext, dry_run: DryRun, body: ObjectBody, actor: ActorName) -> Response:
    """Of the runs that match those that wait are cancelled at once, those that run are asked to stop.

    At most 1,000 in one request; where there are more, it says so and may be repeated.
    """
    asked = parse_matching(body, CANCEL_FIELDS, parse_filter=parse_run_filter, parse_place=no_place)
    who = Actor(name=actor, reason=asked.reason)
    return answer(bulk.cancel_runs(context, asked.filter_, dry_run=dry_run, actor=who))


@router.post(
    "/runs/replay",
    **operation(
        "run.replay_many",
        summary="Replay runs by a filter",
        answers={200: Answer(shape=answer_shapes.Replaying, description="How many it were, or would be.")},
        problems=(409,),
        parameters=(parameter.DRY_RUN, parameter.ACTOR, parameter.IDEMPOTENCY_KEY),
        body=request_shapes.ReplayManyRequest,
    ),
)
def replay_runs(
    context: GivenContext, request: Request, dry_run: DryRun, body: ObjectBody, actor: ActorName
) -> Response:
    """New runs of the occurrences whose runs match and have ended, with the version and the params of those.

    At most 1,000 are looked at in one request, the newest first; where there are more, it names the place to go on at.
    """
    asked = parse_matching(body, REPLAY_FIELDS, parse_filter=parse_run_filter, parse_place=parse_ledger_place)
    told = bulk.replay_runs(
        context,
        asked.filter_,
        after=asked.place,
        dry_run=dry_run,
        actor=Actor(name=actor, reason=asked.reason),
        idempotency_key=request.headers.get(parameter.IDEMPOTENCY_KEY.name),
    )
    return answer(told)


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
