"""What a change would do, and what one that takes many steps has done."""

from typing import Literal

from pydantic import Field, JsonValue

from rota.api.answer_shapes.occurrences import SkippedLocal, SkippedOccurrence, UpcomingOccurrence
from rota.api.answer_shapes.runs import Run
from rota.api.answer_shapes.texts import Boundary, Instant
from rota.api.request_shapes import Period, Shape
from rota.domain.admission import SkipReason


class Difference(Shape):
    """One member before and after."""

    from_: JsonValue = Field(alias="from")
    to: JsonValue


class SkippedRange(UpcomingOccurrence):
    """Owed occurrences that would be skipped at once; the local time is the first one's."""

    kind: Literal["skip"]
    schedule_id: str
    from_: Instant = Field(alias="from")
    until: Instant
    count: int
    reason: SkipReason


class Effects(Shape):
    """What a change does to occurrences, each with its local time, offset, instant, version and period key."""

    schedule_id: str
    version: int = Field(description="The version that it makes; where it makes none, the latest.")
    boundary: Boundary | None
    effective_from: Instant | None
    is_pending: bool = Field(description="The new version waits for what the one before still owes.")
    replaces: int | None = Field(description="The version that had not taken over yet and never will.")
    changed: dict[str, Difference] = Field(description="The difference, by member, from `changes_version`.")
    changes_version: int = Field(
        description="The version that it is told against: the latest, which may be one that waits."
    )
    period: Period = Field(description="The kind of period by which occurrences of both sides are compared.")
    kept: list[UpcomingOccurrence] = Field(
        description="Planned or held already, or owed and admitted at once: they stay with their version."
    )
    carried: list[UpcomingOccurrence] = Field(
        description="Of the version before, past the boundary: created at once, or nobody would run their period."
    )
    suppressed: list[UpcomingOccurrence] = Field(
        description="Named by the new version, but their period is used by the run that `note` names."
    )
    skipped: list[SkippedOccurrence | SkippedRange | SkippedLocal]
    next: list[UpcomingOccurrence] = Field(description="Those that fall due first afterwards.")
    is_complete: bool = Field(description="False: more is owed than is foretold.")


class DryRun(Effects):
    """What a change would do. Nothing was written."""

    dry_run: Literal[True]
    operation: Literal["edit", "pause", "resume"]


class Planning(Shape):
    """What was planned, or would be."""

    schedule_id: str
    version: int
    until: Instant
    dry_run: bool
    created: int
    existing: int = Field(description="Those that had a run already.")
    suppressed: list[UpcomingOccurrence] = Field(description="The first of those whose period is used.")
    runs: list[Run] = Field(description="The first of those created.")


class LeftOut(Shape):
    """How many occurrences of the range were not backfilled."""

    period_used: int = Field(description="A run uses their period.")
    owed: int = Field(
        description="The schedule has not got there yet: they are admitted or skipped in time. Counted to 10,000."
    )


class Backfilling(Shape):
    """What was backfilled, or would be."""

    schedule_id: str
    version: int
    from_: Instant = Field(alias="from")
    until: Instant
    dry_run: bool
    created: int
    left_out: LeftOut
    runs: list[Run] = Field(description="The first of those created.")


class AppliedCreation(Shape):
    """A schedule that was not there."""

    schedule_id: str
    outcome: Literal["created"]
    version: int
    next: list[UpcomingOccurrence]
    skipped: list[SkippedOccurrence | SkippedLocal]


class AppliedEdit(Effects):
    """A schedule that was another."""

    outcome: Literal["edited"]
    operation: Literal["edit"]


class AppliedEnd(Shape):
    """A schedule that is to have ended, or that is as the document says."""

    schedule_id: str
    outcome: Literal["ended", "unchanged"]


class AppliedToNothing(Shape):
    """An id that is to have ended, and that no schedule has."""

    schedule_id: str
    outcome: Literal["unchanged"]
    note: str


class Application(Shape):
    """What applying a document did, or would do, in its order."""

    dry_run: bool
    schedules: list[AppliedCreation | AppliedEdit | AppliedEnd | AppliedToNothing]
