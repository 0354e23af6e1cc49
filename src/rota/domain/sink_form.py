"""A sink and its delivery policy in wire form, as a job has them."""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import assert_never

from rota.domain.definition import FieldErrors, parse_optional_duration
from rota.domain.durations import format_duration
from rota.domain.errors import FieldError, InvalidRequest
from rota.domain.numbers import parse_number
from rota.domain.sink import (
    WEBHOOK_TIMEOUT,
    CelerySink,
    DeliveryPolicy,
    Sink,
    SqsSink,
    WebhookSink,
    WorkerSink,
)

SINK_FIELDS: Mapping[str, frozenset[str]] = {
    "worker": frozenset({"type"}),
    "webhook": frozenset({"type", "url", "secrets_from", "timeout"}),
    "celery": frozenset({"type", "task", "queue"}),
    "sqs": frozenset({"type", "queue_url"}),
}
DELIVERY_FIELDS = frozenset(
    {"initial_delay", "factor", "max_delay", "jitter", "max_age", "redeliver_after", "concurrency"}
)
URL_CHARACTERS_MAX = 2_000
NAME_CHARACTERS_MAX = 200
SECRETS_MAX = 5
WHSEC = "whsec_"
"""Of the secrets themselves, which are never to be stored: a variable's name does not begin so."""
TIMEOUT_MAX = timedelta(minutes=5)
REDELIVER_AFTER_MIN = timedelta(seconds=5)
MAX_AGE_MAX = timedelta(days=30)
DELAY_MAX = timedelta(days=1)
CONCURRENCY_MAX = 1_000
URL_PATTERN = re.compile(
    r"https?://(?P<user>[^/?#]*@)?(?P<host>\[[0-9a-f:.]+\]|[^/?#:@\[\]\\]+)(?::(?P<port>[0-9]{1,5}))?(?:[/?][^#]*)?"
    r"(?P<fragment>#.*)?",
    re.ASCII | re.IGNORECASE,
)
VARIABLE_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,79}", re.ASCII)


def parse_sink(value: object) -> Sink:
    """The sink of an object with a `type`. Raises `InvalidRequest` with all that is wrong."""
    kind = value.get("type") if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or not isinstance(kind, str) or kind not in SINK_FIELDS:
        message = 'Give an object with "type": "worker", "webhook", "celery" or "sqs".'
        raise InvalidRequest(FieldError("sink.type", message))
    errors = FieldErrors()
    errors.refuse_unknown(value, SINK_FIELDS[kind], prefix="sink.")
    sink: Sink
    match kind:
        case "webhook":
            sink = _webhook(errors, value)
        case "celery":
            task, queue = _name(errors, value, "task", "tasks.report"), None
            if value.get("queue") is not None:
                queue = _name(errors, value, "queue", "reports")
            sink = CelerySink(task=task, queue=queue)
        case "sqs":
            sink = SqsSink(queue_url=_url(errors, value, "queue_url"))
        case _:
            sink = WorkerSink()
    errors.raise_if_any()
    return sink


def sink_to_wire(sink: Sink) -> dict[str, object]:
    match sink:
        case WorkerSink():
            return {"type": "worker"}
        case WebhookSink():
            return {
                "type": "webhook",
                "url": sink.url,
                "secrets_from": list(sink.secrets_from),
                "timeout": format_duration(sink.timeout),
            }
        case CelerySink():
            return {"type": "celery", "task": sink.task, "queue": sink.queue}
        case SqsSink():
            return {"type": "sqs", "queue_url": sink.queue_url}
        case _:
            assert_never(sink)


