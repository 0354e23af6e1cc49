"""What is to be written for one due schedule: reads what the pure planners ask for, and hands them over.

In this order: runs that an end or a resumption left to be decided; the next version, where the cursor has reached its
boundary; and the instants from the cursor on.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from rota.cadences import Cadences
from rota.dispatch.poison import problem_of
from rota.domain.activation import activation_commit, occurrences_at_stake, plan_activation, stake_probes
from rota.domain.admission import (
    Admission,
    expected_places,
    nothing_owed,
    plan_admission,
    probes_of,
    unchanged,
)
from rota.domain.cadence import Cadence
from rota.domain.due import DueSchedule
from rota.domain.errors import ZoneRulesDiffer
from rota.domain.key_uses import LATEST, KeyProbe, Uses
from rota.domain.planned import Judged, judge_planned, newer_probes
from rota.domain.run import Run, RunChange
from rota.domain.schedule import ScheduleStatus, Version
from rota.store.port import PlannedDue, Store, StoreUnavailable, Unreadable, ZoneRules, read_uses
from rota.telemetry import get_logger

log = get_logger("dispatch")


class Plans:
    """The plans of one step: `now` is the same for all of them."""

    def __init__(self, store: Store, cadences: Cadences, *, now: datetime) -> None:
        self._store = store
        self._cadences = cadences
        self._now = now

    def plan(
        self, row: DueSchedule | Unreadable, *, careful: bool = False
    ) -> Admission | Unreadable | ZoneRules:
        """The admission; or the problem that puts it into `error`; or the zone rules that this process does not have.

        With `careful` every period is looked up, whatever the schedule says.
        """
        if isinstance(row, Unreadable):
            return row
        try:
            return self._unless_more_is_planned(row, self._plan(row, careful=careful or row.is_careful))
        except _Differs as error:
            definition = error.version.definition
            return ZoneRules(timezone=definition.timezone, fingerprint=error.version.fingerprint)
        except StoreUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - I12: whatever a schedule raises stops that schedule alone
            return unreadable(row, problem_of(error))

    def plan_late(self, late: Sequence[PlannedDue]) -> Admission | Unreadable:
        """What becomes of late planned runs of one schedule; or the problem that puts it into `error`."""
        due = late[0].due
        try:
            return self._judge_all(due, [(row.due, row.run) for row in late])
        except StoreUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - I12: whatever a schedule raises stops that schedule alone
            return unreadable(due, problem_of(error))

    def _plan(self, due: DueSchedule, *, careful: bool) -> Admission:
        if due.parked:
            return self._judge_all(due, [(self._of_its_version(due, run), run) for run in due.parked])
        if due.schedule.cursor.scheduled_at is None:
            return nothing_owed(due)
        if due.successor is not None and due.is_at_boundary:
            return self._at_boundary(due, due.successor)
        cadence = self._cadence(due.version)
        if not careful:
            return plan_admission(due, cadence, now=self._now)
        return plan_admission(
            due, cadence, now=self._now, uses=self._uses(due, probes_of(due, cadence, now=self._now))
        )

    def _unless_more_is_planned(self, due: DueSchedule, admission: Admission) -> Admission:
        """A schedule that names no more ends only after its planned runs: one may have been moved behind the last."""
        is_exhausted = due.schedule.status is not admission.status is ScheduleStatus.ENDED
        # Whatever plans a run raises `careful_until`: most schedules have none, and are not asked.
        if not is_exhausted or due.schedule.careful_until is None:
            return admission
        ahead = self._store.list_ahead(due.schedule.schedule_id, from_=LATEST, limit=1)
        if not ahead:
            return admission
        look_again_at = max(self._now, ahead[0].due_at)
        return replace(
            admission,
            status=due.schedule.status,
            status_reason=due.schedule.status_reason,
            window_closed_at=None,
            cursor=replace(admission.cursor, due_at=look_again_at),
        )

    def _judge_all(self, due: DueSchedule, runs: Sequence[tuple[DueSchedule, Run]]) -> Admission:
        """What becomes of planned or held runs, each given with its own version: one after the other they take the
        schedule's places."""
        changes: list[RunChange] = []
        places = due.places
        for of_version, run in runs:
            judged = judge(
                self._store, self._cadences, replace(of_version, places=places), run, now=self._now
            )
            changes.append(judged.change)
            places = judged.places
        depends = any(expected_places(of_version) is not None for of_version, _ in runs)
        return replace(
            unchanged(due.schedule),
            run_changes=tuple(changes),
            expected_places=due.places if depends else None,
            places=places,
        )

    def _of_its_version(self, due: DueSchedule, run: Run) -> DueSchedule:
        """The schedule as a parked run is judged, by the policy of its own version."""
        if run.version == due.version.number:
            return due
        version = self._store.get_version(run.schedule_id, run.version)
        return due if version is None else replace(due, version=version)

    def _at_boundary(self, due: DueSchedule, new: Version) -> Admission:
        """The activation; before the boundary has come, nothing but the cursor as it was before it was looked at."""
        cursor = due.schedule.cursor
        if cursor.scheduled_at is not None and cursor.scheduled_at > self._now:
            return replace(unchanged(due.schedule), cursor=replace(cursor, due_at=cursor.scheduled_at))
        return self._activate(due, new)

    def _activate(self, due: DueSchedule, new: Version) -> Admission:
        """The commit by which the successor takes over (see `rota.domain.activation`)."""
        schedule, old = due.schedule, due.version
        new_cadence = self._cadence(new)
        at_stake = occurrences_at_stake(old, self._cadence(old), new, new_cadence)
        activation = plan_activation(
            schedule,
            old,
            new,
            new_cadence,
            at_stake=at_stake,
            uses=self._uses(due, stake_probes(old, new, at_stake)),
            last_run_at=self._store.get_last_run_time(schedule.schedule_id),
            now=self._now,
        )
        log.info("version.activate", schedule_id=schedule.schedule_id, version=new.number)
        return activation_commit(schedule, new, activation)

    def _uses(self, due: DueSchedule, probes: Sequence[KeyProbe]) -> Uses:
        return read_uses(self._store, due.schedule.schedule_id, probes)

    def _cadence(self, version: Version) -> Cadence:
        try:
            return self._cadences.of_version(version)
        except ZoneRulesDiffer as error:
            raise _Differs(version) from error


class _Differs(Exception):
    """This process has other rules for the zone of `version`."""

    def __init__(self, version: Version) -> None:
        super().__init__(version.definition.timezone)
        self.version = version


def unreadable(row: DueSchedule, problem: str) -> Unreadable:
    """The schedule as one that stops itself."""
    return Unreadable(
        schedule_id=row.schedule.schedule_id,
        status=row.schedule.status,
        cursor=row.schedule.cursor,
        revision=row.schedule.revision,
        problem=problem,
        window_until=row.version.effective_until,
    )


def judge(store: Store, cadences: Cadences, due: DueSchedule, run: Run, *, now: datetime) -> Judged:
    """What becomes of a planned or held run; `due` gives the run's own version.

    Where this process has other rules for its zone, or does not know it, no newer occurrence is looked for.
    """
    try:
        cadence = cadences.of_version(due.version)
    except ZoneRulesDiffer:
        return judge_planned(due, run, None, now=now)
    uses = read_uses(store, due.schedule.schedule_id, newer_probes(due, cadence, run, now=now))
    return judge_planned(due, run, cadence, now=now, uses=uses)
