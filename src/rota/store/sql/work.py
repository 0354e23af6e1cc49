"""Heartbeats in SQL: runs are read under row locks, each heartbeat is decided, then each table is written for all."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import RowMapping, bindparam, select, update

from rota.domain.run import RunState
from rota.store.port import Heartbeat, HeartbeatOutcome
from rota.store.sql import cells, rows
from rota.store.sql.batches import Part
from rota.store.sql.prepared import Lookup, Prepared
from rota.store.sql.schema import attempts, runs
from rota.store.sql.settlements import IS_STILL_OPEN


class SqlWork(Part):
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
            ids = {heartbeat.run_id for heartbeat in heartbeats}
            running = {row["run_id"]: row for row in _READ_RUNNING.read(connection, list(ids)).mappings()}
            outcomes = [_outcome_of(running.get(heartbeat.run_id), heartbeat) for heartbeat in heartbeats]
            current = [
                heartbeat
                for heartbeat, outcome in zip(heartbeats, outcomes, strict=True)
                if outcome is not HeartbeatOutcome.STALE
            ]
            # Of several heartbeats of one attempt the last counts, and the last progress: each row is written once.
            leases = {heartbeat.run_id: _lease_values(heartbeat) for heartbeat in current}
            progress = {
                heartbeat.run_id: values
                for heartbeat in current
                if (values := _progress_values(heartbeat)) is not None
            }
            _EXTEND_LEASE.change_each(connection, list(leases.values()))
            _SET_PROGRESS.change_each(connection, list(progress.values()))
            return outcomes


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
# With its open attempt: a run that lost its own must not refuse the heartbeats of others (I12).
_READ_RUNNING = Lookup(
    select(runs.c.run_id, runs.c.attempt, runs.c.cancel_requested_at)
    .join(attempts, (attempts.c.run_id == runs.c.run_id) & (attempts.c.number == runs.c.attempt))
    .where(
        runs.c.run_id.in_(bindparam("keys", expanding=True)),
        runs.c.state == RunState.RUNNING.value,
        attempts.c.finished_at.is_(None),
    )
    .order_by(runs.c.run_id)
    .with_for_update(of=runs)
)
_EXTEND_LEASE = Prepared(
    update(attempts)
    .where(
        attempts.c.run_id == bindparam("key_run_id"),
        attempts.c.number == bindparam("key_number"),
        IS_STILL_OPEN,
    )
    .values(lease_expires_at=bindparam("lease_expires_at"))
)
_SET_PROGRESS = Prepared(
    update(runs)
    .where(_IS_RUN, runs.c.state == RunState.RUNNING.value, runs.c.attempt == bindparam("key_attempt"))
    .values(progress_fraction=bindparam("progress_fraction"), progress_message=bindparam("progress_message"))
)
