"""Runs and jobs of a memory store, as people and applications see them."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from rota.domain.admission import Skip
from rota.domain.audit import AuditEvent
from rota.domain.identity import RunId, ScheduleId
from rota.domain.job import Job
from rota.domain.run import SETTLED, Run, RunDetail, RunEvent, RunState, next_state
from rota.store.memory.tables import Tables
from rota.store.port import LedgerKey, Notice, RunFilter

Entry = TypeVar("Entry", bound=Run | Skip)


class MemoryRuns(Tables):
    def get_run(self, run_id: RunId) -> RunDetail | None:
        with self._lock:
            run = self._runs.get(run_id)
            if run is None:
                return None
            attempts = sorted(
                (attempt for attempt in self._attempts.values() if attempt.run_id == run_id),
                key=lambda attempt: attempt.number,
            )
            effects = sorted(
                (effect for effect in self._effects.values() if effect.run_id == run_id),
                key=lambda effect: (effect.begun_at, effect.name),
            )
            return RunDetail(
                run=run,
                attempts=tuple(attempts),
                result=self._results.get(run_id),
                effects=tuple(effects),
                delivery=self._deliveries.get(run_id),
            )

    def list_runs(self, filter_: RunFilter, *, before: LedgerKey | None, limit: int) -> list[Run]:
        with self._lock:
            matching = [run for run in self._runs.values() if self._matches(run, filter_)]
            return _newest_first(matching, before=before)[:limit]

    def list_ledger(
        self, schedule_id: ScheduleId, *, before: LedgerKey | None, limit: int
    ) -> list[Run | Skip]:
        with self._lock:
            ledger: list[Run | Skip] = [run for run in self._runs.values() if run.schedule_id == schedule_id]
            ledger += self._skips.get(schedule_id, [])
            return _newest_first(ledger, before=before)[:limit]

    def commit_cancel(self, run_id: RunId, *, event: AuditEvent, now: datetime) -> Run | None:
        with self._lock:
            run = self._runs.get(run_id)
            if run is None or run.state in SETTLED:
                return run
            if run.state is RunState.RUNNING:
                if run.cancel_requested_at is not None:
                    return run
                changed = replace(run, cancel_requested_at=now)
            else:
                changed = replace(run, state=next_state(run.state, RunEvent.CANCELLED), finished_at=now)
            self._write_run(changed)
            self._write_audit(event)
            return changed

    def _matches(self, run: Run, filter_: RunFilter) -> bool:
        return (
            (filter_.schedule_id is None or run.schedule_id == filter_.schedule_id)
            and (filter_.state is None or run.state is filter_.state)
            and (filter_.job is None or run.job == filter_.job)
            and (filter_.origin is None or run.origin == filter_.origin)
            and (filter_.from_ is None or run.scheduled_at >= filter_.from_)
            and (filter_.until is None or run.scheduled_at < filter_.until)
            and (filter_.label is None or self._has_label(run.schedule_id, filter_.label))
        )


class MemoryJobs(Tables):
    def commit_job(self, job: Job, *, now: datetime) -> bool:  # noqa: ARG002  rows of this store bear no stamps
        with self._lock:
            is_new = job.name not in self._jobs
            self._jobs[job.name] = job
            self._lock.note(Notice.QUEUED)
            return is_new

    def get_job(self, name: str) -> Job | None:
        with self._lock:
            return self._jobs.get(name)

    def list_jobs(self, *, after: str | None, limit: int) -> list[Job]:
        with self._lock:
            names = sorted(name for name in self._jobs if after is None or name > after)
            return [self._jobs[name] for name in names[:limit]]


def _place_of(entry: Run | Skip) -> tuple[datetime, str]:
    return (entry.from_, "") if isinstance(entry, Skip) else (entry.scheduled_at, entry.run_id)


def _newest_first(entries: Iterable[Entry], *, before: LedgerKey | None) -> list[Entry]:
    reached = [
        entry for entry in entries if before is None or _place_of(entry) < (before.instant, before.id_)
    ]
    return sorted(reached, key=_place_of, reverse=True)
