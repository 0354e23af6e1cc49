"""Attempts opened in SQL: runs are read under row locks, each delivery is decided, then each table is written for all.

A delivery sees what those before it made of its run, so the same delivery twice in a batch opens one attempt.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    bindparam,
    func,
    insert,
    literal_column,
    select,
    update,
)

from rota.domain.errors import UnreadableRow
from rota.domain.run import Attempt, Run, RunEvent, RunState, next_state
from rota.domain.settlement import ERROR_CHARACTERS_MAX
from rota.store.port import Delivery, OpenedAttempt
from rota.store.sql import cells, rows
from rota.store.sql.batches import Part
from rota.store.sql.columns import Instant
from rota.store.sql.jobs import job_or_default
from rota.store.sql.outbox import drop_intents, take_deliveries
from rota.store.sql.prepared import Lookup, Prepared
from rota.store.sql.records import to_run, version_columns, version_of
from rota.store.sql.schema import attempts, jobs, runs, versions


class SqlOpenings(Part):
    def commit_openings(
        self, worker: str, deliveries: Sequence[Delivery], *, now: datetime
    ) -> list[OpenedAttempt | None]:
        self._check_count(deliveries)
        if not deliveries:
            return []
        with self._database.writing() as connection:
            waiting = _read_waiting(_READ_WAITING, connection, deliveries, now=now)
            return _open(connection, worker, deliveries, waiting, now=now)

    def commit_claims(
        self, worker: str, jobs: Sequence[str], *, now: datetime, limit: int
    ) -> list[OpenedAttempt]:
        """Waits for nobody: what another connection holds, be it the delivery or its run, is left for a later claim.

        A change of the run holds the run and then takes its delivery; to wait for the run here, with its delivery
        held, would be a deadlock.
        """
        self._check_count(range(limit))
        with self._database.writing() as connection:
            deliveries = take_deliveries(connection, jobs, now=now, limit=limit)
            if not deliveries:
                return []
            waiting = _read_waiting(_READ_WAITING_FREE, connection, deliveries, now=now)
            held = _held_by_others(connection, deliveries, waiting)
            free = [delivery for delivery in deliveries if delivery.run_id not in held]
            answers = _open(connection, worker, free, waiting, now=now)
            return [answer for answer in answers if answer is not None]


def _read_waiting(
    lookup: Lookup, connection: Connection, deliveries: Sequence[Delivery], *, now: datetime
) -> dict[str, RowMapping]:
    """The rows of the runs, by id, each as it becomes where its attempt opens now."""
    ids = list({delivery.run_id for delivery in deliveries})
    found = lookup.read(connection, ids, {"now": cells.millis(now)}).mappings()
    return {row["run_id"]: row for row in found}


def _held_by_others(
    connection: Connection, deliveries: Sequence[Delivery], waiting: Mapping[str, RowMapping]
) -> set[str]:
    """Of runs that were not read, those that exist; deliveries of the others are nobody's, and go (I12)."""
    missed = [delivery.run_id for delivery in deliveries if delivery.run_id not in waiting]
    return {cells.text(run_id) for (run_id,) in _READ_EXISTING.read(connection, missed)} if missed else set()


def _open(
    connection: Connection,
    worker: str,
    deliveries: Sequence[Delivery],
    waiting: dict[str, RowMapping],
    *,
    now: datetime,
) -> list[OpenedAttempt | None]:
    """Opens what the `waiting` rows, held until the commit, allow; takes every row of these deliveries away."""
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


def _waits_for(row: RowMapping, delivery: Delivery) -> bool:
    """Whether the run of the row waits for the delivery's attempt."""
    return bool(row["state_before"] == RunState.QUEUED.value and row["attempt"] == delivery.attempt)


def _start_of(row: RowMapping, worker: str, *, now: datetime) -> tuple[OpenedAttempt, Attempt]:
    """What the run's next attempt is made of. Raises `UnreadableRow`."""
    started = to_run(row)
    with cells.reading(f"run {started.run_id}"):
        job = job_or_default(started.job, row["job_spec"])
        attempt = Attempt(
            run_id=started.run_id,
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


_IS_RUN = runs.c.run_id == bindparam("key_run_id")
# The row is read as it becomes: a run is made of it once, where else one would be made and then changed.
_STARTED: dict[str, ColumnElement[object]] = {
    "state": literal_column(f"'{next_state(RunState.QUEUED, RunEvent.ATTEMPT_OPENED).value}'"),
    "attempt": runs.c.attempt + literal_column("1"),
    "started_at": func.coalesce(runs.c.started_at, bindparam("now", type_=Instant)),
}
_WAITING = (
    select(
        *(_STARTED.get(column.name, column).label(column.name) for column in runs.c),
        runs.c.state.label("state_before"),
        *version_columns(),
        jobs.c.spec.label("job_spec"),
    )
    .outerjoin(
        versions, (versions.c.schedule_id == runs.c.schedule_id) & (versions.c.number == runs.c.version)
    )
    .outerjoin(jobs, jobs.c.name == runs.c.job)
    .where(runs.c.run_id.in_(bindparam("keys", expanding=True)))
    .order_by(runs.c.run_id)
)
_READ_WAITING = Lookup(_WAITING.with_for_update(of=runs))
_READ_WAITING_FREE = Lookup(_WAITING.with_for_update(of=runs, skip_locked=True))
_READ_EXISTING = Lookup(select(runs.c.run_id).where(runs.c.run_id.in_(bindparam("keys", expanding=True))))
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
