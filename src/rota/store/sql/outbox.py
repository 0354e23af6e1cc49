"""Delivery intents in SQL: a row for each, read in the order of its key.

Of each job there are three ranges: retries of what was on time, whose rows have the lowest turn and may be far ahead of
their time; what is on time; and backlogs, in the order of their turns. The first two are searched up to now. What has a
turn of a backlog was late when it was written, so there it is enough to walk along the key, past the few that are
retries and wait for their time.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    bindparam,
    delete,
    func,
    insert,
    literal_column,
    select,
    union_all,
)

from rota.domain.run import Run, RunState
from rota.store.port import RETRY_TURN, Intent, Notice, turn_of_intent
from rota.store.sql import cells, rows
from rota.store.sql.batches import Part
from rota.store.sql.demands import read_demands
from rota.store.sql.notices import notify
from rota.store.sql.prepared import Prepared
from rota.store.sql.schema import outbox

JOBS_AT_ONCE = 100
"""Of the parts that a compound statement may have, SQLite takes 500; each job has three."""

RANGES: Sequence[tuple[ColumnElement[bool], Sequence[ColumnElement[object]]]] = (
    (outbox.c.turn == literal_column(str(RETRY_TURN)), (outbox.c.available_at, outbox.c.run_id)),
    (outbox.c.turn == literal_column("0"), (outbox.c.available_at, outbox.c.run_id)),
    (outbox.c.turn > literal_column("0"), (outbox.c.turn, outbox.c.available_at, outbox.c.run_id)),
)
"""Of a job's rows, each with its order."""

LOOKED_AT = 100
"""First rows of a backlog that are looked at for when something of it is available: retries may wait among them."""


class SqlOutbox(Part):
    def read_intents(self, jobs: Sequence[str], *, now: datetime, limit: int) -> list[Intent]:
        with self._database.reading() as connection:
            found = read_available(connection, dict.fromkeys(jobs, limit), now=now)
        return sorted(found, key=order_of)[:limit]

    def read_next_intent_time(self, jobs: Sequence[str]) -> datetime | None:
        with self._database.reading() as connection:
            demands = read_demands(connection, jobs)
            return next_time_of(connection, [each.job for each in demands if each.is_fetched and each.most])


def next_time_of(connection: Connection, jobs: Sequence[str]) -> datetime | None:
    """When the earliest intent of these jobs is available; of a backlog, of its first `LOOKED_AT`."""
    found: list[int] = []
    walk_in_order(connection)
    for names in groups_of(jobs):
        earliest = _read_next_times_of(len(names)).read(connection, _job_values(names))
        found += [cells.integer(available_at) for (available_at,) in earliest]
    return cells.instant(min(found)) if found else None


def read_available(connection: Connection, limits: Mapping[str, int], *, now: datetime) -> list[Intent]:
    """The first of each job, and of each of its ranges, up to the job's limit."""
    found: list[Intent] = []
    walk_in_order(connection)
    for names in groups_of(list(limits)):
        most = {f"limit_{place}": limits[name] for place, name in enumerate(names)}
        values = {**_job_values(names), **most, "now": cells.millis(now)}
        available = _read_available_of(len(names)).read(connection, values).mappings()
        found += [rows.to_intent(row) for row in available]
    return found


def walk_in_order(connection: Connection) -> None:
    """For this transaction: PostgreSQL reads the outbox along its key, and ends where it has as many rows as it wants.

    Of a table without statistics it expects a few rows to be available. It would collect and sort them all, and they
    may be a million.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET LOCAL enable_bitmapscan = off")


def order_of(intent: Intent) -> tuple[int, datetime, str]:
    return intent.turn, intent.available_at, intent.run_id


def write_intents(connection: Connection, queued: Sequence[Run]) -> None:
    """The outbox row of each run's next attempt. Raises `ValueError`: only a queued run has one."""
    write_intent_rows(connection, [_intent_values(run) for run in queued])


def write_intent_rows(connection: Connection, intents: Sequence[rows.Values]) -> None:
    """Writes rows as a statement made them of runs."""
    if intents:
        _WRITE.execute(connection, intents)
        notify(connection, Notice.QUEUED)


def intent_row(queued: RowMapping | Mapping[str, object]) -> rows.Values:
    """The outbox row of the next attempt of a run, told by that run's row."""
    attempt = cells.integer(queued["attempt"])
    return {
        "job": queued["job"],
        "turn": turn_of_intent(cells.integer(queued["turn"]), attempt=attempt),
        "available_at": queued["available_at"],
        "run_id": queued["run_id"],
        "attempt": attempt + 1,
    }


