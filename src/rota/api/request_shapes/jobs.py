"""A job in a request."""

from typing import Annotated

from pydantic import ConfigDict, Field

from rota.api.request_shapes.definitions import Duration, Overdue, Shape
from rota.domain.job import PARAMS_BYTES_MAX
from rota.domain.job_form import DESCRIPTION_CHARACTERS_MAX, MAX_ATTEMPTS_MAX


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
                }
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
