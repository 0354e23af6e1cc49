"""Schedules, their versions, and who did what to them."""

from typing import Literal

from pydantic import Field, JsonValue

from rota.api.answer_shapes.texts import Boundary, Cursor, Instant
from rota.api.request_shapes import (
    Duration,
    Fold,
    FoldAsked,
    Gap,
    Overdue,
    Overlap,
    Period,
    PeriodAsked,
    Recurrence,
    Shape,
)
from rota.domain.audit import AuditAction
from rota.domain.schedule import ScheduleStatus


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


class Version(Shape):
    """A definition with its number and its window `[effective_from, effective_until)`, every default resolved."""

    version: int
    timezone: str
    recurrence: Recurrence
    gap: Gap
    fold: Fold
    period: Period
    overdue: Overdue
    overlap: Overlap
    spread: Duration | None
    starts_at: Instant | None
    ends_at: Instant | None
    max_occurrences: int | None
    asked: Asked
    delay: Duration | None = Field(
        description="By how much later than they are scheduled its occurrences fall due, within `spread`."
    )
    params: dict[str, JsonValue]
    effective_from: Instant
    effective_until: Instant | None = Field(description="Null: until the next version, or for ever.")
    boundary: Boundary
    tzdata: str
    created_at: Instant
    actor: str | None
    reason: str | None = Field(description="Why it was made; `tzdata`: the rules of the zone had changed.")


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
    overlap: Overlap
    spread: Duration | None
    starts_at: Instant | None
    ends_at: Instant | None
    max_occurrences: int | None
    asked: Asked
    delay: Duration | None = Field(
        description="By how much later than they are scheduled its occurrences fall due, within `spread`."
    )
    params: dict[str, JsonValue]
    labels: dict[str, str]
    version: int
    latest_version: int
    status: ScheduleStatus
    status_reason: str | None
    suspensions: list[Suspension]
    next_due: Instant | None = Field(
        description="When the soonest one falls due: a planned run, or what the rule names."
    )
    effective_from: Instant = Field(description="Since when the version shown governs, or from when on.")
    pending: Version | None = Field(
        description="The latest version, where it has not taken over yet, as in the list of versions."
    )
    created_at: Instant
    updated_at: Instant
    history_from: Instant | None = Field(
        description="Since when its history is whole; null: from its beginning on."
    )
    tzdata: str


class SchedulePage(Shape):
    """Schedules by id."""

    items: list[Schedule]
    next_cursor: Cursor


class VersionPage(Shape):
    """Versions of a schedule, latest first."""

    items: list[Version]
    next_cursor: Cursor


class Event(Shape):
    """One entry of a schedule's history."""

    action: AuditAction
    at: Instant
    actor: str | None
    reason: str | None
    details: dict[str, JsonValue] = Field(
        description="What the action was about. Of `schedule.edit`: `version`, `boundary`, `effective_from`, "
        '`changed` (the difference by member, each `{"from": ..., "to": ...}`), `carried` (run ids) and '
        "`replaced`, of which only `changed` where only labels were."
    )


class History(Shape):
    """The newest events of a schedule; older ones are not listed."""

    items: list[Event]
    next_cursor: None
