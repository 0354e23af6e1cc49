"""Attempts in SQL: a commit reads its runs under row locks, decides each element, then writes each table for the batch.

An element sees what the elements before it made of its run, so the same delivery twice in a batch opens one attempt.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, RowMapping, bindparam, insert, select, update

from rota.domain.errors import UnreadableRow
from rota.domain.run import Attempt, Run, RunEvent, RunState, next_state
from rota.domain.settlement import ERROR_CHARACTERS_MAX
from rota.store.port import Delivery, Heartbeat, HeartbeatOutcome, OpenedAttempt
from rota.store.sql import cells, rows
from rota.store.sql.batches import Part
from rota.store.sql.jobs import job_or_default
from rota.store.sql.outbox import drop_intents
from rota.store.sql.prepared import Prepared
from rota.store.sql.records import to_run, version_columns, version_of
from rota.store.sql.schema import attempts, jobs, runs, versions


class SqlWork(Part):
    def commit_openings(
        self, worker: str, deliveries: Sequence[Delivery], *, now: datetime
    ) -> list[OpenedAttempt | None]:
        self._check_count(deliveries)
        if not deliveries:
            return []
        with self._database.writing() as connection:
            ids = {"ids": list({delivery.run_id for delivery in deliveries})}
            waiting = {row["run_id"]: row for row in connection.execute(_READ_WAITING, ids).mappings()}
            answers: list[OpenedAttempt | None] = []
            started: list[tuple[OpenedAttempt, Attempt]] = []
            unreadable: list[tuple[Delivery, str]] = []
            for delivery in deliveries:
                row = waiting.get(delivery.run_id)
                if row is None or not _waits_for(row, delivery):
                    answers.append(None)
                    continue
                del waiting[delivery.run_id]
                try:
                    start = _start_of(row, worker, now=now)
                except UnreadableRow as error:
                    answers.append(None)
                    unreadable.append((delivery, str(error)))
                else:
                    answers.append(start[0])
                    started.append(start)
            # Those that nobody can open any more as well: left waiting they would keep the place of others (I12).
            drop_intents(connection, deliveries)
            _write_openings(connection, started)
            _write_failures(connection, unreadable, now=now)
            return answers

    def commit_heartbeats(
        self,
        heartbeats: Sequence[Heartbeat],
        *,
        now: datetime,  # noqa: ARG002  the lease's end is in the heartbeat
    ) -> list[HeartbeatOutcome]:
        self._check_count(heartbeats)
        if not heartbeats:
            return []
        with self._database.writing() as connection:
            ids = {"ids": list({heartbeat.run_id for heartbeat in heartbeats})}
            running = {row["run_id"]: row for row in connection.execute(_READ_RUNNING, ids).mappings()}
            outcomes = [_outcome_of(running.get(heartbeat.run_id), heartbeat) for heartbeat in heartbeats]
            current = [
                heartbeat
                for heartbeat, outcome in zip(heartbeats, outcomes, strict=True)
                if outcome is not HeartbeatOutcome.STALE
            ]
            _EXTEND_LEASE.change_each(connection, [_lease_values(heartbeat) for heartbeat in current])
            _SET_PROGRESS.change_each(
                connection,
                [values for heartbeat in current if (values := _progress_values(heartbeat))],
            )
            return outcomes


def _waits_for(row: RowMapping, delivery: Delivery) -> bool:
    """Whether the run of the row waits for the delivery's attempt."""
    return bool(row["state"] == RunState.QUEUED.value and row["attempt"] == delivery.attempt - 1)


def _start_of(row: RowMapping, worker: str, *, now: datetime) -> tuple[OpenedAttempt, Attempt]:
    """What the run's next attempt is made of. Raises `UnreadableRow`."""
    run = to_run(row)
    started = replace(
        run,
        state=next_state(run.state, RunEvent.ATTEMPT_OPENED),
        attempt=run.attempt + 1,
        started_at=run.started_at or now,
    )
    with cells.reading(f"run {run.run_id}"):
        job = job_or_default(run.job, row["job_spec"])
        attempt = Attempt(
            run_id=run.run_id,
            number=started.attempt,
            worker=worker,
            opened_at=now,
            lease_expires_at=now + job.lease,
        )
        return OpenedAttempt(run=started, version=version_of(row, row["version"]), job=job), attempt


