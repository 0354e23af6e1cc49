"""A job: the named kind of work, with the defaults and limits that its schedules and runs follow."""

from dataclasses import dataclass, field
from datetime import timedelta

from rota.domain.backoff import Backoff
from rota.domain.overdue import LatestOnly, OverduePolicy
from rota.domain.sink import DeliveryPolicy, Sink, WorkerSink

PARAMS_BYTES_MAX = 64 * 1024
RESULT_BYTES_MAX = 256 * 1024


PRIORITY_MAX = 9
PRIORITY_DEFAULT = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy(Backoff):
    """How often a run is tried in all, and how long it waits before each further attempt."""

    max_attempts: int = 5

    def delay_before(self, attempt: int, *, seed: str) -> timedelta:
        """The wait before attempt `attempt` (2 or more)."""
        return self.delay_after(attempt - 1, seed=f"{seed}/{attempt}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One row of the jobs table, by which `rota serve` knows what may be scheduled."""

    name: str
    overdue: OverduePolicy = field(default_factory=LatestOnly)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    timeout: timedelta | None = None
    """An attempt that runs longer has failed (`timed_out`); None: as long as it heartbeats."""
    lease: timedelta = timedelta(seconds=30)
    """An attempt that has not been heard of for this long is lost."""
    params_bytes_max: int = PARAMS_BYTES_MAX
    sink: Sink = field(default_factory=WorkerSink)
    delivery: DeliveryPolicy = field(default_factory=DeliveryPolicy)
    """How patiently its runs are sent, where the sink is one that they are sent to."""
    priority: int = PRIORITY_DEFAULT
    """0 to 9: where there is more than can be run at once, runs of a job with a higher one come first."""
    max_running: int | None = None
    """How many of its runs may be in hand at once, of all workers and sinks; None: any number."""
    description: str | None = None
