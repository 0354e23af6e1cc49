"""What is done to a schedule of a memory store, but for admission."""

from dataclasses import replace

from rota.domain.identity import ScheduleId
from rota.domain.schedule import Schedule, Suspension
from rota.store.memory.writes import Writes, are_pruned, later
from rota.store.port import ChangeOutcome, Fence, Notice, ScheduleChange, makes_due_soon


class MemoryChanges(Writes):
    def commit_change(self, change: ScheduleChange, *, fence: Fence | None = None) -> ChangeOutcome:
        with self._lock:
            # The key first: a repeated request is to be answered as it was, whatever has changed since.
            if self._is_in_use(change.idempotency, now=change.at):
                return ChangeOutcome.KEY_TAKEN
            schedule = self._schedules.get(change.schedule_id)
            if (
                schedule is None
                or not _is_as_expected(schedule, change)
                or (fence is not None and not self._holds(fence, schedule.partition))
                or self._have_changed(change.run_changes)
            ):
                return ChangeOutcome.STALE
            if are_pruned(schedule, change.runs):
                return ChangeOutcome.PRUNED
            if self._use_a_key_again(change.runs, change.run_changes):
                return ChangeOutcome.KEY_USED
            self._schedules[schedule.schedule_id] = _changed(schedule, change)
            self._write_versions(change)
            self._write_suspensions(change)
            self._write_runs(change.runs, change.run_changes)
            if change.event is not None:
                self._write_audit(change.event)
            self._write_idempotency(change.idempotency)
            if makes_due_soon(change):
                self._lock.note(Notice.DUE)
            return ChangeOutcome.CHANGED

    def _write_versions(self, change: ScheduleChange) -> None:
        for new in (*change.versions, *change.restamped):
            self._write_version(new)
        for number, effective_until in change.windows:
            self._end_window(change.schedule_id, number, effective_until)

    def _write_suspensions(self, change: ScheduleChange) -> None:
        if change.suspension_closed is not None:
            self._close_suspension(change.schedule_id, change.suspension_closed)
        if change.suspension_opened is not None:
            self._open_suspension(change.schedule_id, change.suspension_opened)

    def _open_suspension(self, schedule_id: ScheduleId, opened: Suspension) -> None:
        # One that began at the same millisecond and ended since covers nothing that this one does not.
        others = [item for item in self._suspensions.get(schedule_id, []) if item.from_ != opened.from_]
        self._suspensions[schedule_id] = [*others, opened]

    def _close_suspension(self, schedule_id: ScheduleId, closed: Suspension) -> None:
        suspensions = self._suspensions.get(schedule_id, [])
        for place, suspension in enumerate(suspensions):
            if suspension.until is None and suspension.from_ == closed.from_:
                suspensions[place] = closed


def _is_as_expected(schedule: Schedule, change: ScheduleChange) -> bool:
    return schedule.revision == change.expected_revision and change.expected_cursor in {None, schedule.cursor}


def _changed(schedule: Schedule, change: ScheduleChange) -> Schedule:
    """The schedule's row after the change; what it does not name stays."""
    if change.status is not None:
        schedule = replace(schedule, status=change.status, status_reason=change.status_reason)
    if change.versions:
        schedule = replace(schedule, latest_version=change.versions[-1].version.number)
    if change.expected_cursor is not None:
        schedule = replace(schedule, revision=schedule.revision + 1)
    return replace(
        schedule,
        cursor=schedule.cursor if change.cursor is None else change.cursor,
        labels=schedule.labels if change.labels is None else change.labels,
        careful_until=later(schedule.careful_until, change.careful_until),
        updated_at=change.at,
    )
