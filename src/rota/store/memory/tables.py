"""The rows of a memory store: plain dicts behind one lock, and the few steps that several parts take."""

from collections.abc import Sequence
from datetime import datetime

from rota.domain.admission import Skip
from rota.domain.audit import AuditEvent
from rota.domain.delivery import IN_HAND, Delivery
from rota.domain.effect import Effect
from rota.domain.identity import RunId, ScheduleId
from rota.domain.job import Job
from rota.domain.json_text import JsonText, load_json
from rota.domain.key_uses import holds_its_key
from rota.domain.overlap import Places, free_place, turn_came
from rota.domain.run import SETTLED, Attempt, Run, RunState
from rota.domain.schedule import CadenceRow, Schedule, Suspension, Version, ZoneRulesRow
from rota.store.memory.notices import Notices
from rota.store.port import (
    ClockReading,
    Fence,
    IdempotencyRecord,
    Intent,
    NewVersion,
    Notice,
    PartitionState,
    TooManyElements,
    Wanted,
    ZoneRules,
    turn_of_intent,
)


class Tables(Notices):
    """Every row; a part's public method holds the lock from its first read to its last write."""

    def __init__(self, elements_max: int = 500) -> None:
        self.elements_max = elements_max
        super().__init__()
        self._schedules: dict[ScheduleId, Schedule] = {}
        self._versions: dict[tuple[ScheduleId, int], Version] = {}
        self._cadences: dict[str, CadenceRow] = {}
        self._zone_rules: dict[ZoneRules, ZoneRulesRow] = {}
        self._suspensions: dict[ScheduleId, list[Suspension]] = {}
        self._audit: dict[ScheduleId, list[AuditEvent]] = {}
        self._skips: dict[ScheduleId, list[Skip]] = {}
        self._runs: dict[RunId, Run] = {}
        self._key_holders: dict[tuple[ScheduleId, str], RunId] = {}
        self._attempts: dict[tuple[RunId, int], Attempt] = {}
        self._results: dict[RunId, JsonText] = {}
        self._outbox: dict[RunId, Intent] = {}
        self._deliveries: dict[RunId, Delivery] = {}
        self._effects: dict[tuple[RunId, str], Effect] = {}
        self._places: dict[ScheduleId, Places] = {}
        self._jobs: dict[str, Job] = {}
        self._partitions: dict[int, PartitionState] = {}
        self._presence: dict[str, datetime] = {}
        self._idempotency: dict[str, IdempotencyRecord] = {}
        self._clock_readings: dict[str, ClockReading] = {}

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

    def _write_version(self, new: NewVersion) -> None:
        """The version, new or in place of the one with its number, and what it shares with others."""
        version, zone_rules = new.version, new.zone_rules
        rules = ZoneRules(timezone=zone_rules.timezone, fingerprint=zone_rules.fingerprint)
        self._versions[version.schedule_id, version.number] = version
        self._cadences.setdefault(new.cadence.cadence_id, new.cadence)
        self._zone_rules.setdefault(rules, zone_rules)

    def _write_run(self, run: Run) -> None:
        """The run with all that follows from its state: the hold on its period key, and its delivery intent."""
        before = self._runs.get(run.run_id)
        if before is not None and self._key_holders.get(key_of(before)) == run.run_id:
            del self._key_holders[key_of(before)]
        if holds_its_key(run.state, run.reason):
            self._key_holders[key_of(run)] = run.run_id
        self._outbox.pop(run.run_id, None)
        self._deliveries.pop(run.run_id, None)
        if run.state is RunState.QUEUED:
            self._outbox[run.run_id] = intent_of(run)
            self._lock.note(Notice.QUEUED)
        self._runs[run.run_id] = run
        if run.state in SETTLED:
            self._free_place(run, now=run.finished_at)

    def _free_place(self, ended: Run, *, now: datetime | None) -> None:
        """Where a run waits for the one that ended, its turn has come. Of a job that was full another may start."""
        if self._job_or_default(ended.job).max_running is not None:
            self._lock.note(Notice.QUEUED)
        places, next_id = free_place(self._places.get(ended.schedule_id, ()), ended.run_id)
        self._places[ended.schedule_id] = places
        if next_id is not None:
            self._write_run(turn_came(self._runs[next_id], now=now))

    def _in_hand(self, job: str) -> int:
        """How many of the job's runs count against its `max_running`."""
        running = sum(run.job == job and run.state is RunState.RUNNING for run in self._runs.values())
        return running + sum(
            delivery.job == job and delivery.state in IN_HAND for delivery in self._deliveries.values()
        )

    def _free_of(self, wanted: Wanted, limit: int) -> int:
        """How many of the job may be given out, of `limit`."""
        job = self._job_or_default(wanted.job)
        bounds = [limit]
        if wanted.limit is not None:
            bounds.append(wanted.limit)
        if job.max_running is not None:
            bounds.append(job.max_running - self._in_hand(job.name))
        return max(0, min(bounds))

    def _write_audit(self, event: AuditEvent) -> None:
        self._audit.setdefault(event.schedule_id, []).append(event)

    def _live_idempotency(self, key: str, *, now: datetime) -> IdempotencyRecord | None:
        record = self._idempotency.get(key)
        return record if record is not None and record.expires_at > now else None

    def _is_in_use(self, record: IdempotencyRecord | None, *, now: datetime) -> bool:
        """Whether the record's key, where there is one, has an answer that has not expired."""
        return record is not None and self._live_idempotency(record.key, now=now) is not None

    def _write_idempotency(self, record: IdempotencyRecord | None) -> None:
        if record is not None:
            self._idempotency[record.key] = record

    def _job_or_default(self, name: str) -> Job:
        return self._jobs.get(name) or Job(name=name)

    def _has_label(self, schedule_id: ScheduleId, label: tuple[str, str]) -> bool:
        name, value = label
        schedule = self._schedules.get(schedule_id)
        return schedule is not None and load_json(schedule.labels).get(name) == value


def key_of(run: Run) -> tuple[ScheduleId, str]:
    return run.schedule_id, run.period_key


def intent_of(run: Run) -> Intent:
    """The outbox row of the next attempt of a queued run."""
    if run.available_at is None:
        raise ValueError(f"{run.run_id} is {run.state}, but never available: nothing to deliver")
    return Intent(
        run_id=run.run_id,
        attempt=run.attempt + 1,
        job=run.job,
        available_at=run.available_at,
        turn=turn_of_intent(run.turn, attempt=run.attempt),
    )
