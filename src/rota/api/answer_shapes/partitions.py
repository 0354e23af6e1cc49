"""Partitions: who holds them, and what waits in them."""

from rota.api.answer_shapes.texts import Instant
from rota.api.request_shapes import Shape


class DueAmount(Shape):
    """How many are due; at least so many, where counting stopped there."""

    count: int
    is_at_least: bool


class Partition(Shape):
    """One partition: its lease, and what of it is due and not admitted.

    `owner` holds it where `is_held`, else held it last; null where it was given back, or never held.
    """

    partition: int
    owner: str | None
    epoch: int
    expires_at: Instant | None
    is_held: bool
    checkpoint: Instant | None
    lag_ms: int
    due: DueAmount
    planned_due: DueAmount


class PartitionTotals(Shape):
    """All partitions together; the lag is the longest."""

    partitions: int
    held: int
    lag_ms: int
    due: DueAmount
    planned_due: DueAmount


class PresentDispatcher(Shape):
    """A dispatcher that is there, and how many partitions it holds."""

    owner: str
    partitions: int


class PartitionOverview(Shape):
    """Every partition, all of them together, and who dispatches."""

    at: Instant
    dispatchers: list[PresentDispatcher]
    partitions: list[Partition]
    totals: PartitionTotals
