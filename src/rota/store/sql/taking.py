"""Intents taken in SQL: the first of all jobs that are asked for, which nobody else takes before the commit.

SQLite has one writer: there the first of each job are read, and chosen from. PostgreSQL chooses within the statement
that locks them, so that no more rows are locked than are taken, and of several callers none waits for another.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache

from sqlalchemy import (
    CTE,
    ColumnElement,
    Connection,
    FromClause,
    Integer,
    Select,
    Subquery,
    Text,
    all_,
    bindparam,
    cast,
    column,
    func,
    literal_column,
    select,
    true,
    union_all,
)
from sqlalchemy.dialects.postgresql import ARRAY

from rota.store.port import Intent
from rota.store.sql import cells, rows
from rota.store.sql.arrays import array_of, encode_numbers, encode_texts
from rota.store.sql.demands import Demand
from rota.store.sql.outbox import RANGES, order_of, read_available, walk_in_order
from rota.store.sql.prepared import Prepared
from rota.store.sql.schema import outbox

BACKLOG = literal_column("1", Integer)
"""The share of all turns of backlogs; the others are shares of their own."""


def take_intents(
    connection: Connection,
    demands: Sequence[Demand],
    *,
    now: datetime,
    limit: int,
    backlog_first: bool = False,
) -> list[Intent]:
    """Up to `limit`, by priority, and of each job no more than its demand says, in the order of `commit_claims`."""
    asked = {each.job: each for each in demands if each.most > 0}
    if not asked or limit <= 0:
        return []

    def rank(intent: Intent) -> tuple[object, ...]:
        return -asked[intent.job].priority, backlog_first and intent.turn <= 0, *order_of(intent)

    if connection.dialect.name == "postgresql":
        found = _take(connection, list(asked.values()), now=now, limit=limit, backlog_first=backlog_first)
        return sorted(found, key=rank)
    limits = {each.job: min(each.most, limit) for each in asked.values()}
    available = sorted(read_available(connection, limits, now=now), key=rank)
    return _first_of(available, limits, limit)


def _first_of(available: Sequence[Intent], limits: dict[str, int], limit: int) -> list[Intent]:
    chosen: list[Intent] = []
    left = dict(limits)
    for intent in available:
        if len(chosen) < limit and left[intent.job] > 0:
            left[intent.job] -= 1
            chosen.append(intent)
    return chosen


def _take(
    connection: Connection, demands: Sequence[Demand], *, now: datetime, limit: int, backlog_first: bool
) -> list[Intent]:
    walk_in_order(connection)
    is_bounded = any(each.most < limit for each in demands)
    values = {**_demand_values(demands, limit), "now": cells.millis(now), "limit": limit}
    shares = list(
        _take_of(is_bounded=is_bounded, backlog_first=backlog_first).read(connection, values).mappings()
    )
    found = [rows.to_intent(row) for row in shares if row["run_id"] is not None]
    counted = {(row["share_of"], row["share"]): cells.integer(row["size"]) for row in shares}
    if len(found) == sum(counted.values()):
        return found
    # Of what was counted somebody else holds some, which may be all of one job: it keeps no place of the others.
    taken = Counter(intent.job for intent in found)
    left = [replace(each, limit=min(each.most, limit) - taken[each.job]) for each in demands]
    more = {
        **_demand_values(left, limit),
        "now": cells.millis(now),
        "limit": limit - len(found),
        "taken": encode_texts([intent.run_id for intent in found]),
    }
    again = (
        _take_more_of(is_bounded=is_bounded, backlog_first=backlog_first).read(connection, more).mappings()
    )
    return found + [rows.to_intent(row) for row in again]


def _demand_values(demands: Sequence[Demand], limit: int) -> rows.Values:
    return {
        "jobs": encode_texts([each.job for each in demands]),
        "priorities": encode_numbers([each.priority for each in demands]),
        "limits": encode_numbers([min(each.most, limit) for each in demands]),
    }


@lru_cache(maxsize=4)
def _take_of(*, is_bounded: bool, backlog_first: bool) -> Prepared:
    """Of each job and range as many as are among the first of all, so that no more rows are locked than are taken.

    Whoever comes second passes over the rows that the first has locked, and takes those behind them. Each row bears
    its share, and a share of which nothing is taken has a row of its own.
    """
    wanted = _wanted_jobs()
    first = _first(wanted, is_bounded=is_bounded, backlog_first=backlog_first).subquery("earliest")
    share = func.least(first.c.turn, BACKLOG).label("share")
    shares = (
        select(first.c.job, share, func.count().label("size")).group_by(first.c.job, share).subquery("shares")
    )
    on_time = _of_share(shares, "on_time")
    backlog = _of_share(shares, "backlog")
    taken = [func.coalesce(on_time.c[each.name], backlog.c[each.name]).label(each.name) for each in outbox.c]
    return Prepared(
        select(shares.c.job.label("share_of"), shares.c.share, shares.c.size, *taken).select_from(
            shares.outerjoin(on_time, true()).outerjoin(backlog, true())
        )
    )


def _of_share(shares: Subquery, name: str) -> FromClause:
    """What is taken of a share; nothing of one of the other kind."""
    is_backlog = name == "backlog"
    in_share = [shares.c.share == BACKLOG] if is_backlog else [shares.c.share < BACKLOG]
    in_range = RANGES[-1][0] if is_backlog else outbox.c.turn == shares.c.share
    order = RANGES[-1][1] if is_backlog else RANGES[0][1]
    return (
        select(outbox)
        .where(outbox.c.job == shares.c.job, in_range, *in_share, outbox.c.available_at <= bindparam("now"))
        .order_by(*order)
        .limit(shares.c.size)
        .with_for_update(skip_locked=True)
        .lateral(name)
    )


@lru_cache(maxsize=4)
def _take_more_of(*, is_bounded: bool, backlog_first: bool) -> Prepared:
    """Of each job and range the first that nobody holds, and of them the first of all.

    It locks more rows than it takes, until the end of the transaction: seldom, and others pass over them.
    """
    # Its own locks a connection does not pass over.
    is_new = outbox.c.run_id != all_(cast(array_of("taken", Text()), ARRAY(Text())))
    wanted = _wanted_jobs()
    return Prepared(_first(wanted, is_new, is_bounded=is_bounded, backlog_first=backlog_first, locking=True))


def _first(
    wanted: CTE,
    *conditions: ColumnElement[bool],
    is_bounded: bool,
    backlog_first: bool,
    locking: bool = False,
) -> Select[*tuple[object, ...]]:
    """The first of all that is wanted; where `is_bounded`, of each job no more than its own limit."""
    parts = []
    for in_range, order in RANGES:
        available = (
            select(outbox)
            .where(
                outbox.c.job == wanted.c.job, in_range, outbox.c.available_at <= bindparam("now"), *conditions
            )
            .order_by(*order)
            .limit(wanted.c.most)
        )
        if locking:
            available = available.with_for_update(skip_locked=True)
        found = available.lateral()
        parts.append(
            select(wanted.c.priority, wanted.c.most, *found.c).select_from(wanted.join(found, true()))
        )
    everything = union_all(*parts).subquery("everything")
    chosen: FromClause = everything
    if is_bounded:
        in_order = _in_order(everything, backlog_first=backlog_first)
        number = func.row_number().over(partition_by=everything.c.job, order_by=in_order)
        numbered = select(everything, number.label("number")).subquery("numbered")
        chosen = select(numbered).where(numbered.c.number <= numbered.c.most).subquery("chosen")
    limit = bindparam("limit", required=True, type_=Integer)
    return (
        select(*(chosen.c[each.name] for each in outbox.c))
        .order_by(*_in_order(chosen, backlog_first=backlog_first))
        .limit(limit)
    )


def _in_order(of: FromClause, *, backlog_first: bool) -> list[ColumnElement[object]]:
    is_on_time = [of.c.turn <= literal_column("0")] if backlog_first else []
    return [of.c.priority.desc(), *is_on_time, of.c.turn, of.c.available_at, of.c.run_id]


def _wanted_jobs() -> CTE:
    arrays = (array_of("jobs", Text()), array_of("priorities", Integer()), array_of("limits", Integer()))
    named = (column("job", Text), column("priority", Integer), column("most", Integer))
    wanted = func.unnest(*arrays).table_valued(*named).render_derived("given")
    return select(*wanted.c).cte("wanted")
