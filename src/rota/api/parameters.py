"""What a request says beside its path and body: query parameters and headers, as described and as read.

A route takes the query parameters that it is described with, each once; any other is refused by name, so that a
misspelt filter is not an unfiltered answer.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, get_args

from fastapi import Depends
from fastapi.routing import APIRoute
from starlette.requests import Request

from rota.api.request_shapes.definitions import INSTANT_PATTERN
from rota.domain.definition import FieldErrors
from rota.domain.delivery import DeliveryState
from rota.domain.errors import FieldError, InvalidRequest
from rota.domain.run import Origin, RunState
from rota.domain.schedule import ScheduleStatus
from rota.service.context import REASON_CHARACTERS_MAX
from rota.service.paging import LIMIT_DEFAULT, LIMIT_MAX

COUNT_DEFAULT = 10
COUNT_MAX = 1_000
ACTOR_CHARACTERS_MAX = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter, as OpenAPI describes it."""

    name: str
    description: str
    schema: dict[str, object]
    where: str = "query"
    is_required: bool = False

    def to_openapi(self) -> dict[str, object]:
        return {
            "name": self.name,
            "in": self.where,
            "required": self.is_required,
            "description": self.description,
            "schema": self.schema,
        }


def _text(**more: object) -> dict[str, object]:
    return {"type": "string", "minLength": 1, **more}


def _choice(*names: str) -> dict[str, object]:
    return {"type": "string", "enum": list(names)}


def _number(*, high: int, default: int) -> dict[str, object]:
    return {"type": "integer", "minimum": 1, "maximum": high, "default": default}


