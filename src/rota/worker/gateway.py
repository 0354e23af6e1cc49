"""The gateway: what a worker asks of Rota, the same in one process with the store and over HTTP.

A worker reports what became of an attempt and not what becomes of its run: retries are decided behind the gateway, by
the job's policy there. `now` is the time by the worker's clock; a gateway to a server leaves it unheeded, for the
server's clock decides. Every call may be made from any thread, and raises `RotaError` where Rota is out of reach; it
may be repeated then, and what it reports of an attempt that is over is answered as stale, which is no error.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from rota.domain.effect import EffectBegin
from rota.domain.errors import RotaError
from rota.domain.job import Job
from rota.domain.json_text import JsonText
from rota.domain.run import Progress
from rota.domain.settlement import AttemptEnd
from rota.store.port import HeartbeatOutcome, Subscription, Wanted
from rota.wire.assignment import Assignment
from rota.wire.reports import NamedAttempt

LONG_POLL = timedelta(seconds=20)
"""How long a server is asked to wait for work before it answers that there is none."""

WakeUp = Callable[[], None]
"""Called from any thread where there may be something to claim: it only notes that down, and raises nothing."""


class ReportRefused(RotaError):
    """A report will never be taken as it is: it is too large, or is not what the other side understands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What came of asking for work."""

    assignments: Sequence[Assignment] = ()
    may_be_more: bool = False
    """It is worth asking again as soon as there is a free slot."""
    next_at: datetime | None = None
    """When to ask again where nothing more is to be had now: when the next run becomes available."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatReport:
    assignment: Assignment
    progress: Progress | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndReport:
    assignment: Assignment
    end: AttemptEnd
    ended_at: datetime
    """By the worker's clock."""
    is_cancel_requested: bool = False
    """Whether the worker has heard that the run is to stop."""


class Gateway(Protocol):
    batch_max: int
    """How many assignments, heartbeats or ends one call takes."""

    def register(self, job: Job, *, now: datetime) -> None:
        """Makes a job known, or changes what is known of it."""

    def claim(
        self, worker: str, wanted: Sequence[Wanted], *, now: datetime, limit: int, backlog_first: bool = False
    ) -> Claim:
        """Opens attempts at up to `limit` runs of these jobs, of none more than is wanted of it.

        Where the answer is lost on its way, its attempts are lost when their lease has run out, and tried again.
        """

    def open(self, worker: str, attempt: NamedAttempt, *, now: datetime) -> Assignment | None:
        """Opens the attempt that a message asks for; None: it is a duplicate, or its run needs none any more."""

    def heartbeat(self, reports: Sequence[HeartbeatReport], *, now: datetime) -> list[HeartbeatOutcome]:
        """Prolongs the attempts' leases, and stores their progress."""

    def settle(self, reports: Sequence[EndReport], *, now: datetime) -> list[bool]:
        """Each: False where the attempt was over already; nothing was changed then.

        Raises `ReportRefused` where one of them will never be taken; none may have been settled then.
        """

    def begin_effect(self, attempt: NamedAttempt, name: str, *, now: datetime) -> EffectBegin:
        """As `EffectStore.commit_effect_begin`."""

    def record_effect(
        self, attempt: NamedAttempt, name: str, *, result: JsonText | None, now: datetime
    ) -> bool:
        """As `EffectStore.commit_effect`."""

    def subscribe(self, wake_up: WakeUp) -> Subscription:
        """Has `wake_up` called while it is open, soon after something that was last claimed in vain is there."""

    def close(self) -> None:
        """Ends connections of its own; a later call opens them again."""


def named(assignment: Assignment) -> NamedAttempt:
    return NamedAttempt(run_id=assignment.run_id, attempt=assignment.attempt)
