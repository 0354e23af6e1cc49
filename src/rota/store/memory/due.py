"""What is due in the partitions of a memory store."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from rota.domain.due import DueSchedule
from rota.domain.errors import UnreadableRow
from rota.domain.planned import PARKED_PER_ADMISSION_MAX
from rota.domain.run import Run, RunState
from rota.domain.schedule import CadenceRow, Schedule, ScheduleStatus
from rota.store.memory.records import Records, rules_of, unreadable
from rota.store.port import (
    ATTEMPT_LEASE_MAX,
    DueCount,
    DueTimes,
    LostAttempt,
    Unreadable,
    ZoneRules,
    lease_has_ended,
)


class MemoryDue(Records):
    def read_due_times(
        self, partitions: Sequence[int], *, after: datetime | None = None
    ) -> dict[int, DueTimes]:
        with self._lock:
            schedules = [(schedule.partition, due_at) for due_at, schedule in self._owing()]
            planned = [
                (run.partition, run.due_at) for run in self._runs.values() if run.state is RunState.PLANNED
            ]
        of_schedules, of_planned = _earliest(schedules, after=after), _earliest(planned, after=after)
        return {
            partition: DueTimes(schedule=of_schedules.get(partition), planned=of_planned.get(partition))
            for partition in sorted(of_schedules.keys() | of_planned.keys())
            if partition in partitions
        }

    def count_due(self, partitions: Sequence[int], *, now: datetime, limit: int) -> dict[int, DueCount]:
        with self._lock:
            schedules = Counter(schedule.partition for due_at, schedule in self._owing() if due_at <= now)
            planned = Counter(
                run.partition
                for run in self._runs.values()
                if run.state is RunState.PLANNED and run.due_at <= now
            )
        return {
            partition: DueCount(
                schedules=min(schedules[partition], limit), planned=min(planned[partition], limit)
            )
            for partition in sorted(schedules.keys() | planned.keys())
            if partition in partitions
        }

    def read_due(
        self,
        partition: int,
        *,
        now: datetime,
        limit: int,
        after: datetime | None = None,
        excluding: Collection[ZoneRules] = (),
    ) -> list[DueSchedule | Unreadable]:
        with self._lock:
            due = [
                (due_at, schedule)
                for due_at, schedule in self._owing()
                if schedule.partition == partition
                and due_at <= now
                and (after is None or due_at > after)
                and not self._is_computed_with(schedule, excluding)
            ]
            due.sort(key=lambda entry: (entry[0], entry[1].schedule_id))
            return [self._due_schedule(schedule) for _, schedule in due[:limit]]

    def read_cadences(self, cadence_ids: Iterable[str]) -> list[CadenceRow]:
        with self._lock:
            return [
                self._cadences[cadence_id]
                for cadence_id in sorted(set(cadence_ids))
                if cadence_id in self._cadences
            ]

    def read_lost(self, partitions: Sequence[int], *, now: datetime, limit: int) -> list[LostAttempt]:
        with self._lock:
            lost = sorted(
                (attempt.lease_expires_at, run.run_id)
                for run in self._runs.values()
                if run.state is RunState.RUNNING and run.partition in partitions
                for attempt in [self._attempts[run.run_id, run.attempt]]
                if lease_has_ended(attempt.lease_expires_at, now=now, longest=ATTEMPT_LEASE_MAX)
            )
            return [
                LostAttempt(
                    attempt=self._attempts[run_id, self._runs[run_id].attempt],
                    job=self._job_or_default(self._runs[run_id].job),
                    cancel_requested=self._runs[run_id].cancel_requested_at is not None,
                )
                for _, run_id in lost[:limit]
            ]

    def _owing(self) -> Iterator[tuple[datetime, Schedule]]:
        """Schedules that the dispatcher works on: active ones, and ended ones that still owe instants."""
        for schedule in self._schedules.values():
            due_at = schedule.cursor.due_at
            if due_at is not None and schedule.status in {ScheduleStatus.ACTIVE, ScheduleStatus.ENDED}:
                yield due_at, schedule

    def _is_computed_with(self, schedule: Schedule, rules: Collection[ZoneRules]) -> bool:
        """Whether its step needs one of these rules: its version's, or at the end of that one's window its latest's."""
        version, latest = self._version_of(schedule), self._latest_of(schedule)
        if version is None:
            return False
        if rules_of(version) in rules:
            return True
        instant = schedule.cursor.scheduled_at
        is_at_the_end = instant is not None and instant == version.effective_until
        return is_at_the_end and latest is not None and rules_of(latest) in rules

    def _due_schedule(self, schedule: Schedule) -> DueSchedule | Unreadable:
        try:
            version, successor = self._versions_of(schedule)
        except UnreadableRow as error:
            return unreadable(schedule, str(error), version=self._version_of(schedule))
        due = self._due_with(schedule, version)
        return replace(due, successor=successor, parked=self._parked_of(schedule))

    def _parked_of(self, schedule: Schedule) -> tuple[Run, ...]:
        """The runs that an end or a resumption has still to decide, where the cursor says that there may be some."""
        instant, due_at = schedule.cursor.scheduled_at, schedule.cursor.due_at
        if instant is not None and (due_at is None or due_at >= instant):
            return ()
        has_ended = schedule.status is ScheduleStatus.ENDED
        states = {RunState.PLANNED, RunState.HELD} if has_ended else {RunState.HELD}
        parked = [
            run
            for run in self._runs.values()
            if run.schedule_id == schedule.schedule_id and run.state in states
        ]
        parked.sort(key=lambda run: (run.due_at, run.run_id))
        return tuple(parked[:PARKED_PER_ADMISSION_MAX])


def _earliest(due: Iterable[tuple[int, datetime]], *, after: datetime | None) -> dict[int, datetime]:
    earliest: dict[int, datetime] = {}
    for partition, due_at in due:
        if after is None or due_at > after:
            earliest[partition] = min(due_at, earliest.get(partition, due_at))
    return earliest
