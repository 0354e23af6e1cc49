"""Errors as `application/problem+json` (RFC 9457): which status each has, and what a client is told.

`type` is a name that programs may rely on, `detail` a sentence for people, `errors` the bad fields one by one. An error
without a row here is a fault of the server: it is logged, and its text stays inside.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import quote

from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from rota.api.parameters import IF_MATCH
from rota.api.preconditions import MalformedPrecondition, PreconditionFailed, PreconditionRequired
from rota.domain.errors import (
    Conflict,
    FieldError,
    IllegalTransition,
    InvalidExpression,
    InvalidRequest,
    MalformedBody,
    NotFound,
    RotaError,
    Stale,
    TooLarge,
    UnreadableRow,
    ZoneRulesDiffer,
)
from rota.service.health import UNAVAILABLE
from rota.service.idempotency import KeyReused
from rota.telemetry import get_logger

PROBLEM_MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:rota:problem:"
RETRY_AFTER_SECONDS = 1

ERRORS_SHOWN_MAX = 100
TEXT_CHARACTERS_MAX = 1_000
"""What a client sent is told back to it only so far: an answer is never much longer than its request."""

log = get_logger("api")


class UnsupportedMediaType(RotaError):
    """The body is not said to be JSON; send it with `Content-Type: application/json`."""


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """The part of a problem that does not depend on the request."""

    status: int
    slug: str
    title: str


KINDS: Mapping[type[RotaError], ProblemKind] = {
    InvalidRequest: ProblemKind(422, "invalid-request", "Fields of the request are wrong"),
    InvalidExpression: ProblemKind(422, "invalid-request", "Fields of the request are wrong"),
    KeyReused: ProblemKind(422, "key-reused", "The Idempotency-Key was used with another request"),
    MalformedBody: ProblemKind(400, "malformed-body", "The body is not JSON that Rota keeps"),
    TooLarge: ProblemKind(413, "too-large", "Something is over its size limit"),
    UnsupportedMediaType: ProblemKind(415, "unsupported-media-type", "The body is not said to be JSON"),
    NotFound: ProblemKind(404, "not-found", "There is no such thing"),
    Conflict: ProblemKind(409, "conflict", "The request contradicts what is stored"),
    IllegalTransition: ProblemKind(409, "conflict", "The request contradicts what is stored"),
    ZoneRulesDiffer: ProblemKind(409, "zone-rules-differ", "The rules of the time zone have changed"),
    MalformedPrecondition: ProblemKind(400, "malformed-precondition", "If-Match is no list of ETags"),
    PreconditionFailed: ProblemKind(412, "precondition-failed", "The schedule has another version by now"),
    PreconditionRequired: ProblemKind(
        428, "precondition-required", "The request has to say for which version it is"
    ),
    UnreadableRow: ProblemKind(500, "unreadable", "What is stored makes no sense"),
    Stale: ProblemKind(409, "stale", "It changed meanwhile; read it again"),
} | dict.fromkeys(UNAVAILABLE, ProblemKind(503, "unavailable", "Rota cannot answer at the moment"))

NO_SUCH_ROUTE = ProblemKind(404, "no-such-route", "There is nothing at this address")
METHOD_NOT_ALLOWED = ProblemKind(405, "method-not-allowed", "The address does not take this method")
INTERNAL = ProblemKind(500, "internal", "Rota failed; the request may be repeated")


def problem_response(
    request: Request,
    kind: ProblemKind,
    *,
    detail: str,
    errors: Sequence[FieldError] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The answer that tells of a problem. Long texts and long lists are cut."""
    body = {
        "type": TYPE_PREFIX + kind.slug,
        "title": kind.title,
        "status": kind.status,
        "detail": _cut(detail),
        "instance": quote(request.scope["path"], errors="replace"),
        "errors": [
            {"field": _cut(error.field), "message": _cut(error.message)}
            for error in errors[:ERRORS_SHOWN_MAX]
        ],
    }
    return JSONResponse(
        body,
        status_code=kind.status,
        headers={"Cache-Control": "no-store"} | dict(headers or {}),
        media_type=PROBLEM_MEDIA_TYPE,
    )


async def answer_rota_error(request: Request, error: Exception) -> Response:
    """The answer to an error that Rota raised on purpose."""
    kind = next((KINDS[class_] for class_ in type(error).__mro__ if class_ in KINDS), None)
    if kind is None:
        return await answer_unexpected(request, error)
    headers = {}
    if kind.status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
        log.warning("request.unavailable", method=request.method, path=request.url.path, problem=str(error))
    if request.scope.get(UNREAD_BODY):
        headers["Connection"] = "close"
    errors = _field_errors(error)
    detail = _summary(errors) if isinstance(error, InvalidRequest) else str(error)
    return problem_response(request, kind, detail=detail, errors=errors, headers=headers)


UNREAD_BODY = "rota.unread_body"
"""Set in a request's scope where the rest of its body is left unread, so that the connection has to go."""


async def answer_unexpected(request: Request, error: Exception) -> Response:
    """The answer to everything else: nothing of the inside is told."""
    log.error("request.failed", method=request.method, path=request.url.path, exc_info=error)
    return problem_response(request, INTERNAL, detail="The failure was logged.")


async def answer_http_error(request: Request, error: Exception) -> Response:
    """The answer to an address or a method that does not exist."""
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for it alone
    headers = dict(error.headers or {})
    match error.status_code:
        case HTTPStatus.NOT_FOUND:
            detail = f"There is nothing at {request.scope['path']!r}; /openapi.json lists what there is."
            return problem_response(request, NO_SUCH_ROUTE, detail=detail, headers=headers)
        case HTTPStatus.METHOD_NOT_ALLOWED:
            *others, last = headers.get("Allow", "another").split(", ")
            taken = f"{', '.join(others)} or {last}" if others else last
            detail = f"{request.method} is not taken here; take {taken}."
            return problem_response(request, METHOD_NOT_ALLOWED, detail=detail, headers=headers)
        case status:
            kind = ProblemKind(status, f"http-{status}", HTTPStatus(status).phrase)
            return problem_response(request, kind, detail=str(error.detail), headers=headers)


def _field_errors(error: Exception) -> Sequence[FieldError]:
    match error:
        case InvalidRequest():
            return error.errors
        case InvalidExpression():
            return (FieldError(error.part, error.problem),)
        case KeyReused():
            return (FieldError("Idempotency-Key", str(error)),)
        case MalformedPrecondition() | PreconditionFailed() | PreconditionRequired():
            return (FieldError(IF_MATCH.name, str(error)),)
        case TooLarge(field=str(field)) | Conflict(field=str(field)) | MalformedBody(field=str(field)):
            return (FieldError(field, str(error)),)
        case _:
            return ()


def _summary(errors: Sequence[FieldError]) -> str:
    if len(errors) == 1:
        return f"{errors[0].field}: {errors[0].message}"
    return f"{len(errors)} fields are wrong: {', '.join(error.field for error in errors)}."


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_CHARACTERS_MAX else text[:TEXT_CHARACTERS_MAX] + "…"
