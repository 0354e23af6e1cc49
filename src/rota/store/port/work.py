"""What workers need: delivery intents and attempts."""

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

RETRY_TURN = -1
"""Of the intents of further attempts of runs that were on time, so that they come before what was never tried."""


def turn_of_intent(turn: int, *, attempt: int) -> int:
    """Of the intent of a run with this turn that has had so many attempts. A run of a backlog keeps its turn: however
    many of them fail, they keep nothing waiting that is on time."""
    return RETRY_TURN if attempt > 0 and turn == 0 else turn


class OfAttempt(Protocol):
    """Whatever names one attempt at one run: an intent, a delivery, a message that came back."""

    @property
    def run_id(self) -> RunId: ...
    @property
    def attempt(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptKey:
    run_id: RunId
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """A delivery intent: the outbox row of a run's next attempt. A copy of it opens nothing that is open already."""

    run_id: RunId
    attempt: int
    job: str
    available_at: datetime
    turn: int = 0
    """The run's, or `RETRY_TURN`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How much of one job is asked for."""

    job: str
    limit: int | None = None
    """None: as much as there is place for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedAttempt:
    """Everything a handler needs: the run, the version it belongs to, and that version's params."""

    run: Run
    version: Version
    job: Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An attempt that was made of a message, and ended, before Rota heard of it: a webhook's answer is the work."""

    run_id: RunId
    attempt: int
    opened_at: datetime
    """When it began: the request, of a webhook."""
    settlement: Settlement
    """Of that attempt; `only_if_expired` says nothing here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAttemptRow:
    """A run's current, open attempt, and the job that it is of (its defaults, where its row cannot be read)."""

    run: Run
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
    """Intents and attempts."""

    elements_max: int

    def read_intents(self, jobs: Sequence[str], *, now: datetime, limit: int) -> list[Intent]:
        """Outbox rows of these jobs available at `now`, by (turn, available instant, run id). Reading takes nothing."""

    def read_next_intent_time(self, jobs: Sequence[str]) -> datetime | None:
        """When the earliest intent of those jobs is available of which `commit_claims` would give out any; past where
        there is one to be had at once. Of a backlog a store may look at the first hundred only."""

    def commit_openings(
        self, worker: str, attempts: Sequence[OfAttempt], *, now: datetime
    ) -> list[OpenedAttempt | None]:
        """Opens attempts that messages ask for: run to running, its outbox row or delivery gone, attempt row with a
        lease of the job's length.

        None where the message is stale (opened already, cancelled or settled), and where the run's version or job
        cannot be read: such a run has failed then, with the problem, so that it keeps nobody's place (I12).
        """

    def commit_answers(self, worker: str, answers: Sequence[Answer]) -> list[bool]:
        """Opens each attempt as `commit_openings` does and settles it as `commit_settlements` does, in one commit: no
        crash leaves it open. Its lease ends no earlier than it does itself.

        True where it did so. False where the message is stale (its attempt was opened already, its run cancelled or
        settled): who tells an answer again, because it does not know whether it was heard, changes nothing. False as
        well where the run's version or job cannot be read, and the run has failed then (I12).
        """

    def commit_claims(
        self,
        worker: str,
        wanted: Sequence[Wanted],
        *,
        now: datetime,
        limit: int,
        backlog_first: bool = False,
    ) -> list[OpenedAttempt]:
        """Takes up to `limit` intents of these jobs available at `now`, and opens their attempts as `commit_openings`
        does. At most `elements_max` of them. Of each job no more than is wanted of it, nor than leave `max_running` of
        its runs in hand; of jobs whose runs are sent to a sink, none.

        Jobs of a higher priority come first, whatever waits of the others; of the same priority, intents by (turn,
        available instant, run id). With `backlog_first` those with turns above 0 come before the others of their
        priority: who claims so now and then gives a backlog its share, though runs that are on time never cease.

        Of several callers at once none waits for another, and no two open the same. What comes back may be fewer than
        are available: what somebody else holds at the moment is passed over, and an intent that opens nothing is taken
        away in silence.
        """

    def commit_heartbeats(
        self, heartbeats: Sequence[Heartbeat], *, now: datetime
    ) -> list[HeartbeatOutcome]: ...
    def commit_settlements(
        self, settlements: Sequence[Settlement], *, fences: Sequence[Fence] = ()
    ) -> list[bool]:
        """Each: attempt closed, run's next state, result, and the outbox row of a retry. False: it was not current.

        A run that has ended frees its place, and the run that waits for that is queued (`rota.domain.overlap`).

        Recovery passes the holder's `fences`: a settlement of a run in another partition, or under a stale epoch,
        is refused.
        """

    def read_open_attempts(self, attempts: Sequence[OfAttempt]) -> list[OpenAttemptRow | None]:
        """What is needed to settle attempts that somebody else opened; None where it is not its run's current one."""