def _write_failures(
    connection: Connection, unreadable: Sequence[tuple[Delivery, str]], *, now: datetime
) -> None:
    """Fails the runs, each with what is wrong with it: left waiting it would be delivered again for ever."""
    _FAIL.change_each(
        connection,
        [
            {
                "key_run_id": delivery.run_id,
                "key_attempt": delivery.attempt - 1,
                "state": next_state(RunState.QUEUED, RunEvent.FOUND_UNREADABLE).value,
                "error": problem[:ERROR_CHARACTERS_MAX],
                "finished_at": cells.millis(now),
            }
            for delivery, problem in unreadable
        ],
    )


def _write_openings(connection: Connection, started: Sequence[tuple[OpenedAttempt, Attempt]]) -> None:
    _START.change_each(connection, [_start_values(opened.run) for opened, _ in started])
    _WRITE_ATTEMPT.execute(
        connection,
        [rows.attempt_values(attempt, partition=opened.run.partition) for opened, attempt in started],
    )


def _start_values(run: Run) -> rows.Values:
    return {
        "key_run_id": run.run_id,
        "key_attempt": run.attempt - 1,
        "state": run.state.value,
        "attempt": run.attempt,
        "started_at": cells.millis_or_none(run.started_at),
    }


def _outcome_of(row: RowMapping | None, heartbeat: Heartbeat) -> HeartbeatOutcome:
    if row is None or row["attempt"] != heartbeat.attempt:
        return HeartbeatOutcome.STALE
    if row["cancel_requested_at"] is not None:
        return HeartbeatOutcome.CANCEL_REQUESTED
    return HeartbeatOutcome.CURRENT


def _lease_values(heartbeat: Heartbeat) -> rows.Values:
    return {
        "key_run_id": heartbeat.run_id,
        "key_number": heartbeat.attempt,
        "lease_expires_at": cells.millis(heartbeat.lease_expires_at),
    }


def _progress_values(heartbeat: Heartbeat) -> rows.Values | None:
    if heartbeat.progress is None:
        return None
    return {
        "key_run_id": heartbeat.run_id,
        "key_attempt": heartbeat.attempt,
        "progress_fraction": heartbeat.progress.fraction,
        "progress_message": heartbeat.progress.message,
    }


_IS_RUN = runs.c.run_id == bindparam("key_run_id")
_READ_WAITING = (
    select(runs, *version_columns(), jobs.c.spec.label("job_spec"))
    .outerjoin(
        versions, (versions.c.schedule_id == runs.c.schedule_id) & (versions.c.number == runs.c.version)
    )
    .outerjoin(jobs, jobs.c.name == runs.c.job)
    .where(runs.c.run_id.in_(bindparam("ids", expanding=True)))
    .order_by(runs.c.run_id)
    .with_for_update(of=runs)
)
# With its open attempt: a run that lost its own must not refuse the heartbeats of others (I12).
_READ_RUNNING = (
    select(runs.c.run_id, runs.c.attempt, runs.c.cancel_requested_at)
    .join(attempts, (attempts.c.run_id == runs.c.run_id) & (attempts.c.number == runs.c.attempt))
    .where(
        runs.c.run_id.in_(bindparam("ids", expanding=True)),
        runs.c.state == RunState.RUNNING.value,
        attempts.c.finished_at.is_(None),
    )
    .order_by(runs.c.run_id)
    .with_for_update(of=runs)
)
_START = Prepared(
    update(runs)
    .where(_IS_RUN, runs.c.state == RunState.QUEUED.value, runs.c.attempt == bindparam("key_attempt"))
    .values(state=bindparam("state"), attempt=bindparam("attempt"), started_at=bindparam("started_at"))
)
_FAIL = Prepared(
    update(runs)
    .where(_IS_RUN, runs.c.state == RunState.QUEUED.value, runs.c.attempt == bindparam("key_attempt"))
    .values(state=bindparam("state"), error=bindparam("error"), finished_at=bindparam("finished_at"))
)
_WRITE_ATTEMPT = Prepared(insert(attempts))
_EXTEND_LEASE = Prepared(
    update(attempts)
    .where(
        attempts.c.run_id == bindparam("key_run_id"),
        attempts.c.number == bindparam("key_number"),
        attempts.c.finished_at.is_(None),
    )
    .values(lease_expires_at=bindparam("lease_expires_at"))
)
_SET_PROGRESS = Prepared(
    update(runs)
    .where(_IS_RUN, runs.c.state == RunState.RUNNING.value, runs.c.attempt == bindparam("key_attempt"))
    .values(progress_fraction=bindparam("progress_fraction"), progress_message=bindparam("progress_message"))
)
