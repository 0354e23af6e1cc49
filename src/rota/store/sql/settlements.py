"""Settlements in SQL: an attempt closed and its run's next state, under the attempt's number (I6, I7).

On PostgreSQL a run that another connection holds keeps no others waiting. Recovery passes over it, and reads it again
in its next step; workers wait for it in a transaction of its own, when the others' is committed.
"""

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, RowMapping, bindparam, insert, select, update

from rota.domain.run import SETTLED, RunState
from rota.domain.settlement import RunEnd, Settlement, end_of_run
from rota.store.port import ATTEMPT_LEASE_MAX, Fence, lease_has_ended, turn_of_intent
from rota.store.sql import cells, rows
from rota.store.sql.batches import Part, has_row_locks, holds
from rota.store.sql.demands import drop_permits
from rota.store.sql.engine import tried_again
from rota.store.sql.outbox import write_intent_rows
from rota.store.sql.places import free_places, lock_places
from rota.store.sql.prepared import Lookup, Prepared
from rota.store.sql.schema import attempts, is_still_open, permits, places, results, runs


class SqlSettlements(Part):
    def commit_settlements(
        self, settlements: Sequence[Settlement], *, fences: Sequence[Fence] = ()
    ) -> list[bool]:
        self._check_count(settlements)
        if not settlements:
            return []
        answers = self._settle(settlements, fences, waiting=False)
        missed = [] if fences else [place for place, answer in enumerate(answers) if answer is None]
        if missed:
            waited_for = self._settle([settlements[place] for place in missed], fences, waiting=True)
            for place, answer in zip(missed, waited_for, strict=True):
                answers[place] = answer
        return [answer is True for answer in answers]

    # By itself: were the first transaction done anew with the second, what it has settled would be told to be stale.
    @tried_again
    def _settle(
        self, settlements: Sequence[Settlement], fences: Sequence[Fence], *, waiting: bool
    ) -> list[bool | None]:
        """One transaction. None: its run is not running, or another connection holds it, or the run's place."""
        lookup = _READ_CURRENT if waiting else _READ_CURRENT_FREE
        with self._database.writing() as connection:
            held = {fence.partition for fence in _in_lock_order(fences) if holds(connection, fence)}
            ids = list({settlement.run_id for settlement in settlements})
            current = {row["run_id"]: row for row in lookup.read(connection, ids).mappings()}
            maybe_held = set(ids) - current.keys() if has_row_locks(connection) else set()
            placed = {
                row["placed_in"]: row["run_id"] for row in current.values() if row["placed_in"] is not None
            }
            maybe_held |= {placed[id_] for id_ in lock_places(connection, placed.keys(), waiting=waiting)}
            answers: list[bool | None] = []
            accepted: list[tuple[Settlement, RowMapping]] = []
            for settlement in settlements:
                if settlement.run_id in maybe_held:
                    answers.append(None)
                    continue
                row = current.get(settlement.run_id)
                if row is None or not _applies(settlement, row) or (fences and row["partition"] not in held):
                    answers.append(False)
                    continue
                del current[settlement.run_id]
                accepted.append((settlement, row))
                answers.append(True)
            _write(connection, accepted)
            return answers


def _in_lock_order(fences: Iterable[Fence]) -> list[Fence]:
    return sorted(set(fences), key=lambda fence: (fence.partition, fence.epoch))


def _applies(settlement: Settlement, row: RowMapping) -> bool:
    """Whether the settlement's attempt is the run's current, open one, and has expired where it must have."""
    return (
        row["attempt"] == settlement.attempt
        and row["attempt_finished_at"] is None
        and (
            not settlement.only_if_expired
            or lease_has_ended(
                cells.instant(row["lease_expires_at"]), now=settlement.settled_at, longest=ATTEMPT_LEASE_MAX
            )
        )
    )


