"""Request bodies: read within a limit, decoded by the rules of what Rota stores.

The framework's own JSON reader is never used: it takes NaN and repeated members, and has no limit.
"""

from collections.abc import Mapping
from typing import Annotated

from fastapi import Depends
from starlette.requests import ClientDisconnect, Request

from rota.api.problems import UNREAD_BODY, UnsupportedMediaType
from rota.domain.definition import FieldErrors
from rota.domain.errors import MalformedBody, TooLarge
from rota.domain.json_text import decode_json
from rota.service.context import REASON_CHARACTERS_MAX
from rota.wire.reports import LEVELS_AROUND_RESULT

REASON_FIELDS = frozenset({"reason"})
BODY_BYTES_MAX = 256 * 1024
REPORTS_BYTES_MAX = 1024 * 1024
MERGE_PATCH_MEDIA_TYPE = "application/merge-patch+json"
DISCARDED_BYTES_MAX = 16 * 1024 * 1024
"""So much of a body over the limit is read and thrown away: a client that sends before it reads gets to the answer."""


async def read_body(request: Request) -> bytes:
    """The body, however it is framed. Raises `UnsupportedMediaType`, `TooLarge`, `MalformedBody` if cut off."""
    return await _read_within(request, BODY_BYTES_MAX)


async def read_reports(request: Request) -> dict[str, object]:
    """The members of a worker's report, which may hold many results. Raises what `read_body` and `read_object` do."""
    data = await _read_within(request, REPORTS_BYTES_MAX)
    return _object_in(data, bytes_max=REPORTS_BYTES_MAX, levels_around=LEVELS_AROUND_RESULT)


async def _read_within(request: Request, bytes_max: int) -> bytes:
    body = bytearray()
    received = 0
    try:
        async for chunk in request.stream():
            received += len(chunk)
            if received <= bytes_max:
                body += chunk
            elif received > DISCARDED_BYTES_MAX:
                request.scope[UNREAD_BODY] = True
                break
    except ClientDisconnect:
        raise MalformedBody("The connection closed before the body ended.") from None
    if received:
        _check_is_json(request)
    if received > bytes_max:
        raise TooLarge(
            f"The body is too long; at most {bytes_max} bytes are accepted. "
            "Keep large data elsewhere and send its address."
        )
    return bytes(body)


def read_object(data: Annotated[bytes, Depends(read_body)]) -> dict[str, object]:
    """The members of a body that has to be there. Raises `MalformedBody`."""
    return _object_in(data, bytes_max=BODY_BYTES_MAX)


def _object_in(data: bytes, *, bytes_max: int, levels_around: int = 0) -> dict[str, object]:
    if not data:
        raise MalformedBody("The body is empty; send a JSON object.")
    value = decode_json(data, bytes_max=bytes_max, levels_around=levels_around)
    if not isinstance(value, dict):
        raise MalformedBody("The body is not a JSON object; send its members in braces.")
    return value


def read_optional_object(data: Annotated[bytes, Depends(read_body)]) -> dict[str, object]:
    """The members of a body that may be left out."""
    return read_object(data) if data else {}


ObjectBody = Annotated[dict[str, object], Depends(read_object)]
ReportsBody = Annotated[dict[str, object], Depends(read_reports)]
OptionalBody = Annotated[dict[str, object], Depends(read_optional_object)]


def parse_reason(errors: FieldErrors, body: Mapping[str, object]) -> str | None:
    """Why something is asked for: a short text, or nothing."""
    given = body.get("reason")
    if given is None:
        return None
    if not isinstance(given, str) or not 0 < len(given) <= REASON_CHARACTERS_MAX:
        errors.add("reason", f"Give a text of 1 to {REASON_CHARACTERS_MAX} characters, or leave it out.")
        return None
    return given


def reason_alone(body: Mapping[str, object]) -> str | None:
    """The reason in the body of a command that takes nothing else. Raises `InvalidRequest`."""
    errors = FieldErrors()
    errors.refuse_unknown(body, REASON_FIELDS)
    reason = parse_reason(errors, body)
    errors.raise_if_any()
    return reason


def parse_flag(errors: FieldErrors, body: Mapping[str, object], name: str) -> bool:
    """A member that is true or false; missing, it is false."""
    given = body.get(name, False)
    if not isinstance(given, bool):
        errors.add(name, "Give true or false.")
        return False
    return given


def parse_text(errors: FieldErrors, body: Mapping[str, object], name: str, *, such_as: str) -> str:
    """A member that has to be there; what it says is for the use case to judge."""
    given = body.get(name)
    if not isinstance(given, str):
        errors.add(name, f'Give a text, such as "{such_as}".')
        return ""
    return given


def _check_is_json(request: Request) -> None:
    """A patch is a merge-patch, by whichever of its two names."""
    taken = {"application/json"} | ({MERGE_PATCH_MEDIA_TYPE} if request.method == "PATCH" else set())
    given = request.headers.get("content-type", "")
    if given.partition(";")[0].strip().lower() not in taken:
        shown = repr(given[:80]) if given else "nothing"
        raise UnsupportedMediaType(f"Content-Type says {shown}; send {' or '.join(sorted(taken))}.")
