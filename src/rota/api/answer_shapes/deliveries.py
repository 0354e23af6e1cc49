"""Deliveries, and what is done to many at once."""

from pydantic import Field

from rota.api.answer_shapes.texts import Cursor, Instant
from rota.api.request_shapes import Shape
from rota.domain.delivery import DeliveryState


class Delivery(Shape):
    """The message of one attempt on its way to a sink."""

    run_id: str
    attempt: int = Field(description="The attempt that it asks for.")
    schedule_id: str
    job: str
    state: DeliveryState
    tries: int
    first_at: Instant = Field(description="Since when it is tried: its age is counted from here.")
    next_at: Instant | None = Field(description="When it may be taken again; null: it is dead.")
    sent_at: Instant | None = Field(description="When a sink last took it.")
    error: str | None = Field(description="Why the last try failed.")


class DeliveryPage(Shape):
    """Deliveries by run id."""

    items: list[Delivery]
    next_cursor: Cursor


class Redriving(Shape):
    """How many dead deliveries are tried again, or would be."""

    dry_run: bool
    redriven: int
    is_complete: bool = Field(
        description="False: there are more; repeat the request. Of a dry run: at least."
    )
