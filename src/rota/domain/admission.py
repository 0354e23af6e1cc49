"""What is to be written when a schedule is due: a pure decision that the store commits or refuses (I3, I4).

The planner walks the schedule's named instants from its cursor to now, in order, and gives each one outcome: a run, or
a skip with a reason. It stops after a bounded number of either, so that a backlog of a year is many small commits, and
the next one starts at the cursor that this one wrote.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from rota.domain.cadence import Cadence, Occurrence
from rota.domain.identity import ScheduleId, run_id_of
from rota.domain.overdue import OverduePolicy, judge_overdue
from rota.domain.period import period_key
from rota.domain.run import Run, RunState
from rota.domain.schedule import Cursor, Schedule, ScheduleStatus, Suspension, Version, next_named

SkipReason = Literal[
    "expired", "superseded", "paused", "overlap", "period_used", "on_request", "ended", "error"
]

RUNS_PER_ADMISSION_MAX = 25
"""A run is at most three items of a DynamoDB write transaction (run, period key, outbox row), which holds 100."""

INSTANTS_PER_ADMISSION_MAX = 2_000
"""Bounds the time of one decision (tens of milliseconds) however long the backlog."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """`count` named instants in `[from_, until)` that did not become runs, and why."""

    schedule_id: ScheduleId
    version: int
    from_: datetime
    until: datetime
    """The next named instant, or one second after the last: ranges of the same reason that touch become one row."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """One schedule's commit: applies only if status and cursor are still `expected_*`."""

    schedule_id: ScheduleId
    expected_status: ScheduleStatus
    expected_cursor: Cursor
    runs: tuple[Run, ...]
    skips: tuple[Skip, ...]
    cursor: Cursor
    status: ScheduleStatus
    status_reason: str | None


def plan_admission(due: DueSchedule, cadence: Cadence, *, now: datetime) -> Admission:
    """The outcome of every instant from the cursor to `now`, as far as one commit may reach.

    `now` may be any clock's: a wrong one makes work early or late, never double (I13).
    """
    schedule, version = due.schedule, due.version
    runs: list[Run] = []
    skips: list[Skip] = []
    cursor = schedule.cursor.scheduled_at
    walked = 0
    named = _named_from(version, cadence, cursor)
    current = next(named, None)
    while (
        current is not None
        and current.scheduled_at <= now
        and walked < INSTANTS_PER_ADMISSION_MAX
        and len(runs) < RUNS_PER_ADMISSION_MAX
    ):
        following = next(named, None)
        reason = _reason_to_skip(due, cadence, current, following, now=now)
        if reason is None:
            runs.append(_admitted_run(due, current, now=now))
        else:
            until = following.scheduled_at if following else current.scheduled_at + timedelta(seconds=1)
            _append_skip(skips, due, current.scheduled_at, until, reason)
        current = following
        walked += 1
    exhausted = current is None
    ended = exhausted and version.effective_until is None
    return Admission(
        schedule_id=schedule.schedule_id,
        expected_status=schedule.status,
        expected_cursor=schedule.cursor,
        runs=tuple(runs),
        skips=tuple(skips),
        cursor=_cursor_at(schedule, current),
        status=ScheduleStatus.ENDED if ended else schedule.status,
        status_reason="exhausted" if ended and schedule.status_reason is None else schedule.status_reason,
    )


def cursor_at_first(version: Version, cadence: Cadence, *, after: datetime) -> Cursor:
    """The cursor at the version's first named instant strictly after `after`."""
    occurrence = next_named(version, cadence, after)
    instant = None if occurrence is None else occurrence.scheduled_at
    return Cursor(version=version.number, scheduled_at=instant, due_at=instant)


def _named_from(version: Version, cadence: Cadence, cursor: datetime | None) -> Iterator[Occurrence]:
    if cursor is None:
        return
    after = cursor - timedelta(seconds=1)
    while (occurrence := next_named(version, cadence, after)) is not None:
        yield occurrence
        after = occurrence.scheduled_at


def _reason_to_skip(
    due: DueSchedule, cadence: Cadence, current: Occurrence, following: Occurrence | None, *, now: datetime
) -> SkipReason | None:
    instant = current.scheduled_at
    suspension = _suspension_that_skips(due, instant)
    if suspension is not None:
        return suspension.reason
    if due.schedule.status is ScheduleStatus.ENDED:
        return "ended"
    policy = due.version.definition.overdue or due.job_overdue
    newer = None if following is None else _first_that_may_run(due, cadence, following)
    verdict = judge_overdue(policy, due_at=instant, newer_due_at=newer, now=now)
    return None if verdict == "run" else verdict


def _suspension_that_skips(due: DueSchedule, instant: datetime) -> Suspension | None:
    for suspension in due.suspensions:
        if suspension.covers(instant) and not suspension.apply_overdue:
            return suspension
    return None


def _first_that_may_run(due: DueSchedule, cadence: Cadence, following: Occurrence) -> datetime | None:
    """The first instant from `following` on that no suspension skips: only such a one supersedes an older one."""
    instant = following.scheduled_at
    while (suspension := _suspension_that_skips(due, instant)) is not None:
        if suspension.until is None:
            return None
        occurrence = next_named(due.version, cadence, suspension.until - timedelta(microseconds=1))
        if occurrence is None:
            return None
        instant = occurrence.scheduled_at
    return instant


def _append_skip(
    skips: list[Skip], due: DueSchedule, from_: datetime, until: datetime, reason: SkipReason
) -> None:
    first, count = from_, 1
    if skips and skips[-1].reason == reason and skips[-1].until == from_:
        last = skips.pop()
        first, count = last.from_, last.count + 1
    skips.append(
        Skip(
            schedule_id=due.schedule.schedule_id,
            version=due.version.number,
            from_=first,
            until=until,
            count=count,
            reason=reason,
        )
    )


def _admitted_run(due: DueSchedule, occurrence: Occurrence, *, now: datetime) -> Run:
    schedule, version = due.schedule, due.version
    return Run(
        run_id=run_id_of(schedule.schedule_id, version.number, occurrence.scheduled_at),
        schedule_id=schedule.schedule_id,
        version=version.number,
        scheduled_at=occurrence.scheduled_at,
        due_at=occurrence.scheduled_at,
        named_local=occurrence.named_local,
        offset=occurrence.offset,
        period_key=period_key(version.period, occurrence),
        origin="schedule",
        job=schedule.job,
        partition=schedule.partition,
        state=RunState.QUEUED,
        admitted_at=now,
        available_at=occurrence.scheduled_at,
    )


def _cursor_at(schedule: Schedule, current: Occurrence | None) -> Cursor:
    instant = None if current is None else current.scheduled_at
    return Cursor(version=schedule.cursor.version, scheduled_at=instant, due_at=instant)
