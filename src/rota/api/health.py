"""Routes for probes: whether the process lives, and whether it can work. They take any query and need no body."""

from fastapi import APIRouter
from starlette.responses import Response

from rota.api import answer_shapes
from rota.api.answers import GivenContext, answer
from rota.api.operations import Answer, operation
from rota.service.health import check_readiness

router = APIRouter()


@router.get(
    "/health/live",
    **operation(
        "health.live",
        summary="Ask whether the process lives",
        answers={200: Answer(shape=answer_shapes.Liveness, description="It does.")},
        takes_any_query=True,
    ),
)
def show_liveness() -> Response:
    """Answered without a look at the store: restarting this process does not mend a store."""
    return answer({"status": "live"})


@router.get(
    "/health/ready",
    **operation(
        "health.ready",
        summary="Ask whether Rota can work",
        answers={
            200: Answer(shape=answer_shapes.Readiness, description="It can; look at the warnings."),
            503: Answer(shape=answer_shapes.Readiness, description="It cannot; `checks` says why."),
        },
        takes_any_query=True,
    ),
)
def show_readiness(context: GivenContext) -> Response:
    """The store and the clock decide. Partitions that no dispatcher holds, and a backlog, are warnings."""
    readiness = check_readiness(context)
    return answer(readiness.body, status=200 if readiness.is_ready else 503)
