"""A schedule, its immutable numbered versions, and the windows in which each version names instants (I8)."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal

from rota.domain.cadence import Cadence, Fold, FoldAsked, Gap, Occurrence
from rota.domain.errors import FieldError, InvalidRequest
from rota.domain.identity import ScheduleId, fraction_of
from rota.domain.json_text import JsonText
from rota.domain.overdue import OverduePolicy
from rota.domain.period import Period, PeriodAsked
from rota.domain.recurrence import Recurrence

DECIDED_LOOKED_AT_MAX = 100_000
LOOK_BACKS = (
    timedelta(hours=1),
    timedelta(days=2),
    timedelta(days=40),
    timedelta(days=400),
    timedelta(days=30 * 366),
)
"""How far back a rule's last instant is sought, wider and wider: the more often it names one, the nearer it is."""

Overlap = Literal["allow", "skip", "queue"]
"""What becomes of an occurrence that falls due while a run of its schedule is open: it runs beside it, is skipped, or
waits until that has ended, where none waits already."""

Boundary = Literal["keep_period", "now"]
"""How a version takes over: with the periods that its forerunners used, or with a fresh series of keys."""


class ScheduleStatus(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    ERROR = "error"
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What a version fixes, as it was asked for; an edit makes a new one."""

    timezone: str
    recurrence: Recurrence
    gap: Gap
    fold: FoldAsked
    period: PeriodAsked
    overdue: OverduePolicy | None
    """None: the job's default, read when an occurrence is late."""
    params: JsonText
    starts_at: datetime | None = None
    """Inclusive."""
    ends_at: datetime | None = None
    """Exclusive."""
    max_occurrences: int | None = None
    overlap: Overlap = "allow"
    spread: timedelta = timedelta(0)
    """The window over which the occurrences of one instant are spread, each schedule by an offset of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A definition with its number, its window and everything that was resolved when it was made."""

    schedule_id: ScheduleId
    number: int
    definition: Definition
    cadence_id: str
    fold: Fold
    period: Period
    tzdata: str
    """The tz data release that resolved it."""
    fingerprint: str
    """The digest of its zone's transitions; a process with other rules does not compute it."""
    effective_from: datetime
    """Inclusive, a whole second."""
    effective_until: datetime | None
    """Exclusive; None: until the next version."""
    last_scheduled_at: datetime | None
    """The instant that `max_occurrences` ends with; None: no such bound."""
    created_at: datetime
    actor: str | None = None
    reason: str | None = None
    boundary: Boundary = "keep_period"
    series: int = 1
    """The number of the version that began its series of period keys."""
    counts_from: datetime | None = None
    """Runs scheduled and due before this use none of its periods: where its series began; None: at the beginning."""
    named_before: int = 0
    """How many instants earlier versions named in their windows, counted as far as `max_occurrences` may reach."""

    @property
    def delay(self) -> timedelta:
        """By how much later than it is scheduled an occurrence falls due: its schedule's place in the spread, whole
        seconds, the same for ever."""
        spread = self.definition.spread
        if not spread:
            return spread
        seconds = spread // timedelta(seconds=1)
        return timedelta(seconds=int(fraction_of(f"spread/{self.schedule_id}") * seconds))


@dataclass(frozen=True, slots=True, kw_only=True)
class CadenceRow:
    """A cadence as stored: once per distinct recurrence, zone, gap, fold and fingerprint."""

    cadence_id: str
    recurrence: Recurrence
    timezone: str
    gap: Gap
    fold: Fold
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneRulesRow:
    """The rules of a zone as some release of the tz data has them: with these, later releases are compared."""

    timezone: str
    fingerprint: str
    tzdata: str
    """The release that was seen with them first."""
    offsets: JsonText
    """As `rota.domain.zone.offsets_text` writes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """Where a schedule stands: the next instant that has no outcome yet, and the version that owns it.

    At the end of its version's window it is the boundary itself: there the next version is to be activated.
    """

    version: int
    scheduled_at: datetime | None
    due_at: datetime | None
    """When to look at it next; before `scheduled_at` where planned runs wait to be released or dropped.

    None: nothing is owed and nothing will fall due.
    """

    @property
    def is_looked_at(self) -> bool:
        """Whether there may be parked runs, which are decided first."""
        return self.due_at is not None and (self.scheduled_at is None or self.due_at < self.scheduled_at)

    def looked_at(self, at: datetime) -> "Cursor":
        """The same cursor, due at `at` or before, and before it is scheduled: parked runs are decided first."""
        before = [at] if self.due_at is None else [at, self.due_at]
        if self.scheduled_at is not None:
            before.append(self.scheduled_at - timedelta(seconds=1))
        return replace(self, due_at=min(before))


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The mutable row: status and cursor. All else is in its versions."""

    schedule_id: ScheduleId
    partition: int
    slot: int
    job: str
    labels: JsonText
    status: ScheduleStatus
    status_reason: str | None
    """Why it is in error, or how it ended (`deleted`, `exhausted`)."""
    cursor: Cursor
    latest_version: int
    created_at: datetime
    updated_at: datetime
    history_from: datetime
    """Nothing with an earlier scheduled_at can ever be created."""
    careful_until: datetime | None
    """Before this instant periods may be used already: each is looked up, and never admitted the set-based way."""
    definition_digest: str
    """Of the body that created it: the same body again answers with the same schedule."""
    turn: int = 0
    """How many runs of its present backlog were admitted; 0 where it is on time."""
    revision: int = 1
    """Raised by whatever is done to the schedule, but for admission: who decides by an older one decides nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspension:
    """A stretch `[from_, until)` in which nothing was admitted; `until` is None while it lasts."""

    from_: datetime
    until: datetime | None
    reason: Literal["paused", "error"]
    apply_overdue: bool = False
    """On resume, the instants in it follow the overdue policy instead of being skipped."""

    def covers(self, instant: datetime) -> bool:
        return self.from_ <= instant and (self.until is None or instant < self.until)


def next_named(version: Version, cadence: Cadence, after: datetime) -> Occurrence | None:
    """The version's first occurrence strictly after `after`, within its window and its bounds; None: no more, ever."""
    definition = version.definition
    lower = version.effective_from
    if definition.starts_at is not None and definition.starts_at > lower:
        lower = definition.starts_at
    occurrence = cadence.next(max(after, lower - timedelta(microseconds=1)))
    if occurrence is None or not _within_upper_bounds(version, occurrence.scheduled_at):
        return None
    return occurrence


def _within_upper_bounds(version: Version, scheduled_at: datetime) -> bool:
    definition = version.definition
    return (
        (version.effective_until is None or scheduled_at < version.effective_until)
        and (definition.ends_at is None or scheduled_at < definition.ends_at)
        and (version.last_scheduled_at is None or scheduled_at <= version.last_scheduled_at)
    )


def last_decided(
    version: Version, cadence: Cadence, *, cursor: datetime | None, after: datetime
) -> datetime | None:
    """The latest instant after `after` that lies before the cursor, and so has its outcome; None: there is none.

    There is one only where a clock was set back: else nothing later than now is decided. `cursor` None: all are.
    """
    last: datetime | None = None
    occurrence = next_named(version, cadence, after)
    for _ in range(DECIDED_LOOKED_AT_MAX):
        if occurrence is None or (cursor is not None and occurrence.scheduled_at >= cursor):
            return last
        last = occurrence.scheduled_at
        occurrence = next_named(version, cadence, last)
    return last if cursor is None else cursor - timedelta(seconds=1)


def last_named_before(version: Version, cadence: Cadence, instant: datetime) -> datetime | None:
    """The version's latest instant before `instant`, in its window and bounds; None: there is none."""
    for reach in LOOK_BACKS:
        after = max(version.effective_from - timedelta(seconds=1), instant - reach)
        last: datetime | None = None
        occurrence = next_named(version, cadence, after)
        while occurrence is not None and occurrence.scheduled_at < instant:
            last = occurrence.scheduled_at
            occurrence = next_named(version, cadence, last)
        if last is not None or after < version.effective_from:
            return last
    return None


def last_of(
    version: Version, cadence: Cadence, *, occurrences: int, after: datetime, horizon: timedelta
) -> datetime | None:
    """The `occurrences`-th named instant after `after`; None where the rule ends before it.

    Raises `InvalidRequest` where it lies further than `horizon` after the first: sparse rules are not counted for ever.
    """
    first = next_named(version, cadence, after)
    for _ in range(occurrences):
        occurrence = next_named(version, cadence, after)
        if occurrence is None or first is None:
            return None
        after = occurrence.scheduled_at
        if after - first.scheduled_at > horizon:
            message = f"The last one lies more than {horizon.days // 365} years ahead; leave it out, or give ends_at."
            raise InvalidRequest(FieldError("max_occurrences", message))
    return after
