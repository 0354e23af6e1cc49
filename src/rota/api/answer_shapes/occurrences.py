"""Occurrences to come, previewed, and gone."""

from typing import Annotated, Literal

from pydantic import Field

from rota.api.answer_shapes.runs import Run
from rota.api.answer_shapes.texts import Cursor, Instant, Local, Offset
from rota.api.request_shapes import Fold, Gap, Shape
from rota.domain.admission import SkipReason
from rota.domain.run import RunState
from rota.domain.schedule import ScheduleStatus


class Occurrence(Shape):
    """One time that a rule names, as the zone resolves it."""

    scheduled_at: Instant
    local: Local
    named_local: Local = Field(
        description="The local time that the rule names: another one where a gap moved it."
    )
    offset: Offset
    note: str | None


class UpcomingOccurrence(Occurrence):
    """An occurrence to come: one that a version names, or a run that exists ahead of its time."""

    due_at: Instant = Field(
        description="`scheduled_at`, unless the schedule is spread or the occurrence was moved."
    )
    version: int
    period_key: str
    state: RunState | Literal["named"] = Field(description="`named`: there is no run of it yet.")
    run_id: str | None = Field(description="Null: there is no run of it yet.")


class SkippedOccurrence(UpcomingOccurrence):
    """An occurrence that will not run, and why."""

    reason: SkipReason | Literal["cancelled"]


class SkippedLocal(Shape):
    """A local time that the rule names and that does not exist."""

    local: Local
    reason: Literal["gap"]
    note: str


class Upcoming(Shape):
    """The occurrences after the present, soonest due first, paused or not."""

    schedule_id: str
    status: ScheduleStatus
    occurrences: list[UpcomingOccurrence]
    suppressed: list[UpcomingOccurrence] = Field(
        description="Named, but their period is used by the run that `note` names: they will not run."
    )
    skipped: list[SkippedOccurrence | SkippedLocal] = Field(
        description="Skipped on request, cancelled, or in a gap, up to the last one shown."
    )


class Preview(Shape):
    """The occurrences of a definition that was not saved."""

    timezone: str
    gap: Gap
    fold: Fold
    tzdata: str
    occurrences: list[Occurrence]
    skipped: list[SkippedLocal]


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
