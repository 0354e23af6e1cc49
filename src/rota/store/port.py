"""What Rota asks of a store: a few small protocols, one per caller.

A `commit_` method applies a bounded list of elements. Each element is atomic and conditional: it is applied whole, or
changes nothing and its place in the answer says so. Each fits one DynamoDB write transaction (100 items); of
admissions, openings, heartbeats and settlements a call takes `elements_max`, and refuses more with `TooManyElements`.

No transaction, cursor or driver type crosses this border; `now` is a parameter wherever time matters. Instants are
aware UTC. Every list has one fixed order, with the id as tie-break.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from rota.domain.admission import Admission, DueSchedule, Skip
from rota.domain.audit import AuditEvent
from rota.domain.errors import RotaError
from rota.domain.identity import RunId, ScheduleId
from rota.domain.job import Job
from rota.domain.job_form import LEASE_MAX as JOB_LEASE_MAX
from rota.domain.json_text import JsonText
from rota.domain.run import Attempt, Origin, Progress, Run, RunDetail, RunState
from rota.domain.schedule import CadenceRow, Cursor, Schedule, ScheduleStatus, Suspension, Version
from rota.domain.settlement import Settlement


class TooManyElements(RotaError):
    """A call handed a store more elements than its `elements_max`; hand over smaller batches."""


# --- schedules: what the use cases need -----------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyRecord:
    """An answer kept for a repeated request: committed with the effect it tells of, forgotten after `expires_at`."""

    key: str
    request_digest: str
    """Of the operation and body: the same key with another body is refused."""
    answer: JsonText
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSchedule:
    """Everything that creating a schedule writes, in one commit."""

    schedule: Schedule
    version: Version
    cadence: CadenceRow
    event: AuditEvent
    idempotency: IdempotencyRecord | None


class Creation(StrEnum):
    CREATED = "created"
    ID_TAKEN = "id_taken"
    """A schedule of that id exists, or existed; nothing was written."""
    KEY_TAKEN = "key_taken"
    """The idempotency key was used already; nothing was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRecord:
    """A schedule with the version that owns its cursor and its suspensions that still matter, oldest first."""

    schedule: Schedule
    version: Version
    suspensions: tuple[Suspension, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusChange:
    """Pause, resume, end or error: applies only if status and cursor are still `expected_*`."""

    schedule_id: ScheduleId
    expected_status: ScheduleStatus
    expected_cursor: Cursor
    status: ScheduleStatus
    status_reason: str | None
    event: AuditEvent
    cursor: Cursor
    suspension_opened: Suspension | None = None
    suspension_closed: Suspension | None = None
    """The open suspension as it is closed: found by its `from_`."""
    window_closed_at: datetime | None = None
    """The end of the latest version's window: set where the schedule ends."""
    careful_until: datetime | None = None
    """Raises the schedule's `careful_until`, never lowers it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleFilter:
    status: ScheduleStatus | None = None
    job: str | None = None
    label: tuple[str, str] | None = None


class ScheduleStore(Protocol):
    """Schedules, their versions and their history."""

    def commit_creation(self, new: NewSchedule, *, now: datetime) -> Creation: ...
    def commit_status_change(self, change: StatusChange, *, fence: "Fence | None" = None) -> bool:
        """False: status, cursor or (with `fence`) epoch were others; nothing was written."""

    def get_idempotency(self, key: str, *, now: datetime) -> IdempotencyRecord | None:
        """The record of a key that has not expired at `now`."""

    def commit_idempotency(self, record: IdempotencyRecord, *, now: datetime) -> bool:
        """For a request that found its effect done already. False: the key is in use; nothing was written."""

    def get_schedule(self, schedule_id: ScheduleId) -> ScheduleRecord | None:
        """Raises `UnreadableRow` where its rows make no sense."""

    def get_version(self, schedule_id: ScheduleId, number: int) -> Version | None: ...
    def list_schedules(
        self, filter_: ScheduleFilter, *, after: ScheduleId | None, limit: int
    ) -> list[ScheduleRecord]:
        """By id, those after `after`; what cannot be read is left out."""

    def list_audit(self, schedule_id: ScheduleId, *, limit: int) -> list[AuditEvent]:
        """Newest first; what cannot be read is left out."""


# --- runs: what the use cases and pages about runs need --------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    schedule_id: ScheduleId | None = None
    state: RunState | None = None
    job: str | None = None
    origin: Origin | None = None
    label: tuple[str, str] | None = None
    """A label of the run's schedule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerKey:
    """A place in a list of runs or of a schedule's ledger: the instant, then the id (a skip's is empty)."""

    instant: datetime
    id_: str


class RunStore(Protocol):
    """Runs as people and applications see them."""

    def get_run(self, run_id: RunId) -> RunDetail | None:
        """Raises `UnreadableRow`."""

    def list_runs(self, filter_: RunFilter, *, before: LedgerKey | None, limit: int) -> list[Run]:
        """Newest scheduled_at first, then by run id descending; those after the place `before` in that order.

        What cannot be read is left out.
        """

    def list_ledger(
        self, schedule_id: ScheduleId, *, before: LedgerKey | None, limit: int
    ) -> list[Run | Skip]:
        """A schedule's runs and skips, newest instant first (a skip's is its `from_`), ties by id descending.

        What cannot be read is left out.
        """

    def commit_cancel(self, run_id: RunId, *, event: AuditEvent, now: datetime) -> Run | None:
        """A waiting run is cancelled with its delivery intent; a running one is asked to stop; a settled one is left.

        The run after it, or None where there is no such run. Raises `UnreadableRow`.
        """


class JobStore(Protocol):
    def commit_job(self, job: Job, *, now: datetime) -> bool:
        """Creates or replaces; True where it was created."""

    def get_job(self, name: str) -> Job | None:
        """Raises `UnreadableRow`."""

    def list_jobs(self, *, after: str | None, limit: int) -> list[Job]:
        """By name, those after `after`; what cannot be read is left out."""


LEASE_MAX = timedelta(minutes=10)
"""The longest lease of a partition. The epoch makes it safe to take one that seems longer (I13)."""

ATTEMPT_LEASE_MAX = JOB_LEASE_MAX + LEASE_MAX
"""The longest lease of an attempt, and some room: its end is told by another process's clock than the one that asks."""


def lease_has_ended(expires_at: datetime, *, now: datetime, longest: timedelta) -> bool:
    """Whether a lease ran out by `now`, or ends so late that only a clock which was ahead can have written it."""
    return expires_at <= now or expires_at > now + longest


# --- dispatch: what holders of partitions need -----------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """What every write of a dispatcher names (I6): a partition, and the epoch under which it was acquired."""

    partition: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    partition: int
    owner: str | None
    epoch: int
    expires_at: datetime | None
    checkpoint: datetime | None
    """Everything due up to here has been admitted: reported, never the lower bound of a scan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A due schedule whose stored rows do not make sense: it stops only itself (I12)."""

    schedule_id: ScheduleId
    status: ScheduleStatus
    cursor: Cursor
    problem: str
    window_until: datetime | None = None
    """The end of its version's window, where that can be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneRules:
    """The rules of a zone as some version was computed with them; a process with others leaves its schedules alone."""

    timezone: str
    fingerprint: str


class AdmissionOutcome(StrEnum):
    ADMITTED = "admitted"
    STALE = "stale"
    """Status or cursor were others by then; read again."""
    FENCED = "fenced"
    """The epoch was no longer the partition's; the caller is no longer its holder."""
    PRUNED = "pruned"
    """One of its runs lies before the schedule's `history_from`; nothing of the element was written."""
    KEY_USED = "key_used"
    """A run's id or period key exists already (the net under I2); nothing of the element was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LostAttempt:
    """An open attempt whose lease has run out."""

    attempt: Attempt
    job: Job
    cancel_requested: bool


class DispatchStore(Protocol):
    """Partitions, what is due in them, and the commits of their holders."""

    elements_max: int

    def ensure_partitions(self, count: int) -> int:
        """Makes `count` partitions where there are none; the count that the store has (fixed once made)."""

    def list_partitions(self) -> list[PartitionState]: ...
    def commit_acquisitions(self, owner: str, *, now: datetime, ttl: timedelta, limit: int) -> list[Fence]:
        """Takes up to `limit` partitions that nobody holds at `now`, each at its epoch + 1.

        A lease that ends more than `LEASE_MAX` after `now` was written under a clock that was ahead: it counts as free.
        """

    def commit_renewals(
        self, owner: str, fences: Sequence[Fence], *, now: datetime, ttl: timedelta
    ) -> list[Fence]:
        """Those of `fences` that are still the owner's, now until `now + ttl`; matched by owner and epoch."""

    def commit_releases(self, owner: str, fences: Sequence[Fence], *, now: datetime) -> None: ...
    def commit_checkpoints(self, checkpoints: Iterable[tuple[Fence, datetime]]) -> None:
        """Under their epochs; a stale one changes nothing."""

    def read_due_times(self, partitions: Sequence[int]) -> dict[int, datetime]:
        """The earliest due instant of each partition that has one, in the past or the future."""

    def read_due(
        self, partition: int, *, now: datetime, limit: int, excluding: Collection[ZoneRules] = ()
    ) -> list[DueSchedule | Unreadable]:
        """Schedules due at `now`, by (due instant, id), but none whose version has one of the `excluding` rules."""

    def read_cadences(self, cadence_ids: Iterable[str]) -> list[CadenceRow]: ...
    def commit_admissions(
        self, fence: Fence, admissions: Sequence[Admission], *, now: datetime
    ) -> list[AdmissionOutcome]:
        """Each: runs, their outbox rows, skips, cursor and status, under the epoch and the expected state (I3)."""

    def read_lost(self, partitions: Sequence[int], *, now: datetime, limit: int) -> list[LostAttempt]:
        """Open attempts whose lease has ended (`lease_has_ended`, `ATTEMPT_LEASE_MAX`), by (expiry, run id).

        Where the job's row cannot be read, the job has its defaults: the run is not to wait for it (I12).
        """


# --- work: what workers need -----------------------------------------------------------------------------------------
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


# --- the service itself ----------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class ClockReading:
    """The last clock reading that was accepted, so that a restart can tell a leap from a long sleep."""

    wall: datetime
    boot_seconds: float | None
    boot_id: str | None


class HealthStore(Protocol):
    def ping(self) -> None:
        """Raises `StoreUnavailable` where the store cannot be used."""

    def get_clock_reading(self) -> ClockReading | None: ...
    def commit_clock_reading(self, reading: ClockReading) -> None: ...
    def prune_idempotency(self, *, now: datetime, limit: int) -> int:
        """Forgets up to `limit` expired records; how many it forgot."""


class StoreUnavailable(RotaError):
    """The store cannot be reached or used at the moment; the message says why. Try again."""


class Store(ScheduleStore, RunStore, JobStore, DispatchStore, WorkStore, HealthStore, Protocol):
    """A whole store: what `wiring` hands out; every caller names the smaller protocol it needs."""

    def close(self) -> None: ...
