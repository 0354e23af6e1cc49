"""Waiting longer and longer between tries."""

from dataclasses import dataclass
from datetime import timedelta

from rota.domain.identity import fraction_of

EXPONENT_MAX = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Exponential, capped, lengthened by a jitter that comes from a text and not from a generator: a decision that is
    computed again is the same decision."""

    initial_delay: timedelta = timedelta(seconds=10)
    factor: float = 2.0
    max_delay: timedelta = timedelta(hours=1)
    jitter: float = 0.2
    """The share of the delay by which it may be lengthened, 0 to 1."""

    def delay_after(self, failures: int, *, seed: str) -> timedelta:
        """The wait after `failures` tries that failed (1 or more)."""
        grown = self.initial_delay.total_seconds() * self.factor ** min(failures - 1, EXPONENT_MAX)
        capped = min(grown, self.max_delay.total_seconds())
        return timedelta(milliseconds=round(1000 * capped * (1 + self.jitter * fraction_of(seed))))
