"""The statements of the SQL store in PostgreSQL's words, with its row locks; nothing here runs them there."""

import importlib
import pkgutil

import pytest
from sqlalchemy import SelectBase, UpdateBase
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.schema import CreateIndex, CreateTable

import rota.store.sql
from rota.store.sql import admissions, batches, dispatch, leases, outbox, settlements, skips, work
from rota.store.sql.prepared import Prepared
from rota.store.sql.schema import metadata

POSTGRESQL = PGDialect_psycopg(paramstyle="format")  # type: ignore[no-untyped-call]
MODULES = [
    importlib.import_module(f"rota.store.sql.{module.name}")
    for module in pkgutil.iter_modules(rota.store.sql.__path__)
]


def words_of(statement: SelectBase | UpdateBase | Prepared) -> str:
    if isinstance(statement, Prepared):
        statement = statement._statement
    return " ".join(str(statement.compile(dialect=POSTGRESQL)).split())


def test_every_statement_of_a_module_renders() -> None:
    statements = [
        value
        for module in MODULES
        for value in vars(module).values()
        if isinstance(value, Prepared | SelectBase | UpdateBase)
    ]
    assert len(statements) > 25
    assert all(words_of(statement) for statement in statements)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (batches._READ_EPOCH, "FOR SHARE"),
        (admissions._READ_STANDINGS, "ORDER BY schedules.id FOR UPDATE"),
        (admissions._ADVANCE, "schedules.next_due IS NOT DISTINCT FROM %s::BIGINT"),
        (leases._READ_FREE, "FOR UPDATE SKIP LOCKED"),
        (leases._READ_OWNED, "FOR UPDATE"),
        (work._READ_WAITING, "FOR UPDATE OF runs"),
        (work._READ_RUNNING, "FOR UPDATE"),
        (settlements._READ_CURRENT, "FOR UPDATE OF runs"),
        (dispatch._read_due_times_of(2), "(VALUES (%s::INTEGER), (%s::INTEGER))"),
        (outbox._read_deliveries_of(2), "UNION ALL"),
        (skips._read_ending_at(2), "JOIN skips ON skips.schedule_id = wanted_1.schedule_id"),
    ],
)
def test_a_statement_has_what_it_needs_there(
    statement: Prepared | SelectBase | UpdateBase, words: str
) -> None:
    assert words in words_of(statement)


def test_the_tables_render_with_names_ordered_by_code_point() -> None:
    for table in metadata.sorted_tables:
        assert "WITHOUT ROWID" not in str(CreateTable(table).compile(dialect=POSTGRESQL))
        for index in table.indexes:
            str(CreateIndex(index).compile(dialect=POSTGRESQL))
    assert 'id TEXT COLLATE "C" NOT NULL' in str(
        CreateTable(metadata.tables["schedules"]).compile(dialect=POSTGRESQL)
    )
