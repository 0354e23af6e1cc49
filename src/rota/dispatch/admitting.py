"""Admitting one page of a partition: read what is due, decide with the pure planner, commit under the epoch."""

from dataclasses import dataclass
from datetime import datetime

from rota.cadences import Cadences
from rota.dispatch.poison import error_change, problem_of
from rota.domain.admission import Admission, DueSchedule, plan_admission
from rota.domain.errors import ZoneRulesDiffer
from rota.domain.identity import ScheduleId
from rota.domain.schedule import Cursor, ScheduleStatus
from rota.store.port import AdmissionOutcome, Fence, Store, Unreadable
from rota.telemetry import get_logger

log = get_logger("dispatch")


@dataclass(slots=True, kw_only=True)
class PageReport:
    """What became of a page."""

    admitted: int = 0
    """Runs created."""
    is_changed: bool = False
    """Something was written, here or by somebody else meanwhile: there may be more to do at once."""
    is_fenced: bool = False
    """The partition is no longer the caller's."""


def admit_page(store: Store, cadences: Cadences, fence: Fence, *, now: datetime, limit: int) -> PageReport:
    """One bounded page of the partition's due schedules, oldest first."""
    report = PageReport()
    admissions: list[Admission] = []
    for row in store.read_due(fence.partition, now=now, limit=limit):
        if isinstance(row, Unreadable):
            _put_into_error(store, fence, row, now=now, report=report)
            continue
        planned = _plan(row, cadences, now=now)
        if isinstance(planned, Admission):
            admissions.append(planned)
        elif planned is not None:
            _put_into_error(store, fence, planned, now=now, report=report)
    if not admissions:
        return report
    outcomes = store.commit_admissions(fence, admissions, now=now)
    for admission, outcome in zip(admissions, outcomes, strict=True):
        report.is_fenced = report.is_fenced or outcome is AdmissionOutcome.FENCED
        report.is_changed = report.is_changed or outcome is not AdmissionOutcome.FENCED
        if outcome is AdmissionOutcome.ADMITTED:
            report.admitted += len(admission.runs)
        elif outcome is AdmissionOutcome.KEY_USED:
            _put_into_error(store, fence, _used_key(admission), now=now, report=report)
    return report


def _plan(due: DueSchedule, cadences: Cadences, *, now: datetime) -> Admission | Unreadable | None:
    """The admission; or the problem that puts it into `error`; or None where this process may not compute it."""
    schedule = due.schedule
    try:
        return plan_admission(due, cadences.of_version(due.version), now=now)
    except ZoneRulesDiffer as error:
        log.warning("schedule.not_computed", schedule_id=schedule.schedule_id, problem=str(error))
        return None
    except Exception as error:  # noqa: BLE001 - I12: whatever a schedule raises stops that schedule alone
        return _unreadable(schedule.schedule_id, schedule.status, schedule.cursor, problem=problem_of(error))


def _used_key(admission: Admission) -> Unreadable:
    first = admission.runs[0].run_id if admission.runs else "?"
    problem = (
        f"The run {first} or its period key exists already, though the schedule's cursor had not passed it."
    )
    return _unreadable(
        admission.schedule_id, admission.expected_status, admission.expected_cursor, problem=problem
    )


def _unreadable(
    schedule_id: ScheduleId, status: ScheduleStatus, cursor: Cursor, *, problem: str
) -> Unreadable:
    return Unreadable(schedule_id=schedule_id, status=status, cursor=cursor, problem=problem)


def _put_into_error(
    store: Store, fence: Fence, row: Unreadable, *, now: datetime, report: PageReport
) -> None:
    if store.commit_status_change(error_change(row, now=now), fence=fence):
        log.error("schedule.error", schedule_id=row.schedule_id, problem=row.problem)
        report.is_changed = True
