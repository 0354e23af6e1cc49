"""The route of the partitions: who holds them, and how much of each is due."""

from fastapi import APIRouter, Depends
from starlette.responses import Response

from rota.api import answer_shapes
from rota.api.answers import GivenContext, answer
from rota.api.operations import Answer, operation
from rota.api.parameters import read_query
from rota.service import partitions

router = APIRouter(dependencies=[Depends(read_query)])


@router.get(
    "/partitions",
    **operation(
        "partition.list",
        summary="List the partitions",
        answers={
            200: Answer(
                shape=answer_shapes.PartitionOverview,
                description="All of them by number, and the dispatchers that are there.",
            )
        },
    ),
)
def list_partitions(context: GivenContext) -> Response:
    """Who holds each partition, under which epoch and until when, and how much of it is due and waits."""
    return answer(partitions.show_partitions(context))
