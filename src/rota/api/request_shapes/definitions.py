"""A definition in a request: a new schedule, or one whose occurrences are only to be shown."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from rota.domain.definition import LABEL_CHARACTERS_MAX, LABELS_MAX, MAX_OCCURRENCES_MAX

Gap = Literal["skip", "forward"]
Fold = Literal["first", "second", "both"]
FoldAsked = Literal["auto", "first", "second", "both"]
Period = Literal["day", "week", "month", "instant", "once"]
Overlap = Literal["allow", "skip", "queue"]
PeriodAsked = Literal["auto", "day", "week", "month", "instant", "once"]

INSTANT_PATTERN = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})$"
Instant = Annotated[
    str,
    Field(
        pattern=INSTANT_PATTERN,
        description="RFC 3339, with Z or an offset.",
        examples=["2026-01-10T14:00:00Z"],
    ),
]
Duration = Annotated[
    str,
    Field(
        pattern=r"^P(\d+W|(\d+D)?(T(\d+H)?(\d+M)?(\d+([.,]\d+)?S)?)?)$",
        description="ISO 8601, elapsed time.",
        examples=["PT5M"],
    ),
]
Timezone = Annotated[str, Field(description="An IANA name.", examples=["America/New_York"])]


class Shape(BaseModel):
    """What all have in common: unknown members are refused."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={})


class AtRecurrence(Shape):
    """Once: at a local time of the schedule's zone, or at an instant."""

    at: str = Field(examples=["2026-01-10T09:00", "2026-01-10T14:00:00Z"])


class CronRecurrence(Shape):
    """By five cron fields: minute, hour, day of month, month, day of week; with names, ranges, steps, L, W and #."""

    cron: str = Field(examples=["0 9 * * 1-5"])


class RRuleRecurrence(Shape):
    """By an RFC 5545 set: DTSTART (local), RRULE, RDATE and EXDATE, one a line."""

    rrule: str = Field(examples=["DTSTART:20260105T090000\nRRULE:FREQ=WEEKLY;BYDAY=MO"])


class EveryRecurrence(Shape):
    """In equal steps of elapsed time, counted from the anchor; without one, from the present second."""

    every: Duration
    anchor: Instant = "2026-01-10T00:00:00Z"


Recurrence = AtRecurrence | CronRecurrence | RRuleRecurrence | EveryRecurrence


class CatchUpAll(Shape):
    """Every late occurrence runs, oldest first, unless it is older than `max_age`."""

    policy: Literal["catch_up_all"]
    max_age: Duration | None = None


class LatestOnly(Shape):
    """Of the late occurrences only the newest runs; one is late when `grace` has passed."""

    policy: Literal["latest_only"]
    grace: Duration | None = None


class Expire(Shape):
    """An occurrence that is `deadline` late does not run."""

    policy: Literal["expire"]
    deadline: Duration


Overdue = CatchUpAll | LatestOnly | Expire


class NewSchedule(Shape):
    """A schedule to be created."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "report-7",
                    "job": "sales_report",
                    "timezone": "America/New_York",
                    "recurrence": {"cron": "0 9 * * 1-5"},
                    "overdue": {"policy": "latest_only", "grace": "PT1M"},
                    "params": {"report": "sales"},
                    "labels": {"customer": "acme"},
                },
                {
                    "job": "sales_report",
                    "timezone": "Europe/London",
                    "recurrence": {"at": "2030-06-01T08:30"},
                },
            ]
        }
    )

    id: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9_-]{0,79}$")] | None = Field(
        None, description="Left out, one is made."
    )
    job: str = Field(description="The name of a job that exists.")
    timezone: Timezone
    recurrence: Recurrence
    gap: Gap = Field(
        "skip",
        description="A local time that the clocks jump over: no occurrence, or the first instant after the gap.",
    )
    fold: FoldAsked = Field(
        "auto",
        description="A local time that comes twice. `auto` is `both` for rules that cover every hour, else `first`.",
    )
    period: PeriodAsked = Field(
        "auto",
        description="Of each period at most one occurrence is used, across all edits. "
        "`auto` is the coarsest that the rule allows.",
    )
    overdue: Overdue | None = Field(
        None, description="What becomes of late occurrences; null: as the job says."
    )
    overlap: Overlap = Field(
        "allow",
        description="What becomes of an occurrence that falls due while a run of the schedule is open: it runs beside "
        "it, is skipped, or waits until that has ended (one at most; a further one is skipped).",
    )
    spread: Duration | None = Field(
        None,
        description="Occurrences fall due later than they are scheduled, by an offset within this window that is the "
        "schedule's own and stays the same. Whole seconds, at most PT24H; null: when they are scheduled.",
    )
    params: dict[str, JsonValue] | None = Field(None, description="Handed to every run of this version.")
    labels: (
        Annotated[
            dict[str, Annotated[str, Field(min_length=1, max_length=LABEL_CHARACTERS_MAX)]],
            Field(max_length=LABELS_MAX),
        ]
        | None
    ) = None
    starts_at: Instant | None = Field(None, description="Inclusive, a whole second.")
    ends_at: Instant | None = Field(None, description="Exclusive, a whole second.")
    max_occurrences: Annotated[int, Field(ge=1, le=MAX_OCCURRENCES_MAX)] | None = None


class PreviewRequest(Shape):
    """A definition whose occurrences are to be shown; nothing is saved."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "timezone": "Europe/London",
                    "recurrence": {"cron": "30 1 * * *"},
                    "after": "2026-03-28T00:00:00Z",
                    "count": 3,
                }
            ]
        }
    )

    timezone: Timezone
    recurrence: Recurrence
    gap: Gap = "skip"
    fold: FoldAsked = "auto"
    after: Instant | None = Field(None, description="Exclusive; null: the present.")
    count: int = Field(10, ge=1, le=1_000)
