"""What is to be written when a schedule is due: a pure decision that the store commits or refuses (I3, I4).

The planner walks the schedule's named instants from its cursor to now, in order, and gives each one outcome: a run, or
a skip with a reason. It stops after a bounded number of either, so that a backlog of a year is many small commits, and
the next one starts at the cursor that this one wrote. It never leaves the window of the version that owns the cursor:
at its end the cursor stands at the boundary, where `rota.domain.activation` takes over.

Before the schedule's `careful_until` an instant may have its run already (planned, moved or skipped on request), or
its period may be used by another run. `probes_of` says what is to be asked of the store; what it finds is `uses`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal

from rota.domain.cadence import Cadence, Occurrence
from rota.domain.due import (
    CAREFUL_INSTANTS_MAX,
    DueSchedule,
    first_that_may_run,
    id_of,
    superseding_probes,
)
from rota.domain.identity import ScheduleId, run_id_of
from rota.domain.key_uses import KeyProbe, KeyUse, Uses, key_of, probe_of
from rota.domain.overdue import judge_overdue
from rota.domain.overlap import Places, take_place
from rota.domain.period import period_key
from rota.domain.run import Origin, Run, RunChange, RunState
from rota.domain.schedule import Cursor, Schedule, ScheduleStatus, Version, next_named

SkipReason = Literal[
    "expired", "superseded", "paused", "overlap", "period_used", "on_request", "ended", "error"
]

RUNS_PER_ADMISSION_MAX = 25
"""A run is at most three items of a DynamoDB write transaction (run, period key, outbox row), which holds 100."""

INSTANTS_PER_ADMISSION_MAX = 2_000
"""Bounds the time of one decision (tens of milliseconds) however long the backlog."""

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """`count` named instants in `[from_, until)` that did not become runs, and why."""

    schedule_id: ScheduleId
    version: int
    from_: datetime
    until: datetime
    """The next named instant, or one second after the last: ranges of the same reason and note that touch become one
    row."""
    count: int
    reason: SkipReason
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """One schedule's commit: applies only if revision and cursor are still `expected_*`."""

    schedule_id: ScheduleId
    expected_revision: int
    expected_cursor: Cursor
    runs: tuple[Run, ...]
    skips: tuple[Skip, ...]
    cursor: Cursor
    status: ScheduleStatus
    status_reason: str | None
    run_changes: tuple[RunChange, ...] = ()
    window_closed_at: datetime | None = None
    """The end of the cursor's version's window: set where the schedule ends with this commit."""
    careful_until: datetime | None = None
    """Raises the schedule's `careful_until`, never lowers it."""
    turn: int = 0
    """The schedule's turn after it."""
    expected_places: Places | None = None
    """Applies only if these are still the schedule's open runs; None: it depends on none."""
    places: Places = ()
    """The schedule's open runs after it, where it depends on them."""


def unchanged(schedule: Schedule) -> Admission:
    """An admission that changes nothing, to be given what it is to do."""
    return Admission(
        schedule_id=schedule.schedule_id,
        expected_revision=schedule.revision,
        expected_cursor=schedule.cursor,
        runs=(),
        skips=(),
        cursor=schedule.cursor,
        status=schedule.status,
        status_reason=schedule.status_reason,
        turn=schedule.turn,
    )


def probes_of(due: DueSchedule, cadence: Cadence, *, now: datetime) -> list[KeyProbe]:
    """What `plan_admission` has to know where the schedule is careful: of each instant that it may reach, and of those
    behind them that may supersede the last."""
    probes: list[KeyProbe] = []
    due_until = now - due.delay
    for occurrence in _named_from(due.version, cadence, due.schedule.cursor.scheduled_at):
        if occurrence.scheduled_at > due_until:
            break
        if len(probes) == CAREFUL_INSTANTS_MAX:
            return probes + superseding_probes(due, cadence, occurrence, now=now)
        probes.append(probe_of(due.version, occurrence))
    return probes


