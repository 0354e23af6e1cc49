"""An edit of a schedule, and a document of schedules as they are to be.

In both, null and what a definition may leave out mean its default; what has none may not be null.
"""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue

from rota.api.request_shapes.commands import ReasonText
from rota.api.request_shapes.definitions import (
    Duration,
    FoldAsked,
    Gap,
    Instant,
    Overdue,
    Overlap,
    PeriodAsked,
    Recurrence,
    Shape,
    Timezone,
)
from rota.domain.definition import LABEL_CHARACTERS_MAX, LABELS_MAX, MAX_OCCURRENCES_MAX

LabelText = Annotated[str, Field(min_length=1, max_length=LABEL_CHARACTERS_MAX)]


class OverduePatch(Shape):
    """Members of the overdue policy as it is, without naming another."""

    max_age: Duration | None = None
    grace: Duration | None = None
    deadline: Duration | None = None


class Takeover(Shape):
    """Members of a definition that is to follow another, and how it takes over."""

    timezone: Timezone | None = None
    recurrence: Recurrence | None = Field(
        None, description="Replaced whole. An `every` of the same interval without an anchor keeps its grid."
    )
    gap: Gap | None = None
    fold: FoldAsked | None = Field(None, description="`auto` is resolved anew.")
    period: PeriodAsked | None = Field(None, description="`auto` is resolved anew.")
    overlap: Overlap | None = None
    spread: Duration | None = None
    params: dict[str, JsonValue] | None = None
    starts_at: Instant | None = Field(None, description="Inclusive, a whole second.")
    ends_at: Instant | None = Field(None, description="Exclusive, a whole second.")
    max_occurrences: Annotated[int, Field(ge=1, le=MAX_OCCURRENCES_MAX)] | None = Field(
        None, description="Those that earlier versions named count too."
    )
    boundary: Literal["keep_period", "now", "effective_from"] | None = Field(
        None,
        description="`keep_period` (default): of each period one occurrence runs, of whichever version. "
        "`now`: the new version begins anew. `effective_from`: as `keep_period`, from that instant on.",
    )
    effective_from: Instant | None = Field(
        None, description="The new version takes over at this instant, a whole second; left out, at once."
    )
    at_once: bool = Field(
        default=False,
        description="The new version takes over at once also where it replaces one that was to wait: "
        "else it waits as long as that one. Not beside `effective_from`.",
    )
    replaces_pending: bool = Field(
        default=False, description="Whether a version that has not taken over yet may be replaced."
    )
    reason: ReasonText | None = Field(None, description="Why; kept in the version and in the history.")


class EditFields(Takeover):
    """A JSON merge-patch of the latest version's definition and of the labels, and how the edit takes over."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"timezone": "Europe/London", "reason": "the customer has moved"},
                {"recurrence": {"cron": "0 10 * * 1-5"}, "effective_from": "2026-02-01T00:00:00Z"},
                {"labels": {"customer": None, "team": "sales"}},
            ]
        }
    )

    overdue: Overdue | OverduePatch | None = Field(
        None, description="Replaced whole where it names a policy; else its members are."
    )
    labels: dict[str, LabelText | None] | None = Field(
        None, description="Null takes one away. A change of labels alone makes no version."
    )


class DocumentEntry(Takeover):
    """A schedule as it is to be. What is left out is its default, whatever it was before."""

    job: str | None = Field(None, description="The name of a job; required of a new schedule.")
    overdue: Overdue | None = None
    labels: Annotated[dict[str, LabelText], Field(max_length=LABELS_MAX)] | None = None
    ended: bool = False


class EndedEntry(Shape):
    """A schedule that is to have ended. Its other members may stay; they are not looked at."""

    ended: Literal[True]
    reason: ReasonText | None = None
    job: JsonValue = None
    timezone: JsonValue = None
    recurrence: JsonValue = None
    gap: JsonValue = None
    fold: JsonValue = None
    period: JsonValue = None
    overdue: JsonValue = None
    overlap: JsonValue = None
    spread: JsonValue = None
    params: JsonValue = None
    labels: JsonValue = None
    starts_at: JsonValue = None
    ends_at: JsonValue = None
    max_occurrences: JsonValue = None
    boundary: JsonValue = None
    effective_from: JsonValue = None
    at_once: JsonValue = None
    replaces_pending: JsonValue = None


class Document(Shape):
    """Schedules by id, as they are to be. Those that are not named are left alone."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "schedules": {
                        "report-8": {
                            "job": "sales_report",
                            "timezone": "Europe/London",
                            "recurrence": {"cron": "0 9 * * 1-5"},
                        },
                        "report-9": {"ended": True},
                    },
                    "reason": "as of the new contract",
                }
            ]
        }
    )

    schedules: dict[
        Annotated[str, Field(pattern="^[a-z0-9][a-z0-9_-]{0,79}$")], DocumentEntry | EndedEntry
    ] = Field(default_factory=dict)
    reason: ReasonText | None = Field(None, description="Of every entry that gives none of its own.")
