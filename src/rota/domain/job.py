"""A job: the named kind of work, with the defaults and limits that its schedules and runs follow."""

from dataclasses import dataclass, field
from datetime import timedelta

from rota.domain.identity import fraction_of
from rota.domain.overdue import LatestOnly, OverduePolicy

PARAMS_BYTES_MAX = 64 * 1024
RESULT_BYTES_MAX = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often a run is tried in all, and how long it waits before each further attempt."""

    max_attempts: int = 5
    initial_delay: timedelta = timedelta(seconds=10)
    factor: float = 2.0
    max_delay: timedelta = timedelta(hours=1)
    jitter: float = 0.2
    """The share of the delay by which it may be lengthened, 0 to 1."""

    def delay_before(self, attempt: int, *, seed: str) -> timedelta:
        """The wait before attempt `attempt` (2 or more): exponential, capped, lengthened by the jitter.

        The jitter comes from `seed` and not from a generator, so a decision computed again is the same decision.
        """
        grown = self.initial_delay.total_seconds() * self.factor ** min(attempt - 2, 64)
        capped = min(grown, self.max_delay.total_seconds())
        return timedelta(
            milliseconds=round(1000 * capped * (1 + self.jitter * fraction_of(f"{seed}/{attempt}")))
        )


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
    description: str | None = None
