"""Counting what is due costs what it counts, and no more: on both databases by the indexes that admission uses."""

from collections.abc import Iterator

import pytest
from sqlalchemy import insert

from rota.store.port import DueCount
from rota.store.sql import SqlStore, open_sql_store, rows
from rota.store.sql.schema import runs, schedules
from tests.contract.builders import DAY, NINE, new_schedule, planned_run_at
from tests.postgresql import Databases
from tests.store.watch import Ask, asked_of, machine_steps, plan_of

PARTITIONS = range(4)


def count(limit: int) -> Ask:
    return lambda store: store.count_due(PARTITIONS, now=NINE, limit=limit)


def fill(store: SqlStore, numbers: range) -> None:
    """Schedules, and planned runs of them, of which every second one is due."""
    made = [
        new_schedule(
            f"s{number:05d}", due=NINE + (number % 2) * DAY, partition=number // 2 % len(PARTITIONS)
        ).schedule
        for number in numbers
    ]
    planned = [planned_run_at(schedule, NINE + 2 * DAY, due=schedule.cursor.due_at) for schedule in made]
    with store._database.writing() as connection:
        connection.execute(insert(schedules), [rows.schedule_values(schedule) for schedule in made])
        connection.execute(insert(runs), [rows.run_values(run) for run in planned])


def test_sqlite_counts_by_the_partial_indexes(store: SqlStore) -> None:
    with asked_of(store) as asked:
        count(10)(store)
    [steps] = [plan_of(store, each) for each in asked]
    assert [
        step for step in steps if step.startswith("SCAN") and ("schedules" in step or "runs" in step)
    ] == []
    assert len([step for step in steps if "ix_schedules_due" in step]) == 1
    assert len([step for step in steps if "ix_runs_planned" in step]) == 1


def test_the_cost_is_that_of_what_is_counted(store: SqlStore) -> None:
    fill(store, range(100))
    count(10)(store)
    small = machine_steps(store, count(10))
    fill(store, range(100, 3_000))
    assert machine_steps(store, count(10)) <= small * 1.2


@pytest.fixture
def filled(postgresql: Databases) -> Iterator[SqlStore]:
    url = postgresql.lend()
    store = open_sql_store(url)
    fill(store, range(4_000))
    with store._database.writing() as connection:
        connection.exec_driver_sql("ANALYZE schedules, runs")
    yield store
    store.close()
    postgresql.give_back(url)


def test_postgresql_reads_as_many_entries_as_it_counts(filled: SqlStore) -> None:
    with asked_of(filled) as asked:
        told = filled.count_due(PARTITIONS, now=NINE, limit=10)
    assert told == dict.fromkeys(PARTITIONS, DueCount(schedules=10, planned=10))
    statement, parameters = next(each for each in asked if each[0].startswith("WITH"))
    assert isinstance(parameters, tuple)
    with filled._database.reading() as connection:
        lines = connection.exec_driver_sql(
            f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, BUFFERS OFF) {statement}", parameters
        )
        plan = [line for (line,) in lines]
    text = "\n".join(plan)
    scans = [line for line in plan if " on schedules" in line or " on runs" in line]
    assert len(scans) == 2, text
    for scan, index in zip(scans, ("ix_schedules_due", "ix_runs_planned"), strict=True):
        assert index in scan, text
        assert "rows=10.00 loops=4" in scan or "rows=10 loops=4" in scan, text
