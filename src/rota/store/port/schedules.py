"""What the use cases need of schedules: their versions, what is done to them, which periods are used."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from rota.domain.audit import AuditEvent
from rota.domain.identity import ScheduleId
from rota.domain.json_text import JsonText
from rota.domain.overlap import Places
from rota.domain.run import Run, RunChange
from rota.domain.schedule import (
    CadenceRow,
    Cursor,
    Schedule,
    ScheduleStatus,
    Suspension,
    Version,
    ZoneRulesRow,
)
from rota.store.port.key_uses import KeyUseStore
from rota.store.port.leases import Fence
from rota.store.port.zone_rules import UsedZoneRules, ZoneRules


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyRecord:
    """An answer kept for a repeated request: committed with the effect it tells of, forgotten after `expires_at`."""

    key: str
    request_digest: str
    """Of the operation and body: the same key with another body is refused."""
    answer: JsonText
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NewVersion:
    """A version, with what it shares with others: written where it is not there yet."""

    version: Version
    cadence: CadenceRow
    zone_rules: ZoneRulesRow


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSchedule:
    """Everything that creating a schedule writes, in one commit."""

    schedule: Schedule
    first: NewVersion
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
    pending: Version | None = None
    """The latest version, where it is another one than the cursor's: it has not taken over yet."""

    @property
    def latest(self) -> Version:
        return self.pending or self.version

    @property
    def versions(self) -> tuple[Version, ...]:
        """In the order of their windows."""
        return (self.version,) if self.pending is None else (self.version, self.pending)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleChange:
    """What is done to a schedule, but for admission: applies only if the revision is still `expected_revision`, and
    the cursor `expected_cursor`.

    None of a field leaves the row's as it is. With `expected_cursor` None the cursor is not compared and the revision
    not raised: for runs that neither plan nor admit anything (on request, replayed).
    """

    schedule_id: ScheduleId
    expected_revision: int
    expected_cursor: Cursor | None
    at: datetime
    status: ScheduleStatus | None = None
    status_reason: str | None = None
    """Written where `status` is."""
    cursor: Cursor | None = None
    careful_until: datetime | None = None
    """Raises the schedule's `careful_until`, never lowers it."""
    labels: JsonText | None = None
    suspension_opened: Suspension | None = None
    suspension_closed: Suspension | None = None
    """The open suspension as it is closed: found by its `from_`."""
    versions: tuple[NewVersion, ...] = ()
    """Further versions, in the order of their numbers; the last of them is the schedule's latest then."""
    restamped: tuple[NewVersion, ...] = ()
    """Versions that exist, as they become: other zone rules name the same instants."""
    windows: tuple[tuple[int, datetime], ...] = ()
    """Ends of windows: the number of a version, and its `effective_until`."""
    runs: tuple[Run, ...] = ()
    """Runs to be created, with the delivery intents of the queued ones."""
    run_changes: tuple[RunChange, ...] = ()
    event: AuditEvent | None = None
    idempotency: IdempotencyRecord | None = None


class ChangeOutcome(StrEnum):
    """Of a change; nothing of it was written but for `CHANGED`."""

    CHANGED = "changed"
    STALE = "stale"
    """Revision, cursor, epoch or the state of a run were others by then; read again."""
    KEY_USED = "key_used"
    """The id or period key of one of its runs exists already (the net under I2)."""
    PRUNED = "pruned"
    """One of its runs lies before the schedule's `history_from`."""
    KEY_TAKEN = "key_taken"
    """The idempotency key was used already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleFilter:
    status: ScheduleStatus | None = None
    job: str | None = None
    label: tuple[str, str] | None = None


class ScheduleStore(KeyUseStore, Protocol):
    """Schedules, their versions and their history."""

    def commit_creation(self, new: NewSchedule, *, now: datetime) -> Creation: ...
    def commit_change(self, change: ScheduleChange, *, fence: Fence | None = None) -> ChangeOutcome:
        """With a `fence`, under its epoch: the dispatcher's own changes."""

    def get_idempotency(self, key: str, *, now: datetime) -> IdempotencyRecord | None:
        """The record of a key that has not expired at `now`."""

    def commit_idempotency(self, record: IdempotencyRecord, *, now: datetime) -> bool:
        """For a request that found its effect done already. False: the key is in use; nothing was written."""

    def get_schedule(self, schedule_id: ScheduleId) -> ScheduleRecord | None:
        """Raises `UnreadableRow` where its rows make no sense."""

    def get_version(self, schedule_id: ScheduleId, number: int) -> Version | None:
        """Raises `UnreadableRow`."""

    def list_versions(self, schedule_id: ScheduleId, *, before: int | None, limit: int) -> list[Version]:
        """Latest first, those with a number below `before`; what cannot be read is left out."""

    def list_schedules(
        self, filter_: ScheduleFilter, *, after: ScheduleId | None, limit: int
    ) -> list[ScheduleRecord]:
        """By id, those after `after`; what cannot be read is left out."""

    def list_audit(self, schedule_id: ScheduleId, *, limit: int) -> list[AuditEvent]:
        """Newest first; what cannot be read is left out."""

    def list_ahead(self, schedule_id: ScheduleId, *, from_: datetime, limit: int) -> list[Run]:
        """What was decided before its time, by (due_at, run id): every planned and held run of the schedule, and the
        runs skipped on request that are scheduled at `from_` or later. What cannot be read is left out."""

    def read_places(self, schedule_id: ScheduleId) -> Places:
        """The schedule's open runs that took places (`rota.domain.overlap`): what a dry run goes by."""

    def list_zone_rules(self) -> list[UsedZoneRules]:
        """By (timezone, fingerprint), those that the latest version or the cursor's version of some schedule, which has
        not ended, was computed with: those too whose stored row cannot be read, or, of a latest version, is lost."""

    def get_zone_rules(self, timezone: str, fingerprint: str) -> ZoneRulesRow | None:
        """Raises `UnreadableRow`."""

    def list_computed_with(
        self, rules: ZoneRules, *, after: ScheduleId | None, limit: int
    ) -> list[ScheduleRecord]:
        """Schedules that have not ended and whose latest version or cursor's version was computed with these rules, by
        id, those after `after`; what cannot be read is left out."""
