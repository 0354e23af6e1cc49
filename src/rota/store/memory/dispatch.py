"""Partitions, due schedules and admissions of a memory store."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from rota.domain.admission import Admission, DueSchedule, Skip
from rota.domain.run import RunState
from rota.domain.schedule import CadenceRow, Schedule, ScheduleStatus
from rota.store.memory.tables import Tables, intent_of
from rota.store.port import (
    ATTEMPT_LEASE_MAX,
    LEASE_MAX,
    AdmissionOutcome,
    Fence,
    LostAttempt,
    PartitionState,
    Unreadable,
    ZoneRules,
    lease_has_ended,
)


class MemoryLeases(Tables):
    def ensure_partitions(self, count: int) -> int:
        with self._lock:
            if not self._partitions:
                for partition in range(count):
                    self._partitions[partition] = PartitionState(
                        partition=partition, owner=None, epoch=0, expires_at=None, checkpoint=None
                    )
            return len(self._partitions)

    def list_partitions(self) -> list[PartitionState]:
        with self._lock:
            return [self._partitions[partition] for partition in sorted(self._partitions)]

    def commit_acquisitions(self, owner: str, *, now: datetime, ttl: timedelta, limit: int) -> list[Fence]:
        with self._lock:
            free = [state for _, state in sorted(self._partitions.items()) if _is_free(state, now=now)]
            fences = []
            for state in free[:limit]:
                taken = replace(state, owner=owner, epoch=state.epoch + 1, expires_at=now + ttl)
                self._partitions[state.partition] = taken
                fences.append(Fence(partition=state.partition, epoch=taken.epoch))
            return fences

    def commit_renewals(
        self, owner: str, fences: Sequence[Fence], *, now: datetime, ttl: timedelta
    ) -> list[Fence]:
        with self._lock:
            renewed = [fence for fence in fences if self._owns(owner, fence)]
            for fence in renewed:
                self._partitions[fence.partition] = replace(
                    self._partitions[fence.partition], expires_at=now + ttl
                )
            return renewed

    def commit_releases(
        self,
        owner: str,
        fences: Sequence[Fence],
        *,
        now: datetime,  # noqa: ARG002  a free partition has no expiry to set
    ) -> None:
        with self._lock:
            for fence in fences:
                if self._owns(owner, fence):
                    self._partitions[fence.partition] = replace(
                        self._partitions[fence.partition], owner=None, expires_at=None
                    )

    def commit_checkpoints(self, checkpoints: Iterable[tuple[Fence, datetime]]) -> None:
        with self._lock:
            for fence, instant in checkpoints:
                if self._holds(fence, fence.partition):
                    state = self._partitions[fence.partition]
                    if state.checkpoint is None or state.checkpoint < instant:
                        self._partitions[fence.partition] = replace(state, checkpoint=instant)

    def _owns(self, owner: str, fence: Fence) -> bool:
        return self._holds(fence, fence.partition) and self._partitions[fence.partition].owner == owner


class MemoryAdmission(Tables):
    def read_due_times(self, partitions: Sequence[int]) -> dict[int, datetime]:
        with self._lock:
            earliest: dict[int, datetime] = {}
            for due_at, schedule in self._owing():
                partition = schedule.partition
                if partition in partitions:
                    earliest[partition] = min(due_at, earliest.get(partition, due_at))
            return earliest

    def read_due(
        self, partition: int, *, now: datetime, limit: int, excluding: Collection[ZoneRules] = ()
    ) -> list[DueSchedule | Unreadable]:
        with self._lock:
            due = sorted(
                (due_at, schedule.schedule_id)
                for due_at, schedule in self._owing()
                if schedule.partition == partition
                and due_at <= now
                and self._rules_of(schedule) not in excluding
            )
            return [self._due_schedule(self._schedules[schedule_id]) for _, schedule_id in due[:limit]]

    def read_cadences(self, cadence_ids: Iterable[str]) -> list[CadenceRow]:
        with self._lock:
            return [
                self._cadences[cadence_id]
                for cadence_id in sorted(set(cadence_ids))
                if cadence_id in self._cadences
            ]

    def commit_admissions(
        self, fence: Fence, admissions: Sequence[Admission], *, now: datetime
    ) -> list[AdmissionOutcome]:
        with self._lock:
            self._check_count(admissions)
            return [self._admit(fence, admission, now=now) for admission in admissions]

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

    def _owing(self) -> Iterable[tuple[datetime, Schedule]]:
        """Schedules that the dispatcher works on: active ones, and ended ones that still owe instants."""
        for schedule in self._schedules.values():
            due_at = schedule.cursor.due_at
            if due_at is not None and schedule.status in {ScheduleStatus.ACTIVE, ScheduleStatus.ENDED}:
                yield due_at, schedule

    def _rules_of(self, schedule: Schedule) -> ZoneRules | None:
        version = self._versions.get((schedule.schedule_id, schedule.cursor.version))
        if version is None:
            return None
        return ZoneRules(timezone=version.definition.timezone, fingerprint=version.fingerprint)

    def _due_schedule(self, schedule: Schedule) -> DueSchedule | Unreadable:
        version = self._versions.get((schedule.schedule_id, schedule.cursor.version))
        if version is None:
            return Unreadable(
                schedule_id=schedule.schedule_id,
                status=schedule.status,
                cursor=schedule.cursor,
                problem=f"its cursor names version {schedule.cursor.version}, which does not exist",
            )
        return DueSchedule(
            schedule=schedule,
            version=version,
            suspensions=self._suspensions_that_matter(schedule),
            job_overdue=self._job_or_default(schedule.job).overdue,
        )

    def _admit(self, fence: Fence, admission: Admission, *, now: datetime) -> AdmissionOutcome:
        schedule = self._schedules.get(admission.schedule_id)
        if not self._holds(fence, fence.partition if schedule is None else schedule.partition):
            return AdmissionOutcome.FENCED
        if (
            schedule is None
            or schedule.status is not admission.expected_status
            or schedule.cursor != admission.expected_cursor
        ):
            return AdmissionOutcome.STALE
        if any(run.scheduled_at < schedule.history_from for run in admission.runs):
            return AdmissionOutcome.PRUNED
        if self._uses_a_key_again(admission):
            return AdmissionOutcome.KEY_USED
        intents = {run.run_id: intent_of(run) for run in admission.runs}
        for run in admission.runs:
            self._runs[run.run_id] = run
            self._period_keys.add((run.schedule_id, run.period_key))
        self._outbox.update(intents)
        for skip in admission.skips:
            self._write_skip(skip)
        self._schedules[schedule.schedule_id] = replace(
            schedule,
            cursor=admission.cursor,
            status=admission.status,
            status_reason=admission.status_reason,
            updated_at=now,
        )
        return AdmissionOutcome.ADMITTED

    def _uses_a_key_again(self, admission: Admission) -> bool:
        run_ids = {run.run_id for run in admission.runs}
        period_keys = {(run.schedule_id, run.period_key) for run in admission.runs}
        return (
            len(run_ids) < len(admission.runs)
            or len(period_keys) < len(admission.runs)
            or any(run_id in self._runs for run_id in run_ids)
            or not self._period_keys.isdisjoint(period_keys)
        )

    def _write_skip(self, skip: Skip) -> None:
        """A further row, or the end of one of the same version and reason that it touches."""
        skips = self._skips.setdefault(skip.schedule_id, [])
        for place, existing in enumerate(skips):
            if (existing.version, existing.reason, existing.until) == (skip.version, skip.reason, skip.from_):
                skips[place] = replace(
                    existing,
                    until=skip.until,
                    count=existing.count + skip.count,
                    note=existing.note if skip.note is None else skip.note,
                )
                return
        skips.append(skip)


def _is_free(state: PartitionState, *, now: datetime) -> bool:
    return (
        state.owner is None
        or state.expires_at is None
        or lease_has_ended(state.expires_at, now=now, longest=LEASE_MAX)
    )