def parse_delivery(value: object) -> DeliveryPolicy:
    """The policy of an object, missing members by default. Raises `InvalidRequest` with all that is wrong."""
    default = DeliveryPolicy()
    if value is None:
        return default
    if not isinstance(value, Mapping):
        raise InvalidRequest(FieldError("delivery", 'Give an object, such as {"max_age": "PT24H"}.'))
    errors = FieldErrors()
    errors.refuse_unknown(value, DELIVERY_FIELDS, prefix="delivery.")
    factor = parse_number(errors, value, "factor", low=1, high=100, prefix="delivery.", whole=False)
    jitter = parse_number(errors, value, "jitter", low=0, high=1, prefix="delivery.", whole=False)
    concurrency = parse_number(errors, value, "concurrency", low=1, high=CONCURRENCY_MAX, prefix="delivery.")
    bounds = {
        "initial_delay": (timedelta(0), DELAY_MAX, default.initial_delay),
        "max_delay": (timedelta(0), DELAY_MAX, default.max_delay),
        "max_age": (timedelta(seconds=1), MAX_AGE_MAX, default.max_age),
        "redeliver_after": (REDELIVER_AFTER_MIN, MAX_AGE_MAX, default.redeliver_after),
    }
    durations = {
        name: _duration(errors, value, f"delivery.{name}", least=least, most=most, default=given)
        for name, (least, most, given) in bounds.items()
    }
    errors.raise_if_any()
    return DeliveryPolicy(
        **durations,
        factor=default.factor if factor is None else float(factor),
        jitter=default.jitter if jitter is None else float(jitter),
        concurrency=int(concurrency or default.concurrency),
    )


def delivery_to_wire(policy: DeliveryPolicy) -> dict[str, object]:
    return {
        "initial_delay": format_duration(policy.initial_delay),
        "factor": policy.factor,
        "max_delay": format_duration(policy.max_delay),
        "jitter": policy.jitter,
        "max_age": format_duration(policy.max_age),
        "redeliver_after": format_duration(policy.redeliver_after),
        "concurrency": policy.concurrency,
    }


def _webhook(errors: FieldErrors, value: Mapping[str, object]) -> WebhookSink:
    given = value.get("secrets_from")
    names = given if isinstance(given, list) else []
    are_names = all(
        isinstance(name, str) and VARIABLE_PATTERN.fullmatch(name) and not name.startswith(WHSEC)
        for name in names
    )
    if (given is not None and not isinstance(given, list)) or len(names) > SECRETS_MAX or not are_names:
        message = (
            f'Give up to {SECRETS_MAX} names of environment variables of the relay, such as ["SHOP_SECRET"]; '
            "not the secrets, which would be stored and shown."
        )
        errors.add("sink.secrets_from", message)
    timeout = _duration(
        errors, value, "sink.timeout", least=timedelta(seconds=1), most=TIMEOUT_MAX, default=WEBHOOK_TIMEOUT
    )
    return WebhookSink(url=_url(errors, value, "url"), secrets_from=tuple(names), timeout=timeout)


def _url(errors: FieldErrors, value: Mapping[str, object], name: str) -> str:
    given = value.get(name)
    problem = _url_problem(given)
    if problem is not None:
        errors.add(f"sink.{name}", problem)
    return given if isinstance(given, str) else ""


def _url_problem(given: object) -> str | None:
    """What is wrong with a URL that messages are to be sent to; None: nothing is."""
    if not isinstance(given, str) or len(given) > URL_CHARACTERS_MAX or not given.isascii():
        return f"Give a URL of at most {URL_CHARACTERS_MAX} ASCII characters."
    if any(character <= " " or character == "\x7f" for character in given):
        return "Give a URL without blanks and control characters."
    parts = URL_PATTERN.fullmatch(given)
    if parts is None or not 0 < int(parts["port"] or 1) < 65_536:
        return "Give a URL that begins with https:// or http:// and names a host."
    if parts["user"] is not None:
        return "Give a URL without a user and a password; they would be shown to everyone who may read jobs."
    return None if parts["fragment"] is None else "Give a URL without a fragment (#...)."


def _name(errors: FieldErrors, value: Mapping[str, object], name: str, example: str) -> str:
    given = value.get(name)
    if isinstance(given, str) and 0 < len(given) <= NAME_CHARACTERS_MAX and given.isprintable():
        return given
    errors.add(f"sink.{name}", f'Give a name of 1 to {NAME_CHARACTERS_MAX} characters, such as "{example}".')
    return ""


def _duration(
    errors: FieldErrors,
    value: Mapping[str, object],
    path: str,
    *,
    least: timedelta,
    most: timedelta,
    default: timedelta,
) -> timedelta:
    prefix, _, name = path.rpartition(".")
    before = len(errors.errors)
    given = parse_optional_duration(errors, value, name, prefix=f"{prefix}.")
    if given is None:
        return default
    if len(errors.errors) == before and not least <= given <= most:
        errors.add(path, f"Give a duration from {format_duration(least)} to {format_duration(most)}.")
    return given
