"""Routes of what a schedule was: its versions, and who did what to it."""

import re
from typing import Annotated

from fastapi import APIRouter, Depends, Path
from starlette.responses import Response

from rota.api import answer_shapes as answers
from rota.api import parameters as parameter
from rota.api.answers import GivenContext, answer
from rota.api.operations import Answer, operation
from rota.api.paging import asked_limit, asked_page, no_filter, page_of
from rota.api.parameters import Query, read_query
from rota.domain.errors import NotFound
from rota.service import schedules
from rota.service.queries import parse_version_place, version_place_to_wire

router = APIRouter(dependencies=[Depends(read_query)])

NUMBER = r"[1-9][0-9]{0,8}"
VersionNumber = Annotated[str, Path(json_schema_extra={"pattern": f"^{NUMBER}$"})]


@router.get(
    "/schedules/{schedule_id}/versions",
    **operation(
        "schedule.versions",
        summary="List versions",
        answers={200: Answer(shape=answers.VersionPage, description="A page of them, latest first.")},
        problems=(404,),
        parameters=(parameter.CURSOR, parameter.LIMIT),
    ),
)
def list_versions(context: GivenContext, schedule_id: str, query: Query) -> Response:
    """Every definition that the schedule has had, latest first, each with its window."""
    asked = asked_page(query, parse_place=parse_version_place, parse_filter=no_filter)
    found = schedules.list_versions(context, schedule_id, before=asked.place, limit=asked.limit + 1)
    return answer(
        page_of(
            [(version_place_to_wire(int(str(item["version"]))), item) for item in found], limit=asked.limit
        )
    )


@router.get(
    "/schedules/{schedule_id}/versions/{number}",
    **operation(
        "schedule.version",
        summary="Show a version",
        answers={200: Answer(shape=answers.Version, description="The version.")},
        problems=(404,),
    ),
)
def show_version(context: GivenContext, schedule_id: str, number: VersionNumber) -> Response:
    """The version, every default resolved. It never changes, but for the end of its window and its tz data."""
    if not re.fullmatch(NUMBER, number, re.ASCII):
        raise NotFound("version", f"{schedule_id}.{number}")
    return answer(schedules.show_version(context, schedule_id, int(number)))


@router.get(
    "/schedules/{schedule_id}/history",
    **operation(
        "schedule.history",
        summary="List who did what",
        answers={200: Answer(shape=answers.History, description="The newest events, newest first.")},
        problems=(404,),
        parameters=(parameter.LIMIT,),
    ),
)
def list_history(context: GivenContext, schedule_id: str, query: Query) -> Response:
    """Who did what to the schedule, its occurrences and its runs, when and why, with what an edit changed."""
    query.check(asked_limit)
    events = schedules.list_history(context, schedule_id, limit=asked_limit(query.values))
    return answer({"items": events, "next_cursor": None})
