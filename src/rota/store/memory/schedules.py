"""Schedules, their versions and their history of a memory store, and the records of repeated requests."""

from collections.abc import Iterator
from datetime import datetime

from rota.domain.audit import AuditEvent
from rota.domain.identity import ScheduleId
from rota.domain.schedule import Schedule, Version
from rota.store.memory.records import Records
from rota.store.port import (
    Creation,
    IdempotencyRecord,
    NewSchedule,
    Notice,
    ScheduleFilter,
    ScheduleRecord,
    is_soon,
)


class MemorySchedules(Records):
    def commit_creation(self, new: NewSchedule, *, now: datetime) -> Creation:
        with self._lock:
            # The key first: a repeated request finds its own schedule, and is to be answered as it was.
            if self._is_in_use(new.idempotency, now=now):
                return Creation.KEY_TAKEN
            if new.schedule.schedule_id in self._schedules:
                return Creation.ID_TAKEN
            self._write_idempotency(new.idempotency)
            self._schedules[new.schedule.schedule_id] = new.schedule
            self._write_version(new.first)
            self._write_audit(new.event)
            if is_soon(new.schedule.cursor.due_at, now=now):
                self._lock.note(Notice.DUE)
            return Creation.CREATED

    def commit_idempotency(self, record: IdempotencyRecord, *, now: datetime) -> bool:
        with self._lock:
            if self._is_in_use(record, now=now):
                return False
            self._write_idempotency(record)
            return True

    def get_idempotency(self, key: str, *, now: datetime) -> IdempotencyRecord | None:
        with self._lock:
            return self._live_idempotency(key, now=now)

    def get_schedule(self, schedule_id: ScheduleId) -> ScheduleRecord | None:
        with self._lock:
            schedule = self._schedules.get(schedule_id)
            return None if schedule is None else self._record_of(schedule)

    def get_version(self, schedule_id: ScheduleId, number: int) -> Version | None:
        with self._lock:
            return self._versions.get((schedule_id, number))

    def list_versions(self, schedule_id: ScheduleId, *, before: int | None, limit: int) -> list[Version]:
        with self._lock:
            numbers = sorted((number for id_, number in self._versions if id_ == schedule_id), reverse=True)
            page = [number for number in numbers if before is None or number < before]
            return [self._versions[schedule_id, number] for number in page[:limit]]

    def list_schedules(
        self, filter_: ScheduleFilter, *, after: ScheduleId | None, limit: int
    ) -> list[ScheduleRecord]:
        with self._lock:
            matching = sorted(self._matching_schedules(filter_), key=lambda schedule: schedule.schedule_id)
            page = [schedule for schedule in matching if after is None or schedule.schedule_id > after]
            return [self._record_of(schedule) for schedule in page[:limit]]

    def list_audit(self, schedule_id: ScheduleId, *, limit: int) -> list[AuditEvent]:
        with self._lock:
            oldest_first = sorted(self._audit.get(schedule_id, []), key=lambda event: event.at)
            return oldest_first[::-1][:limit]

    def _matching_schedules(self, filter_: ScheduleFilter) -> Iterator[Schedule]:
        for schedule in self._schedules.values():
            if (
                # One that has lost a version stops, and hides, only itself (I12).
                self._is_readable(schedule)
                and (filter_.status is None or schedule.status is filter_.status)
                and (filter_.job is None or schedule.job == filter_.job)
                and (filter_.label is None or self._has_label(schedule.schedule_id, filter_.label))
            ):
                yield schedule
