"""The route that shows the occurrences of a definition before it is saved."""

from fastapi import APIRouter, Depends
from starlette.responses import Response

from rota.api import answer_shapes, request_shapes
from rota.api.answers import GivenContext, answer
from rota.api.bodies import ObjectBody
from rota.api.operations import Answer, operation
from rota.api.parameters import read_query
from rota.service import occurrences

router = APIRouter(dependencies=[Depends(read_query)])


@router.post(
    "/preview",
    **operation(
        "schedule.preview",
        summary="Preview a definition",
        answers={
            200: Answer(shape=answer_shapes.Preview, description="Its next occurrences, soonest first.")
        },
        body=request_shapes.PreviewRequest,
    ),
)
def preview(context: GivenContext, body: ObjectBody) -> Response:
    """The next occurrences of a definition, with local time and offset, and the local times that do not exist."""
    return answer(occurrences.preview(context, body))
