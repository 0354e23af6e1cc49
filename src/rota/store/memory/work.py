"""Deliveries and attempts of a memory store."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from rota.domain.identity import RunId
from rota.domain.run import Attempt, Run, RunEvent, RunState, next_state
from rota.domain.settlement import Settlement, settled_run
from rota.store.memory.tables import Tables
from rota.store.port import (
    ATTEMPT_LEASE_MAX,
    Delivery,
    Fence,
    Heartbeat,
    HeartbeatOutcome,
    OpenedAttempt,
    lease_has_ended,
)


class MemoryWork(Tables):
    def read_deliveries(self, jobs: Sequence[str], *, now: datetime, limit: int) -> list[Delivery]:
        with self._lock:
            return self._available(jobs, now=now)[:limit]

    def read_next_delivery_time(self, jobs: Sequence[str]) -> datetime | None:
        with self._lock:
            return min(
                (delivery.available_at for delivery in self._outbox.values() if delivery.job in jobs),
                default=None,
            )

    def commit_openings(
        self, worker: str, deliveries: Sequence[Delivery], *, now: datetime
    ) -> list[OpenedAttempt | None]:
        with self._lock:
            self._check_count(deliveries)
            return [self._open(worker, delivery, now=now) for delivery in deliveries]

    def commit_claims(
        self, worker: str, jobs: Sequence[str], *, now: datetime, limit: int
    ) -> list[OpenedAttempt]:
        with self._lock:
            self._check_count(range(limit))
            deliveries = self._available(jobs, now=now)[:limit]
            answers = [self._open(worker, delivery, now=now) for delivery in deliveries]
            return [answer for answer in answers if answer is not None]

    def commit_heartbeats(
        self,
        heartbeats: Sequence[Heartbeat],
        *,
        now: datetime,  # noqa: ARG002  the lease's end is in the heartbeat
    ) -> list[HeartbeatOutcome]:
        with self._lock:
            self._check_count(heartbeats)
            return [self._heartbeat(heartbeat) for heartbeat in heartbeats]

    def commit_settlements(
        self, settlements: Sequence[Settlement], *, fences: Sequence[Fence] = ()
    ) -> list[bool]:
        with self._lock:
            self._check_count(settlements)
            return [self._settle(settlement, fences) for settlement in settlements]

    def _available(self, jobs: Sequence[str], *, now: datetime) -> list[Delivery]:
        available = [
            delivery
            for delivery in self._outbox.values()
            if delivery.job in jobs and delivery.available_at <= now
        ]
        return sorted(available, key=lambda delivery: (delivery.available_at, delivery.run_id))

    def _open(self, worker: str, delivery: Delivery, *, now: datetime) -> OpenedAttempt | None:
        run = self._runs.get(delivery.run_id)
        if run is None or run.state is not RunState.QUEUED or run.attempt != delivery.attempt - 1:
            return None
        job = self._job_or_default(run.job)
        version = self._versions.get((run.schedule_id, run.version))
        if version is None:
            self._fail(run, f"its version {run.version} does not exist", now=now)
            return None
        opened = replace(
            run,
            state=next_state(run.state, RunEvent.ATTEMPT_OPENED),
            attempt=delivery.attempt,
            started_at=run.started_at or now,
        )
        self._write_run(opened)
        self._attempts[run.run_id, opened.attempt] = Attempt(
            run_id=run.run_id,
            number=opened.attempt,
            worker=worker,
            opened_at=now,
            lease_expires_at=now + job.lease,
        )
        return OpenedAttempt(run=opened, version=version, job=job)

    def _fail(self, run: Run, problem: str, *, now: datetime) -> None:
        """Fails a run that cannot be read: left waiting it would be delivered again for ever (I12)."""
        failed = replace(
            run,
            state=next_state(run.state, RunEvent.FOUND_UNREADABLE),
            error=f"The stored row of run {run.run_id} cannot be read: {problem}",
            finished_at=now,
        )
        self._write_run(failed)

    def _heartbeat(self, heartbeat: Heartbeat) -> HeartbeatOutcome:
        run = self._running(heartbeat.run_id, heartbeat.attempt)
        if run is None:
            return HeartbeatOutcome.STALE
        key = run.run_id, run.attempt
        self._attempts[key] = replace(self._attempts[key], lease_expires_at=heartbeat.lease_expires_at)
        if heartbeat.progress is not None:
            self._write_run(replace(run, progress=heartbeat.progress))
        return (
            HeartbeatOutcome.CURRENT if run.cancel_requested_at is None else HeartbeatOutcome.CANCEL_REQUESTED
        )

    def _settle(self, settlement: Settlement, fences: Sequence[Fence]) -> bool:
        run = self._running(settlement.run_id, settlement.attempt)
        if run is None or (fences and not any(self._holds(fence, run.partition) for fence in fences)):
            return False
        key = run.run_id, run.attempt
        attempt = self._attempts[key]
        if settlement.only_if_expired and not lease_has_ended(
            attempt.lease_expires_at, now=settlement.settled_at, longest=ATTEMPT_LEASE_MAX
        ):
            return False
        end = settlement.end
        settled = settled_run(run, settlement)
        if settled.state is RunState.SUCCEEDED and end.result is not None:
            self._results[run.run_id] = end.result
        self._write_run(settled)
        self._attempts[key] = replace(
            attempt, finished_at=settlement.settled_at, outcome=end.outcome, error=end.error
        )
        return True

    def _running(self, run_id: RunId, attempt: int) -> Run | None:
        """The run, if `attempt` is its current, open one."""
        run = self._runs.get(run_id)
        is_current = run is not None and run.state is RunState.RUNNING and run.attempt == attempt
        return run if is_current else None
