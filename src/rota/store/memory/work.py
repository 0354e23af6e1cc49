"""Intents and attempts of a memory store."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from rota.domain.identity import RunId
from rota.domain.run import Attempt, Run, RunEvent, RunState, next_state
from rota.domain.settlement import Settlement, settled_run
from rota.domain.sink import WorkerSink
from rota.store.memory.tables import Tables
from rota.store.port import (
    ATTEMPT_LEASE_MAX,
    Answer,
    Fence,
    Heartbeat,
    HeartbeatOutcome,
    Intent,
    OfAttempt,
    OpenAttemptRow,
    OpenedAttempt,
    Wanted,
    lease_has_ended,
)


class MemoryWork(Tables):
    def read_intents(self, jobs: Sequence[str], *, now: datetime, limit: int) -> list[Intent]:
        with self._lock:
            return self._available(jobs, now=now)[:limit]

    def read_next_intent_time(self, jobs: Sequence[str]) -> datetime | None:
        with self._lock:
            return self._next_intent_time(
                job for job in jobs if self._is_fetched(job) and self._has_place(job)
            )

    def commit_openings(
        self, worker: str, attempts: Sequence[OfAttempt], *, now: datetime
    ) -> list[OpenedAttempt | None]:
        with self._lock:
            self._check_count(attempts)
            return [self._open(worker, attempt, now=now) for attempt in attempts]

    def commit_answers(self, worker: str, answers: Sequence[Answer]) -> list[bool]:
        with self._lock:
            self._check_count(answers)
            return [self._answer(worker, answer) for answer in answers]

    def commit_claims(
        self,
        worker: str,
        wanted: Sequence[Wanted],
        *,
        now: datetime,
        limit: int,
        backlog_first: bool = False,
    ) -> list[OpenedAttempt]:
        with self._lock:
            self._check_count(range(limit))
            fetched = [each for each in wanted if self._is_fetched(each.job)]
            intents = self._choose(fetched, now=now, limit=limit, backlog_first=backlog_first)
            answers = [self._open(worker, intent, now=now) for intent in intents]
            for intent in intents:
                # Of one that opened nothing as well.
                if self._outbox.get(intent.run_id) == intent:
                    del self._outbox[intent.run_id]
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

    def read_open_attempts(self, attempts: Sequence[OfAttempt]) -> list[OpenAttemptRow | None]:
        with self._lock:
            runs = [self._running(attempt.run_id, attempt.attempt) for attempt in attempts]
            return [
                None if run is None else OpenAttemptRow(run=run, job=self._job_or_default(run.job))
                for run in runs
            ]

    def _is_fetched(self, job: str) -> bool:
        return isinstance(self._job_or_default(job).sink, WorkerSink)

    def _has_place(self, job: str) -> bool:
        return self._free_of(Wanted(job=job), 1) > 0

    def _next_intent_time(self, jobs: Iterable[str]) -> datetime | None:
        wanted = set(jobs)
        of_jobs = (intent.available_at for intent in self._outbox.values() if intent.job in wanted)
        return min(of_jobs, default=None)

    def _available(self, jobs: Sequence[str], *, now: datetime) -> list[Intent]:
        available = [
            intent for intent in self._outbox.values() if intent.job in jobs and intent.available_at <= now
        ]
        return sorted(available, key=_order_of)

    def _choose(
        self, wanted: Sequence[Wanted], *, now: datetime, limit: int, backlog_first: bool = False
    ) -> list[Intent]:
        """Those to be given out, in the order of `commit_claims`."""
        left = {each.job: self._free_of(each, limit) for each in wanted}

        def rank(intent: Intent) -> tuple[int, bool]:
            return -self._job_or_default(intent.job).priority, backlog_first and intent.turn <= 0

        chosen: list[Intent] = []
        # The sort is stable: of the same rank they stay in their order.
        for intent in sorted(self._available(list(left), now=now), key=rank):
            if len(chosen) < limit and left[intent.job] > 0:
                left[intent.job] -= 1
                chosen.append(intent)
        return chosen

    def _open(self, worker: str, opening: OfAttempt, *, now: datetime) -> OpenedAttempt | None:
        run = self._runs.get(opening.run_id)
        if run is None or run.state is not RunState.QUEUED or run.attempt != opening.attempt - 1:
            return None
        job = self._job_or_default(run.job)
        version = self._versions.get((run.schedule_id, run.version))
        if version is None:
            self._fail(run, f"its version {run.version} does not exist", now=now)
            return None
        opened = replace(
            run,
            state=next_state(run.state, RunEvent.ATTEMPT_OPENED),
            attempt=opening.attempt,
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

    def _answer(self, worker: str, answer: Answer) -> bool:
        if self._open(worker, answer, now=answer.opened_at) is None:
            return False
        key, ended_at = (answer.run_id, answer.attempt), answer.settlement.settled_at
        attempt = self._attempts[key]
        self._attempts[key] = replace(attempt, lease_expires_at=max(attempt.lease_expires_at, ended_at))
        return self._settle(replace(answer.settlement, only_if_expired=False), ())

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


def _order_of(intent: Intent) -> tuple[int, datetime, RunId]:
    return intent.turn, intent.available_at, intent.run_id