def drop_intents(connection: Connection, delivered: Sequence[Intent]) -> None:
    """Takes away the rows that were delivered, by the keys that they had: a run may by now say others (I12).

    A copy of an older delivery takes away nothing: the row of the next attempt has its own number.
    """
    withdraw_intent_rows(
        connection,
        [
            {
                "job": intent.job,
                "turn": intent.turn,
                "available_at": cells.millis(intent.available_at),
                "run_id": intent.run_id,
                "attempt": intent.attempt,
            }
            for intent in delivered
        ],
    )


def withdraw_intent_rows(connection: Connection, intents: Sequence[rows.Values]) -> None:
    """Takes away these rows, found by their keys; a run that lost its own has none (I12)."""
    _WITHDRAW.execute(connection, [{f"key_{name}": value for name, value in row.items()} for row in intents])


def drop_intent_rows(connection: Connection, intents: Sequence[rows.Values]) -> None:
    """Takes away what there is under the keys of these rows, whatever its attempt."""
    _DROP.execute(connection, intents)


def _intent_values(run: Run) -> rows.Values:
    if run.state is not RunState.QUEUED or run.available_at is None:
        raise ValueError(f"{run.run_id} is {run.state}, available at {run.available_at}: nothing to deliver")
    return {
        "job": run.job,
        "turn": turn_of_intent(run.turn, attempt=run.attempt),
        "available_at": cells.millis(run.available_at),
        "run_id": run.run_id,
        "attempt": run.attempt + 1,
    }


def groups_of(jobs: Sequence[str]) -> Iterator[list[str]]:
    distinct = list(dict.fromkeys(jobs))
    for first in range(0, len(distinct), JOBS_AT_ONCE):
        yield distinct[first : first + JOBS_AT_ONCE]


def _job_values(names: Sequence[str]) -> rows.Values:
    return {f"job_{place}": name for place, name in enumerate(names)}


@lru_cache(maxsize=JOBS_AT_ONCE)
def _read_available_of(job_count: int) -> Prepared:
    """Each job's first: `job IN (...)` would read and sort everything that is available of all of them."""
    first = [
        select(outbox)
        .where(outbox.c.job == bindparam(f"job_{place}"), in_range, outbox.c.available_at <= bindparam("now"))
        .order_by(*order)
        .limit(bindparam(f"limit_{place}"))
        for place in range(job_count)
        for in_range, order in RANGES
    ]
    return _union_of(first)


@lru_cache(maxsize=JOBS_AT_ONCE)
def _read_next_times_of(job_count: int) -> Prepared:
    first = [
        _next_time_in(place, in_range, order) for place in range(job_count) for in_range, order in RANGES
    ]
    return _union_of(first)


def _next_time_in(
    place: int, in_range: ColumnElement[bool], order: Sequence[ColumnElement[object]]
) -> Select[*tuple[object, ...]]:
    of_job = select(outbox.c.available_at).where(outbox.c.job == bindparam(f"job_{place}"), in_range)
    if order[0] is outbox.c.available_at:
        return of_job.order_by(*order).limit(literal_column("1"))
    looked_at = of_job.order_by(*order).limit(literal_column(str(LOOKED_AT))).subquery()
    earliest = func.min(looked_at.c.available_at).label("available_at")
    return select(earliest).having(earliest.is_not(None))


def _union_of(parts: Sequence[Select[*tuple[object, ...]]]) -> Prepared:
    return Prepared(union_all(*(select(part.subquery()) for part in parts)))


_WRITE = Prepared(insert(outbox))
_DROP = Prepared(
    delete(outbox).where(
        outbox.c.job == bindparam("job"),
        outbox.c.turn == bindparam("turn"),
        outbox.c.available_at == bindparam("available_at"),
        outbox.c.run_id == bindparam("run_id"),
    )
)
_WITHDRAW = Prepared(
    delete(outbox).where(
        outbox.c.job == bindparam("key_job"),
        outbox.c.turn == bindparam("key_turn"),
        outbox.c.available_at == bindparam("key_available_at"),
        outbox.c.run_id == bindparam("key_run_id"),
        outbox.c.attempt == bindparam("key_attempt"),
    )
)
