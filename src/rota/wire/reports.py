"""What a worker reports of its attempts: heartbeats with progress, and ends."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from rota.domain.definition import FieldErrors
from rota.domain.errors import FieldError, InvalidRequest, RotaError
from rota.domain.identity import RunId
from rota.domain.job import RESULT_BYTES_MAX
from rota.domain.json_text import JsonText, encode_json, load_json
from rota.domain.numbers import parse_number
from rota.domain.run import AttemptOutcome, Progress
from rota.domain.settlement import ERROR_CHARACTERS_MAX, AttemptEnd

ATTEMPT_MAX = 1_000_000
NAME_CHARACTERS_MAX = 200
"""Of a worker, and of an effect."""
PROGRESS_MESSAGE_CHARACTERS_MAX = 500
LEVELS_AROUND_RESULT = 3
"""A body holds a list of objects that hold results; so much deeper than a result may it nest."""

REPORTED = frozenset(set(AttemptOutcome) - {AttemptOutcome.LOST})
"""What a worker may say of an attempt's end; that one is lost is found by others."""

ATTEMPT_FIELDS = frozenset({"run_id", "attempt"})
HEARTBEAT_FIELDS = ATTEMPT_FIELDS | {"progress"}
PROGRESS_FIELDS = frozenset({"fraction", "message"})
END_FIELDS = ATTEMPT_FIELDS | {"outcome", "result", "error", "retryable"}

_NOT_STORABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedAttempt:
    """A run and the number of one of its attempts."""

    run_id: RunId
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedHeartbeat(NamedAttempt):
    progress: Progress | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedEnd(NamedAttempt):
    end: AttemptEnd


def storable(text: str, *, characters_max: int = ERROR_CHARACTERS_MAX) -> str:
    """The text without what PostgreSQL or UTF-8 cannot hold (NUL, halves of surrogate pairs), cut to a length."""
    shown = text if len(text) <= characters_max else text[: characters_max - 1] + "…"
    return _NOT_STORABLE.sub("\ufffd", shown)


def progress_to_wire(progress: Progress | None) -> dict[str, object] | None:
    return None if progress is None else {"fraction": progress.fraction, "message": progress.message}


def end_to_wire(end: AttemptEnd) -> dict[str, object]:
    return {
        "outcome": end.outcome.value,
        "result": None if end.result is None else load_json(end.result),
        "error": end.error,
        "retryable": end.retryable,
    }


def parse_attempt(errors: FieldErrors, value: Mapping[str, object], *, prefix: str = "") -> NamedAttempt:
    """The attempt that a request names; with an error noted where it names none."""
    run_id = parse_name(errors, value, "run_id", example="report-7.1.20260110T140000Z", prefix=prefix)
    given = value.get("attempt")
    number = parse_number(errors, value, "attempt", low=1, high=ATTEMPT_MAX, prefix=prefix)
    if given is None:
        errors.add(f"{prefix}attempt", "Give the number of the attempt, such as 1.")
    return NamedAttempt(run_id=RunId(run_id), attempt=int(number or 0))


def parse_heartbeat(value: Mapping[str, object]) -> ReportedHeartbeat:
    """Raises `InvalidRequest` with all that is wrong."""
    errors = FieldErrors()
    errors.refuse_unknown(value, HEARTBEAT_FIELDS)
    named = parse_attempt(errors, value)
    progress = _progress(errors, value.get("progress"))
    errors.raise_if_any()
    return ReportedHeartbeat(run_id=named.run_id, attempt=named.attempt, progress=progress)


def parse_end(value: Mapping[str, object]) -> ReportedEnd:
    """Raises `InvalidRequest` with all that is wrong. Errors that are too long are cut, as an SDK cuts them."""
    errors = FieldErrors()
    errors.refuse_unknown(value, END_FIELDS)
    named = parse_attempt(errors, value)
    given = value.get("outcome")
    if not isinstance(given, str) or given not in REPORTED:
        errors.add("outcome", f"Give one of {', '.join(sorted(REPORTED))}.")
    result = None
    if value.get("result") is not None:
        result = errors.attempt("result", lambda: parse_result(value["result"]))
        if given != AttemptOutcome.SUCCEEDED:
            errors.add("result", "Only an attempt that succeeded has a result; leave it out.")
    error = value.get("error")
    if error is not None and not isinstance(error, str):
        errors.add("error", "Give a text, or leave it out.")
    is_retryable = value.get("retryable", True)
    if not isinstance(is_retryable, bool):
        errors.add("retryable", "Give true or false, or leave it out.")
    errors.raise_if_any()
    return ReportedEnd(
        run_id=named.run_id,
        attempt=named.attempt,
        end=AttemptEnd(
            outcome=AttemptOutcome(str(given)),
            result=result,
            error=storable(error) if isinstance(error, str) else None,
            retryable=is_retryable is True,
        ),
    )


def parse_result(value: object) -> JsonText:
    """A result within its bounds. Raises `InvalidRequest`, which names the limit."""
    try:
        return encode_json(value, bytes_max=RESULT_BYTES_MAX)
    except RotaError as error:
        raise InvalidRequest(FieldError("result", str(error))) from None


def is_name(text: str) -> bool:
    """Whether a worker, a run or an effect can be called so."""
    return 0 < len(text) <= NAME_CHARACTERS_MAX and text.isascii() and text.isprintable()


def parse_name(
    errors: FieldErrors,
    value: Mapping[str, object],
    name: str,
    *,
    example: str,
    prefix: str = "",
) -> str:
    """A short printable text; with an error noted where there is none."""
    given = value.get(name)
    if isinstance(given, str) and is_name(given):
        return given
    message = f'Give a text of 1 to {NAME_CHARACTERS_MAX} printable ASCII characters, such as "{example}".'
    errors.add(f"{prefix}{name}", message)
    return ""


def _progress(errors: FieldErrors, value: object) -> Progress | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        errors.add("progress", 'Give an object, such as {"fraction": 0.5, "message": "querying"}.')
        return None
    errors.refuse_unknown(value, PROGRESS_FIELDS, prefix="progress.")
    fraction = parse_number(errors, value, "fraction", low=0, high=1, prefix="progress.", whole=False)
    if value.get("fraction") is None:
        errors.add("progress.fraction", "Give a number from 0 to 1.")
    message = value.get("message")
    if message is not None and not isinstance(message, str):
        errors.add("progress.message", "Give a text, or leave it out.")
        return None
    shown = None if message is None else storable(message, characters_max=PROGRESS_MESSAGE_CHARACTERS_MAX)
    return Progress(fraction=float(fraction or 0), message=shown)
