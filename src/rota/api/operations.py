"""How a route describes itself: its operation in OpenAPI 3.1, written out because handlers take no models.

The models in `request_shapes` and `answer_shapes` only describe. The domain judges every request, and the tests hold
the two together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypedDict

from pydantic import BaseModel

from rota.api.answer_shapes import Problem
from rota.api.parameters import Parameter
from rota.api.problems import PROBLEM_MEDIA_TYPE

JSON_MEDIA_TYPE = "application/json"
REF_TEMPLATE = "#/components/schemas/{model}"

PROBLEMS: Mapping[int, str] = {
    400: "The body is not JSON, or not JSON that Rota keeps, or a precondition is malformed.",
    403: "The `Origin` names a page of elsewhere.",
    404: "There is no such thing.",
    409: "The request contradicts what is stored.",
    412: "`If-Match` names other versions than the latest.",
    413: "The body, or the field named in `errors`, is too large.",
    415: "The body is not said to be JSON.",
    421: "The `Host` is none that the server answers to; only a server on loopback says so.",
    422: "Fields are wrong; `errors` has one entry for each.",
    428: "`If-Match` is missing.",
    500: "A fault of the server.",
    503: "The store or the clock cannot be used at the moment.",
}
HEADERS: Mapping[str, str] = {
    "Location": "The path of what was created.",
    "ETag": "The number of the latest version, in quotes.",
    "Retry-After": "Seconds to wait.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One way in which an operation succeeds."""

    shape: type[BaseModel]
    description: str
    headers: tuple[str, ...] = ()
    dry_run: type[BaseModel] | None = None
    """The shape of a dry run, where it is another one: that has none of the headers."""


class Operation(TypedDict):
    """The arguments of a route decorator."""

    name: str
    operation_id: str
    tags: list[str | Enum]
    summary: str
    status_code: int
    responses: dict[int | str, dict[str, object]]
    openapi_extra: dict[str, object]


def operation(
    name: str,
    *,
    summary: str,
    answers: Mapping[int, Answer],
    problems: Sequence[int] = (),
    parameters: Sequence[Parameter] = (),
    body: type[BaseModel] | None = None,
    is_body_required: bool = True,
    body_types: Sequence[str] = (JSON_MEDIA_TYPE,),
    takes_any_query: bool = False,
) -> Operation:
    """The description of an operation.

    Bodies bring 400, 413 and 415 with them, and 403, since what takes one is no reading. 421, 500 and 503 are
    everywhere; 422 too, unless nothing in a request can be wrong.
    """
    extra: dict[str, object] = {"parameters": [parameter.to_openapi() for parameter in parameters]}
    statuses = {421, 500, 503, *problems}
    if not takes_any_query:
        statuses.add(422)
    if body is not None:
        statuses |= {400, 403, 413, 415}
        extra["requestBody"] = {
            "required": is_body_required,
            "content": {media_type: {"schema": _reference(body)} for media_type in body_types},
        }
    responses: dict[int | str, dict[str, object]] = {
        status: {
            "description": given.description,
            "headers": _headers(given.headers, always=given.dry_run is None),
            "content": {JSON_MEDIA_TYPE: {"schema": _shapes(given)}},
        }
        for status, given in answers.items()
    }
    for status in sorted(statuses - set(responses)):
        responses[status] = {
            "description": PROBLEMS[status],
            "headers": _headers(("Retry-After",) if status == 503 else ()),
            "content": {PROBLEM_MEDIA_TYPE: {"schema": _reference(Problem)}},
        }
    return Operation(
        name=name,
        operation_id=name,
        tags=[name.partition(".")[0]],
        summary=summary,
        status_code=next(iter(answers)),
        responses=responses,
        openapi_extra=extra,
    )


def _reference(shape: type[BaseModel]) -> dict[str, object]:
    return {"$ref": REF_TEMPLATE.format(model=shape.__name__)}


def _shapes(given: Answer) -> dict[str, object]:
    if given.dry_run is None:
        return _reference(given.shape)
    return {"anyOf": [_reference(given.shape), _reference(given.dry_run)]}


def _headers(names: Sequence[str], *, always: bool = True) -> dict[str, object]:
    return {
        name: {"description": HEADERS[name], "required": always, "schema": {"type": "string"}}
        for name in names
    }
