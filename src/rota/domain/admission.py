"""What is to be written when a schedule is due: a pure decision that the store commits or refuses (I3, I4).

The planner walks the schedule's named instants from its cursor to now, in order, and gives each one outcome: a run, or
a skip with a reason. It stops after a bounded number of either, so that a backlog of a year is many small commits, and
the next one starts at the cursor that this one wrote. It never leaves the window of the version that owns the cursor:
at its end the cursor stands at the boundary, where `rota.domain.activation` takes over.

Before the schedule's `careful_until` an instant may have its run already (planned, moved or skipped on request), or
its period may be used by another run. `probes_of` says what is to be asked of the store; what it finds is `uses`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import Literal

from rota.domain.cadence import Cadence, Occurrence
from rota.domain.identity import RunId, ScheduleId, run_id_of
from rota.domain.key_uses import KeyProbe, KeyUse, Uses, key_of, probe_of
from rota.domain.overdue import OverduePolicy, judge_overdue
from rota.domain.period import period_key
from rota.domain.run import Origin, Run, RunChange, RunState
from rota.domain.schedule import Cursor, Schedule, ScheduleStatus, Suspension, Version, next_named

SkipReason = Literal[
    "expired", "superseded", "paused", "overlap", "period_used", "on_request", "ended", "error"
]

RUNS_PER_ADMISSION_MAX = 25
"""A run is at most three items of a DynamoDB write transaction (run, period key, outbox row), which holds 100."""

INSTANTS_PER_ADMISSION_MAX = 2_000
"""Bounds the time of one decision (tens of milliseconds) however long the backlog."""

CAREFUL_INSTANTS_MAX = 100
"""The same where each instant is looked up in the store."""

NEWER_LOOKED_AT = 10
"""How many instants beyond are looked up to tell whether a newer one supersedes a late one."""

WILL_NOT_RUN = frozenset({RunState.SKIPPED, RunState.CANCELLED})
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
class DueSchedule:
    """A schedule that is due, with what deciding needs."""

    schedule: Schedule
    version: Version
    """The version that owns the cursor."""
    suspensions: tuple[Suspension, ...]
    job_overdue: OverduePolicy
    successor: Version | None = None
    """The version that takes over at the end of this one's window."""
    parked: tuple[Run, ...] = ()
    """Some of the runs that an end or a resumption has still to decide (`rota.domain.planned`)."""

    @property
    def is_careful(self) -> bool:
        """Whether instants from the cursor on have to be looked up."""
        instant, until = self.schedule.cursor.scheduled_at, self.schedule.careful_until
        return until is not None and instant is not None and instant < until

    @property
    def is_at_boundary(self) -> bool:
        """Whether nothing is left to do but to activate the successor."""
        return (
            self.successor is not None
            and self.schedule.cursor.scheduled_at is not None
            and self.schedule.cursor.scheduled_at == self.version.effective_until
        )

    @property
    def policy(self) -> OverduePolicy:
        return self.version.definition.overdue or self.job_overdue

    def suspension_that_skips(self, instant: datetime) -> Suspension | None:
        for suspension in self.suspensions:
            if suspension.covers(instant) and not suspension.apply_overdue:
                return suspension
        return None


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
    )


def probes_of(due: DueSchedule, cadence: Cadence, *, now: datetime) -> list[KeyProbe]:
    """What `plan_admission` has to know where the schedule is careful: of each instant that it may reach, and of those
    behind them that may supersede the last."""
    probes: list[KeyProbe] = []
    for occurrence in _named_from(due.version, cadence, due.schedule.cursor.scheduled_at):
        if occurrence.scheduled_at > now:
            break
        if len(probes) == CAREFUL_INSTANTS_MAX:
            return probes + superseding_probes(due, cadence, occurrence, now=now)
        probes.append(probe_of(due.version, occurrence))
    return probes


def superseding_probes(
    due: DueSchedule, cadence: Cadence, following: Occurrence | None, *, now: datetime
) -> list[KeyProbe]:
    """What is to be looked up of the instants from `following` on to tell whether one supersedes a late one."""
    newer = takewhile(
        lambda occurrence: occurrence.scheduled_at <= now, unsuspended_from(due, cadence, following)
    )
    return [probe_of(due.version, occurrence) for occurrence in islice(newer, NEWER_LOOKED_AT)]