def plan_admission(
    due: DueSchedule, cadence: Cadence, *, now: datetime, uses: Uses | None = None
) -> Admission:
    """The outcome of every instant from the cursor to `now`, as far as one commit may reach.

    `uses` is what `probes_of` found; None where nothing was looked up. `now` may be any clock's: a wrong one makes work
    early or late, never double (I13).
    """
    instants_max = INSTANTS_PER_ADMISSION_MAX if uses is None else CAREFUL_INSTANTS_MAX
    walk = _Walk(due=due, due_until=now - due.delay, places=due.places)
    walked = 0
    last: datetime | None = None
    named = _named_from(due.version, cadence, due.schedule.cursor.scheduled_at)
    current = next(named, None)
    while (
        current is not None
        and current.scheduled_at <= walk.due_until
        and walked < instants_max
        and len(walk.runs) < RUNS_PER_ADMISSION_MAX
    ):
        following = next(named, None)
        use = None if uses is None else uses.get(id_of(due.version, current))
        if use is None or use.run_id != id_of(due.version, current):
            if use is not None:
                walk.skip(current, following, "period_used", note=used_note(due.version, current, use))
            elif (reason := _reason_to_skip(due, cadence, current, following, uses, now=now)) is not None:
                walk.skip(current, following, reason)
            else:
                walk.admit(current, following, now=now)
        last = current.scheduled_at
        current = following
        walked += 1
    return _after_walk(walk, current, last=last)


@dataclass(slots=True, kw_only=True)
class _Walk:
    """What the instants walked through so far have become."""

    due: DueSchedule
    due_until: datetime
    """What is scheduled up to then is due."""
    places: Places
    runs: list[Run] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)

    def admit(self, current: Occurrence, following: Occurrence | None, *, now: datetime) -> None:
        """A run, unless a run that is open is in its way."""
        version = self.due.version
        run = run_of(self.due.schedule, version, current, queued_at=now)
        place = take_place(version.definition.overlap, self.places, run.run_id)
        if place.state is None:
            self.skip(current, following, "overlap", note=place.note)
            return
        self.places = place.places
        waits = place.state is RunState.WAITING
        available_at = None if waits else run.available_at
        self.runs.append(
            replace(run, state=place.state, turn=self._turn(following), available_at=available_at)
        )

    def _turn(self, following: Occurrence | None) -> int:
        """The next place in the backlog; 0 where none is due after it, however many came before: it is as late as if
        there had been no backlog. So a beat has it as well (`rota.domain.beat`)."""
        return self.admitted + 1 if self.is_more_due(following) else 0

    @property
    def admitted(self) -> int:
        """How many runs of the backlog were admitted, by this walk and before."""
        return self.due.schedule.turn + len(self.runs)

    def is_more_due(self, following: Occurrence | None) -> bool:
        """Whether more is due from there on; at the end of the version's window, of the one that takes over."""
        if following is None and self.due.successor is not None:
            boundary = self.due.version.effective_until
            return boundary is not None and boundary <= self.due_until
        return following is not None and following.scheduled_at <= self.due_until

    def skip(
        self,
        current: Occurrence,
        following: Occurrence | None,
        reason: SkipReason,
        *,
        note: str | None = None,
    ) -> None:
        skip = Skip(
            schedule_id=self.due.schedule.schedule_id,
            version=self.due.version.number,
            from_=current.scheduled_at,
            until=following.scheduled_at if following else current.scheduled_at + _SECOND,
            count=1,
            reason=reason,
            note=note,
        )
        _append_skip(self.skips, skip)


def _after_walk(walk: _Walk, current: Occurrence | None, *, last: datetime | None) -> Admission:
    """What the walk that ended before `current` comes to. A schedule that is on time by it has no backlog any more; one
    that hands it to its next version counts on."""
    admission = _advanced(walk.due, current, last=last, runs=walk.runs, skips=walk.skips)
    return replace(
        admission,
        turn=walk.admitted if walk.is_more_due(current) else 0,
        expected_places=expected_places(walk.due),
        places=walk.places,
    )


def expected_places(due: DueSchedule) -> Places | None:
    """What a commit that gives places depends on."""
    return None if due.version.definition.overlap == "allow" else due.places


def nothing_owed(due: DueSchedule) -> Admission:
    """The commit that puts away a cursor at no instant: the schedule was looked at for its parked runs alone."""
    return _advanced(due, None, last=None, runs=[], skips=[])


