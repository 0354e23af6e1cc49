"""Jobs."""

from rota.api.answer_shapes.texts import Cursor
from rota.api.request_shapes import Overdue, Shape


class Retry(Shape):
    """How often a run is tried, and how long it waits before each further attempt."""

    max_attempts: int
    initial_delay: str
    factor: float
    max_delay: str
    jitter: float


class Job(Shape):
    """A job, every default resolved."""

    name: str
    description: str | None
    overdue: Overdue
    retry: Retry
    timeout: str | None
    lease: str
    params_bytes_max: int


class JobPage(Shape):
    """Jobs by name."""

    items: list[Job]
    next_cursor: Cursor
