"""Admitting one page of a partition: read what is due, decide with the pure planner, commit under the epoch."""

from dataclasses import dataclass
from datetime import datetime

from rota.cadences import Cadences
from rota.dispatch.poison import abandonment_of, error_change, problem_of
from rota.domain.admission import Admission, DueSchedule, plan_admission
from rota.domain.errors import ZoneRulesDiffer
from rota.domain.schedule import ScheduleStatus
from rota.store.port import AdmissionOutcome, Fence, Store, Unreadable, ZoneRules
from rota.telemetry import get_logger

log = get_logger("dispatch")


@dataclass(slots=True, kw_only=True)
class PageReport:
    """What became of a page."""

    read: int = 0
    """Schedules looked at: what a page costs."""
    admitted: int = 0
    """Runs created."""
    is_changed: bool = False
    """Something was written, here or by somebody else meanwhile: there may be more to do at once."""
    is_fenced: bool = False
    """The partition is no longer the caller's."""


def admit_page(
    store: Store, cadences: Cadences, fence: Fence, *, now: datetime, limit: int, differing: set[ZoneRules]
) -> PageReport:
    """One bounded page of the partition's due schedules, oldest first.

    Schedules of the zone rules in `differing` are left alone, and those newly found are added: this process may not
    compute them (I11), and they must not keep the place of others (I12).
    """
    rows = store.read_due(fence.partition, now=now, limit=limit, excluding=differing)
    report = PageReport(read=len(rows))
    admissions: list[Admission] = []
    for row in rows:
        planned = _plan(row, cadences, now=now) if isinstance(row, DueSchedule) else row
        if isinstance(planned, Unreadable) and planned.status is ScheduleStatus.ENDED:
            planned = abandonment_of(planned, now=now)
        match planned:
            case Admission():
                admissions.append(planned)
            case Unreadable():
                _put_into_error(store, fence, planned, now=now, report=report)
            case ZoneRules():
                _leave_alone(planned, differing, report)
    outcomes = store.commit_admissions(fence, admissions, now=now) if admissions else []
    for admission, outcome in zip(admissions, outcomes, strict=True):
        report.is_changed = report.is_changed or outcome is not AdmissionOutcome.FENCED
        match outcome:
            case AdmissionOutcome.ADMITTED:
                report.admitted += len(admission.runs)
            case AdmissionOutcome.FENCED:
                report.is_fenced = True
            case AdmissionOutcome.KEY_USED | AdmissionOutcome.PRUNED:
                _put_into_error(store, fence, _refused(admission, outcome), now=now, report=report)
            case AdmissionOutcome.STALE:
                pass
    return report


def _plan(due: DueSchedule, cadences: Cadences, *, now: datetime) -> Admission | Unreadable | ZoneRules:
    """The admission; or the problem that puts it into `error`; or the zone rules that this process does not have."""
    schedule, version = due.schedule, due.version
    try:
        return plan_admission(due, cadences.of_version(version), now=now)
    except ZoneRulesDiffer:
        return ZoneRules(timezone=version.definition.timezone, fingerprint=version.fingerprint)
    except Exception as error:  # noqa: BLE001 - I12: whatever a schedule raises stops that schedule alone
        return Unreadable(
            schedule_id=schedule.schedule_id,
            status=schedule.status,
            cursor=schedule.cursor,
            problem=problem_of(error),
            window_until=version.effective_until,
        )


def _leave_alone(rules: ZoneRules, differing: set[ZoneRules], report: PageReport) -> None:
    if rules in differing:
        return
    differing.add(rules)
    report.is_changed = True  # the page is read again without them, at once
    log.error(
        "zone.rules_differ",
        timezone=rules.timezone,
        problem="Schedules of this zone were computed with other rules than this process has; it leaves them alone.",
    )


def _refused(admission: Admission, outcome: AdmissionOutcome) -> Unreadable:
    first = admission.runs[0].run_id if admission.runs else "?"
    if outcome is AdmissionOutcome.PRUNED:
        problem = (
            f"The run {first} lies before the kept history, though the schedule's cursor had not passed it."
        )
    else:
        problem = f"The run {first} or its period key exists already, though the cursor had not passed it."
    return Unreadable(
        schedule_id=admission.schedule_id,
        status=admission.expected_status,
        cursor=admission.expected_cursor,
        problem=problem,
    )


def _put_into_error(
    store: Store, fence: Fence, row: Unreadable, *, now: datetime, report: PageReport
) -> None:
    if store.commit_status_change(error_change(row, now=now), fence=fence):
        log.error("schedule.error", schedule_id=row.schedule_id, problem=row.problem)
        report.is_changed = True