def plan_admission(
    due: DueSchedule, cadence: Cadence, *, now: datetime, uses: Uses | None = None
) -> Admission:
    """The outcome of every instant from the cursor to `now`, as far as one commit may reach.

    `uses` is what `probes_of` found; None where nothing was looked up. `now` may be any clock's: a wrong one makes work
    early or late, never double (I13).
    """
    schedule = due.schedule
    instants_max = INSTANTS_PER_ADMISSION_MAX if uses is None else CAREFUL_INSTANTS_MAX
    runs: list[Run] = []
    skips: list[Skip] = []
    walked = 0
    last: datetime | None = None
    named = _named_from(due.version, cadence, schedule.cursor.scheduled_at)
    current = next(named, None)
    while (
        current is not None
        and current.scheduled_at <= now
        and walked < instants_max
        and len(runs) < RUNS_PER_ADMISSION_MAX
    ):
        following = next(named, None)
        use = None if uses is None else uses.get(_id_of(due.version, current))
        if use is None or use.run_id != _id_of(due.version, current):
            reason = (
                "period_used" if use else _reason_to_skip(due, cadence, current, following, uses, now=now)
            )
            if reason is None:
                runs.append(run_of(schedule, due.version, current, queued_at=now))
            else:
                skip = Skip(
                    schedule_id=schedule.schedule_id,
                    version=due.version.number,
                    from_=current.scheduled_at,
                    until=following.scheduled_at if following else current.scheduled_at + _SECOND,
                    count=1,
                    reason=reason,
                    note=used_note(due.version, current, use) if use else None,
                )
                _append_skip(skips, skip)
        last = current.scheduled_at
        current = following
        walked += 1
    return _advanced(due, current, last=last, runs=runs, skips=skips)


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
    return Run(
        run_id=run_id_of(schedule.schedule_id, version.number, occurrence.scheduled_at),
        schedule_id=schedule.schedule_id,
        version=version.number,
        scheduled_at=occurrence.scheduled_at,
        due_at=occurrence.scheduled_at,
        named_local=occurrence.named_local,
        offset=occurrence.offset,
        period_key=key_of(version, occurrence),
        origin=origin,
        job=schedule.job,
        partition=schedule.partition,
        state=RunState.PLANNED if queued_at is None else RunState.QUEUED,
        planned_at=planned_at,
        admitted_at=queued_at,
        available_at=None if queued_at is None else occurrence.scheduled_at,
        second_pass=occurrence.second_pass,
    )


def cursor_at_first(version: Version, cadence: Cadence, *, after: datetime) -> Cursor:
    """The cursor at the version's first named instant strictly after `after`."""
    return cursor_at(version, next_named(version, cadence, after))


def cursor_at(version: Version, occurrence: Occurrence | None) -> Cursor:
    """The cursor of the version at that occurrence; None: it names no more, ever."""
    instant = None if occurrence is None else occurrence.scheduled_at
    return Cursor(version=version.number, scheduled_at=instant, due_at=instant)


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


def _id_of(version: Version, occurrence: Occurrence) -> RunId:
    return run_id_of(version.schedule_id, version.number, occurrence.scheduled_at)


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
    verdict = judge_overdue(due.policy, due_at=current.scheduled_at, newer_due_at=newer, now=now)
    return None if verdict == "run" else verdict


def first_that_may_run(
    due: DueSchedule,
    cadence: Cadence,
    following: Occurrence | None,
    uses: Uses | None,
) -> datetime | None:
    """The first instant from `following` on that runs or may run, and is not suspended: only such a one supersedes.

    None too where too many are suppressed to tell, or one that should be was not looked up: then the older one runs,
    and nothing is lost.
    """
    careful_until = due.schedule.careful_until
    for occurrence in islice(unsuspended_from(due, cadence, following), CAREFUL_INSTANTS_MAX):
        instant = occurrence.scheduled_at
        if uses is None:
            return instant
        run_id = _id_of(due.version, occurrence)
        use = uses.get(run_id)
        if use is None:
            is_known = run_id in uses or careful_until is None or instant >= careful_until
            return instant if is_known else None
        if use.run_id == run_id and use.state not in WILL_NOT_RUN:
            return instant
    return None


def unsuspended_from(
    due: DueSchedule, cadence: Cadence, following: Occurrence | None
) -> Iterator[Occurrence]:
    """The named instants from `following` on that no suspension skips."""
    while following is not None:
        suspension = due.suspension_that_skips(following.scheduled_at)
        after = following.scheduled_at
        if suspension is None:
            yield following
        elif suspension.until is None:
            return
        else:
            after = suspension.until - timedelta(microseconds=1)
        following = next_named(due.version, cadence, after)


def _append_skip(skips: list[Skip], skip: Skip) -> None:
    if skips and (skips[-1].reason, skips[-1].note, skips[-1].until) == (skip.reason, skip.note, skip.from_):
        last = skips.pop()
        skip = replace(skip, from_=last.from_, count=last.count + 1)
    skips.append(skip)
