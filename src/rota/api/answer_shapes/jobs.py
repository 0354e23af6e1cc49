"""Jobs."""

from rota.api.answer_shapes.texts import Cursor
from rota.api.request_shapes import Overdue, Shape, Sink


class Retry(Shape):
    """How often a run is tried, and how long it waits before each further attempt."""

    max_attempts: int
    initial_delay: str
    factor: float
    max_delay: str
    jitter: float


class DeliveryPolicy(Shape):
    """How patiently messages are sent to a sink that takes them."""

    initial_delay: str
    factor: float
    max_delay: str
    jitter: float
    max_age: str
    redeliver_after: str
    concurrency: int


class Job(Shape):
    """A job, every default resolved."""

    name: str
    description: str | None
    overdue: Overdue
    retry: Retry
    timeout: str | None
    lease: str
    params_bytes_max: int
    sink: Sink
    delivery: DeliveryPolicy
    priority: int
    max_running: int | None


class JobPage(Shape):
    """Jobs by name."""

    items: list[Job]
    next_cursor: Cursor
