"""Routes of the tz data: which stored rules are not this process's, and taking up the new ones."""

from fastapi import APIRouter, Depends
from starlette.responses import Response

from rota.api import answer_shapes as answers
from rota.api import parameters as parameter
from rota.api import request_shapes as requests
from rota.api.answers import GivenContext, answer
from rota.api.bodies import OptionalBody, reason_alone
from rota.api.operations import Answer, operation
from rota.api.parameters import ActorName, DryRun, read_query
from rota.service import zone_updates
from rota.service.context import Actor

router = APIRouter(dependencies=[Depends(read_query)])


@router.get(
    "/zones",
    **operation(
        "zone.check",
        summary="List zones whose rules have changed",
        answers={
            200: Answer(shape=answers.ZoneCheck, description="Each with how many schedules depend on it.")
        },
    ),
)
def check_zones(context: GivenContext) -> Response:
    """Zones with whose rules schedules were computed, and whose rules are others here. Those schedules wait."""
    return answer(zone_updates.check_zones(context))


@router.post(
    "/zones/apply",
    **operation(
        "zone.apply",
        summary="Take up the rules of the zones as they are here",
        answers={200: Answer(shape=answers.ZoneUpdate, description="What was done, or would be.")},
        parameters=(parameter.DRY_RUN, parameter.ACTOR),
        body=requests.Reason,
        is_body_required=False,
    ),
)
def apply_zones(context: GivenContext, dry_run: DryRun, body: OptionalBody, actor: ActorName) -> Response:
    """A schedule whose instants change gets a version of the same definition; the others are stamped anew.

    Applying again goes on where it broke off, and changes nothing where all is done.
    """
    who = Actor(name=actor, reason=reason_alone(body))
    return answer(zone_updates.apply_zones(context, dry_run=dry_run, actor=who))
