"""What holders of partitions need: what is due in them, and the commits of their holders."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from rota.domain.admission import Admission
from rota.domain.beat import Beat, BeatKey
from rota.domain.due import DueSchedule
from rota.domain.identity import ScheduleId
from rota.domain.job import Job
from rota.domain.run import Attempt, Run
from rota.domain.schedule import CadenceRow, Cursor, ScheduleStatus
from rota.store.port.key_uses import KeyUseStore
from rota.store.port.leases import DueCount, Fence, PartitionState, PresenceStore
from rota.store.port.zone_rules import ZoneRules


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A due schedule whose stored rows do not make sense: it stops only itself (I12)."""

    schedule_id: ScheduleId
    status: ScheduleStatus
    cursor: Cursor
    revision: int
    problem: str
    window_until: datetime | None = None
    """The end of its version's window, where that can be read."""


class AdmissionOutcome(StrEnum):
    ADMITTED = "admitted"
    STALE = "stale"
    """Revision, cursor or the state of a run were others by then; read again."""
    FENCED = "fenced"
    """The epoch was no longer the partition's; the caller is no longer its holder."""
    PRUNED = "pruned"
    """One of its runs lies before the schedule's `history_from`; nothing of the element was written."""
    KEY_USED = "key_used"
    """A run's id or period key exists already (the net under I2); nothing of the element was written."""
    NOT_OWNED = "not_owned"
    """A run lies outside its version's window, and no activation carried it (I8); nothing of the element was written.

    A queued run's version must be the one of the cursor that is expected, and own the run's instant. A planned one is
    carried by the version of the cursor that is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DueTimes:
    """The earliest instants at which something of a partition is due, past or future; at least one there is."""

    schedule: datetime | None = None
    """Of its schedules."""
    planned: datetime | None = None
    """Of its planned runs."""

    @property
    def earliest(self) -> datetime:
        return min(due for due in (self.schedule, self.planned) if due is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class BeatsOutcome:
    """What one commit of beats did."""

    admitted: int = 0
    """How many schedules, and so runs."""
    fenced: frozenset[int] = frozenset()
    """The partitions whose epoch was another; nothing of them was written."""
    is_key_used: bool = False
    """A run's id or period key exists already (the net under I2): nothing at all was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedDue:
    """A planned run that is due and needs judgement, with its schedule."""

    run: Run
    due: DueSchedule
    """Its `version` is the run's, whose policy holds, not the cursor's; it has no successor and nothing parked. Its
    suspensions are those that last or end after the earlier of the instants at which the run is scheduled and due, also
    where the cursor has passed them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedOutcome:
    """How many planned runs one commit queued, held and dropped."""

    queued: int = 0
    held: int = 0
    dropped: int = 0

    @property
    def total(self) -> int:
        return self.queued + self.held + self.dropped


@dataclass(frozen=True, slots=True, kw_only=True)
class LostAttempt:
    """An open attempt whose lease has run out."""

    attempt: Attempt
    job: Job
    cancel_requested: bool


class DispatchStore(KeyUseStore, PresenceStore, Protocol):
    """Partitions, what is due in them, and the commits of their holders."""

    elements_max: int

    def ensure_partitions(self, count: int) -> int:
        """Makes `count` partitions where there are none; the count that the store has (fixed once made)."""

    def list_partitions(self) -> list[PartitionState]: ...
    def commit_acquisitions(
        self, owner: str, *, held: Sequence[Fence], now: datetime, ttl: timedelta, limit: int
    ) -> list[Fence]:
        """Takes up to `limit` partitions that nobody holds at `now`, each at its epoch + 1.

        A lease that ends more than `LEASE_MAX` after `now` was written under a clock that was ahead: it counts as free.
        So does one that bears the owner's name but is none of those that it knows to be `held`: the answer to an
        earlier acquisition was lost, and nobody else would hold the partition until that lease has ended.
        """

    def commit_renewals(
        self, owner: str, fences: Sequence[Fence], *, now: datetime, ttl: timedelta
    ) -> list[Fence]:
        """Those of `fences` that are still the owner's, now until `now + ttl`; matched by owner and epoch."""

    def commit_releases(self, owner: str, fences: Sequence[Fence], *, now: datetime) -> None: ...
    def commit_checkpoints(self, checkpoints: Iterable[tuple[Fence, datetime]]) -> None:
        """Under their epochs; a stale one changes nothing."""

    def read_due_times(
        self, partitions: Sequence[int], *, after: datetime | None = None
    ) -> dict[int, DueTimes]:
        """Of each partition in which something is or will be due (later than `after`)."""

    def count_due(self, partitions: Sequence[int], *, now: datetime, limit: int) -> dict[int, DueCount]:
        """Of each partition in which something is due at `now`: how much, counted up to `limit`."""

    def read_beats(
        self,
        partitions: Sequence[int],
        *,
        after: datetime,
        now: datetime,
        each: int,
        excluding: Collection[str] = (),
    ) -> list[BeatKey]:
        """The distinct beats of schedules that are due in `(after, now]`, may be ordinary (`may_be_ordinary`) and have
        none of the cadences `excluding`: of the first `each` of every partition, by (due instant, id).

        By (instant, cadence, period, series). Beyond `each` a store may look at a bounded number only: what is passed
        over is the planner's, who takes the oldest first, so that whoever calls both comes on.
        """

    def commit_beats(
        self, fences: Sequence[Fence], beats: Sequence[Beat], *, after: datetime, now: datetime, each: int
    ) -> BeatsOutcome:
        """Admits what is ordinary (`is_ordinary`) and stands at one of `beats`: of every partition of `fences` the
        first `each`, by (due instant, id), that are due in `(after, now]`, looking no further than `read_beats`.
        A schedule that another transaction holds may be passed over, and one that is refused at its last instants may
        take a place of `each`: the others are not to wait for the one, and the planner is to take the other.

        Writes what `plan_admission` would write for each, in one commit under the epochs (I3, I6). The policy is the
        version's, or else the job's; where the job's row cannot be read, its default's.
        """

    def read_due(
        self,
        partition: int,
        *,
        now: datetime,
        limit: int,
        after: datetime | None = None,
        excluding: Collection[ZoneRules] = (),
    ) -> list[DueSchedule | Unreadable]:
        """Schedules due at `now` (and later than `after`), by (due instant, id), but none whose version has one of the
        `excluding` rules, nor, where the cursor stands at the end of its version's window, whose latest version has.

        Where the cursor is due before it is scheduled (or is scheduled never), up to `PARKED_PER_ADMISSION_MAX` parked
        runs come with it, by (due_at, run id): the planned and held ones of a schedule that has ended, else the held
        ones.
        """

    def commit_planned(self, fence: Fence, *, now: datetime, limit: int) -> PlannedOutcome:
        """Of the partition's planned runs that are due, up to `limit` of each, by (due_at, run id), under the epoch:

        - those that are in time (`IN_TIME`) are queued with their delivery intents, where their schedule is active, its
          cursor is not due before the run is, and no suspension skips the instant at which the run is scheduled, where
          it falls due later; and those of a backfill, however late, where it has not ended;
        - the others are held where their schedule is paused or in error;
        - and dropped as `ended` where it has ended.
        """

    def read_planned(self, partition: int, *, now: datetime, limit: int) -> list[PlannedDue | Unreadable]:
        """Planned runs of active schedules that are due and for which `commit_planned` does nothing, by (due_at, run
        id)."""

    def commit_freed(self, fences: Sequence[Fence], *, now: datetime, limit: int) -> int:
        """Queues up to `limit` runs that wait though no open run has a place before them, in the partitions of `fences`
        and under their epochs; how many. What ends a run queues the next one itself: this is for what a row changed by
        hand has left (I12)."""

    def read_cadences(self, cadence_ids: Iterable[str]) -> list[CadenceRow]: ...
    def commit_admissions(
        self, fence: Fence, admissions: Sequence[Admission], *, now: datetime
    ) -> list[AdmissionOutcome]:
        """Each: runs, their outbox rows, skips, cursor and status, under the epoch and the expected state (I3)."""

    def read_lost(self, partitions: Sequence[int], *, now: datetime, limit: int) -> list[LostAttempt]:
        """Open attempts whose lease has ended (`lease_has_ended`, `ATTEMPT_LEASE_MAX`), by (expiry, run id).

        Where the job's row cannot be read, the job has its defaults: the run is not to wait for it (I12).
        """
