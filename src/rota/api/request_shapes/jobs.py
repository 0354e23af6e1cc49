"""A job in a request, with the sink that its runs are sent to."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from rota.api.request_shapes.definitions import Duration, Overdue, Shape
from rota.domain.job import PARAMS_BYTES_MAX, PRIORITY_MAX
from rota.domain.job_form import DESCRIPTION_CHARACTERS_MAX, MAX_ATTEMPTS_MAX, MAX_RUNNING_MAX
from rota.domain.sink_form import (
    CONCURRENCY_MAX,
    NAME_CHARACTERS_MAX,
    SECRETS_MAX,
    URL_CHARACTERS_MAX,
    VARIABLE_PATTERN,
)

Url = Annotated[str, Field(max_length=URL_CHARACTERS_MAX, pattern=r"^https?://[!-~]+$")]
Name = Annotated[str, Field(min_length=1, max_length=NAME_CHARACTERS_MAX)]
Variable = Annotated[str, Field(pattern=f"^{VARIABLE_PATTERN.pattern}$")]


class RetryFields(Shape):
    """How often a run is tried, and how long it waits before each further attempt."""

    max_attempts: Annotated[int, Field(ge=1, le=MAX_ATTEMPTS_MAX)] | None = Field(
        None, description="5 if left out."
    )
    initial_delay: Duration | None = Field(None, description="PT10S if left out.")
    factor: Annotated[float, Field(ge=1, le=100)] | None = Field(None, description="2 if left out.")
    max_delay: Duration | None = Field(None, description="PT1H if left out.")
    jitter: Annotated[float, Field(ge=0, le=1)] | None = Field(
        None, description="The share by which a delay may be lengthened; 0.2 if left out."
    )


class WorkerSink(Shape):
    """Rota's own workers fetch the runs."""

    type: Literal["worker"]


class WebhookSink(Shape):
    """The runs are posted to a URL, as signed CloudEvents."""

    type: Literal["webhook"]
    url: Url = Field(
        description="http or https, without a user, a password and a fragment.",
        examples=["https://shop.example/hooks/rota"],
    )
    secrets_from: Annotated[list[Variable], Field(max_length=SECRETS_MAX)] | None = Field(
        None,
        description="Names of environment variables of the relay that hold the secrets to sign with, newest first.",
    )
    timeout: Duration | None = Field(
        None, description="For a whole request: PT1S to PT5M, PT15S if left out."
    )


class CelerySink(Shape):
    """The runs become messages of the Celery that the relay is set to."""

    type: Literal["celery"]
    task: Name = Field(examples=["shop.tasks.send_report"])
    queue: Name | None = Field(None, description="Left out: the one that Celery's own routing chooses.")


class SqsSink(Shape):
    """The runs become messages of an SQS queue."""

    type: Literal["sqs"]
    queue_url: Url = Field(examples=["https://sqs.eu-central-1.amazonaws.com/123456789012/reports"])


Sink = WorkerSink | WebhookSink | CelerySink | SqsSink


class DeliveryFields(Shape):
    """How patiently messages are sent to a sink that takes them."""

    initial_delay: Duration | None = Field(
        None, description="Before the second try: PT0S to P1D, PT5S if left out."
    )
    factor: Annotated[float, Field(ge=1, le=100)] | None = Field(None, description="2 if left out.")
    max_delay: Duration | None = Field(None, description="PT0S to P1D, PT15M if left out.")
    jitter: Annotated[float, Field(ge=0, le=1)] | None = Field(
        None, description="The share by which a delay may be lengthened; 0.2 if left out."
    )
    max_age: Duration | None = Field(
        None, description="What could not be sent for so long is dead: PT1S to P30D, P1D if left out."
    )
    redeliver_after: Duration | None = Field(
        None,
        description="What was sent and nobody opened for so long is sent again: PT5S to P30D, PT5M if left out.",
    )
    concurrency: Annotated[int, Field(ge=1, le=CONCURRENCY_MAX)] | None = Field(
        None, description="How many a relay has under way to the destination at once; 10 if left out."
    )


class JobFields(Shape):
    """A job: the named kind of work, with the defaults of its schedules and runs. What is left out is reset."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "description": "Mails the sales of the day before.",
                    "overdue": {"policy": "expire", "deadline": "PT2H"},
                    "retry": {"max_attempts": 3, "initial_delay": "PT30S"},
                    "timeout": "PT10M",
                },
                {
                    "sink": {
                        "type": "webhook",
                        "url": "https://shop.example/hooks/rota",
                        "secrets_from": ["SHOP_SECRET"],
                    },
                    "delivery": {"max_age": "PT6H", "concurrency": 4},
                    "priority": 7,
                    "max_running": 20,
                },
            ]
        }
    )

    name: str | None = Field(None, description="That of the address, or left out.")
    description: Annotated[str, Field(max_length=DESCRIPTION_CHARACTERS_MAX)] | None = None
    overdue: Overdue | None = None
    retry: RetryFields | None = None
    timeout: Duration | None = Field(
        None, description="An attempt that runs longer has failed; null: no limit."
    )
    lease: Duration | None = Field(
        None, description="An attempt not heard of for so long is lost: PT5S to PT1H, PT30S if left out."
    )
    params_bytes_max: Annotated[int, Field(ge=1, le=PARAMS_BYTES_MAX)] | None = None
    sink: Sink | None = Field(None, description="Where its due runs go; Rota's workers if left out.")
    delivery: DeliveryFields | None = None
    priority: Annotated[int, Field(ge=0, le=PRIORITY_MAX)] | None = Field(
        None, description="Runs of a job with a higher one are started first; 5 if left out."
    )
    max_running: Annotated[int, Field(ge=1, le=MAX_RUNNING_MAX)] | None = Field(
        None,
        description="How many of its runs are in hand at once, of all workers and sinks; null: any number.",
    )
