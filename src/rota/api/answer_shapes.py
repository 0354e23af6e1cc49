"""The shapes of answers, for OpenAPI: every member is always there, null where there is nothing to say."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from rota.api.request_shapes import Fold, FoldAsked, Gap, Overdue, Period, PeriodAsked, Recurrence, Shape
from rota.domain.admission import SkipReason
from rota.domain.audit import AuditAction
from rota.domain.run import AttemptOutcome, Origin, RunState
from rota.domain.schedule import ScheduleStatus

Instant = Annotated[str, Field(json_schema_extra={"format": "date-time"}, examples=["2026-01-10T14:00:00Z"])]
Local = Annotated[
    str,
    Field(pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2})?$", examples=["2026-01-10T09:00"]),
]
Offset = Annotated[str, Field(pattern=r"^[+-]\d{2}:\d{2}(:\d{2})?$", examples=["-05:00"])]
Cursor = Annotated[
    str | None, Field(description="Hand it back as `cursor` for the next page; null: there is none.")
]


class FieldProblem(Shape):
    """One bad field of a request."""

    field: str = Field(description="Its path (`recurrence.cron`), or the name of a parameter or header.")
    message: str


class Problem(Shape):
    """What went wrong (RFC 9457)."""

    type: str = Field(description="A name that programs may rely on; see the page about errors.")
    title: str
    status: int
    detail: str
    instance: str = Field(description="The path of the request.")
    errors: list[FieldProblem] = Field(description="The bad fields one by one; empty where none is to blame.")


class Suspension(Shape):
    """A stretch `[from, until)` in which nothing was admitted."""

    from_: Instant = Field(alias="from")
    until: Instant | None
    reason: Literal["paused", "error"]
    apply_overdue: bool


class Asked(Shape):
    """What was asked for, where the schedule shows what it was resolved to."""

    fold: FoldAsked
    period: PeriodAsked
    overdue: Overdue | None


class Schedule(Shape):
    """A schedule with the definition that governs its next occurrence, every default resolved."""

    id: str
    job: str
    timezone: str
    recurrence: Recurrence
    gap: Gap
    fold: Fold
    period: Period
    overdue: Overdue
    overlap: Literal["allow"]
    starts_at: Instant | None
    ends_at: Instant | None
    max_occurrences: int | None
    asked: Asked
    params: dict[str, JsonValue]
    labels: dict[str, str]
    version: int
    latest_version: int
    status: ScheduleStatus
    status_reason: str | None
    suspensions: list[Suspension]
    next_due: Instant | None
    created_at: Instant
    updated_at: Instant
    tzdata: str


class SchedulePage(Shape):
    """Schedules by id."""

    items: list[Schedule]
    next_cursor: Cursor


class Occurrence(Shape):
    """One time that a rule names, as the zone resolves it."""

    scheduled_at: Instant
    local: Local
    named_local: Local = Field(
        description="The local time that the rule names: another one where it was moved."
    )
    offset: Offset
    note: str | None


class UpcomingOccurrence(Occurrence):
    """An occurrence to come."""

    version: int
    period_key: str


class Upcoming(Shape):
    """The occurrences after the present that the schedule's definition names, paused or not."""

    schedule_id: str
    status: ScheduleStatus
    occurrences: list[UpcomingOccurrence]


class SkippedLocal(Shape):
    """A local time that the rule names and that does not exist."""

    local: Local
    reason: Literal["gap"]
    note: str


class Preview(Shape):
    """The occurrences of a definition that was not saved."""

    timezone: str
    gap: Gap
    fold: Fold
    tzdata: str
    occurrences: list[Occurrence]
    skipped: list[SkippedLocal]


class Lateness(Shape):
    """Milliseconds after `due_at`."""

    admitted_ms: int | None
    started_ms: int | None


class Progress(Shape):
    """What a handler last reported."""

    fraction: float = Field(ge=0, le=1)
    message: str | None


class Run(Shape):
    """The one record of one occurrence that became work."""

    kind: Literal["run"]
    run_id: str
    schedule_id: str
    version: int
    job: str
    scheduled_at: Instant
    due_at: Instant
    local: Local
    named_local: Local
    offset: Offset
    period_key: str
    origin: Origin
    state: RunState
    reason: str | None
    planned_at: Instant | None
    admitted_at: Instant | None
    started_at: Instant | None
    finished_at: Instant | None
    available_at: Instant | None
    cancel_requested_at: Instant | None
    lateness: Lateness
    attempt: int
    progress: Progress | None
    error: str | None


class Attempt(Shape):
    """One try at a run."""

    number: int
    worker: str
    opened_at: Instant
    lease_expires_at: Instant
    finished_at: Instant | None
    outcome: AttemptOutcome | None
    error: str | None


class RunDetail(Run):
    """A run with its result and its attempts, oldest first."""

    result: JsonValue
    attempts: list[Attempt]


class RunPage(Shape):
    """Runs, newest scheduled first."""

    items: list[Run]
    next_cursor: Cursor


class Skip(Shape):
    """Occurrences that did not become work, and why."""

    kind: Literal["skip"]
    schedule_id: str
    version: int
    from_: Instant = Field(alias="from")
    until: Instant
    count: int
    reason: SkipReason
    note: str | None


class LedgerPage(Shape):
    """What became of a schedule's occurrences, newest first."""

    items: list[Annotated[Run | Skip, Field(discriminator="kind")]]
    next_cursor: Cursor


class Event(Shape):
    """One entry of a schedule's history."""

    action: AuditAction
    at: Instant
    actor: str | None
    reason: str | None
    details: dict[str, JsonValue]


class History(Shape):
    """The newest events of a schedule; older ones are not listed."""

    items: list[Event]
    next_cursor: None


class Retry(Shape):
    """How often a run is tried, and how long it waits before each further attempt."""

    max_attempts: int
    initial_delay: str
    factor: float
    max_delay: str
    jitter: float


class Job(Shape):
    """A job, every default resolved."""

    name: str
    description: str | None
    overdue: Overdue
    retry: Retry
    timeout: str | None
    lease: str
    params_bytes_max: int


class JobPage(Shape):
    """Jobs by name."""

    items: list[Job]
    next_cursor: Cursor


class Liveness(Shape):
    """The process answers."""

    status: Literal["live"]


class Check(Shape):
    """One thing without which Rota cannot work."""

    ok: bool
    problem: str | None


class Checks(Shape):
    """What readiness depends on."""

    store: Check
    clock: Check


class Partitions(Shape):
    """How many partitions there are, and how many a living dispatcher holds."""

    count: int
    held: int


class Lag(Shape):
    """How long what is due first has waited for admission."""

    oldest_due_at: Instant | None
    lag_ms: int


class Readiness(Shape):
    """Whether Rota can work, and what an operator should look at."""

    status: Literal["ready", "unready"]
    checks: Checks
    partitions: Partitions | None
    overdue: Lag | None
    warnings: list[str]
