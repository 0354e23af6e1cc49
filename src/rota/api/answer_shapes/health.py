"""Liveness and readiness."""

from typing import Literal

from rota.api.answer_shapes.texts import Instant
from rota.api.request_shapes import Shape


class Liveness(Shape):
    """The process answers."""

    status: Literal["live"]


class Check(Shape):
    """One thing without which Rota cannot work."""

    ok: bool
    problem: str | None


class Checks(Shape):
    """What readiness depends on."""

    store: Check
    clock: Check


class Partitions(Shape):
    """How many partitions there are, and how many a living dispatcher holds."""

    count: int
    held: int


class Lag(Shape):
    """How long what is due first has waited for admission."""

    oldest_due_at: Instant | None
    lag_ms: int


class OtherRules(Shape):
    """A zone whose schedules were computed with other rules than this process's: it leaves them alone."""

    timezone: str
    stored_tzdata: str


class ZoneRules(Shape):
    """The release of the tz data here, and where stored rules differ from it."""

    tzdata: str
    differing: list[OtherRules]


class Deliveries(Shape):
    """How many messages are dead, counted up to 100: their runs stay queued until somebody redrives or cancels them."""

    dead: int


class Readiness(Shape):
    """Whether Rota can work, and what an operator should look at."""

    status: Literal["ready", "unready"]
    checks: Checks
    partitions: Partitions | None
    overdue: Lag | None
    zones: ZoneRules | None
    deliveries: Deliveries | None
    warnings: list[str]
