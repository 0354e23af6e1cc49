"""Schedules, versions and history of a memory store."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from rota.domain.audit import AuditEvent
from rota.domain.errors import UnreadableRow
from rota.domain.identity import ScheduleId
from rota.domain.schedule import Schedule, Suspension, Version
from rota.store.memory.tables import Tables
from rota.store.port import (
    Creation,
    Fence,
    IdempotencyRecord,
    NewSchedule,
    ScheduleFilter,
    ScheduleRecord,
    StatusChange,
)


class MemorySchedules(Tables):
    def commit_creation(self, new: NewSchedule, *, now: datetime) -> Creation:
        with self._lock:
            # The key first: a repeated request finds its own schedule, and is to be answered as it was.
            if (
                new.idempotency is not None
                and self._live_idempotency(new.idempotency.key, now=now) is not None
            ):
                return Creation.KEY_TAKEN
            schedule = new.schedule
            if schedule.schedule_id in self._schedules:
                return Creation.ID_TAKEN
            if new.idempotency is not None:
                self._idempotency[new.idempotency.key] = new.idempotency
            self._schedules[schedule.schedule_id] = schedule
            self._versions[schedule.schedule_id, new.version.number] = new.version
            self._cadences.setdefault(new.cadence.cadence_id, new.cadence)
            self._write_audit(new.event)
            return Creation.CREATED

    def commit_status_change(self, change: StatusChange, *, fence: Fence | None = None) -> bool:
        with self._lock:
            schedule = self._schedules.get(change.schedule_id)
            if (
                schedule is None
                or schedule.status is not change.expected_status
                or schedule.cursor != change.expected_cursor
                or (fence is not None and not self._holds(fence, schedule.partition))
            ):
                return False
            self._schedules[schedule.schedule_id] = replace(
                schedule,
                status=change.status,
                status_reason=change.status_reason,
                cursor=change.cursor,
                updated_at=change.event.at,
                careful_until=_later(schedule.careful_until, change.careful_until),
            )
            if change.suspension_closed is not None:
                self._close_suspension(schedule.schedule_id, change.suspension_closed)
            if change.suspension_opened is not None:
                self._open_suspension(schedule.schedule_id, change.suspension_opened)
            if change.window_closed_at is not None:
                latest = schedule.schedule_id, schedule.latest_version
                self._versions[latest] = replace(
                    self._versions[latest], effective_until=change.window_closed_at
                )
            self._write_audit(change.event)
            return True

    def commit_idempotency(self, record: IdempotencyRecord, *, now: datetime) -> bool:
        with self._lock:
            if self._live_idempotency(record.key, now=now) is not None:
                return False
            self._idempotency[record.key] = record
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

    def _live_idempotency(self, key: str, *, now: datetime) -> IdempotencyRecord | None:
        record = self._idempotency.get(key)
        return record if record is not None and record.expires_at > now else None

    def _record_of(self, schedule: Schedule) -> ScheduleRecord:
        version = self._versions.get((schedule.schedule_id, schedule.cursor.version))
        if version is None:
            raise UnreadableRow(
                f"The stored row of schedule {schedule.schedule_id} cannot be read: "
                f"its version {schedule.cursor.version} does not exist"
            )
        return ScheduleRecord(
            schedule=schedule,
            version=version,
            suspensions=self._suspensions_that_matter(schedule),
        )

    def _matching_schedules(self, filter_: ScheduleFilter) -> Iterator[Schedule]:
        for schedule in self._schedules.values():
            if (
                # One that has lost its version stops, and hides, only itself (I12).
                (schedule.schedule_id, schedule.cursor.version) in self._versions
                and (filter_.status is None or schedule.status is filter_.status)
                and (filter_.job is None or schedule.job == filter_.job)
                and (filter_.label is None or self._has_label(schedule.schedule_id, filter_.label))
            ):
                yield schedule

    def _open_suspension(self, schedule_id: ScheduleId, opened: Suspension) -> None:
        # One that began at the same millisecond and ended since covers nothing that this one does not.
        others = [item for item in self._suspensions.get(schedule_id, []) if item.from_ != opened.from_]
        self._suspensions[schedule_id] = [*others, opened]

    def _close_suspension(self, schedule_id: ScheduleId, closed: Suspension) -> None:
        suspensions = self._suspensions.get(schedule_id, [])
        for place, suspension in enumerate(suspensions):
            if suspension.until is None and suspension.from_ == closed.from_:
                suspensions[place] = closed


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    if one is None or other is None:
        return one or other
    return max(one, other)
