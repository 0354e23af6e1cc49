"""What workers send."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue

from rota.api.request_shapes.definitions import Duration, Shape
from rota.domain.job_form import JOB_NAME_PATTERN
from rota.service.work_requests import CLAIM_MAX, JOBS_MAX, REPORTS_MAX
from rota.wire.reports import ATTEMPT_MAX, NAME_CHARACTERS_MAX

NAMED = "^[ -~]+$"
JobName = Annotated[str, Field(pattern=f"^{JOB_NAME_PATTERN.pattern}$", examples=["sales_report"])]
Name = Annotated[str, Field(min_length=1, max_length=NAME_CHARACTERS_MAX, pattern=NAMED)]
RunIdText = Annotated[
    str,
    Field(
        min_length=1,
        max_length=NAME_CHARACTERS_MAX,
        pattern=NAMED,
        examples=["report-7.1.20260110T140000Z"],
    ),
]
AttemptNumber = Annotated[int, Field(ge=1, le=ATTEMPT_MAX)]
ATTEMPT_EXAMPLE: dict[str, JsonValue] = {"run_id": "report-7.1.20260110T140000Z", "attempt": 1}


class WantedJob(Shape):
    """How much of one job is asked for."""

    job: JobName
    limit: Annotated[int, Field(ge=1, le=1_000)] | None = Field(
        None, description="Left out: as much as there is place for."
    )


class ClaimRequest(Shape):
    """Which runs a worker takes, and how long it waits for them."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"worker": "sales@host-7:4711", "jobs": ["sales_report"], "limit": 10, "wait": "PT20S"}
            ]
        }
    )

    worker: Name = Field(description="Who asks; kept with the attempts.")
    jobs: Annotated[list[JobName | WantedJob], Field(min_length=1, max_length=JOBS_MAX)] = Field(
        description="Each named once."
    )
    limit: Annotated[int, Field(ge=0, le=CLAIM_MAX)] | None = Field(
        None,
        description="How many at most, 1 if left out. 0 opens nothing, and tells whether there is anything.",
    )
    wait: Duration | None = Field(
        None, description="How long it waits where there is nothing: at most PT1M, not at all if left out."
    )
    backlog_first: bool | None = Field(
        None, description="Take from backlogs first; left out: as the server finds it fair."
    )


class AttemptOf(Shape):
    """One attempt at one run."""

    run_id: RunIdText
    attempt: AttemptNumber


class OpeningRequest(AttemptOf):
    """The attempt that a message asks for."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"worker": "sales@host-7:4711", **ATTEMPT_EXAMPLE}]}
    )

    worker: Name


class ReportedProgress(Shape):
    """How far the work is."""

    fraction: Annotated[float, Field(ge=0, le=1)]
    message: str | None = None


class HeartbeatOf(AttemptOf):
    """That an attempt goes on."""

    progress: ReportedProgress | None = None


class Heartbeats(Shape):
    """That attempts go on, each named once."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"attempts": [{**ATTEMPT_EXAMPLE, "progress": {"fraction": 0.5}}]}]}
    )

    attempts: Annotated[list[HeartbeatOf], Field(min_length=1, max_length=REPORTS_MAX)]


class EndOf(AttemptOf):
    """What became of an attempt."""

    outcome: Literal["succeeded", "failed", "timed_out", "interrupted", "cancelled", "moot"]
    result: JsonValue = Field(None, description="Of one that succeeded.")
    error: str | None = Field(None, description="Why it failed, or why the run is moot.")
    retryable: bool = Field(default=True, description="False: to try again is useless.")


class Ends(Shape):
    """What became of attempts, each named once."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"attempts": [{**ATTEMPT_EXAMPLE, "outcome": "succeeded", "result": {"rows": 3}}]},
                {"attempts": [{**ATTEMPT_EXAMPLE, "outcome": "failed", "error": "no route to the shop"}]},
            ]
        }
    )

    attempts: Annotated[list[EndOf], Field(min_length=1, max_length=REPORTS_MAX)]


class EffectBegin(AttemptOf):
    """An effect that an attempt is about to do."""

    model_config = ConfigDict(json_schema_extra={"examples": [{**ATTEMPT_EXAMPLE, "name": "send-mail"}]})

    name: Name = Field(description="Of the effect; one name stands for one effect of the run.")


class EffectRecord(EffectBegin):
    """An effect that an attempt has done."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{**ATTEMPT_EXAMPLE, "name": "send-mail", "result": {"message_id": "m-1"}}]
        }
    )

    result: JsonValue = None
