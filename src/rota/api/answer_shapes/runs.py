"""Runs and their attempts."""

from typing import Literal

from pydantic import Field, JsonValue

from rota.api.answer_shapes.schedules import Version
from rota.api.answer_shapes.texts import Cursor, Instant, Local, Offset
from rota.api.request_shapes import Shape
from rota.domain.run import AttemptOutcome, Origin, RunState


class Lateness(Shape):
    """Milliseconds after `due_at`."""

    admitted_ms: int | None
    started_ms: int | None


class Progress(Shape):
    """What a handler last reported."""

    fraction: float = Field(ge=0, le=1)
    message: str | None


class Run(Shape):
    """The one record of one occurrence that became work, or of one request for work."""

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
    carried_by: int | None = Field(
        description="The version that took over and created it, since nobody would have run its period."
    )
    replay_of: str | None = Field(description="The run that it replays.")
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
    """A run with its result, its attempts, oldest first, and the version that made it."""

    result: JsonValue
    attempts: list[Attempt]
    made_by: Version | None = Field(description="Its version, with the params; null: it cannot be read.")


class RunPage(Shape):
    """Runs, newest scheduled first."""

    items: list[Run]
    next_cursor: Cursor