def _write(connection: Connection, accepted: Sequence[tuple[Settlement, RowMapping]]) -> None:
    ends = [_end_of(settlement, row) for settlement, row in accepted]
    _CLOSE_ATTEMPT.change_each(connection, [_close_values(settlement) for settlement, _ in accepted])
    _SETTLE_RUN.change_each(
        connection, [_settle_values(row, end) for (_, row), end in zip(accepted, ends, strict=True)]
    )
    write_intent_rows(
        connection,
        [
            _intent_values(row, end)
            for (_, row), end in zip(accepted, ends, strict=True)
            if end.state is RunState.QUEUED
        ],
    )
    reported: list[rows.Values] = [
        {"run_id": settlement.run_id, "result": settlement.end.result}
        for (settlement, _), end in zip(accepted, ends, strict=True)
        if end.state is RunState.SUCCEEDED and settlement.end.result is not None
    ]
    _WRITE_RESULT.execute(connection, reported)
    drop_permits(connection, [row["run_id"] for _, row in accepted if row["permit"] is not None])
    free_places(
        connection,
        {
            row["run_id"]: cells.millis(settlement.settled_at)
            for (settlement, row), end in zip(accepted, ends, strict=True)
            if row["placed_in"] is not None and end.state in SETTLED
        },
    )


def _end_of(settlement: Settlement, row: RowMapping) -> RunEnd:
    return end_of_run(
        settlement, state=RunState.RUNNING, cancel_requested=row["cancel_requested_at"] is not None
    )


def _close_values(settlement: Settlement) -> rows.Values:
    return {
        "key_run_id": settlement.run_id,
        "key_number": settlement.attempt,
        "finished_at": cells.millis(settlement.settled_at),
        "outcome": settlement.end.outcome.value,
        "error": settlement.end.error,
    }


def _settle_values(row: RowMapping, end: RunEnd) -> rows.Values:
    return {
        "key_run_id": row["run_id"],
        "key_attempt": row["attempt"],
        "state": end.state.value,
        "reason": row["reason"] if end.reason is None else end.reason,
        "error": end.error,
        "available_at": row["available_at"] if end.available_at is None else cells.millis(end.available_at),
        "finished_at": cells.millis_or_none(end.finished_at),
    }


def _intent_values(row: RowMapping, end: RunEnd) -> rows.Values:
    return {
        "job": row["job"],
        "turn": turn_of_intent(row["turn"], attempt=row["attempt"]),
        "available_at": cells.millis_or_none(end.available_at),
        "run_id": row["run_id"],
        "attempt": row["attempt"] + 1,
    }


# Of the run only what its end depends on: what else makes no sense in it does not keep it from ending (I12).
_CURRENT = (
    select(
        runs.c.run_id,
        runs.c.attempt,
        runs.c.partition,
        runs.c.job,
        runs.c.reason,
        runs.c.turn,
        runs.c.available_at,
        runs.c.cancel_requested_at,
        attempts.c.lease_expires_at,
        attempts.c.finished_at.label("attempt_finished_at"),
        permits.c.run_id.label("permit"),
        places.c.schedule_id.label("placed_in"),
    )
    .select_from(runs)
    .join(attempts, (attempts.c.run_id == runs.c.run_id) & (attempts.c.number == runs.c.attempt))
    .outerjoin(permits, permits.c.run_id == runs.c.run_id)
    .outerjoin(places, places.c.run_id == runs.c.run_id)
    .where(runs.c.run_id.in_(bindparam("keys", expanding=True)), runs.c.state == RunState.RUNNING.value)
    .order_by(runs.c.run_id)
)
# The attempt as well: a heartbeat leaves the run's row as it is, and only of rows that it locks does PostgreSQL read
# anew what has changed since the statement began.
_READ_CURRENT = Lookup(_CURRENT.with_for_update(of=[runs, attempts]))
_READ_CURRENT_FREE = Lookup(_CURRENT.with_for_update(of=[runs, attempts], skip_locked=True))
_CLOSE_ATTEMPT = Prepared(
    update(attempts)
    .where(
        attempts.c.run_id == bindparam("key_run_id"),
        attempts.c.number == bindparam("key_number"),
        is_still_open(),
    )
    .values(finished_at=bindparam("finished_at"), outcome=bindparam("outcome"), error=bindparam("error"))
)
_SETTLE_RUN = Prepared(
    update(runs)
    .where(
        runs.c.run_id == bindparam("key_run_id"),
        runs.c.state == RunState.RUNNING.value,
        runs.c.attempt == bindparam("key_attempt"),
    )
    .values(
        state=bindparam("state"),
        reason=bindparam("reason"),
        error=bindparam("error"),
        available_at=bindparam("available_at"),
        finished_at=bindparam("finished_at"),
    )
)
_WRITE_RESULT = Prepared(insert(results))
