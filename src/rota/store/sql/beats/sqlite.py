"""Beats on SQLite, which has one writer: what was chosen stays as it is until the commit.

Beats and choice are tables of the connection, in memory. Schedules are advanced by their place in the table, among
those chosen: joined with the choice by `UPDATE ... FROM`, SQLite would read all of them.
"""

import json
from collections.abc import Collection, Iterable, Sequence

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    FromClause,
    Insert,
    Integer,
    MetaData,
    Row,
    Subquery,
    Table,
    Text,
    Update,
    bindparam,
    column,
    delete,
    func,
    insert,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateTable

from rota.store.sql import rows
from rota.store.sql.beats.conditions import (
    BEAT_KEY,
    LOOKED_AT,
    is_due,
    is_in_time,
    may_be_ordinary,
    stands_somewhere,
)
from rota.store.sql.beats.writes import CHOSEN, GIVEN, KEY_NAMES, advanced_values, intent_values, run_values
from rota.store.sql.prepared import Prepared
from rota.store.sql.schema import outbox, runs, schedules

_TEMPORARY = MetaData()
_given = Table(
    "given",
    _TEMPORARY,
    *(Column(name, type_, primary_key=name in KEY_NAMES) for name, type_ in GIVEN.items()),
    prefixes=["TEMPORARY"],
    sqlite_with_rowid=False,
)
_chosen = Table(
    "chosen",
    _TEMPORARY,
    Column("place", Integer, primary_key=True),
    *(Column(name, type_) for name, type_ in CHOSEN.items()),
    prefixes=["TEMPORARY"],
)


def read(
    connection: Connection, partitions: Sequence[int], excluding: Collection[str], bounds: rows.Values
) -> Iterable[Row[*tuple[object, ...]]]:
    values = {**bounds, "excluding": json.dumps(list(excluding))}
    for partition in partitions:
        yield from _READ.read(connection, {**values, "partition": partition})


def admit(
    connection: Connection,
    partitions: Sequence[int],
    given: Sequence[rows.Values],
    bounds: rows.Values,
    *,
    passing_held: bool,  # noqa: ARG001 - with one writer no row is held by another
) -> int:
    for made in _MAKE_TABLES:
        connection.exec_driver_sql(made)
    _GIVE.execute(connection, given)
    _CHOOSE.execute(connection, [{**bounds, "partition": partition} for partition in partitions])
    _MAKE_RUNS.execute(connection, [bounds])
    admitted = connection.execute(_MAKE_INTENTS).rowcount
    _ADVANCE.execute(connection, [bounds])
    for emptied in _EMPTY_TABLES:
        connection.execute(emptied)
    return admitted


def _first(*conditions: ColumnElement[bool], columns: Sequence[str]) -> Subquery:
    """Of a partition the first that may be ordinary, of a bounded number of those that are due.

    These come one by one, by (due instant, id) along the index, and no further than the first `each` reach: of the one
    subquery SQLite makes a co-routine, and it sorts nothing, since nothing is said of an order outside.
    """
    return (
        select(*(_looked_at.c[name] for name in columns))
        .where(*may_be_ordinary(_looked_at), *conditions)
        .limit(bindparam("each", type_=Integer))
        .subquery("first")
    )


def _choose() -> Insert:
    until = _looked_at.c.named_until
    at_beat = _at_beat(_looked_at)
    own = select(_given.c.following).where(*at_beat).correlate(_looked_at).scalar_subquery()
    first = _first(
        own.is_not(None),
        or_(until.is_(None), until > own),
        is_in_time(_looked_at),
        columns=["place", *(name for name in LOOKED_AT if name in CHOSEN or name in BEAT_KEY)],
    )
    columns = {name: first.c[name] if name in first.c else _given.c[name] for name in CHOSEN}
    found = select(first.c.place, *columns.values()).where(*_at_beat(first))
    return insert(_chosen).from_select(["place", *columns], found)


def _at_beat(of: FromClause) -> list[ColumnElement[bool]]:
    return [_given.c[name] == of.c[own] for name, own in zip(KEY_NAMES, BEAT_KEY, strict=True)]


def _advance() -> Update:
    following = select(_chosen.c.following).where(_chosen.c.place == _PLACE).scalar_subquery()
    return update(schedules).where(_PLACE.in_(select(_chosen.c.place))).values(advanced_values(following))


_MAKE_TABLES = [
    str(CreateTable(table, if_not_exists=True).compile(dialect=sqlite.dialect()))
    for table in (_given, _chosen)
]
_EMPTY_TABLES = [delete(table) for table in (_given, _chosen)]
_PLACE = literal_column("schedules.rowid", Integer)
_EXCLUDING = func.json_each(bindparam("excluding", required=True)).table_valued(column("value", Text))
_looked_at = (
    select(_PLACE.label("place"), *(schedules.c[name] for name in LOOKED_AT))
    .where(schedules.c.partition == bindparam("partition"), *is_due(), stands_somewhere())
    .order_by(schedules.c.next_due, schedules.c.id)
    .limit(bindparam("looked_at", type_=Integer))
    .subquery("looked_at")
)
_STANDING = _first(_looked_at.c.cadence_id.not_in(select(_EXCLUDING.c.value)), columns=BEAT_KEY)
_READ = Prepared(select(_STANDING).distinct())
_GIVE = Prepared(insert(_given))
_CHOOSE = Prepared(_choose())
_MAKE_RUNS = Prepared(
    insert(runs).from_select(list(run_values(_chosen)), select(*run_values(_chosen).values()))
)
_MAKE_INTENTS = insert(outbox).from_select(
    list(intent_values(_chosen)), select(*intent_values(_chosen).values())
)
_ADVANCE = Prepared(_advance())
