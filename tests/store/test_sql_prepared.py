"""Statements for many rows do what the same statement does for each, on SQLite and over arrays on PostgreSQL."""

from collections.abc import Iterator, Sequence

import pytest
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Double,
    Engine,
    Integer,
    MetaData,
    Table,
    Text,
    UpdateBase,
    bindparam,
    create_engine,
    delete,
    event,
    insert,
    make_url,
    select,
    update,
)

from rota.domain.errors import Stale
from rota.store.sql.prepared import ROWS_ONE_BY_ONE, Lookup, Prepared
from rota.store.sql.rows import Values
from tests.postgresql import Databases

cells_table = Table(
    "cells",
    MetaData(),
    Column("id", Text, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("large", BigInteger),
    Column("fraction", Double),
    Column("truth", Boolean),
    Column("words", Text),
)
c = cells_table.c
ROWS: Sequence[Values] = [
    {
        "id": f"row-{number}",
        "number": number,
        "large": large,
        "fraction": fraction,
        "truth": truth,
        "words": words,
    }
    for number, (large, fraction, truth, words) in enumerate(
        [
            (None, None, None, None),
            (2**63 - 1, 0.1, True, ""),
            (-(2**63), -1e300, False, "NULL"),
            (0, 5e-324, None, 'a "quoted" word'),
            (1, 1.0, True, "back\\slash and {braces}, comma"),
            (None, 1 / 3, False, "tabs\tand\nlines, \u00e4\u4e2d\U0001f600"),
            (7, None, True, "'; --"),
            (8, 2.5, None, "  spaces  "),
        ]
    )
]
INSERT = insert(cells_table)
UPDATE = (
    update(cells_table)
    .where(
        c.id == bindparam("key_id"),
        c.number == bindparam("key_number"),
        c.words.is_not_distinct_from(bindparam("words_before")),
        c.id != "row-7",
    )
    .values(
        number=c.number + bindparam("added"),
        large=bindparam("large"),
        fraction=bindparam("fraction"),
        truth=bindparam("truth"),
        words=bindparam("words"),
    )
)
DELETE = delete(cells_table).where(c.id == bindparam("key_id"), c.number == bindparam("key_number"))


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """A database with the table and nothing in it."""
    if request.param == "sqlite":
        made = create_engine("sqlite://")
    else:
        databases: Databases = request.getfixturevalue("postgresql")
        url = make_url(databases.make(migrated=False)).set(drivername="postgresql+psycopg")
        made = create_engine(url, paramstyle="format")
    cells_table.metadata.create_all(made)
    yield made
    made.dispose()


@pytest.fixture
def connection(engine: Engine) -> Iterator[Connection]:
    with engine.begin() as connection:
        yield connection


def contents(connection: Connection) -> list[tuple[object, ...]]:
    return [tuple(row) for row in connection.execute(select(cells_table).order_by(c.id, c.number))]


def changed(row: Values, **more: object) -> Values:
    return {
        **row,
        "key_id": row["id"],
        "key_number": row["number"],
        "words_before": row["words"],
        "added": 10,
        **more,
    }


CHANGES: Sequence[Values] = [
    *(changed(row, large=5, fraction=None, truth=None, words="new") for row in ROWS[:3]),
    changed(ROWS[3], words_before="another"),  # does not apply
    changed(ROWS[4], words=None, truth=False, large=None),
    changed(ROWS[7]),  # nor does this
    changed(ROWS[5], key_id="unknown"),
]


@pytest.mark.parametrize(
    ("statement", "rows", "count"),
    [(INSERT, ROWS, len(ROWS)), (UPDATE, CHANGES, 4), (DELETE, CHANGES, 6)],
    ids=["insert", "update", "delete"],
)
def test_many_rows_at_once_have_the_effect_of_each_by_itself(
    connection: Connection, statement: UpdateBase, rows: Sequence[Values], count: int
) -> None:
    if statement is not INSERT:
        connection.execute(INSERT, [dict(row) for row in ROWS])
    prepared = Prepared(statement)
    one_by_one = connection.begin_nested()
    assert sum(prepared.execute(connection, [row]) for row in rows) == count
    expected = contents(connection)
    one_by_one.rollback()
    assert prepared.execute(connection, rows) == count
    assert contents(connection) == expected


def test_every_value_comes_back_as_it_was_written(connection: Connection) -> None:
    Prepared(INSERT).execute(connection, ROWS)
    assert contents(connection) == [tuple(row.values()) for row in ROWS]


def test_a_batch_is_one_statement_with_one_set_of_parameters_on_postgresql(connection: Connection) -> None:
    sent: list[bool] = []

    def note(_: Connection, cursor: object, statement: str, parameters: object, *more: object) -> None:
        sent.append(isinstance(parameters, list))

    event.listen(connection, "before_cursor_execute", note)
    inserting, one = Prepared(INSERT), ROWS_ONE_BY_ONE
    inserting.execute(connection, ROWS[:one])
    inserting.execute(connection, ROWS[one:])
    event.remove(connection, "before_cursor_execute", note)
    assert sent == [False, connection.dialect.name == "sqlite"]


def test_a_row_that_does_not_change_is_reported(connection: Connection) -> None:
    connection.execute(INSERT, [dict(row) for row in ROWS])
    prepared = Prepared(UPDATE)
    prepared.change_each(connection, CHANGES[:3])
    with pytest.raises(Stale, match="4 rows were to change and 1 did"):
        prepared.change_each(connection, [*CHANGES[:3], CHANGES[4]])


def test_a_key_that_repeats_in_a_batch_is_reported_on_postgresql(connection: Connection) -> None:
    """There it changes its row once, for the first of them or for the last."""
    if connection.dialect.name == "postgresql":
        connection.execute(INSERT, [dict(row) for row in ROWS])
        with pytest.raises(Stale):
            Prepared(UPDATE).change_each(connection, [*CHANGES[:3], CHANGES[0]])


def test_no_rows_are_no_statement(connection: Connection) -> None:
    assert Prepared(INSERT).execute(connection, []) == 0
    Prepared(UPDATE).change_each(connection, [])


def test_an_insert_whose_parameters_are_no_columns_is_refused(connection: Connection) -> None:
    odd = Prepared(insert(cells_table).values(id=bindparam("name"), number=bindparam("number")))
    rows = [{"name": f"x{number}", "number": number} for number in range(5)]
    if connection.dialect.name == "postgresql":
        with pytest.raises(TypeError, match="bears the name of its column"):
            odd.execute(connection, rows)


@pytest.mark.parametrize("count", [0, 1, len(ROWS)])
def test_rows_are_looked_up_by_many_keys(connection: Connection, count: int) -> None:
    Prepared(INSERT).execute(connection, [{**row, "id": f'"{row["id"]}\\"'} for row in ROWS])
    wanted = Lookup(
        select(c.number)
        .where(c.id.in_(bindparam("keys", expanding=True)), c.number >= bindparam("least"))
        .order_by(c.number)
    )
    keys = [f'"{row["id"]}\\"' for row in ROWS[:count]]
    found = [number for (number,) in wanted.read(connection, [*keys, "unknown"], {"least": 1})]
    assert found == list(range(1, count))
