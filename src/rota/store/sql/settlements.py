"""Settlements in SQL: an attempt closed and its run's next state, under the attempt's number (I6, I7)."""

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, RowMapping, bindparam, insert, select, update

from rota.domain.run import Run, RunState
from rota.domain.settlement import Settlement, settled_run
from rota.store.port import ATTEMPT_LEASE_MAX, Fence, lease_has_ended
from rota.store.sql import cells, rows
from rota.store.sql.batches import Part, holds
from rota.store.sql.outbox import write_intents
from rota.store.sql.pages import readable
from rota.store.sql.prepared import Prepared
from rota.store.sql.records import to_run
from rota.store.sql.schema import attempts, results, runs


class SqlSettlements(Part):
    def commit_settlements(
        self, settlements: Sequence[Settlement], *, fences: Sequence[Fence] = ()
    ) -> list[bool]:
        """False as well where the run cannot be read (I12)."""
        self._check_count(settlements)
        if not settlements:
            return []
        with self._database.writing() as connection:
            held = {fence.partition for fence in _in_lock_order(fences) if holds(connection, fence)}
            ids = {"ids": list({settlement.run_id for settlement in settlements})}
            current = {row["run_id"]: row for row in connection.execute(_READ_CURRENT, ids).mappings()}
            answers = []
            accepted: list[tuple[Settlement, Run]] = []
            for settlement in settlements:
                row = current.get(settlement.run_id)
                if row is None or not _applies(settlement, row) or (fences and row["partition"] not in held):
                    answers.append(False)
                    continue
                run = next(readable([row], to_run), None)
                if run is not None:
                    accepted.append((settlement, settled_run(run, settlement)))
                    del current[settlement.run_id]
                answers.append(run is not None)
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


def _write(connection: Connection, accepted: Sequence[tuple[Settlement, Run]]) -> None:
    _CLOSE_ATTEMPT.change_each(connection, [_close_values(settlement) for settlement, _ in accepted])
    _SETTLE_RUN.change_each(connection, [_settle_values(run) for _, run in accepted])
    write_intents(connection, [run for _, run in accepted if run.state is RunState.QUEUED])
    reported: list[rows.Values] = [
        {"run_id": settlement.run_id, "result": settlement.end.result}
        for settlement, run in accepted
        if run.state is RunState.SUCCEEDED and settlement.end.result is not None
    ]
    if reported:
        _WRITE_RESULT.execute(connection, reported)


def _close_values(settlement: Settlement) -> rows.Values:
    return {
        "key_run_id": settlement.run_id,
        "key_number": settlement.attempt,
        "finished_at": cells.millis(settlement.settled_at),
        "outcome": settlement.end.outcome.value,
        "error": settlement.end.error,
    }


def _settle_values(run: Run) -> rows.Values:
    return {
        "key_run_id": run.run_id,
        "key_attempt": run.attempt,
        "state": run.state.value,
        "reason": run.reason,
        "error": run.error,
        "available_at": cells.millis_or_none(run.available_at),
        "finished_at": cells.millis_or_none(run.finished_at),
    }


_READ_CURRENT = (
    select(runs, attempts.c.lease_expires_at, attempts.c.finished_at.label("attempt_finished_at"))
    .join(attempts, (attempts.c.run_id == runs.c.run_id) & (attempts.c.number == runs.c.attempt))
    .where(runs.c.run_id.in_(bindparam("ids", expanding=True)), runs.c.state == RunState.RUNNING.value)
    .order_by(runs.c.run_id)
    .with_for_update(of=runs)
)
_CLOSE_ATTEMPT = Prepared(
    update(attempts)
    .where(
        attempts.c.run_id == bindparam("key_run_id"),
        attempts.c.number == bindparam("key_number"),
        attempts.c.finished_at.is_(None),
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
