"""Heartbeats in SQL: runs are read under row locks, each heartbeat is decided, then each table is written for all.

On PostgreSQL a run that another connection holds keeps no others waiting. First everything is done that can be done
without a wait: of a run that is held the attempt's lease is lengthened all the same, under the lock of the attempt,
which whoever ends the attempt holds as well. Only when that is committed is somebody waited for, and only for what is
left: progress of such a run, or its attempt, which is being ended.
"""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, RowMapping, bindparam, select, update

from rota.domain.run import RunState
from rota.store.port import Heartbeat, HeartbeatOutcome
from rota.store.sql import cells, rows
from rota.store.sql.batches import Part, has_row_locks
from rota.store.sql.prepared import Lookup, Prepared
from rota.store.sql.schema import attempts, is_still_open, runs


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
        ids = list({heartbeat.run_id for heartbeat in heartbeats})
        with self._database.writing() as connection:
            running = _read(_READ_RUNNING_FREE, connection, ids)
            missed = [id_ for id_ in ids if id_ not in running] if has_row_locks(connection) else []
            open_ = _read(_READ_OPEN_FREE, connection, missed) if missed else {}
            outcomes = [
                _outcome_of(running.get(heartbeat.run_id, open_.get(heartbeat.run_id)), heartbeat)
                for heartbeat in heartbeats
            ]
            current = _current(heartbeats, outcomes)
            _extend(connection, current)
            _set_progress(connection, [heartbeat for heartbeat in current if heartbeat.run_id in running])
        # All heartbeats of such a run, in their order: of leases the last counts.
        waiting = set(missed) - open_.keys()
        waiting |= {beat.run_id for beat in heartbeats if beat.run_id in open_ and beat.progress is not None}
        left = [place for place, heartbeat in enumerate(heartbeats) if heartbeat.run_id in waiting]
        if left:
            waited_for = self._wait_and_extend([heartbeats[place] for place in left])
            for place, outcome in zip(left, waited_for, strict=True):
                outcomes[place] = outcome
        return outcomes

    def _wait_and_extend(self, heartbeats: Sequence[Heartbeat]) -> list[HeartbeatOutcome]:
        with self._database.writing() as connection:
            ids = list({heartbeat.run_id for heartbeat in heartbeats})
            running = _read(_READ_RUNNING, connection, ids)
            outcomes = [_outcome_of(running.get(heartbeat.run_id), heartbeat) for heartbeat in heartbeats]
            current = _current(heartbeats, outcomes)
            _extend(connection, current)
            _set_progress(connection, current)
            return outcomes


def _read(lookup: Lookup, connection: Connection, ids: Sequence[str]) -> dict[str, RowMapping]:
    return {row["run_id"]: row for row in lookup.read(connection, ids).mappings()}


def _current(heartbeats: Sequence[Heartbeat], outcomes: Sequence[HeartbeatOutcome]) -> list[Heartbeat]:
    return [
        heartbeat
        for heartbeat, outcome in zip(heartbeats, outcomes, strict=True)
        if outcome is not HeartbeatOutcome.STALE
    ]


# Of several heartbeats of one attempt the last counts, and the last progress: each row is written once.
def _extend(connection: Connection, current: Sequence[Heartbeat]) -> None:
    leases = {heartbeat.run_id: _lease_values(heartbeat) for heartbeat in current}
    _EXTEND_LEASE.change_each(connection, list(leases.values()))


def _set_progress(connection: Connection, current: Sequence[Heartbeat]) -> None:
    progress = {
        heartbeat.run_id: values
        for heartbeat in current
        if (values := _progress_values(heartbeat)) is not None
    }
    _SET_PROGRESS.change_each(connection, list(progress.values()))


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
_RUNNING = (
    select(runs.c.run_id, runs.c.attempt, runs.c.cancel_requested_at)
    .join(attempts, (attempts.c.run_id == runs.c.run_id) & (attempts.c.number == runs.c.attempt))
    .where(
        runs.c.run_id.in_(bindparam("keys", expanding=True)),
        runs.c.state == RunState.RUNNING.value,
        attempts.c.finished_at.is_(None),
    )
    .order_by(runs.c.run_id)
)
_READ_RUNNING = Lookup(_RUNNING.with_for_update(of=runs))
_READ_RUNNING_FREE = Lookup(_RUNNING.with_for_update(of=runs, skip_locked=True))
_READ_OPEN_FREE = Lookup(_RUNNING.with_for_update(of=attempts, skip_locked=True))
_EXTEND_LEASE = Prepared(
    update(attempts)
    .where(
        attempts.c.run_id == bindparam("key_run_id"),
        attempts.c.number == bindparam("key_number"),
        is_still_open(),
    )
    .values(lease_expires_at=bindparam("lease_expires_at"))
)
_SET_PROGRESS = Prepared(
    update(runs)
    .where(_IS_RUN, runs.c.state == RunState.RUNNING.value, runs.c.attempt == bindparam("key_attempt"))
    .values(progress_fraction=bindparam("progress_fraction"), progress_message=bindparam("progress_message"))
)
