"""Answers in SQL: an attempt that a message has made and ended, opened and settled by one commit.

Rows are held in the order of a settlement: runs, places of their schedules, runs that wait for those. On PostgreSQL a
run that another connection holds keeps no others waiting: it is waited for in a transaction of its own, when the
others' is committed.
"""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import Connection, RowMapping, bindparam, insert, update

from rota.domain.errors import UnreadableRow
from rota.domain.run import SETTLED, Attempt, Run, RunEvent, RunState, next_state
from rota.domain.settlement import settled_run
from rota.store.port import Answer
from rota.store.sql import cells, rows
from rota.store.sql.batches import Part, has_row_locks
from rota.store.sql.demands import drop_permits
from rota.store.sql.engine import tried_again
from rota.store.sql.jobs import job_or_default
from rota.store.sql.outbox import intent_row, withdraw_intent_rows, write_intents
from rota.store.sql.places import free_places, lock_places
from rota.store.sql.prepared import Lookup, Prepared
from rota.store.sql.records import to_run, version_of
from rota.store.sql.run_changes import drop_deliveries
from rota.store.sql.schema import attempts, permits, places, results, runs
from rota.store.sql.waiting_runs import fail_unreadable, with_version_and_job


class SqlAnswers(Part):
    def commit_answers(self, worker: str, answers: Sequence[Answer]) -> list[bool]:
        self._check_count(answers)
        if not answers:
            return []
        told = self._answer(worker, answers, waiting=False)
        missed = [place for place, applied in enumerate(told) if applied is None]
        if missed:
            waited_for = self._answer(worker, [answers[place] for place in missed], waiting=True)
            for place, applied in zip(missed, waited_for, strict=True):
                told[place] = applied
        return [applied is True for applied in told]

    # By itself: were the first transaction done anew with the second, what it has written would be told to be stale.
    @tried_again
    def _answer(self, worker: str, answers: Sequence[Answer], *, waiting: bool) -> list[bool | None]:
        """One transaction. None: another connection may hold its run, or the run's place."""
        lookup = _READ_WAITING if waiting else _READ_WAITING_FREE
        with self._database.writing() as connection:
            ids = list({answer.run_id for answer in answers})
            found = {row["run_id"]: row for row in lookup.read(connection, ids).mappings()}
            maybe_held = set(ids) - found.keys() if has_row_locks(connection) and not waiting else set()
            placed = {
                row["placed_in"]: row["run_id"] for row in found.values() if row["placed_in"] is not None
            }
            maybe_held |= {placed[id_] for id_ in lock_places(connection, placed.keys(), waiting=waiting)}
            told: list[bool | None] = []
            accepted: list[tuple[Answer, RowMapping]] = []
            for answer in answers:
                row = found.get(answer.run_id)
                if answer.run_id in maybe_held:
                    told.append(None)
                elif row is None or row["attempt"] != answer.attempt - 1:
                    told.append(False)
                else:
                    del found[answer.run_id]
                    accepted.append((answer, row))
                    told.append(True)
            unreadable = _write(connection, worker, accepted)
            return [
                applied and answer.run_id not in unreadable
                for answer, applied in zip(answers, told, strict=True)
            ]


def _write(connection: Connection, worker: str, accepted: Sequence[tuple[Answer, RowMapping]]) -> set[str]:
    """Writes what became of these, whose runs wait for them; those that cannot be read have failed."""
    readable: list[tuple[Answer, RowMapping]] = []
    attempts_made: list[rows.Values] = []
    settled: list[Run] = []
    unreadable: list[tuple[Answer, str]] = []
    for answer, row in accepted:
        try:
            run, attempt = _ended(row, worker, answer)
        except UnreadableRow as error:
            unreadable.append((answer, str(error)))
        else:
            readable.append((answer, row))
            settled.append(run)
            attempts_made.append(rows.attempt_values(attempt, partition=run.partition))
    _SETTLE.change_each(connection, [_settle_values(run) for run in settled])
    _WRITE_ATTEMPT.execute(connection, attempts_made)
    # The intent of a delivery that was given back; before that of a retry, which may have the same key.
    withdraw_intent_rows(connection, [intent_row(row) for _, row in accepted])
    drop_deliveries(connection, [row["run_id"] for _, row in readable])
    write_intents(connection, [run for run in settled if run.state is RunState.QUEUED])
    _WRITE_RESULT.execute(
        connection,
        [
            {"run_id": run.run_id, "result": answer.settlement.end.result}
            for run, (answer, _) in zip(settled, readable, strict=True)
            if run.state is RunState.SUCCEEDED and answer.settlement.end.result is not None
        ],
    )
    drop_permits(connection, [row["run_id"] for _, row in readable if row["permit"] is not None])
    free_places(
        connection,
        {
            run.run_id: cells.millis(answer.settlement.settled_at)
            for run, (answer, row) in zip(settled, readable, strict=True)
            if row["placed_in"] is not None and run.state in SETTLED
        },
    )
    for answer, problem in unreadable:
        fail_unreadable(connection, [(answer, problem)], now=answer.opened_at)
    return {answer.run_id for answer, _ in unreadable}


def _ended(row: RowMapping, worker: str, answer: Answer) -> tuple[Run, Attempt]:
    """The run and its attempt as they are when that has ended. Raises `UnreadableRow`."""
    waiting = to_run(row)
    with cells.reading(f"run {waiting.run_id}"):
        job = job_or_default(waiting.job, row["job_spec"])
        version_of(row, row["version"])
    settlement, opened_at = answer.settlement, answer.opened_at
    running = replace(
        waiting,
        state=next_state(waiting.state, RunEvent.ATTEMPT_OPENED),
        attempt=answer.attempt,
        started_at=waiting.started_at or opened_at,
    )
    attempt = Attempt(
        run_id=running.run_id,
        number=running.attempt,
        worker=worker,
        opened_at=opened_at,
        lease_expires_at=max(opened_at + job.lease, settlement.settled_at),
        finished_at=settlement.settled_at,
        outcome=settlement.end.outcome,
        error=settlement.end.error,
    )
    return settled_run(running, settlement), attempt


def _settle_values(run: Run) -> rows.Values:
    return {
        "key_run_id": run.run_id,
        "key_attempt": run.attempt - 1,
        "state": run.state.value,
        "reason": run.reason,
        "attempt": run.attempt,
        "error": run.error,
        "available_at": cells.millis_or_none(run.available_at),
        "started_at": cells.millis_or_none(run.started_at),
        "finished_at": cells.millis_or_none(run.finished_at),
    }


_WAITING = (
    with_version_and_job({})
    .add_columns(permits.c.run_id.label("permit"), places.c.schedule_id.label("placed_in"))
    .outerjoin(permits, permits.c.run_id == runs.c.run_id)
    .outerjoin(places, places.c.run_id == runs.c.run_id)
    .where(runs.c.state == RunState.QUEUED.value)
)
_READ_WAITING = Lookup(_WAITING.with_for_update(of=runs))
_READ_WAITING_FREE = Lookup(_WAITING.with_for_update(of=runs, skip_locked=True))
_SETTLE = Prepared(
    update(runs)
    .where(
        runs.c.run_id == bindparam("key_run_id"),
        runs.c.state == RunState.QUEUED.value,
        runs.c.attempt == bindparam("key_attempt"),
    )
    .values(
        {
            name: bindparam(name)
            for name in ("state", "reason", "attempt", "error", "available_at", "started_at", "finished_at")
        }
    )
)
_WRITE_ATTEMPT = Prepared(insert(attempts))
_WRITE_RESULT = Prepared(insert(results))
