"""Commands: what is to be done with a schedule, an occurrence or a run, and why."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from rota.api.request_shapes.definitions import Duration, Instant, Shape
from rota.domain.run import Origin, RunState

ReasonText = Annotated[str, Field(min_length=1, max_length=1_000)]
Moment = Annotated[
    str,
    Field(
        description="An instant, or a local time in the schedule's zone; whole seconds.",
        examples=["2026-02-01T00:00:00Z", "2026-02-01T09:00"],
    ),
]


class Reason(Shape):
    """Why it is asked for; kept in the schedule's history."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"reason": "the customer is on holiday"}]})

    reason: ReasonText | None = None


class Resumption(Reason):
    """How and why a schedule goes on."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"reason": "back", "apply_overdue": True}]})

    apply_overdue: bool = Field(
        default=False,
        description="Occurrences that fell into the pause follow the overdue policy; else they are skipped (`paused`).",
    )


class PlanRequest(Reason):
    """Up to when occurrences are created ahead of their time."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"until": "2026-02-01T00:00:00Z", "reason": "promised to the customer"}]
        }
    )

    until: Moment = Field(description="Inclusive, and to come.")


class MoveRequest(Reason):
    """When an occurrence is to fall due instead."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"to": "2026-01-13T11:00", "reason": "the office opens late"}]}
    )

    to: Moment


class BackfillRequest(Reason):
    """The past range whose occurrences are to run."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "from": "2026-01-05T00:00:00Z",
                    "until": "2026-01-09T23:59:59Z",
                    "spacing": "PT1M",
                    "reason": "late data",
                }
            ]
        }
    )

    from_: Moment = Field(alias="from", description="Inclusive.")
    until: Moment = Field(description="Inclusive, and past.")
    spacing: Duration | None = Field(
        None, description="How far apart the runs fall due: PT1S to PT24H, PT1S if left out."
    )


class ReplayRequest(Shape):
    """Why a run is to run once more; kept in the schedule's history."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"reason": "the mail server was down"}]})

    reason: ReasonText


Chosen = Annotated[str, Field(min_length=1, max_length=400)]
State = Annotated[str, Field(json_schema_extra={"enum": [state.value for state in RunState]})]


class RunChoice(Reason):
    """Which runs a command is for: all that it names has to hold, and at least one member is named."""

    schedule: Chosen | None = None
    job: Chosen | None = None
    state: State | None = None
    origin: Origin | None = None
    label: Annotated[str, Field(max_length=400, pattern=r"^[^=]+=[\s\S]+$")] | None = Field(
        None, description="Of the run's schedule: a name and a value.", examples=["customer=acme"]
    )
    from_: Instant | None = Field(None, alias="from", description="Scheduled at this instant or later.")
    until: Instant | None = Field(None, description="Scheduled before this instant.")


class CancelRequest(RunChoice):
    """Which runs are cancelled: of those that match, the open ones."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"job": "sales_report", "state": "queued", "reason": "not needed"}]}
    )


class ReplayManyRequest(RunChoice):
    """Which runs are to run once more: of those that match, the ones that have ended."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "job": "sales_report",
                    "state": "failed",
                    "from": "2026-01-09T00:00:00Z",
                    "until": "2026-01-10T00:00:00Z",
                    "reason": "the mail server was down",
                }
            ]
        }
    )

    reason: ReasonText
    cursor: Annotated[str, Field(min_length=1)] | None = Field(
        None, description="The `next_cursor` of the answer before, to go on where it ended."
    )


class RedriveRequest(Reason):
    """Which dead deliveries are tried again: all that it names has to hold, and at least one member is named."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"job": "sales_report", "reason": "the receiver is back"}]}
    )

    schedule: Chosen | None = None
    job: Chosen | None = None
    state: Literal["dead"] | None = Field(None, description="`dead` alone is every dead delivery.")
