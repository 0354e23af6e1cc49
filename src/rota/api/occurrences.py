"""Routes of a schedule's occurrences: to come, and what became of them."""

from fastapi import APIRouter, Depends
from starlette.responses import Response

from rota.api import answer_shapes as answers
from rota.api import parameters as parameter
from rota.api.answers import GivenContext, answer
from rota.api.operations import Answer, operation
from rota.api.paging import asked_page, no_filter, page_of
from rota.api.parameters import Query, asked_count, read_query
from rota.service import occurrences
from rota.service.queries import ledger_place_to_wire, parse_ledger_place

router = APIRouter(dependencies=[Depends(read_query)])


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
    """The next occurrences after the present, soonest due first: planned runs, and what the versions name.

    What they name and will not run is told apart: suppressed, or skipped on request.
    """
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
