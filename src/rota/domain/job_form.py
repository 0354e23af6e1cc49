"""A job in wire form: what `PUT /jobs/{name}` takes, what a worker registers, what the store keeps."""

import re
from collections.abc import Mapping
from datetime import timedelta

from rota.domain.definition import FieldErrors, overdue_to_wire, parse_optional_duration, parse_overdue
from rota.domain.durations import format_duration
from rota.domain.errors import FieldError, InvalidRequest
from rota.domain.job import PARAMS_BYTES_MAX, PRIORITY_MAX, Job, RetryPolicy
from rota.domain.numbers import parse_number
from rota.domain.sink_form import delivery_to_wire, parse_delivery, parse_sink, sink_to_wire

JOB_NAME_PATTERN = re.compile(r"[a-z][a-z0-9_.-]{0,79}", re.ASCII)
MAX_ATTEMPTS_MAX = 100
DESCRIPTION_CHARACTERS_MAX = 1_000
LEASE_MIN = timedelta(seconds=5)
LEASE_MAX = timedelta(hours=1)

MAX_RUNNING_MAX = 100_000

JOB_FIELDS = frozenset(
    {
        "name",
        "description",
        "overdue",
        "retry",
        "timeout",
        "lease",
        "params_bytes_max",
        "sink",
        "delivery",
        "priority",
        "max_running",
    }
)
RETRY_FIELDS = frozenset({"max_attempts", "initial_delay", "factor", "max_delay", "jitter"})


def parse_job(name: str, value: Mapping[str, object]) -> Job:
    """The job of a request's fields, missing ones by default. Raises `InvalidRequest` with all that is wrong."""
    errors = FieldErrors()
    if JOB_NAME_PATTERN.fullmatch(name) is None:
        errors.add("name", "A job's name is 1 to 80 of a-z, 0-9, '_', '.' and '-', and begins with a letter.")
    errors.refuse_unknown(value, JOB_FIELDS)
    if value.get("name", name) != name:
        errors.add("name", f"The body names another job than {name!r}; leave it out.")
    default = Job(name=name)
    given_overdue = value.get("overdue")
    overdue = (
        None if given_overdue is None else errors.attempt("overdue", lambda: parse_overdue(given_overdue))
    )
    retry = errors.attempt("retry", lambda: _parse_retry(value.get("retry")))
    timeout = parse_optional_duration(errors, value, "timeout")
    if timeout is not None and timeout <= timedelta(0):
        errors.add("timeout", "Give a duration longer than nothing, or leave it out.")
    given_lease = parse_optional_duration(errors, value, "lease")
    lease = default.lease if given_lease is None else given_lease
    if not LEASE_MIN <= lease <= LEASE_MAX:
        errors.add("lease", "Give a duration from PT5S to PT1H.")
    params_bytes_max = parse_number(errors, value, "params_bytes_max", low=1, high=PARAMS_BYTES_MAX)
    given_sink = value.get("sink")
    sink = default.sink if given_sink is None else errors.attempt("sink", lambda: parse_sink(given_sink))
    delivery = errors.attempt("delivery", lambda: parse_delivery(value.get("delivery")))
    priority = parse_number(errors, value, "priority", low=0, high=PRIORITY_MAX)
    max_running = parse_number(errors, value, "max_running", low=1, high=MAX_RUNNING_MAX)
    description = value.get("description")
    if description is not None and not (
        isinstance(description, str) and len(description) <= DESCRIPTION_CHARACTERS_MAX
    ):
        errors.add("description", f"Give a text of at most {DESCRIPTION_CHARACTERS_MAX} characters.")
    errors.raise_if_any()
    return Job(
        name=name,
        overdue=overdue or default.overdue,
        retry=retry or default.retry,
        timeout=timeout,
        lease=lease,
        params_bytes_max=int(params_bytes_max or default.params_bytes_max),
        sink=sink or default.sink,
        delivery=delivery or default.delivery,
        priority=default.priority if priority is None else int(priority),
        max_running=None if max_running is None else int(max_running),
        description=description if isinstance(description, str) else None,
    )


def job_to_wire(job: Job) -> dict[str, object]:
    """The job's fields, without its name."""
    retry = job.retry
    return {
        "description": job.description,
        "overdue": overdue_to_wire(job.overdue),
        "retry": {
            "max_attempts": retry.max_attempts,
            "initial_delay": format_duration(retry.initial_delay),
            "factor": retry.factor,
            "max_delay": format_duration(retry.max_delay),
            "jitter": retry.jitter,
        },
        "timeout": None if job.timeout is None else format_duration(job.timeout),
        "lease": format_duration(job.lease),
        "params_bytes_max": job.params_bytes_max,
        "sink": sink_to_wire(job.sink),
        "delivery": delivery_to_wire(job.delivery),
        "priority": job.priority,
        "max_running": job.max_running,
    }


def _parse_retry(value: object) -> RetryPolicy:
    default = RetryPolicy()
    if value is None:
        return default
    if not isinstance(value, Mapping):
        raise InvalidRequest(FieldError("retry", 'Give an object, such as {"max_attempts": 5}.'))
    errors = FieldErrors()
    errors.refuse_unknown(value, RETRY_FIELDS, prefix="retry.")
    attempts = parse_number(errors, value, "max_attempts", low=1, high=MAX_ATTEMPTS_MAX, prefix="retry.")
    factor = parse_number(errors, value, "factor", low=1, high=100, prefix="retry.", whole=False)
    jitter = parse_number(errors, value, "jitter", low=0, high=1, prefix="retry.", whole=False)
    initial_delay = parse_optional_duration(errors, value, "initial_delay", prefix="retry.")
    max_delay = parse_optional_duration(errors, value, "max_delay", prefix="retry.")
    errors.raise_if_any()
    return RetryPolicy(
        max_attempts=default.max_attempts if attempts is None else int(attempts),
        initial_delay=default.initial_delay if initial_delay is None else initial_delay,
        factor=default.factor if factor is None else float(factor),
        max_delay=default.max_delay if max_delay is None else max_delay,
        jitter=default.jitter if jitter is None else float(jitter),
    )
