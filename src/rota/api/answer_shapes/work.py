"""What workers are answered."""

from typing import Literal

from pydantic import Field, JsonValue

from rota.api.answer_shapes.texts import Instant, Local, Offset
from rota.api.request_shapes import Shape
from rota.domain.effect import EffectState
from rota.domain.run import Origin


class Assignment(Shape):
    """An attempt that was opened for whoever asked."""

    run_id: str
    attempt: int
    job: str
    schedule_id: str
    version: int
    scheduled_at: Instant
    due_at: Instant
    local: Local
    named_local: Local
    offset: Offset
    timezone: str
    period_key: str
    origin: Origin
    params: dict[str, JsonValue]
    lease: str = Field(description="The attempt is lost when no heartbeat of it has come for so long.")
    timeout: str | None = Field(description="It has failed when it goes on for longer.")
    cancel_requested: bool = Field(description="The run was asked to stop before; settle it as cancelled.")


class Claim(Shape):
    """The attempts that were opened."""

    attempts: list[Assignment]
    may_be_more: bool = Field(description="It is worth asking again at once.")
    next_in: str | None = Field(
        description="How long until the next run becomes available, where that is known."
    )


class Opening(Shape):
    """The attempt of a message."""

    outcome: Literal["opened", "stale"]
    attempt: Assignment | None


class HeartbeatOutcome(Shape):
    """Whether an attempt may go on."""

    run_id: str
    attempt: int
    outcome: Literal["current", "cancel_requested", "stale"]


class HeartbeatOutcomes(Shape):
    """One for each, in their order."""

    attempts: list[HeartbeatOutcome]


class SettleOutcome(Shape):
    """Whether the report of an end was the one that counts."""

    run_id: str
    attempt: int
    outcome: Literal["settled", "stale"]


class SettleOutcomes(Shape):
    """One for each, in their order."""

    attempts: list[SettleOutcome]


class EffectBegun(Shape):
    """Whether an effect is to be done."""

    state: EffectState
    result: JsonValue = Field(description="What was recorded, where it is `recorded`.")


class EffectRecorded(Shape):
    """Whether an effect was recorded."""

    state: Literal["recorded", "stale"]
