"""Admitting one page of a partition: read what is due, decide with the pure planner, commit under the epoch.

An admission that met a key which exists already is planned once more in the same step, with every period looked up: a
set-based way, or a commit of somebody else in between, may have known less than the planner then does.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from rota.cadences import Cadences
from rota.dispatch.planning import Plans, unreadable
from rota.dispatch.poison import abandonment_of, put_into_error
from rota.domain.admission import Admission
from rota.domain.due import DueSchedule
from rota.domain.schedule import ScheduleStatus
from rota.store.port import AdmissionOutcome, Fence, Store, Unreadable, ZoneRules
from rota.telemetry import get_logger

log = get_logger("dispatch")

REFUSALS = {
    AdmissionOutcome.PRUNED: "{} lies before the kept history, though the schedule's cursor had not passed it.",
    AdmissionOutcome.KEY_USED: "{} or its period key exists already, though nobody was found to use it.",
    AdmissionOutcome.NOT_OWNED: "{} lies outside the window of its version.",
}


@dataclass(slots=True, kw_only=True)
class PageReport:
    """What became of a page."""

    read: int = 0
    """Schedules looked at: what a page costs."""
    admitted: int = 0
    """Runs queued."""
    is_changed: bool = False
    """Something was written: there may be more to do at once."""
    is_passed_over: bool = False
    """A run of some schedule ended meanwhile, and freed a place: it is worth another look before long."""
    is_fenced: bool = False
    """The partition is no longer the caller's."""


def admit_page(
    store: Store,
    cadences: Cadences,
    fence: Fence,
    *,
    after: datetime,
    now: datetime,
    limit: int,
    differing: set[ZoneRules],
) -> PageReport:
    """One bounded page of the partition's schedules that are due in `(after, now]`, oldest first.

    Schedules of the zone rules in `differing` are left alone, and those newly found are added: this process may not
    compute them (I11), and they must not keep the place of others (I12).
    """
    rows = store.read_due(fence.partition, after=after, now=now, limit=limit, excluding=differing)
    report = PageReport(read=len(rows))
    plans = Plans(store, cadences, now=now)
    refused = _commit(store, fence, [(row, plans.plan(row)) for row in rows], report, differing, now=now)
    again = [(row, plans.plan(row, careful=True)) for row, _ in refused]
    for row, admission in _commit(store, fence, again, report, differing, now=now):
        problem = _problem_of(admission, AdmissionOutcome.KEY_USED)
        put_into_error(store, fence, unreadable(row, problem), now=now)
    return report


def _commit(
    store: Store,
    fence: Fence,
    planned: Sequence[tuple[DueSchedule | Unreadable, Admission | Unreadable | ZoneRules]],
    report: PageReport,
    differing: set[ZoneRules],
    *,
    now: datetime,
) -> list[tuple[DueSchedule, Admission]]:
    """Writes what was planned; the schedules whose admission met a key that exists already, each with that."""
    admissions: list[tuple[DueSchedule | Unreadable, Admission]] = []
    for row, plan in planned:
        match plan:
            case Admission():
                admissions.append((row, plan))
            case Unreadable(status=ScheduleStatus.ENDED):
                admissions.append((plan, abandonment_of(plan, now=now)))
            case Unreadable():
                report.is_changed = put_into_error(store, fence, plan, now=now) or report.is_changed
            case ZoneRules():
                _leave_alone(plan, differing, report)
    outcomes = (
        store.commit_admissions(fence, [admission for _, admission in admissions], now=now)
        if admissions
        else []
    )
    refused: list[tuple[DueSchedule, Admission]] = []
    for (row, admission), outcome in zip(admissions, outcomes, strict=True):
        # What is stale may be held by somebody else for long: at once it would be looked at again and again.
        is_left = outcome in (AdmissionOutcome.FENCED, AdmissionOutcome.STALE)
        report.is_changed = report.is_changed or not is_left
        report.is_passed_over = report.is_passed_over or is_passed_over(admission, outcome)
        if outcome is AdmissionOutcome.ADMITTED:
            report.admitted += queued_by(admission)
        elif outcome is AdmissionOutcome.FENCED:
            report.is_fenced = True
        elif outcome is AdmissionOutcome.KEY_USED and isinstance(row, DueSchedule):
            refused.append((row, admission))
        elif outcome in REFUSALS:
            put_into_error(store, fence, _refused(row, admission, outcome), now=now)
    return refused


def is_passed_over(admission: Admission, outcome: AdmissionOutcome) -> bool:
    """Whether it may have been refused for its places, which change as often as runs of its schedule end."""
    return outcome is AdmissionOutcome.STALE and admission.expected_places is not None


def queued_by(admission: Admission) -> int:
    """How many runs the admission queued, or made wait for one that is open."""
    changed = [change.run for change in admission.run_changes]
    return sum(run.admitted_at is not None for run in (*admission.runs, *changed))


def _leave_alone(rules: ZoneRules, differing: set[ZoneRules], report: PageReport) -> None:
    if rules in differing:
        return
    differing.add(rules)
    report.is_changed = True  # the page is read again without them, at once
    log.error(
        "zone.rules_differ",
        timezone=rules.timezone,
        problem="Schedules of this zone were computed with other rules than this process has, or it does not know the "
        "zone; it leaves them alone until `rota tz apply`, or until tzdata is upgraded here.",
    )


def _refused(row: DueSchedule | Unreadable, admission: Admission, outcome: AdmissionOutcome) -> Unreadable:
    problem = _problem_of(admission, outcome)
    return unreadable(row, problem) if isinstance(row, DueSchedule) else replace(row, problem=problem)


def _problem_of(admission: Admission, outcome: AdmissionOutcome) -> str:
    """Which of several runs it is, the store does not say."""
    ids = [run.run_id for run in admission.runs]
    named = f"The run {ids[0]}" if len(ids) == 1 else f"One of the {len(ids)} runs from {ids[0]} to {ids[-1]}"
    return REFUSALS[outcome].format(named)
