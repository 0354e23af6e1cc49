"""Routes of jobs: list, show, put."""

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from rota.api import answer_shapes, request_shapes
from rota.api import parameters as parameter
from rota.api.answers import GivenContext, answer, path_of
from rota.api.bodies import ObjectBody
from rota.api.operations import Answer, operation
from rota.api.paging import asked_page, no_filter, page_of
from rota.api.parameters import Query, read_query
from rota.service import jobs
from rota.service.queries import name_place_to_wire, parse_name_place

router = APIRouter(dependencies=[Depends(read_query)])


@router.get(
    "/jobs",
    **operation(
        "job.list",
        summary="List jobs",
        answers={200: Answer(shape=answer_shapes.JobPage, description="A page of them, by name.")},
        parameters=(parameter.CURSOR, parameter.LIMIT),
    ),
)
def list_jobs(context: GivenContext, query: Query) -> Response:
    """Jobs by name."""
    asked = asked_page(query, parse_place=parse_name_place, parse_filter=no_filter)
    found = jobs.list_jobs(context, after=asked.place, limit=asked.limit + 1)
    return answer(
        page_of([(name_place_to_wire(str(item["name"])), item) for item in found], limit=asked.limit)
    )


@router.get(
    "/jobs/{name}",
    **operation(
        "job.show",
        summary="Show a job",
        answers={200: Answer(shape=answer_shapes.Job, description="The job.")},
        problems=(404,),
    ),
)
def show_job(context: GivenContext, name: str) -> Response:
    """The job, every default resolved."""
    return answer(jobs.show_job(context, name))


@router.put(
    "/jobs/{name}",
    **operation(
        "job.put",
        summary="Create or replace a job",
        answers={
            201: Answer(shape=answer_shapes.Job, description="It was created.", headers=("Location",)),
            200: Answer(shape=answer_shapes.Job, description="It was replaced."),
        },
        body=request_shapes.JobFields,
    ),
)
def put_job(context: GivenContext, request: Request, name: str, body: ObjectBody) -> Response:
    """Workers do this for the jobs that they have. What the body leaves out takes its default."""
    created, job = jobs.put_job(context, name, body)
    if not created:
        return answer(job)
    return answer(job, status=201, headers={"Location": path_of(request, "job.show", name=name)})
