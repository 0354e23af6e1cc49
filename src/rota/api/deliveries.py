"""Routes of deliveries: list them, have dead ones tried again."""

from fastapi import APIRouter, Depends
from starlette.responses import Response

from rota.api import answer_shapes, request_shapes
from rota.api import parameters as parameter
from rota.api.answers import GivenContext, answer
from rota.api.bodies import REASON_FIELDS, ObjectBody, OptionalBody, reason_alone
from rota.api.matching import no_place, parse_matching
from rota.api.operations import Answer, operation
from rota.api.paging import asked_page, page_of
from rota.api.parameters import ActorName, DryRun, Query, read_query
from rota.service import deliveries
from rota.service.context import Actor
from rota.service.queries import (
    DELIVERY_FILTERS,
    name_place_to_wire,
    parse_delivery_filter,
    parse_name_place,
)

router = APIRouter(dependencies=[Depends(read_query)])

REDRIVE_FIELDS = REASON_FIELDS | set(DELIVERY_FILTERS)


@router.get(
    "/deliveries",
    **operation(
        "delivery.list",
        summary="List deliveries",
        answers={200: Answer(shape=answer_shapes.DeliveryPage, description="A page of them, by run id.")},
        parameters=(
            parameter.DELIVERY_STATE,
            parameter.JOB,
            parameter.SCHEDULE,
            parameter.CURSOR,
            parameter.LIMIT,
        ),
    ),
)
def list_deliveries(context: GivenContext, query: Query) -> Response:
    """Messages on their way to sinks, and dead ones, by run id."""
    asked = asked_page(query, parse_place=parse_name_place, parse_filter=parse_delivery_filter)
    found = deliveries.list_deliveries(context, asked.filter_, after=asked.place, limit=asked.limit + 1)
    return answer(
        page_of([(name_place_to_wire(str(item["run_id"])), item) for item in found], limit=asked.limit)
    )


@router.post(
    "/deliveries/redrive",
    **operation(
        "delivery.redrive_many",
        summary="Redrive dead deliveries by a filter",
        answers={200: Answer(shape=answer_shapes.Redriving, description="How many it were, or would be.")},
        parameters=(parameter.DRY_RUN, parameter.ACTOR),
        body=request_shapes.RedriveRequest,
    ),
)
def redrive_deliveries(
    context: GivenContext, dry_run: DryRun, body: ObjectBody, actor: ActorName
) -> Response:
    """The dead ones that match are tried again at once, their age counted anew.

    At most 1,000 in one request; where there are more, it says so and may be repeated.
    """
    asked = parse_matching(body, REDRIVE_FIELDS, parse_filter=parse_delivery_filter, parse_place=no_place)
    who = Actor(name=actor, reason=asked.reason)
    return answer(deliveries.redrive_deliveries(context, asked.filter_, dry_run=dry_run, actor=who))


@router.post(
    "/deliveries/{run_id}/redrive",
    **operation(
        "delivery.redrive",
        summary="Redrive a dead delivery",
        answers={200: Answer(shape=answer_shapes.Delivery, description="The delivery as it is now.")},
        problems=(404,),
        parameters=(parameter.ACTOR,),
        body=request_shapes.Reason,
        is_body_required=False,
    ),
)
def redrive_delivery(context: GivenContext, run_id: str, body: OptionalBody, actor: ActorName) -> Response:
    """A dead one is tried again at once, its age counted anew; any other is left as it is."""
    who = Actor(name=actor, reason=reason_alone(body))
    return answer(deliveries.redrive_delivery(context, run_id, actor=who))
