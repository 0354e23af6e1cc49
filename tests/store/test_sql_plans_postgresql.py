"""How PostgreSQL finds what workers ask for: by indexes, whether or not it knows how large its tables are.

A table that was just filled has no statistics, and the plan of a prepared statement is made without its parameters. In
neither case may a statement read one of the large tables from end to end.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
from sqlalchemy import Table, func, insert, literal, select

from rota.domain.identity import RunId
from rota.domain.run import Attempt, Progress, RunState
from rota.domain.settlement import Settlement
from rota.store.port import Heartbeat, Intent
from rota.store.sql import SqlStore, cells, rows
from rota.store.sql.rows import Values
from rota.store.sql.schema import attempts, outbox, runs, versions
from tests.contract.builders import HOUR, NINE, failure, loss, new_schedule, run_at, success
from tests.contract.steps import fence_of, wanted
from tests.postgresql import Databases
from tests.store.postgresql_plans import (
    FOUND_BY_INDEX,
    IN_ORDER,
    asked_by,
    large_store_of,
    plan_of,
    scans_of,
)
from tests.store.watch import Ask, Asked

COUNT = 20_000
"""Of each kind of run: a table of some megabytes, which it would rather read than probe for a thousand rows."""
BATCH = 400
LARGE = {"runs", "outbox", "attempts", "versions"}
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

INTENT: Values = {
    "job": RUN.job,
    "turn": 0,
    "available_at": cells.millis(NINE),
    "run_id": RUN.run_id,
    "attempt": 1,
}


@pytest.fixture(scope="module", params=["never analysed", "analysed"])
def large_store(request: pytest.FixtureRequest, postgresql: Databases) -> Iterator[SqlStore]:
    with large_store_of(
        postgresql, tables=LARGE, fill=fill, is_analysed=request.param == "analysed"
    ) as store:
        yield store


@pytest.fixture(scope="module")
def asked(large_store: SqlStore) -> dict[str, list[Asked]]:
    return asked_by(large_store, ASKS)


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
        Intent(run_id=run_id, attempt=1, job=RUN.job, available_at=NINE) for run_id in ids("queued", 40)
    ]
    assert all(store.commit_openings("worker-1", copies, now=NINE))


def claim(store: SqlStore) -> None:
    assert len(store.commit_claims("worker-1", wanted(*JOBS), now=NINE, limit=BATCH)) == BATCH


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
    "read_intents": lambda store: store.read_intents(JOBS, now=NINE, limit=BATCH),
    "read_next_intent_time": lambda store: store.read_next_intent_time(JOBS),
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
