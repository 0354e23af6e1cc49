"""The HTTP API as an ASGI application."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from rota.api import (
    answer_shapes,
    deliveries,
    editing,
    health,
    history,
    jobs,
    occurrences,
    partitions,
    planning,
    preview,
    request_shapes,
    runs,
    schedules,
    work,
    zones,
)
from rota.api.operations import REF_TEMPLATE
from rota.api.origins import OwnHostOnly, OwnOriginOnly
from rota.api.problems import answer_http_error, answer_rota_error, answer_unexpected
from rota.api.waiting import WaitingRoom
from rota.domain.errors import RotaError
from rota.service.context import Context

ROUTERS: tuple[APIRouter, ...] = (
    schedules.router,
    editing.router,
    planning.router,
    occurrences.router,
    history.router,
    preview.router,
    runs.router,
    deliveries.router,
    work.router,
    jobs.router,
    zones.router,
    partitions.router,
    health.router,
)
API_VERSION = "1"


class HttpApi(FastAPI):
    """FastAPI with the shapes in its description."""

    def openapi(self) -> dict[str, object]:
        """OpenAPI 3.1; made once."""
        if not self.openapi_schema:
            described = super().openapi()
            described.setdefault("components", {})["schemas"] = _shape_schemas()
        return self.openapi_schema or {}


def create_api(context: Context, *, hosts: Collection[str] | None = None) -> FastAPI:
    """The application that answers from `context`, which it does not close.

    `hosts` are the names and addresses, in lower case, that it answers to whatever the port; None: to any.
    """
    api = HttpApi(
        title="Rota",
        version=API_VERSION,
        description="Schedules that know their time zone: one run record for each due occurrence.",
        redirect_slashes=False,
        lifespan=_ending_waits,
        docs_url=None,  # these pages load their scripts from elsewhere
        redoc_url=None,
        exception_handlers={
            RotaError: answer_rota_error,
            HTTPException: _answer_http_error,
            Exception: answer_unexpected,
        },
    )
    api.add_middleware(OwnOriginOnly)
    api.add_middleware(OwnHostOnly, hosts=hosts)
    api.state.context = context
    api.state.waiting_room = WaitingRoom()
    for router in ROUTERS:
        api.include_router(router)
    return api


@asynccontextmanager
async def _ending_waits(api: FastAPI) -> AsyncIterator[None]:
    yield
    await api.state.waiting_room.close()


async def _answer_http_error(request: Request, error: Exception) -> Response:
    """As `answer_http_error`, with all methods of the address in `Allow`: the framework names those of one route."""
    if isinstance(error, HTTPException) and error.status_code == 405:
        allowed = _methods_at(request)
        if allowed:
            error = HTTPException(405, headers={"Allow": ", ".join(allowed)})
    return await answer_http_error(request, error)


def _methods_at(request: Request) -> list[str]:
    routes = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    return sorted(
        method
        for route in routes
        if route.matches(request.scope)[0] is not Match.NONE
        for method in route.methods or ()
    )


def _shape_schemas() -> dict[str, object]:
    shapes = {
        shape
        for module in (request_shapes, answer_shapes)
        for shape in vars(module).values()
        if isinstance(shape, type)
        and issubclass(shape, request_shapes.Shape)
        and shape is not request_shapes.Shape
    }
    ordered = sorted(shapes, key=lambda shape: shape.__name__)
    _, schema = models_json_schema([(shape, "validation") for shape in ordered], ref_template=REF_TEMPLATE)
    schemas = schema["$defs"]
    assert isinstance(schemas, dict)  # noqa: S101 - what models_json_schema makes
    return schemas
