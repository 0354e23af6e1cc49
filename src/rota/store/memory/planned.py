"""What becomes of planned runs in a memory store when they fall due."""

from dataclasses import replace
from datetime import datetime

from rota.domain.planned import IN_TIME, dropped, planned_as_queued
from rota.domain.run import Run, RunEvent, RunState, next_state
from rota.domain.schedule import Schedule, ScheduleStatus
from rota.store.memory.records import Records, problem_of, unreadable
from rota.store.port import Fence, PlannedDue, PlannedOutcome, Unreadable

SUSPENDED = {ScheduleStatus.PAUSED, ScheduleStatus.ERROR}


class MemoryPlanned(Records):
    def commit_planned(self, fence: Fence, *, now: datetime, limit: int) -> PlannedOutcome:
        with self._lock:
            if not self._holds(fence, fence.partition):
                return PlannedOutcome()
            due = self._planned_due(fence.partition, now=now)
            queued = [run for run, schedule in due if self._is_to_queue(run, schedule, now=now)][:limit]
            held = [
                run
                for run, schedule in due
                if schedule.status in SUSPENDED and not self._is_to_queue(run, schedule, now=now)
            ][:limit]
            ended = [run for run, schedule in due if schedule.status is ScheduleStatus.ENDED][:limit]
            for run in queued:
                self._write_run(planned_as_queued(run, RunEvent.FELL_DUE, now=now))
            for run in held:
                self._write_run(replace(run, state=next_state(run.state, RunEvent.FELL_DUE_WHILE_PAUSED)))
            for run in ended:
                self._write_run(dropped(run, "ended", now=now).run)
            return PlannedOutcome(queued=len(queued), held=len(held), dropped=len(ended))

    def read_planned(self, partition: int, *, now: datetime, limit: int) -> list[PlannedDue | Unreadable]:
        with self._lock:
            left = [
                (run, schedule)
                for run, schedule in self._planned_due(partition, now=now)
                if schedule.status is ScheduleStatus.ACTIVE and not self._is_to_queue(run, schedule, now=now)
            ]
            return [self._planned_with(run, schedule) for run, schedule in left[:limit]]

    def _planned_due(self, partition: int, *, now: datetime) -> list[tuple[Run, Schedule]]:
        due = [
            run
            for run in self._runs.values()
            if run.state is RunState.PLANNED and run.partition == partition and run.due_at <= now
        ]
        due.sort(key=lambda run: (run.due_at, run.run_id))
        return [(run, self._schedules[run.schedule_id]) for run in due]

    def _planned_with(self, run: Run, schedule: Schedule) -> PlannedDue | Unreadable:
        version = self._versions.get((run.schedule_id, run.version))
        if version is None:
            return unreadable(schedule, problem_of(schedule, lost=run.version), version=None)
        due = self._due_with(schedule, version)
        return PlannedDue(
            run=run,
            due=replace(
                due, suspensions=self._suspensions_after(schedule, min(run.scheduled_at, run.due_at))
            ),
        )

    def _is_skipped(self, schedule: Schedule, instant: datetime) -> bool:
        return any(
            suspension.covers(instant) and not suspension.apply_overdue
            for suspension in self._suspensions.get(schedule.schedule_id, [])
        )

    def _is_to_queue(self, run: Run, schedule: Schedule, *, now: datetime) -> bool:
        """Whether the run, which is due, is queued without a judgement."""
        if run.origin == "backfill":
            return schedule.status is not ScheduleStatus.ENDED
        version = self._versions.get((run.schedule_id, run.version))
        next_due = schedule.cursor.due_at
        return (
            schedule.status is ScheduleStatus.ACTIVE
            and run.due_at > now - IN_TIME
            and (next_due is None or next_due >= run.due_at)
            and (version is None or version.definition.overlap == "allow")
            and not (run.due_at > run.scheduled_at and self._is_skipped(schedule, run.scheduled_at))
        )
