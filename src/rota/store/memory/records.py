"""Schedules of a memory store with what is read beside them: versions, suspensions."""

from datetime import datetime

from rota.domain.due import DueSchedule
from rota.domain.errors import UnreadableRow
from rota.domain.schedule import Schedule, Suspension, Version
from rota.store.memory.tables import Tables
from rota.store.port import ScheduleRecord, Unreadable, ZoneRules


class Records(Tables):
    def _version_of(self, schedule: Schedule) -> Version | None:
        """The version that owns the cursor."""
        return self._versions.get((schedule.schedule_id, schedule.cursor.version))

    def _latest_of(self, schedule: Schedule) -> Version | None:
        return self._versions.get((schedule.schedule_id, schedule.latest_version))

    def _is_readable(self, schedule: Schedule) -> bool:
        return self._version_of(schedule) is not None and self._latest_of(schedule) is not None

    def _versions_of(self, schedule: Schedule) -> tuple[Version, Version | None]:
        """The version that owns the cursor, and the latest where it is another one.

        Raises `UnreadableRow` where one is lost: it must not look like none (I12).
        """
        version, latest = self._version_of(schedule), self._latest_of(schedule)
        if version is None or latest is None:
            number = schedule.cursor.version if version is None else schedule.latest_version
            raise UnreadableRow(problem_of(schedule, lost=number))
        return version, None if latest is version else latest

    def _record_of(self, schedule: Schedule) -> ScheduleRecord:
        version, pending = self._versions_of(schedule)
        suspensions = self._suspensions_that_matter(schedule)
        return ScheduleRecord(schedule=schedule, version=version, suspensions=suspensions, pending=pending)

    def _due_with(self, schedule: Schedule, version: Version) -> DueSchedule:
        return DueSchedule(
            schedule=schedule,
            version=version,
            suspensions=self._suspensions_that_matter(schedule),
            job_overdue=self._job_or_default(schedule.job).overdue,
            places=self._places.get(schedule.schedule_id, ()),
        )

    def _suspensions_that_matter(self, schedule: Schedule) -> tuple[Suspension, ...]:
        """Those that last, or reach past the cursor: they can still skip an instant, or drop a parked run."""
        cursor = schedule.cursor
        stands = [instant for instant in (cursor.scheduled_at, cursor.due_at) if instant is not None]
        return self._suspensions_after(schedule, min(stands, default=None))

    def _suspensions_after(self, schedule: Schedule, instant: datetime | None) -> tuple[Suspension, ...]:
        """Those that last, or end after the instant; oldest first."""
        return tuple(
            suspension
            for suspension in sorted(
                self._suspensions.get(schedule.schedule_id, []), key=lambda suspension: suspension.from_
            )
            if suspension.until is None or (instant is not None and instant < suspension.until)
        )


def unreadable(schedule: Schedule, problem: str, *, version: Version | None) -> Unreadable:
    return Unreadable(
        schedule_id=schedule.schedule_id,
        status=schedule.status,
        cursor=schedule.cursor,
        revision=schedule.revision,
        problem=problem,
        window_until=None if version is None else version.effective_until,
    )


def problem_of(schedule: Schedule, *, lost: int) -> str:
    """What there is to say of a schedule where the version with that number is lost."""
    return (
        f"The stored row of schedule {schedule.schedule_id} cannot be read: its version {lost} does not exist"
    )


def rules_of(version: Version) -> ZoneRules:
    return ZoneRules(timezone=version.definition.timezone, fingerprint=version.fingerprint)
