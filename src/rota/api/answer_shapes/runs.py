"""Runs with their attempts and effects, and what is done to many at once."""

from typing import Literal

from pydantic import Field, JsonValue

from rota.api.answer_shapes.deliveries import Delivery
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


class Effect(Shape):
    """What an attempt did to the world, so that a later one does not do it again."""

    name: str
    begun_by: int = Field(description="The number of the attempt that began it last.")
    begun_at: Instant
    recorded_at: Instant | None = Field(description="Null: whether it came to pass is not known.")
    result: JsonValue


class RunDetail(Run):
    """A run with its result, its attempts, oldest first, and the version that made it."""

    result: JsonValue
    attempts: list[Attempt]
    effects: list[Effect] = Field(description="By the time they were begun.")
    delivery: Delivery | None = Field(
        description="The message that asks for its next attempt, where one is on its way to a sink."
    )
    made_by: Version | None = Field(description="Its version, with the params; null: it cannot be read.")


class RunPage(Shape):
    """Runs, newest scheduled first."""

    items: list[Run]
    next_cursor: Cursor


class Cancellation(Shape):
    """What became of the runs that matched, or would."""

    dry_run: bool
    cancelled: int = Field(description="Those that had not begun.")
    asked_to_stop: int = Field(description="Those that run; each is cancelled when its handler heeds it.")
    is_complete: bool = Field(
        description="False: there are more; repeat the request. Of a dry run: at least."
    )


class Replaying(Shape):
    """What was replayed of the runs that matched, or would be."""

    dry_run: bool
    replayed: int
    left_out: int = Field(
        description="Occurrences that were replayed already, by a run that is open or ended in another state."
    )
    is_complete: bool = Field(description="False: there are more; repeat the request with `next_cursor`.")
    next_cursor: Cursor
