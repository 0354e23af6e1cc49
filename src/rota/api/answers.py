"""What handlers are given and give back: the context of the use cases, and JSON answers."""

from collections.abc import Mapping
from typing import Annotated

from fastapi import Depends
from fastapi.responses import JSONResponse
from starlette.requests import Request
from starlette.responses import Response

from rota.service.context import Context
from rota.service.representation import Wire


async def context_of(request: Request) -> Context:
    """The context that the application was made with."""
    context = request.app.state.context
    assert isinstance(context, Context)  # noqa: S101 - put there by create_api
    return context


GivenContext = Annotated[Context, Depends(context_of)]


def answer(body: Wire, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer, not to be cached: an ETag here is for conditional edits and does not change with the state."""
    return JSONResponse(body, status_code=status, headers={"Cache-Control": "no-store"} | dict(headers or {}))


def schedule_answer(body: Wire, *, status: int = 200, location: str | None = None) -> Response:
    """A schedule, with the ETag that an edit names in `If-Match`: its latest version's number."""
    headers = {"ETag": f'"{body["latest_version"]}"'}
    if location is not None:
        headers["Location"] = location
    return answer(body, status=status, headers=headers)


def path_of(request: Request, route_name: str, /, **parts: str) -> str:
    """The path of a route under the address that the application is served at."""
    return request.url_for(route_name, **parts).path
