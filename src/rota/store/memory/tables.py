"""The rows of a memory store: plain dicts behind one lock, and the few steps that several parts take."""

from collections.abc import Sequence
from threading import Lock

from rota.domain.admission import Skip
from rota.domain.audit import AuditEvent
from rota.domain.identity import RunId, ScheduleId
from rota.domain.job import Job
from rota.domain.json_text import JsonText, load_json
from rota.domain.run import Attempt, Run, RunState
from rota.domain.schedule import CadenceRow, Schedule, Suspension, Version
from rota.store.port import (
    ClockReading,
    Delivery,
    Fence,
    IdempotencyRecord,
    PartitionState,
    TooManyElements,
)


class Tables:
    """Every row; a part's public method holds the lock from its first read to its last write."""

    def __init__(self, elements_max: int = 500) -> None:
        self.elements_max = elements_max
        self._lock = Lock()
        self._schedules: dict[ScheduleId, Schedule] = {}
        self._versions: dict[tuple[ScheduleId, int], Version] = {}
        self._cadences: dict[str, CadenceRow] = {}
        self._suspensions: dict[ScheduleId, list[Suspension]] = {}
        self._audit: dict[ScheduleId, list[AuditEvent]] = {}
        self._skips: dict[ScheduleId, list[Skip]] = {}
        self._runs: dict[RunId, Run] = {}
        self._period_keys: set[tuple[ScheduleId, str]] = set()
        self._attempts: dict[tuple[RunId, int], Attempt] = {}
        self._results: dict[RunId, JsonText] = {}
        self._outbox: dict[RunId, Delivery] = {}
        self._jobs: dict[str, Job] = {}
        self._partitions: dict[int, PartitionState] = {}
        self._idempotency: dict[str, IdempotencyRecord] = {}
        self._clock_reading: ClockReading | None = None

    def _check_count(self, elements: Sequence[object]) -> None:
        if len(elements) > self.elements_max:
            raise TooManyElements(
                f"{len(elements)} elements in one call, where this store takes {self.elements_max}. "
                "Hand over smaller batches."
            )

    def _holds(self, fence: Fence, partition: int) -> bool:
        """Whether `fence` is of that partition and names its present epoch (I6)."""
        state = self._partitions.get(partition)
        return state is not None and fence.partition == partition and fence.epoch == state.epoch

    def _write_audit(self, event: AuditEvent) -> None:
        self._audit.setdefault(event.schedule_id, []).append(event)

    def _job_or_default(self, name: str) -> Job:
        return self._jobs.get(name) or Job(name=name)

    def _suspensions_that_matter(self, schedule: Schedule) -> tuple[Suspension, ...]:
        """Those that last or reach past the cursor: they can still skip an instant."""
        cursor = schedule.cursor.scheduled_at
        return tuple(
            suspension
            for suspension in sorted(
                self._suspensions.get(schedule.schedule_id, []), key=lambda suspension: suspension.from_
            )
            if suspension.until is None or (cursor is not None and cursor < suspension.until)
        )

    def _has_label(self, schedule_id: ScheduleId, label: tuple[str, str]) -> bool:
        name, value = label
        schedule = self._schedules.get(schedule_id)
        return schedule is not None and load_json(schedule.labels).get(name) == value


def intent_of(run: Run) -> Delivery:
    """The outbox row of the run's next attempt: a queued run has one, any other has none."""
    if run.state is not RunState.QUEUED or run.available_at is None:
        raise ValueError(f"{run.run_id} is {run.state}, available at {run.available_at}: nothing to deliver")
    return Delivery(run_id=run.run_id, attempt=run.attempt + 1, job=run.job, available_at=run.available_at)
