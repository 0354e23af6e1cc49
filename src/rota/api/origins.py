"""No web page of elsewhere may command this API: a browser says where a request comes from, and must not for us.

A page on any site can make a browser send requests to an address on this machine. Those that need no JSON body (pause,
resume, cancel) would be taken, though their sender could not read the answer. Browsers name the page's origin with
every request that may change something; programs name none.
"""

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from rota.api.problems import ProblemKind, problem_response

FOREIGN_ORIGIN = ProblemKind(403, "foreign-origin", "The request comes from a page of elsewhere")
READING = frozenset({"GET", "HEAD", "OPTIONS"})


class OwnOriginOnly:
    """ASGI middleware: a writing request whose `Origin` is not the address it was sent to is refused."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] not in READING and _is_foreign(Headers(scope=scope)):
            detail = "Send it from a program, or from a page that this server serves."
            response = problem_response(Request(scope), FOREIGN_ORIGIN, detail=detail)
            await response(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _is_foreign(headers: Headers) -> bool:
    origin = headers.get("origin")
    if origin is None:
        return False
    try:
        return urlsplit(origin).netloc != headers.get("host", "")
    except ValueError:
        return True
