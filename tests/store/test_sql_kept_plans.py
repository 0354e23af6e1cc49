"""PostgreSQL keeps the plans of prepared statements: those made while a table was empty have to serve a full one."""

from collections.abc import Iterator

import pytest

from rota.store.sql import SqlStore, open_sql_store
from tests.postgresql import Databases

PARTITIONS = range(4)
STEPS = 15
"""So many that the driver has prepared the statement, and the server has kept one plan for all parameters."""

SCANS = "SELECT sum(seq_scan) FROM pg_stat_user_tables WHERE relname IN ('runs', 'schedules')"


@pytest.fixture
def store(postgresql: Databases) -> Iterator[SqlStore]:
    url = postgresql.lend()
    store = open_sql_store(url)
    yield store
    store.close()
    postgresql.give_back(url)


def test_what_is_due_is_found_by_indexes_though_the_tables_were_empty_at_first(store: SqlStore) -> None:
    with store._database.outside_transactions() as connection:
        connection.exec_driver_sql("VACUUM ANALYZE schedules, runs")
    before = scans_of(store)
    for _ in range(STEPS):
        store.read_due_times(PARTITIONS)
    assert scans_of(store) == before


def scans_of(store: SqlStore) -> int:
    """Scans of whole tables by this store, which has one connection as long as one thread uses it."""
    with store._database.reading() as connection:
        connection.exec_driver_sql("SELECT pg_stat_force_next_flush()")
    with store._database.reading() as connection:
        return int(str(connection.exec_driver_sql(SCANS).scalar_one()))
