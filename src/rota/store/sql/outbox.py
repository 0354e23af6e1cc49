"""Delivery intents in SQL: read in the order of their key, one range of it for each job."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import lru_cache

from sqlalchemy import (
    Connection,
    Integer,
    RowMapping,
    TableValuedAlias,
    Text,
    all_,
    bindparam,
    cast,
    column,
    delete,
    func,
    insert,
    literal_column,
    select,
    true,
    union_all,
)
from sqlalchemy.dialects.postgresql import ARRAY

from rota.domain.run import Run, RunState
from rota.store.port import Delivery, Notice
from rota.store.sql import cells, rows
from rota.store.sql.arrays import array_of, encode_texts
from rota.store.sql.batches import Part
from rota.store.sql.notices import notify
from rota.store.sql.prepared import Prepared
from rota.store.sql.schema import outbox

JOBS_AT_ONCE = 100
"""Of the parts that a compound statement may have, SQLite takes 500."""


class SqlOutbox(Part):
    def read_deliveries(self, jobs: Sequence[str], *, now: datetime, limit: int) -> list[Delivery]:
        with self._database.reading() as connection:
            return _read_available(connection, jobs, now=now, limit=limit)

    def read_next_delivery_time(self, jobs: Sequence[str]) -> datetime | None:
        found: list[int] = []
        with self._database.reading() as connection:
            for names in _groups_of(jobs):
                earliest = _read_next_times_of(len(names)).read(connection, _job_values(names))
                found += [cells.integer(available_at) for (available_at,) in earliest]
        return cells.instant(min(found)) if found else None


def take_deliveries(
    connection: Connection, jobs: Sequence[str], *, now: datetime, limit: int
) -> list[Delivery]:
    """The earliest deliveries that nobody else is taking, which nobody else takes before this transaction ends."""
    if connection.dialect.name != "postgresql":
        return _read_available(connection, jobs, now=now, limit=limit)  # It has one writer.
    _walk_in_order(connection)
    wanted = {"jobs": encode_texts(list(dict.fromkeys(jobs))), "now": cells.millis(now), "limit": limit}
    shares = list(_TAKE.read(connection, wanted).mappings())
    found = [rows.to_delivery(row) for row in shares if row["run_id"] is not None]
    counted = sum({row["share_of"]: cells.integer(row["size"]) for row in shares}.values())
    if len(found) < counted:
        # Of what was counted somebody else holds some, which may be all of one job: it keeps no place of the others.
        taken = encode_texts([delivery.run_id for delivery in found])
        more = {**wanted, "taken": taken, "limit": limit - len(found)}
        found += [rows.to_delivery(row) for row in _TAKE_MORE.read(connection, more).mappings()]
    return sorted(found, key=_order_of)


def write_intents(connection: Connection, queued: Sequence[Run]) -> None:
    """The outbox row of each run's next attempt. Raises `ValueError`: only a queued run has one."""
    write_intent_rows(connection, [_intent_values(run) for run in queued])


def write_intent_rows(connection: Connection, intents: Sequence[rows.Values]) -> None:
    """Writes rows as a statement made them of runs."""
    if intents:
        _WRITE.execute(connection, intents)
        notify(connection, Notice.QUEUED)


def withdraw_intents(connection: Connection, queued: Sequence[Run]) -> None:
    """Takes away the outbox row of each of the runs, found by its key."""
    _WITHDRAW.change_each(
        connection,
        [
            {
                "key_job": run.job,
                "key_available_at": cells.millis_or_none(run.available_at),
                "key_run_id": run.run_id,
                "key_attempt": run.attempt + 1,
            }
            for run in queued
        ],
    )


def drop_intents(connection: Connection, delivered: Sequence[Delivery]) -> None:
    """Takes away the rows that were delivered, by the keys that they had: a run may by now say others (I12).

    A copy of an older delivery takes away nothing: the row of the next attempt has its own number.
    """
    _WITHDRAW.execute(
        connection,
        [
            {
                "key_job": delivery.job,
                "key_available_at": cells.millis(delivery.available_at),
                "key_run_id": delivery.run_id,
                "key_attempt": delivery.attempt,
            }
            for delivery in delivered
        ],
    )


def clear_intents(connection: Connection, queued: Sequence[RowMapping]) -> None:
    """Takes away the intents that rows of queued runs say are theirs; one that lost its own has none (I12)."""
    _WITHDRAW.execute(
        connection,
        [
            {
                "key_job": row["job"],
                "key_available_at": row["available_at"],
                "key_run_id": row["run_id"],
                "key_attempt": row["attempt"] + 1,
            }
            for row in queued
        ],
    )


def drop_intent_rows(connection: Connection, intents: Sequence[rows.Values]) -> None:
    """Takes away what there is under the keys of these rows, whatever its attempt."""
    _DROP.execute(connection, intents)


def _read_available(
    connection: Connection, jobs: Sequence[str], *, now: datetime, limit: int
) -> list[Delivery]:
    found: list[Delivery] = []
    _walk_in_order(connection)
    for names in _groups_of(jobs):
        values = {**_job_values(names), "now": cells.millis(now), "limit": limit}
        available = _read_deliveries_of(len(names)).read(connection, values).mappings()
        found += [rows.to_delivery(row) for row in available]
    return sorted(found, key=_order_of)[:limit]


