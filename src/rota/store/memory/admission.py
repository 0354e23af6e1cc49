"""Admissions of a memory store: decisions that apply under the epoch and the state that they were made for."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from rota.domain.admission import Admission, Skip
from rota.domain.run import Run, RunState
from rota.store.memory.writes import Writes, are_pruned, later
from rota.store.port import AdmissionOutcome, Fence


class MemoryAdmission(Writes):
    def commit_admissions(
        self, fence: Fence, admissions: Sequence[Admission], *, now: datetime
    ) -> list[AdmissionOutcome]:
        with self._lock:
            self._check_count(admissions)
            return [self._admit(fence, admission, now=now) for admission in admissions]

    def _admit(self, fence: Fence, admission: Admission, *, now: datetime) -> AdmissionOutcome:
        schedule = self._schedules.get(admission.schedule_id)
        if not self._holds(fence, fence.partition if schedule is None else schedule.partition):
            return AdmissionOutcome.FENCED
        if (
            schedule is None
            or schedule.revision != admission.expected_revision
            or schedule.cursor != admission.expected_cursor
            or self._have_changed(admission.run_changes)
            or not self._stand_at(admission)
        ):
            return AdmissionOutcome.STALE
        if are_pruned(schedule, admission.runs):
            return AdmissionOutcome.PRUNED
        if not all(self._is_owned(admission, run) for run in admission.runs):
            return AdmissionOutcome.NOT_OWNED
        if self._use_a_key_again(admission.runs, admission.run_changes):
            return AdmissionOutcome.KEY_USED
        if admission.expected_places is not None:
            self._places[schedule.schedule_id] = admission.places
        self._write_runs(admission.runs, admission.run_changes)
        for skip in admission.skips:
            self._write_skip(skip)
        if admission.window_closed_at is not None:
            self._end_window(schedule.schedule_id, admission.cursor.version, admission.window_closed_at)
        self._schedules[schedule.schedule_id] = replace(
            schedule,
            cursor=admission.cursor,
            status=admission.status,
            status_reason=admission.status_reason,
            turn=admission.turn,
            careful_until=later(schedule.careful_until, admission.careful_until),
            updated_at=now,
        )
        return AdmissionOutcome.ADMITTED

    def _stand_at(self, admission: Admission) -> bool:
        """Whether the schedule's places are those that the admission expects, where it depends on any."""
        expected = admission.expected_places
        return expected is None or self._places.get(admission.schedule_id, ()) == expected

    def _is_owned(self, admission: Admission, run: Run) -> bool:
        """Whether the run's version owns its instant, or the version that takes over carries it (I8)."""
        if run.state is RunState.PLANNED:
            return run.carried_by == admission.cursor.version
        version = self._versions.get((admission.schedule_id, admission.expected_cursor.version))
        return (
            version is not None
            and run.version == version.number
            and version.effective_from <= run.scheduled_at
            and (version.effective_until is None or run.scheduled_at < version.effective_until)
        )

    def _write_skip(self, skip: Skip) -> None:
        """A further row, or the end of one of the same version, reason and note that it touches."""
        skips = self._skips.setdefault(skip.schedule_id, [])
        for place, existing in enumerate(skips):
            if existing.until == skip.from_ and _kind_of(existing) == _kind_of(skip):
                skips[place] = replace(existing, until=skip.until, count=existing.count + skip.count)
                return
        skips.append(skip)


def _kind_of(skip: Skip) -> tuple[int, str, str | None]:
    return skip.version, skip.reason, skip.note
