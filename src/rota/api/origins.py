"""No web page of elsewhere may command this API or read from it: browsers say whom a request is for and who made it.

A page on any site can make a browser send requests to an address on this machine. Those that need no JSON body (pause,
resume, cancel) would be taken, though their sender could not read the answer. Browsers name the page's origin with
every request that may change something; programs name none.

A page whose own name is made to point at this machine (DNS rebinding) has the server's origin, and could read too. Its
requests still name it as their `Host`, so a server on loopback answers only to the names that loopback has.
"""

import ipaddress
import re
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from rota.api.problems import ProblemKind, problem_response
from rota.domain.errors import FieldError

FOREIGN_ORIGIN = ProblemKind(403, "foreign-origin", "The request comes from a page of elsewhere")
FOREIGN_HOST = ProblemKind(421, "foreign-host", "The request is for another host")
READING = frozenset({"GET", "HEAD", "OPTIONS"})
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "::1", "localhost"})

HOST = re.compile(r"(?:\[(?P<ip>[0-9A-Fa-f:.]+)\]|(?P<name>[^\s:/@\[\]]+))(?::[0-9]+)?")


def hosts_on(address: str, *, named: str) -> frozenset[str] | None:
    """The hosts to answer to where a server listens on `address`, which was given as `named`; None: to any.

    Beyond loopback it is not known by which names a server is reached.
    """
    try:
        is_loopback = ipaddress.ip_address(address).is_loopback
    except ValueError:
        return None
    return LOOPBACK_HOSTS | {address, named.lower()} if is_loopback else None


class OwnHostOnly:
    """ASGI middleware: a request whose `Host` is none of `hosts`, whatever its port, is refused; None takes any."""

    def __init__(self, app: ASGIApp, *, hosts: Collection[str] | None) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._hosts is not None and scope["type"] == "http":
            given = Headers(scope=scope).get("host")
            # Browsers always name a host. Only a program of HTTP/1.0 may name none.
            if given is not None and _host_of(given) not in self._hosts:
                message = f"{given!r} is not answered to; {', '.join(sorted(self._hosts))} are."
                response = problem_response(
                    Request(scope),
                    FOREIGN_HOST,
                    detail=f"Host: {message}",
                    errors=[FieldError("Host", message)],
                )
                await response(scope, receive, send)
                return
        await self._app(scope, receive, send)


class OwnOriginOnly:
    """ASGI middleware: a writing request whose `Origin` is not the address it was sent to is refused."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] not in READING and _is_foreign(Headers(scope=scope)):
            message = "Send it from a program, or from a page that this server serves."
            response = problem_response(
                Request(scope), FOREIGN_ORIGIN, detail=message, errors=[FieldError("Origin", message)]
            )
            await response(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _host_of(header: str) -> str | None:
    """The name or IP address in a `Host`, without its port; None for what is no host."""
    found = HOST.fullmatch(header)
    return (found["ip"] or found["name"]).lower() if found else None


def _is_foreign(headers: Headers) -> bool:
    origin = headers.get("origin")
    if origin is None:
        return False
    try:
        return urlsplit(origin).netloc != headers.get("host", "")
    except ValueError:
        return True