STATUS = Parameter(
    name="status", description="Only schedules of this status.", schema=_choice(*ScheduleStatus)
)
STATE = Parameter(name="state", description="Only runs in this state.", schema=_choice(*RunState))
DELIVERY_STATE = Parameter(
    name="state", description="Only deliveries in this state.", schema=_choice(*DeliveryState)
)
JOB = Parameter(name="job", description="Only those of this job.", schema=_text(maxLength=400))
ORIGIN = Parameter(name="origin", description="Only runs of this origin.", schema=_choice(*get_args(Origin)))
SCHEDULE = Parameter(name="schedule", description="Only those of this schedule.", schema=_text(maxLength=400))
LABEL = Parameter(
    name="label",
    description="Only those whose schedule has this label: its name and value, such as `customer=acme`.",
    schema=_text(maxLength=400, pattern="^[^=]+=[\\s\\S]+$", examples=["customer=acme"]),
)
FROM = Parameter(
    name="from",
    description="Only runs scheduled at this instant or later.",
    schema=_text(pattern=INSTANT_PATTERN, examples=["2026-01-10T00:00:00Z"]),
)
UNTIL = Parameter(
    name="until",
    description="Only runs scheduled before this instant.",
    schema=_text(pattern=INSTANT_PATTERN, examples=["2026-01-11T00:00:00Z"]),
)
CURSOR = Parameter(
    name="cursor",
    description="The `next_cursor` of the page before; left out for the first page.",
    schema=_text(),
)
LIMIT = Parameter(
    name="limit",
    description="How many items a page has at most.",
    schema=_number(high=LIMIT_MAX, default=LIMIT_DEFAULT),
)
COUNT = Parameter(
    name="count",
    description="How many occurrences are computed at most.",
    schema=_number(high=COUNT_MAX, default=COUNT_DEFAULT),
)
DRY_RUN = Parameter(
    name="dry_run",
    description="Tell what it would do, and write nothing.",
    schema={"type": "boolean", "default": False},
)
REASON = Parameter(
    name="reason",
    description="Why; kept in the schedule's history.",
    schema=_text(maxLength=REASON_CHARACTERS_MAX),
)
ACTOR = Parameter(
    name="Rota-Actor",
    where="header",
    description="Who asks; kept in the schedule's history as it is given.",
    schema=_text(maxLength=ACTOR_CHARACTERS_MAX, examples=["operator@example.com"]),
)
IDEMPOTENCY_KEY = Parameter(
    name="Idempotency-Key",
    where="header",
    description="The same key with the same request gets the same answer again, for 24 hours.",
    schema=_text(maxLength=255, pattern="^[ -~]+$", examples=["order-1742"]),
)
IF_MATCH = Parameter(
    name="If-Match",
    where="header",
    description="The ETag of the schedule that the edit was made for, several of them, or `*` for whichever it has.",
    schema=_text(
        pattern=r'^(\*|(W/)?"[!#-~]*"( *, *(W/)?"[!#-~]*")*)$',
        examples=['"1"'],
    ),
    is_required=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuery:
    """The parameters of a query as text. A handler that is given it has them judged by `check`, all together."""

    values: Mapping[str, str]
    errors: tuple[FieldError, ...]
    """Parameters that the route does not know, or that are given twice."""

    def check(self, *parsers: Callable[[Mapping[str, str]], object]) -> None:
        """Raises `InvalidRequest` with all that is wrong by itself or by one of the parsers of its values."""
        found = FieldErrors()
        found.errors.extend(self.errors)
        for parse in parsers:
            found.attempt("", partial(parse, self.values))
        found.raise_if_any()


async def read_query(request: Request) -> AskedQuery:
    """The query as text. Raises `InvalidRequest` where the route knows no parameter and one is given."""
    route = request.scope["route"]
    assert isinstance(route, APIRoute)  # noqa: S101 - only such routes ask for it
    described = (route.openapi_extra or {}).get("parameters", [])
    known = sorted(parameter["name"] for parameter in described if parameter["in"] == "query")
    listed = f"known are {', '.join(known)}" if known else "there is none here"
    errors = FieldErrors()
    values: dict[str, str] = {}
    for name, times in Counter(name for name, _ in request.query_params.multi_items()).items():
        if name not in known:
            errors.add(name, f"This query parameter is not known; {listed}.")
        elif times > 1:
            errors.add(name, "This query parameter is given more than once; give it once.")
        else:
            values[name] = request.query_params[name]
    if not known:
        errors.raise_if_any()
    return AskedQuery(values=values, errors=tuple(errors.errors))


async def read_actor(request: Request) -> str | None:
    """Who asks. Raises `InvalidRequest`."""
    given = request.headers.get(ACTOR.name)
    if given is None:
        return None
    try:
        # Header text arrives as Latin-1, whatever it was; people's names are sent as UTF-8.
        name = given.encode("latin-1").decode()
    except UnicodeError:
        name = ""
    if not 0 < len(name) <= ACTOR_CHARACTERS_MAX or not name.isprintable():
        message = f"Give 1 to {ACTOR_CHARACTERS_MAX} printable characters in UTF-8, or leave it out."
        raise InvalidRequest(FieldError(ACTOR.name, message))
    return name


def whole_number(asked: Mapping[str, str], name: str, *, default: int, high: int) -> int:
    """A count from 1 to `high`. Raises `InvalidRequest`."""
    given = asked.get(name, str(default))
    is_number = given.isascii() and given.isdigit() and len(given) <= len(str(high))
    if not is_number or not 1 <= int(given) <= high:
        raise InvalidRequest(FieldError(name, f"Give a whole number from 1 to {high}."))
    return int(given)


def asked_count(asked: Mapping[str, str]) -> int:
    """How many occurrences are asked for. Raises `InvalidRequest`."""
    return whole_number(asked, COUNT.name, default=COUNT_DEFAULT, high=COUNT_MAX)


def asked_dry_run(asked: Mapping[str, str]) -> bool:
    """Whether nothing is to be written. Raises `InvalidRequest`."""
    given = asked.get(DRY_RUN.name, "false")
    if given not in ("true", "false"):
        raise InvalidRequest(FieldError(DRY_RUN.name, "Give true or false."))
    return given == "true"


async def read_dry_run(query: Annotated["AskedQuery", Depends(read_query)]) -> bool:
    """Whether nothing is to be written, where the query says nothing else. Raises `InvalidRequest`."""
    query.check(asked_dry_run)
    return asked_dry_run(query.values)


def reason_in(asked: Mapping[str, str]) -> str | None:
    """The query's `reason`. Raises `InvalidRequest`."""
    given = asked.get(REASON.name)
    if given is not None and (not 0 < len(given) <= REASON_CHARACTERS_MAX or "\x00" in given):
        message = f"Give a text of 1 to {REASON_CHARACTERS_MAX} characters, or leave it out."
        raise InvalidRequest(FieldError(REASON.name, message))
    return given


Query = Annotated[AskedQuery, Depends(read_query)]
DryRun = Annotated[bool, Depends(read_dry_run)]
ActorName = Annotated[str | None, Depends(read_actor)]
