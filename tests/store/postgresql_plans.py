"""How PostgreSQL does what a store asks of it, on tables of many rows: for the tests of plans."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import psycopg

from rota.store.sql import SqlStore, open_sql_store
from tests.postgresql import Databases
from tests.store.watch import Ask, Asked, asked_of

IN_ORDER = {"Index Scan", "Index Only Scan"}
FOUND_BY_INDEX = {*IN_ORDER, "Bitmap Heap Scan"}


@contextmanager
def large_store_of(
    databases: Databases, *, tables: Iterable[str], fill: Callable[[SqlStore], None], is_analysed: bool
) -> Iterator[SqlStore]:
    """A store that `fill` has filled; unless it `is_analysed`, the server does not know how large `tables` are."""
    store = open_sql_store(databases.make())
    with store._database.writing() as connection:
        for table in tables:
            connection.exec_driver_sql(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
    fill(store)
    if is_analysed:
        with store._database.writing() as connection:
            connection.exec_driver_sql("ANALYZE")
    yield store
    store.close()


def asked_by(store: SqlStore, asks: Mapping[str, Ask]) -> dict[str, list[Asked]]:
    """Of each call, what it asks when it finds what it is for."""
    found = {}
    for name, ask in asks.items():
        with asked_of(store) as statements:
            ask(store)
        found[name] = statements
    return found


Step = Mapping[str, object]


def plan_of(store: SqlStore, asked: Asked, settings: Sequence[str]) -> Step:
    statement, given = asked
    parameters = given[0] if isinstance(given, list) else given
    assert isinstance(parameters, tuple)
    numbers = iter(range(1, len(parameters) + 1))
    numbered = re.sub("%s", lambda _: f"${next(numbers)}", statement)
    execute = f"EXECUTE asked({', '.join(['%s'] * len(parameters))})" if parameters else "EXECUTE asked"
    with store._database.writing() as connection:
        driver = connection.connection.driver_connection
        assert isinstance(driver, psycopg.Connection)
        cursor = psycopg.ClientCursor(driver)  # EXECUTE takes no parameters.
        for setting in settings:
            cursor.execute(setting)
        cursor.execute(f"PREPARE asked AS {numbered}")
        try:
            row = cursor.execute(f"EXPLAIN (FORMAT JSON) {execute}", parameters or None).fetchone()
        finally:
            cursor.execute("DEALLOCATE asked")
    assert row is not None
    found = row[0] if isinstance(row[0], list) else json.loads(row[0])
    plan: Step = found[0]["Plan"]
    return plan


def scans_of(step: Step) -> list[Mapping[str, str]]:
    """The steps that read a table."""
    below: Sequence[Step] = step.get("Plans", ())  # type: ignore[assignment]
    own = [step] if "Scan" in str(step["Node Type"]) and "Relation Name" in step else []
    return [*own, *(each for part in below for each in scans_of(part))]  # type: ignore[list-item]
