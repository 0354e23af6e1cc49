"""Runs that exist ahead of their time: what becomes of them when they fall due, are released, or their schedule ends.

A planned run falls due at its `due_at`. In time it is queued, by one statement for many. What needs judgement comes
here, one by one: a run of a suspended schedule is held, one that is late meets the overdue policy. Held runs wait for
the resumption: those that lie in the suspension are dropped as the instants in it are, the others meet the policy.
Where the schedule ends, planned and held runs are dropped as `ended`. Runs of a backfill are asked for at whatever
hour: neither pause nor policy concerns them, only the end does.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from rota.domain.admission import RUNS_PER_ADMISSION_MAX, SkipReason
from rota.domain.cadence import Cadence, Occurrence
from rota.domain.due import DueSchedule, first_that_may_run, superseding_probes
from rota.domain.key_uses import KeyProbe, Uses
from rota.domain.overdue import LatestOnly, judge_overdue
from rota.domain.overlap import Places, take_place
from rota.domain.run import Run, RunChange, RunEvent, RunState, next_state
from rota.domain.schedule import ScheduleStatus, next_named

IN_TIME = timedelta(seconds=1)
"""A planned run no later than this is queued without a look at the policy: no policy acts within a second."""

PARKED_PER_ADMISSION_MAX = RUNS_PER_ADMISSION_MAX


def newer_probes(due: DueSchedule, cadence: Cadence, run: Run, *, now: datetime) -> list[KeyProbe]:
    """What is to be looked up before a late run is judged by `latest_only`; nothing for the other policies."""
    if not isinstance(due.policy, LatestOnly):
        return []
    return superseding_probes(due, cadence, _next_newer(due, cadence, run), now=now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What becomes of a run, and the schedule's places after it."""

    change: RunChange
    places: Places


def judge_planned(
    due: DueSchedule,
    run: Run,
    cadence: Cadence | None,
    *,
    now: datetime,
    uses: Uses | None = None,
) -> Judged:
    """What becomes of a planned or held run of the schedule, of which `due` gives the run's own version.

    `uses` is what `newer_probes` found.
    Without a cadence, because this process may not compute it, nothing is known of newer ones and it is not superseded.
    """
    status = due.schedule.status
    if status is ScheduleStatus.ENDED:
        return Judged(change=dropped(run, "ended", now=now), places=due.places)
    if run.origin == "backfill":
        return Judged(change=_queued(run, RunState.QUEUED, now=now), places=due.places)
    if status is not ScheduleStatus.ACTIVE:
        held = replace(run, state=next_state(run.state, RunEvent.FELL_DUE_WHILE_PAUSED))
        return Judged(change=RunChange(expected_state=run.state, run=held), places=due.places)
    suspension = due.suspension_that_skips(_instant_of(due, run))
    if suspension is not None:
        return Judged(change=dropped(run, suspension.reason, now=now), places=due.places)
    newer = None
    if cadence is not None:
        newer = first_that_may_run(due, cadence, _next_newer(due, cadence, run), uses)
    verdict = judge_overdue(due.policy, due_at=run.due_at, newer_due_at=newer, now=now)
    if verdict != "run":
        return Judged(change=dropped(run, verdict, now=now), places=due.places)
    place = take_place(due.version.definition.overlap, due.places, run.run_id)
    if place.state is None:
        return Judged(change=dropped(run, "overlap", now=now), places=place.places)
    return Judged(change=_queued(run, place.state, now=now), places=place.places)


def _instant_of(due: DueSchedule, run: Run) -> datetime:
    """By which it is told whether the run lies in a suspension: as of any other occurrence when it is scheduled, which
    an edit that has planned it does not change; of a run that was moved the time that it was moved to."""
    is_moved = run.due_at != run.scheduled_at + due.version.delay
    return run.due_at if is_moved else run.scheduled_at


def _next_newer(due: DueSchedule, cadence: Cadence, run: Run) -> Occurrence | None:
    """The next instant that is both named later than the run's and due later: a moved run is as old as its new time."""
    return next_named(due.version, cadence, max(run.scheduled_at, run.due_at - due.version.delay))


def planned_as_queued(run: Run, event: RunEvent, *, now: datetime) -> Run:
    """The run as it falls due, or is released."""
    return replace(run, state=next_state(run.state, event), admitted_at=now, available_at=run.due_at)


def dropped(run: Run, reason: SkipReason, *, now: datetime) -> RunChange:
    """The planned or held run as it is skipped."""
    state = next_state(run.state, RunEvent.DROPPED)
    return RunChange(expected_state=run.state, run=replace(run, state=state, reason=reason, finished_at=now))


def _queued(run: Run, state: RunState, *, now: datetime) -> RunChange:
    """The run as it is admitted in this state, queued or waiting."""
    is_held, waits = run.state is RunState.HELD, state is RunState.WAITING
    if waits:
        event = RunEvent.RELEASED_WHILE_OPEN if is_held else RunEvent.FELL_DUE_WHILE_OPEN
    else:
        event = RunEvent.RELEASED if is_held else RunEvent.FELL_DUE
    admitted = planned_as_queued(run, event, now=now)
    return RunChange(
        expected_state=run.state, run=replace(admitted, available_at=None) if waits else admitted
    )
