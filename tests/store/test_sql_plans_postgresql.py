"""How PostgreSQL finds what workers ask for: by indexes, whether or not it knows how large its tables are.

A table that was just filled has no statistics, and the plan of a prepared statement is made without its parameters. In
neither case may a statement read one of the large tables from end to end.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import psycopg
import pytest
from sqlalchemy import Table, func, insert, literal, select

from rota.domain.identity import RunId
from rota.domain.run import Attempt, Progress, RunState
from rota.domain.settlement import Settlement
from rota.store.port import Delivery, Heartbeat
from rota.store.sql import SqlStore, cells, open_sql_store, rows
from rota.store.sql.rows import Values
from rota.store.sql.schema import attempts, outbox, runs, versions
from tests.contract.builders import HOUR, NINE, failure, loss, new_schedule, run_at, success
from tests.contract.steps import fence_of
from tests.postgresql import Databases
from tests.store.watch import Ask, Asked, asked_of

COUNT = 20_000
"""Of each kind of run: a table of some megabytes, which it would rather read than probe for a thousand rows."""
BATCH = 400
LARGE = {"runs", "outbox", "attempts", "versions"}
IN_ORDER = {"Index Scan", "Index Only Scan"}
FOUND_BY_INDEX = {*IN_ORDER, "Bitmap Heap Scan"}
JOBS = ["sales_report", "mail", "echo"]
NEW = new_schedule()
RUN = run_at(NEW.schedule, NINE)
ATTEMPT = Attempt(
    run_id=RUN.run_id,
    number=1,
    worker="worker-0",
    opened_at=NINE - HOUR,
    lease_expires_at=NINE - HOUR / 2,
)

INTENT: Values = {"job": RUN.job, "available_at": cells.millis(NINE), "run_id": RUN.run_id, "attempt": 1}


@pytest.fixture(scope="module", params=["never analysed", "analysed"])
def large_store(request: pytest.FixtureRequest, postgresql: Databases) -> Iterator[SqlStore]:
    store = open_sql_store(postgresql.make())
    with store._database.writing() as connection:
        for table in LARGE:
            connection.exec_driver_sql(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
    fill(store)
    if request.param == "analysed":
        with store._database.writing() as connection:
            connection.exec_driver_sql("ANALYZE")
    yield store
    store.close()


@pytest.fixture(scope="module")
def asked(large_store: SqlStore) -> dict[str, list[Asked]]:
    """Of each call, what it asks when it finds what it is for."""
    found = {}
    for name, ask in ASKS.items():
        with asked_of(large_store) as statements:
            ask(large_store)
        found[name] = statements
    return found


def fill(store: SqlStore) -> None:
    running = replace(RUN, state=RunState.RUNNING, attempt=1)
    ended = replace(running, state=RunState.SUCCEEDED, finished_at=NINE)
    for kind, run in (("queued", RUN), ("running", running), ("ended", ended)):
        multiply(store, runs, rows.run_values(run), kind)
        multiply(store, versions, rows.version_values(NEW.first.version), kind)
    multiply(store, outbox, INTENT, "queued")
    multiply(store, attempts, rows.attempt_values(ATTEMPT, partition=0), "running")
    closed = replace(ATTEMPT, finished_at=NINE)
    multiply(store, attempts, rows.attempt_values(closed, partition=0), "ended")


def multiply(store: SqlStore, table: Table, values: Values, kind: str) -> None:
    """Writes `COUNT` rows with these values but for their ids, which are `<kind>-<number>`."""
    id_ = func.concat(f"{kind}-", func.generate_series(0, COUNT - 1))
    with store._database.writing() as connection:
        columns = [
            id_ if name in {"run_id", "schedule_id"} else literal(value, table.c[name].type)
            for name, value in values.items()
        ]
        connection.execute(insert(table).from_select(list(values), select(*columns)))


def ids(kind: str, batch: int) -> list[RunId]:
    return [RunId(f"{kind}-{number}") for number in range(batch * BATCH, (batch + 1) * BATCH)]


def open_copies(store: SqlStore) -> None:
    copies = [
        Delivery(run_id=run_id, attempt=1, job=RUN.job, available_at=NINE) for run_id in ids("queued", 40)
    ]
    assert all(store.commit_openings("worker-1", copies, now=NINE))


def claim(store: SqlStore) -> None:
    assert len(store.commit_claims("worker-1", JOBS, now=NINE, limit=BATCH)) == BATCH


def beat(store: SqlStore) -> None:
    beats = [
        Heartbeat(run_id=run_id, attempt=1, lease_expires_at=NINE + HOUR, progress=Progress(fraction=0.5))
        for run_id in ids("running", 0)
    ]
    store.commit_heartbeats(beats, now=NINE)


def settle(store: SqlStore) -> None:
    ends: list[Settlement] = [success(run_id, at=NINE) for run_id in ids("running", 1)]
    ends += [failure(run_id, at=NINE, retry_at=NINE + HOUR) for run_id in ids("running", 2)]
    assert all(store.commit_settlements(ends))


def recover(store: SqlStore) -> None:
    fence = fence_of(store, 0)
    lost = store.read_lost([0], now=NINE, limit=BATCH)
    assert len(lost) == BATCH
    ends = [loss(entry.attempt.run_id, at=NINE, retry_at=NINE) for entry in lost]
    assert all(store.commit_settlements(ends, fences=[fence]))


ASKS: Mapping[str, Ask] = {
    "commit_claims": claim,
    "commit_openings": open_copies,
    "commit_heartbeats": beat,
    "commit_settlements": settle,
    "recovery": recover,
    "read_deliveries": lambda store: store.read_deliveries(JOBS, now=NINE, limit=BATCH),
    "read_next_delivery_time": lambda store: store.read_next_delivery_time(JOBS),
}


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("name", ASKS)
def test_a_hot_call_reads_no_large_table_from_end_to_end(
    large_store: SqlStore, asked: Mapping[str, list[Asked]], name: str, mode: str
) -> None:
    settings = [statement for statement, _ in asked[name] if statement.startswith("SET LOCAL")]
    settings.append(f"SET LOCAL plan_cache_mode = {mode}")
    plans = [
        (statement, plan_of(large_store, (statement, given), settings))
        for statement, given in asked[name]
        if statement not in settings
    ]
    assert any(scans_of(plan) for _, plan in plans)
    for statement, plan in plans:
        for step in scans_of(plan):
            if step["Relation Name"] in LARGE:
                assert step["Node Type"] in FOUND_BY_INDEX, (statement, plan)
            if step["Relation Name"] == "outbox":
                # In the order of its key: else all that is available would be read and sorted for a few of it.
                assert step["Node Type"] in IN_ORDER, (statement, plan)


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
