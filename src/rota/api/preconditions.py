"""Conditional edits (RFC 9110): `If-Match` says for which version of a schedule an edit was made.

The ETag of a schedule is the number of its latest version in quotes. Admission and pauses do not change it, so an edit
fails only where another edit came in between. Weak tags are taken as strong ones: a proxy that compresses answers makes
them weak, and the number means the same.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from rota.api.parameters import IF_MATCH
from rota.domain.errors import RotaError, Stale
from rota.service.changes import get_schedule
from rota.service.context import Context

_ITEM = re.compile(r'[ \t]*(?:(?:W/)?"(?P<tag>[\x21\x23-\x7e\x80-\xff]*)"[ \t]*)?(?:,|$)')


class PreconditionRequired(RotaError):
    """There is no `If-Match`; send the ETag of the schedule as it was read."""


class MalformedPrecondition(RotaError):
    """`If-Match` is neither `*` nor a list of ETags; send the ETag as it was received, with its quotes."""


class PreconditionFailed(RotaError):
    """`If-Match` names other versions than the latest one; read the schedule again and decide anew."""


@dataclass(frozen=True, slots=True)
class Precondition:
    """What `If-Match` asks for."""

    tags: frozenset[str] | None
    """The opaque parts of the ETags, one of which has to be the schedule's; None: any will do."""


async def read_if_match(request: Request) -> Precondition:
    """Raises `PreconditionRequired` and `MalformedPrecondition`."""
    lines = request.headers.getlist(IF_MATCH.name)
    if not lines:
        raise PreconditionRequired(
            "Say for which version the edit is: send If-Match with the ETag of the schedule as you read it, "
            'such as "1", or * for whichever is the latest.'
        )
    return parse_if_match(", ".join(lines))


def parse_if_match(text: str) -> Precondition:
    """Raises `MalformedPrecondition`."""
    if text.strip(" \t") == "*":
        return Precondition(None)
    tags: set[str] = set()
    position = 0
    while position < len(text):
        item = _ITEM.match(text, position)
        if item is None:
            break
        if item["tag"] is not None:
            tags.add(item["tag"])
        position = item.end()
    if position < len(text) or not tags:
        raise MalformedPrecondition('Give ETags in quotes, such as "1" or "1", "2", or * alone.')
    return Precondition(frozenset(tags))


def expected_version(context: Context, schedule_id: str, precondition: Precondition) -> int | None:
    """The version that the edit was made for; None: whichever. Raises `NotFound` and `PreconditionFailed`."""
    latest = get_schedule(context, schedule_id).schedule.latest_version
    if precondition.tags is None:
        return None
    if str(latest) not in precondition.tags:
        raise PreconditionFailed(
            f'The latest version of {schedule_id!r} is "{latest}", which If-Match does not name: '
            "read the schedule again and decide anew."
        )
    return latest


@contextmanager
def precondition_checked() -> Iterator[None]:
    """What becomes stale while it is done fails by its precondition, as if it had come a moment later."""
    try:
        yield
    except Stale as error:
        raise PreconditionFailed(str(error)) from error


IfMatch = Annotated[Precondition, Depends(read_if_match)]
