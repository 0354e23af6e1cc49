"""The requests of workers, read and judged: each bad field is named, and nothing is unbounded."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TypeVar

from rota.domain.definition import FieldErrors, parse_optional_duration
from rota.domain.durations import format_duration
from rota.domain.errors import InvalidRequest
from rota.domain.job_form import JOB_NAME_PATTERN
from rota.domain.json_text import JsonText
from rota.domain.numbers import parse_number
from rota.store.port import Wanted
from rota.wire.reports import (
    ATTEMPT_FIELDS,
    NamedAttempt,
    ReportedEnd,
    ReportedHeartbeat,
    parse_attempt,
    parse_end,
    parse_heartbeat,
    parse_name,
    parse_result,
)

CLAIM_MAX = 100
CLAIM_DEFAULT = 1
JOBS_MAX = 1_000
REPORTS_MAX = 100
WAIT_MAX = timedelta(minutes=1)

CLAIM_FIELDS = frozenset({"worker", "jobs", "limit", "wait", "backlog_first"})
WANTED_FIELDS = frozenset({"job", "limit"})
OPENING_FIELDS = ATTEMPT_FIELDS | {"worker"}
REPORTS_FIELDS = frozenset({"attempts"})
EFFECT_BEGIN_FIELDS = ATTEMPT_FIELDS | {"name"}
EFFECT_RECORD_FIELDS = EFFECT_BEGIN_FIELDS | {"result"}

WORKER_EXAMPLE = "sales@host-7:4711"

T = TypeVar("T", bound=NamedAttempt)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRequest:
    worker: str
    wanted: tuple[Wanted, ...]
    limit: int
    """0: nothing is opened, and only told whether there is anything."""
    wait: timedelta
    backlog_first: bool | None
    """None: as the server finds it fair."""

    @property
    def jobs(self) -> frozenset[str]:
        return frozenset(each.job for each in self.wanted)

    def with_backlog_first(self, backlog_first: bool) -> "ClaimRequest":  # noqa: FBT001  it is what the name says
        return replace(self, backlog_first=backlog_first)


def parse_claim(body: Mapping[str, object]) -> ClaimRequest:
    """Raises `InvalidRequest` with all that is wrong."""
    errors = FieldErrors()
    errors.refuse_unknown(body, CLAIM_FIELDS)
    worker = parse_name(errors, body, "worker", example=WORKER_EXAMPLE)
    wanted = _wanted(errors, body.get("jobs"))
    limit = parse_number(errors, body, "limit", low=0, high=CLAIM_MAX)
    before = len(errors.errors)
    wait = parse_optional_duration(errors, body, "wait") or timedelta(0)
    if len(errors.errors) == before and wait > WAIT_MAX:
        errors.add("wait", f"Give a duration of at most {format_duration(WAIT_MAX)}, and ask again then.")
    backlog_first = body.get("backlog_first")
    if backlog_first is not None and not isinstance(backlog_first, bool):
        errors.add("backlog_first", "Give true or false, or leave it out.")
    errors.raise_if_any()
    return ClaimRequest(
        worker=worker,
        wanted=wanted,
        limit=CLAIM_DEFAULT if limit is None else int(limit),
        wait=wait,
        backlog_first=backlog_first if isinstance(backlog_first, bool) else None,
    )


def parse_opening(body: Mapping[str, object]) -> tuple[str, NamedAttempt]:
    """Who opens which attempt. Raises `InvalidRequest`."""
    errors = FieldErrors()
    errors.refuse_unknown(body, OPENING_FIELDS)
    worker = parse_name(errors, body, "worker", example=WORKER_EXAMPLE)
    attempt = parse_attempt(errors, body)
    errors.raise_if_any()
    return worker, attempt


def parse_heartbeats(body: Mapping[str, object]) -> list[ReportedHeartbeat]:
    """Raises `InvalidRequest`."""
    return _reports(body, parse_heartbeat)


def parse_ends(body: Mapping[str, object]) -> list[ReportedEnd]:
    """Raises `InvalidRequest`."""
    return _reports(body, parse_end)


def parse_effect_begin(body: Mapping[str, object]) -> tuple[NamedAttempt, str]:
    """Which attempt begins which effect. Raises `InvalidRequest`."""
    errors = FieldErrors()
    errors.refuse_unknown(body, EFFECT_BEGIN_FIELDS)
    attempt = parse_attempt(errors, body)
    name = parse_name(errors, body, "name", example="send-mail")
    errors.raise_if_any()
    return attempt, name


def parse_effect_record(body: Mapping[str, object]) -> tuple[NamedAttempt, str, JsonText | None]:
    """Which attempt has done which effect, with what result. Raises `InvalidRequest`."""
    errors = FieldErrors()
    errors.refuse_unknown(body, EFFECT_RECORD_FIELDS)
    attempt = parse_attempt(errors, body)
    name = parse_name(errors, body, "name", example="send-mail")
    given = body.get("result")
    result = None if given is None else errors.attempt("result", lambda: parse_result(given))
    errors.raise_if_any()
    return attempt, name, result


def _wanted(errors: FieldErrors, given: object) -> tuple[Wanted, ...]:
    if not isinstance(given, list) or not 0 < len(given) <= JOBS_MAX:
        errors.add("jobs", f'Give 1 to {JOBS_MAX} names of jobs, such as ["sales_report"].')
        return ()
    wanted: dict[str, Wanted] = {}
    for number, item in enumerate(given):
        each = _wanted_item(errors, item, f"jobs.{number}")
        if each is None:
            continue
        if each.job in wanted:
            errors.add(f"jobs.{number}", f"The job {each.job!r} is named twice; name it once.")
        wanted[each.job] = each
    return tuple(wanted.values())


def _wanted_item(errors: FieldErrors, item: object, path: str) -> Wanted | None:
    value = item if isinstance(item, Mapping) else {"job": item}
    errors.refuse_unknown(value, WANTED_FIELDS, prefix=f"{path}.")
    limit = parse_number(errors, value, "limit", low=1, high=1_000, prefix=f"{path}.")
    name = value.get("job")
    if not isinstance(name, str) or JOB_NAME_PATTERN.fullmatch(name) is None:
        field = f"{path}.job" if isinstance(item, Mapping) else path
        errors.add(field, 'Give the name of a job, such as "sales_report".')
        return None
    return Wanted(job=name, limit=None if limit is None else int(limit))


def _reports(body: Mapping[str, object], parse: Callable[[Mapping[str, object]], T]) -> list[T]:
    errors = FieldErrors()
    errors.refuse_unknown(body, REPORTS_FIELDS)
    given = body.get("attempts")
    if not isinstance(given, list) or not 0 < len(given) <= REPORTS_MAX:
        errors.add("attempts", f"Give a list of 1 to {REPORTS_MAX} objects, one for each attempt.")
        given = []
    reports: dict[tuple[str, int], T] = {}
    for number, item in enumerate(given):
        path = f"attempts.{number}"
        if not isinstance(item, Mapping):
            errors.add(path, 'Give an object with "run_id" and "attempt".')
            continue
        try:
            report = parse(item)
        except InvalidRequest as error:
            for problem in error.errors:
                errors.add(f"{path}.{problem.field}", problem.message)
            continue
        if (report.run_id, report.attempt) in reports:
            errors.add(path, "The attempt is named twice; report it once.")
        reports[report.run_id, report.attempt] = report
    errors.raise_if_any()
    return list(reports.values())
