"""A schedule's wire form, put together from options or read from a file. The use cases judge what is in it."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from rota.cli.errors import Usage
from rota.cli.whole_numbers import WHOLE
from rota.cli.wording import OVERDUE_FORMS, option_of
from rota.domain.errors import FieldError, InvalidRequest, MalformedBody, TooLarge
from rota.domain.json_text import decode_json
from rota.service.representation import Wire

FILE_BYTES_MAX = 256 * 1024
"""As the HTTP API takes of a body."""

OVERDUE_LIMITS = {"latest_only": "grace", "expire": "deadline", "catch_up_all": "max_age"}
"""What the duration behind a policy's name is called."""

Cron = Annotated[
    str | None,
    Parameter(help='Required, this or --at, --rrule or --every: five fields, such as "0 9 * * 1-5".'),
]
At = Annotated[
    str | None,
    Parameter(help="In place of --cron, once: a local time (2026-01-10T09:00) or an instant (…T14:00:00Z)."),
]
RRule = Annotated[
    str | None,
    Parameter(
        help="In place of --cron, by RFC 5545: DTSTART, RRULE, RDATE and EXDATE, a line each; "
        r"\n stands for a line break."
    ),
]
Every = Annotated[
    str | None,
    Parameter(help="In place of --cron: elapsed time between two occurrences, such as PT15M."),
]
Anchor = Annotated[str | None, Parameter(help="The first instant of --every; now, if not given.")]
Timezone = Annotated[str | None, Parameter(help="Required: an IANA zone name, such as Europe/London.")]
Gap = Annotated[
    str | None, Parameter(help="For a local time that does not exist: skip (default) or forward.")
]
Fold = Annotated[
    str | None, Parameter(help="For one that exists twice: auto (default), first, second or both.")
]

Period = Annotated[str | None, Parameter(help="auto (default), day, week, month, instant or once.")]
Overdue = Annotated[str | None, Parameter(help=f"{OVERDUE_FORMS}; as the job says, if not given.")]
Overlap = Annotated[
    str | None,
    Parameter(
        help="For an occurrence due while a run is open: allow (default), skip, or queue, which lets one wait."
    ),
]
Spread = Annotated[
    str | None,
    Parameter(
        help="Occurrences fall due within so long after they are scheduled, such as PT10M, always by the same offset."
    ),
]
Params = Annotated[str | None, Parameter(help="A JSON object for the job's handler.")]
Labels = Annotated[list[str] | None, Parameter(name="--label", help="customer=acme; may be repeated.")]
StartsAt = Annotated[str | None, Parameter(help="No occurrence before this instant.")]
EndsAt = Annotated[str | None, Parameter(help="None at or after this one.")]
MaxOccurrences = Annotated[int | None, WHOLE, Parameter(help="At most so many.")]

FROM_FILE = Parameter(allow_leading_hyphen=True)
"""Beside the help of an option that names a file: `-` alone is standard input."""


def recurrence_of(
    *, cron: str | None, at: str | None, rrule: str | None, every: str | None, anchor: str | None
) -> Wire | None:
    """The recurrence of the options that were given; None where none was."""
    given = {
        "cron": cron,
        "at": at,
        "rrule": None if rrule is None else rrule.replace("\\n", "\n"),
        "every": every,
        "anchor": anchor,
    }
    return {name: value for name, value in given.items() if value is not None} or None


def overdue_of(text: str | None) -> Wire | None:
    """`expire:PT5M` as its object."""
    if text is None:
        return None
    policy, colon, duration = text.partition(":")
    if not colon:
        return {"policy": policy}
    return {"policy": policy, OVERDUE_LIMITS.get(policy, "duration"): duration}


def labels_of(texts: Sequence[str] | None) -> Wire | None:
    """`customer=acme` and others as one object. Raises `InvalidRequest`."""
    if not texts:
        return None
    labels: Wire = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name in labels:
            problem = "is given twice" if equals else "has no value"
            raise InvalidRequest(FieldError("label", f"{text!r} {problem}; write it as customer=acme."))
        labels[name] = value
    return labels


def params_of(text: str | None) -> object:
    """Raises `InvalidRequest` for what is not JSON."""
    return None if text is None else _decode("params", text)


def read_object(path: str) -> Wire:
    """The JSON object in a file; `-` is standard input. Raises `Usage` and `InvalidRequest`."""
    try:
        data = sys.stdin.buffer.read(FILE_BYTES_MAX + 1) if path == "-" else _read(Path(path))
    except OSError as error:
        raise Usage(f"--file: {path} cannot be read: {error.strerror}.") from None
    value = _decode("--file", data)
    if not isinstance(value, dict):
        raise InvalidRequest(FieldError("--file", "It holds no JSON object; put the members in braces."))
    return value


def options_of(fields: Wire) -> str:
    """The options that these fields were given by, to be named in a sentence."""
    kinds = fields.get("recurrence")
    rule = [f"recurrence.{kind}" for kind in kinds] if isinstance(kinds, dict) else []
    names = [name for name in fields if name != "recurrence"]
    return ", ".join(sorted(option_of(name) for name in [*names, *rule]))


def given(**fields: object) -> Wire:
    """The fields that were given: what is left out takes its default where the request is judged."""
    return {name: value for name, value in fields.items() if value is not None}


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(FILE_BYTES_MAX + 1)


def _decode(field: str, data: str | bytes) -> object:
    try:
        value: object = decode_json(data, bytes_max=FILE_BYTES_MAX)
    except (MalformedBody, TooLarge) as error:
        raise InvalidRequest(FieldError(field, str(error).replace("The body", "It"))) from None
    return value
