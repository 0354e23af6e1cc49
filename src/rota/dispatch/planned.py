"""Planned runs that fall due: most by one statement for many, those that need judgement one by one.

See `rota.domain.planned` for the rule, and `DispatchStore.commit_planned` for what the statement leaves.
"""

from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from rota.cadences import Cadences
from rota.dispatch.admitting import is_passed_over, queued_by
from rota.dispatch.planning import Plans
from rota.dispatch.poison import put_into_error
from rota.domain.admission import RUNS_PER_ADMISSION_MAX, Admission
from rota.store.port import AdmissionOutcome, Fence, PlannedDue, Store, Unreadable


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedReport:
    """What became of the planned runs of a partition in one step."""

    queued: int = 0
    looked_at: int = 0
    is_changed: bool = False
    is_passed_over: bool = False
    """As of a page (`rota.dispatch.admitting`)."""


def admit_planned(
    store: Store, cadences: Cadences, fence: Fence, *, now: datetime, limit: int
) -> PlannedReport:
    """One bounded piece of the partition's planned runs that are due, oldest first."""
    at_once = store.commit_planned(fence, now=now, limit=limit)
    rows = store.read_planned(fence.partition, now=now, limit=limit)
    queued, is_changed = at_once.queued, at_once.total > 0
    plans = Plans(store, cadences, now=now)
    admissions: list[Admission] = []
    for _, group in groupby(sorted(rows, key=_schedule_of), key=_schedule_of):
        plan = _plan_of(plans, list(group))
        if isinstance(plan, Unreadable):
            is_changed = put_into_error(store, fence, plan, now=now) or is_changed
        else:
            admissions.append(plan)
    outcomes = store.commit_admissions(fence, admissions, now=now) if admissions else []
    passed_over = False
    for admission, outcome in zip(admissions, outcomes, strict=True):
        if outcome is AdmissionOutcome.ADMITTED:
            queued += queued_by(admission)
        # What somebody else is at work on is looked at again in its time, not at once and again and again.
        is_changed = is_changed or outcome not in {AdmissionOutcome.FENCED, AdmissionOutcome.STALE}
        passed_over = passed_over or is_passed_over(admission, outcome)
    return PlannedReport(
        queued=queued,
        looked_at=at_once.total + len(rows),
        is_changed=is_changed,
        is_passed_over=passed_over,
    )


def _plan_of(plans: Plans, rows: list[PlannedDue | Unreadable]) -> Admission | Unreadable:
    """What becomes of some of the late runs of one schedule."""
    first, *rest = rows
    if isinstance(first, Unreadable):
        return first
    late = [first, *(row for row in rest if isinstance(row, PlannedDue))]
    return plans.plan_late(late[:RUNS_PER_ADMISSION_MAX])


def _schedule_of(row: PlannedDue | Unreadable) -> str:
    return row.schedule_id if isinstance(row, Unreadable) else row.run.schedule_id