def used_note(version: Version, occurrence: Occurrence, use: KeyUse) -> str:
    """Why an occurrence was suppressed. The period is told by its name, in whichever series its run's key is."""
    became = {
        RunState.CANCELLED: ", which was cancelled",
        RunState.SKIPPED: ", which was skipped on request",
    }.get(use.state, "")
    return f"{period_key(version.period, occurrence)} is used by run {use.run_id}{became}"


def run_of(
    schedule: Schedule,
    version: Version,
    occurrence: Occurrence,
    *,
    queued_at: datetime | None = None,
    planned_at: datetime | None = None,
    origin: Origin = "schedule",
) -> Run:
    """The run of the version's occurrence: queued, or planned where it has no `queued_at`."""
    due_at = occurrence.scheduled_at + version.delay
    return Run(
        run_id=run_id_of(schedule.schedule_id, version.number, occurrence.scheduled_at),
        schedule_id=schedule.schedule_id,
        version=version.number,
        scheduled_at=occurrence.scheduled_at,
        due_at=due_at,
        named_local=occurrence.named_local,
        offset=occurrence.offset,
        period_key=key_of(version, occurrence),
        origin=origin,
        job=schedule.job,
        partition=schedule.partition,
        state=RunState.PLANNED if queued_at is None else RunState.QUEUED,
        planned_at=planned_at,
        admitted_at=queued_at,
        available_at=None if queued_at is None else due_at,
        second_pass=occurrence.second_pass,
    )


def cursor_at_first(version: Version, cadence: Cadence, *, after: datetime) -> Cursor:
    """The cursor at the version's first named instant strictly after `after`."""
    return cursor_at(version, next_named(version, cadence, after))


def cursor_at(version: Version, occurrence: Occurrence | None) -> Cursor:
    """The cursor of the version at that occurrence; None: it names no more, ever."""
    instant = None if occurrence is None else occurrence.scheduled_at
    due_at = None if instant is None else instant + version.delay
    return Cursor(version=version.number, scheduled_at=instant, due_at=due_at)


def _advanced(
    due: DueSchedule, current: Occurrence | None, *, last: datetime | None, runs: list[Run], skips: list[Skip]
) -> Admission:
    """The commit that leaves the cursor at `current`; where that is None, at the boundary, or at the end."""
    schedule, version = due.schedule, due.version
    cursor, window_closed_at = cursor_at(version, current), None
    status, status_reason = schedule.status, schedule.status_reason
    if current is None and due.successor is not None:
        boundary = version.effective_until
        cursor = Cursor(version=version.number, scheduled_at=boundary, due_at=boundary)
    elif current is None and status is not ScheduleStatus.ENDED:
        status, status_reason = ScheduleStatus.ENDED, status_reason or "exhausted"
        window_closed_at = (last or version.effective_from) + _SECOND
    return replace(
        unchanged(schedule),
        runs=tuple(runs),
        skips=tuple(skips),
        cursor=cursor,
        status=status,
        status_reason=status_reason,
        window_closed_at=window_closed_at,
    )


def _named_from(version: Version, cadence: Cadence, cursor: datetime | None) -> Iterator[Occurrence]:
    if cursor is None:
        return
    after = cursor - _SECOND
    while (occurrence := next_named(version, cadence, after)) is not None:
        yield occurrence
        after = occurrence.scheduled_at


def _reason_to_skip(
    due: DueSchedule,
    cadence: Cadence,
    current: Occurrence,
    following: Occurrence | None,
    uses: Uses | None,
    *,
    now: datetime,
) -> SkipReason | None:
    suspension = due.suspension_that_skips(current.scheduled_at)
    if suspension is not None:
        return suspension.reason
    if due.schedule.status is ScheduleStatus.ENDED:
        return "ended"
    newer = first_that_may_run(due, cadence, following, uses)
    verdict = judge_overdue(
        due.policy, due_at=current.scheduled_at + due.version.delay, newer_due_at=newer, now=now
    )
    return None if verdict == "run" else verdict


def _append_skip(skips: list[Skip], skip: Skip) -> None:
    if skips and (skips[-1].reason, skips[-1].note, skips[-1].until) == (skip.reason, skip.note, skip.from_):
        last = skips.pop()
        skip = replace(skip, from_=last.from_, count=last.count + 1)
    skips.append(skip)