def _walk_in_order(connection: Connection) -> None:
    """For this transaction: PostgreSQL reads the outbox along its key, and ends where it has as many rows as it wants.

    Of a table without statistics it expects a few rows to be available. It would collect and sort them all, and they
    may be a million.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET LOCAL enable_bitmapscan = off")


def _order_of(delivery: Delivery) -> tuple[datetime, str]:
    return delivery.available_at, delivery.run_id


def _intent_values(run: Run) -> rows.Values:
    if run.state is not RunState.QUEUED or run.available_at is None:
        raise ValueError(f"{run.run_id} is {run.state}, available at {run.available_at}: nothing to deliver")
    return {
        "job": run.job,
        "available_at": cells.millis(run.available_at),
        "run_id": run.run_id,
        "attempt": run.attempt + 1,
    }


def _groups_of(jobs: Sequence[str]) -> Iterator[list[str]]:
    distinct = list(dict.fromkeys(jobs))
    for first in range(0, len(distinct), JOBS_AT_ONCE):
        yield distinct[first : first + JOBS_AT_ONCE]


def _job_values(names: Sequence[str]) -> rows.Values:
    return {f"job_{place}": name for place, name in enumerate(names)}


@lru_cache(maxsize=JOBS_AT_ONCE)
def _read_deliveries_of(job_count: int) -> Prepared:
    """Each job's earliest: `job IN (...)` would read and sort everything that is available of all of them."""
    return Prepared(
        union_all(
            *(
                select(
                    select(outbox)
                    .where(
                        outbox.c.job == bindparam(f"job_{place}"), outbox.c.available_at <= bindparam("now")
                    )
                    .order_by(outbox.c.available_at, outbox.c.run_id)
                    .limit(bindparam("limit"))
                    .subquery()
                )
                for place in range(job_count)
            )
        )
    )


@lru_cache(maxsize=JOBS_AT_ONCE)
def _read_next_times_of(job_count: int) -> Prepared:
    return Prepared(
        union_all(
            *(
                select(
                    select(outbox.c.available_at)
                    .where(outbox.c.job == bindparam(f"job_{place}"))
                    .order_by(outbox.c.available_at)
                    .limit(literal_column("1"))
                    .subquery()
                )
                for place in range(job_count)
            )
        )
    )


def _take() -> Prepared:
    """Of each job as many as are among the earliest of all, so that no more rows are locked than are taken.

    Whoever comes second passes over the rows that the first has locked, and takes those behind them. Each row bears
    its job's share, and a job of which nothing is taken has a row of its own.
    """
    limit = bindparam("limit", required=True, type_=Integer)
    in_order = (outbox.c.available_at, outbox.c.run_id)
    wanted = _wanted_jobs()
    available = select(outbox).where(outbox.c.available_at <= bindparam("now"))
    first = (
        available.where(outbox.c.job == wanted.c.job).order_by(*in_order).limit(limit).lateral("first_of_job")
    )
    earliest = (
        select(first.c.job)
        .select_from(wanted.join(first, true()))
        .order_by(first.c.available_at, first.c.run_id)
        .limit(limit)
        .subquery("earliest")
    )
    share = select(earliest.c.job, func.count().label("size")).group_by(earliest.c.job).subquery("share")
    taken = (
        available.where(outbox.c.job == share.c.job)
        .order_by(*in_order)
        .limit(share.c.size)
        .with_for_update(skip_locked=True)
        .lateral("taken")
    )
    return Prepared(
        select(share.c.job.label("share_of"), share.c.size, taken).select_from(share.outerjoin(taken, true()))
    )


def _take_more() -> Prepared:
    """Of each job the earliest that nobody holds, and of them the earliest of all.

    It locks more rows than it takes, until the end of the transaction: seldom, and others pass over them.
    """
    limit = bindparam("limit", required=True, type_=Integer)
    wanted = _wanted_jobs()
    free = (
        select(outbox)
        .where(
            outbox.c.available_at <= bindparam("now"),
            outbox.c.job == wanted.c.job,
            # Its own locks a connection does not pass over.
            outbox.c.run_id != all_(cast(array_of("taken", Text()), ARRAY(Text()))),
        )
        .order_by(outbox.c.available_at, outbox.c.run_id)
        .limit(limit)
        .with_for_update(skip_locked=True)
        .lateral("free")
    )
    return Prepared(
        select(free)
        .select_from(wanted.join(free, true()))
        .order_by(free.c.available_at, free.c.run_id)
        .limit(limit)
    )


def _wanted_jobs() -> TableValuedAlias:
    return func.unnest(array_of("jobs", Text())).table_valued(column("job", Text)).render_derived("wanted")


_TAKE = _take()
_TAKE_MORE = _take_more()
_WRITE = Prepared(insert(outbox))
_DROP = Prepared(
    delete(outbox).where(
        outbox.c.job == bindparam("job"),
        outbox.c.available_at == bindparam("available_at"),
        outbox.c.run_id == bindparam("run_id"),
    )
)
_WITHDRAW = Prepared(
    delete(outbox).where(
        outbox.c.job == bindparam("key_job"),
        outbox.c.available_at == bindparam("key_available_at"),
        outbox.c.run_id == bindparam("key_run_id"),
        outbox.c.attempt == bindparam("key_attempt"),
    )
)
