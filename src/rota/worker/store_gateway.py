"""The gateway to a store in the same process: direct calls, and the worker's own clock."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from rota.domain.effect import EffectBegin
from rota.domain.job import Job, RetryPolicy
from rota.domain.json_text import JsonText
from rota.domain.settlement import Settlement, settle_attempt
from rota.store.port import (
    EffectStore,
    Heartbeat,
    HeartbeatOutcome,
    JobStore,
    Notice,
    NoticeStore,
    OpenedAttempt,
    Subscription,
    Wanted,
    WorkStore,
    claim_attempts,
)
from rota.wire.assignment import Assignment, assignment_of
from rota.wire.reports import NamedAttempt
from rota.worker.gateway import Claim, EndReport, HeartbeatReport, WakeUp


class WorkerStore(JobStore, WorkStore, EffectStore, NoticeStore, Protocol):
    """What a worker needs of a store."""


class StoreGateway:
    def __init__(self, store: WorkerStore) -> None:
        self.batch_max = store.elements_max
        self._store = store
        self._retries: dict[str, RetryPolicy] = {}
        """Of each job, as it was when an attempt of it was last opened here."""

    def register(self, job: Job, *, now: datetime) -> None:
        self._store.commit_job(job, now=now)

    def claim(
        self, worker: str, wanted: Sequence[Wanted], *, now: datetime, limit: int, backlog_first: bool = False
    ) -> Claim:
        claimed = claim_attempts(
            self._store, worker, wanted, now=now, limit=limit, backlog_first=backlog_first
        )
        return Claim(
            assignments=[self._assignment(opened) for opened in claimed.opened],
            may_be_more=claimed.may_be_more,
            next_at=claimed.next_at,
        )

    def open(self, worker: str, attempt: NamedAttempt, *, now: datetime) -> Assignment | None:
        [opened] = self._store.commit_openings(worker, [attempt], now=now)
        return None if opened is None else self._assignment(opened)

    def heartbeat(self, reports: Sequence[HeartbeatReport], *, now: datetime) -> list[HeartbeatOutcome]:
        return self._store.commit_heartbeats([_heartbeat(report, now) for report in reports], now=now)

    def settle(self, reports: Sequence[EndReport], *, now: datetime) -> list[bool]:  # noqa: ARG002  each has its own
        return self._store.commit_settlements([self._settlement(report) for report in reports])

    def begin_effect(self, attempt: NamedAttempt, name: str, *, now: datetime) -> EffectBegin:
        return self._store.commit_effect_begin(attempt, name, now=now)

    def record_effect(
        self, attempt: NamedAttempt, name: str, *, result: JsonText | None, now: datetime
    ) -> bool:
        return self._store.commit_effect(attempt, name, result=result, now=now)

    def subscribe(self, wake_up: WakeUp) -> Subscription:
        def heard(notice: Notice) -> None:
            if notice is Notice.QUEUED:
                wake_up()

        return self._store.subscribe(heard)

    def close(self) -> None:
        """The store is its opener's to close."""

    def _assignment(self, opened: OpenedAttempt) -> Assignment:
        self._retries[opened.run.job] = opened.job.retry
        return assignment_of(opened.run, opened.version, opened.job)

    def _settlement(self, report: EndReport) -> Settlement:
        assignment = report.assignment
        return settle_attempt(
            run_id=assignment.run_id,
            attempt=assignment.attempt,
            end=report.end,
            retry=self._retries[assignment.job],
            cancel_requested=report.is_cancel_requested,
            now=report.ended_at,
        )


def _heartbeat(report: HeartbeatReport, now: datetime) -> Heartbeat:
    assignment = report.assignment
    return Heartbeat(
        run_id=assignment.run_id,
        attempt=assignment.attempt,
        lease_expires_at=now + assignment.lease,
        progress=report.progress,
    )
