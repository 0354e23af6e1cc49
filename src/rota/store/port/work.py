"""What workers need: deliveries and attempts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from rota.domain.identity import RunId
from rota.domain.job import Job
from rota.domain.run import Progress, Run
from rota.domain.schedule import Version
from rota.domain.settlement import Settlement
from rota.store.port.leases import Fence


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A delivery intent: the outbox row of a run's next attempt. A copy of it opens nothing that is open already."""

    run_id: RunId
    attempt: int
    job: str
    available_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedAttempt:
    """Everything a handler needs: the run, the version it belongs to, and that version's params."""

    run: Run
    version: Version
    job: Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    run_id: RunId
    attempt: int
    lease_expires_at: datetime
    progress: Progress | None


class HeartbeatOutcome(StrEnum):
    CURRENT = "current"
    CANCEL_REQUESTED = "cancel_requested"
    STALE = "stale"
    """The attempt is no longer the run's current one; stop the work, its report will be refused."""


class WorkStore(Protocol):
    """Deliveries and attempts."""

    elements_max: int

    def read_deliveries(self, jobs: Sequence[str], *, now: datetime, limit: int) -> list[Delivery]:
        """Outbox rows of these jobs available at `now`, by (available instant, run id). Reading takes nothing."""

    def read_next_delivery_time(self, jobs: Sequence[str]) -> datetime | None: ...
    def commit_openings(
        self, worker: str, deliveries: Sequence[Delivery], *, now: datetime
    ) -> list[OpenedAttempt | None]:
        """Opens attempts: run to running, outbox row gone, attempt row with a lease of the job's length.

        None where the delivery is stale (opened already, cancelled or settled), and where the run's version or job
        cannot be read: such a run has failed then, with the problem, so that it keeps nobody's place (I12).
        """

    def commit_claims(
        self, worker: str, jobs: Sequence[str], *, now: datetime, limit: int
    ) -> list[OpenedAttempt]:
        """Takes up to `limit` deliveries of these jobs available at `now`, the earliest first by (available instant,
        run id), and opens their attempts as `commit_openings` does. At most `elements_max` of them.

        Of several callers at once none waits for another, and no two open the same. What comes back may be fewer than
        are available: what somebody else holds at the moment is passed over, and a delivery that opens nothing is
        taken away in silence.
        """

    def commit_heartbeats(
        self, heartbeats: Sequence[Heartbeat], *, now: datetime
    ) -> list[HeartbeatOutcome]: ...
    def commit_settlements(
        self, settlements: Sequence[Settlement], *, fences: Sequence[Fence] = ()
    ) -> list[bool]:
        """Each: attempt closed, run's next state, result, and the outbox row of a retry. False: it was not current.

        Recovery passes the holder's `fences`: a settlement of a run in another partition, or under a stale epoch,
        is refused.
        """
