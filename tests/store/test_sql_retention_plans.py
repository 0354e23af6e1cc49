"""How PostgreSQL finds what is old in a large history: by index ranges, never by reading a table from end to end."""

import re
from collections.abc import Iterator
from contextlib import closing

import pytest

from rota.domain.identity import RunId
from rota.domain.instants import to_millis
from rota.store.port import LedgerKey
from rota.store.sql import SqlStore, open_sql_store
from tests.contract.builders import DAY, NINE
from tests.postgresql import Databases
from tests.store.watch import Asked, asked_of

DAYS = 60
SCHEDULES = 2_000
LIMIT = 100
SECOND_PAGE = LedgerKey(instant=NINE + 3 * DAY, id_="s7")
LONE_PLACE = LedgerKey(instant=NINE + 5 * DAY, id_="s100.1.5")
"""Behind it come s1000 and s1001."""

FILL = (
    """
    INSERT INTO schedules (id, slot, partition, job, labels, status, version, next_scheduled_at, next_due,
                           latest_version, revision, created_at, updated_at, history_from, definition_digest)
    SELECT 's' || n, n, mod(n, 4), 'sales_report', '{}', 'active', 1, {end}, {end}, 1, 1, {begin}, {begin}, {begin}, ''
      FROM generate_series(1, {schedules}) AS n
    """,
    """
    INSERT INTO runs (run_id, schedule_id, version, scheduled_at, due_at, named_local, offset_seconds, period_key,
                      origin, job, partition, state, attempt, second_pass)
    SELECT 's' || n || '.1.' || day, 's' || n, 1, at, at, at, 0, 'day:' || day, 'schedule', 'sales_report',
           mod(n, 4), 'succeeded', 1, false
      FROM generate_series(1, {schedules}) AS n, generate_series(0, {days} - 1) AS day,
           LATERAL (SELECT {begin} + day * 86400000::bigint AS at) AS instant
    """,
    """
    INSERT INTO attempts (run_id, number, worker, partition, opened_at, lease_expires_at, finished_at, outcome)
    SELECT run_id, 1, 'worker-1', partition, due_at, due_at, due_at, 'succeeded' FROM runs
    """,
    "INSERT INTO results (run_id, result) SELECT run_id, '7' FROM runs",
    """
    INSERT INTO skips (schedule_id, from_at, version, reason, until_at, count)
    SELECT schedule_id, scheduled_at + 1, 1, 'superseded', scheduled_at + 2, 1 FROM runs WHERE {few}
    """,
    """
    INSERT INTO suspensions (schedule_id, from_at, until_at, reason, apply_overdue)
    SELECT schedule_id, scheduled_at + 1, scheduled_at + 2, 'paused', false FROM runs WHERE {few}
    """,
    """
    INSERT INTO audit (schedule_id, action, at, details)
    SELECT schedule_id, 'schedule.pause', scheduled_at, '{}' FROM runs WHERE {few}
    """,
    """
    INSERT INTO outbox (job, turn, available_at, run_id, attempt)
    SELECT 'sales_report', 0, {end} + n, 'x' || n, 1 FROM generate_series(1, 20000) AS n
    """,
)


@pytest.fixture(scope="module")
def large(postgresql: Databases) -> Iterator[SqlStore]:
    """Two months of daily runs, with all that lies beside them."""
    url = postgresql.lend()
    store = open_sql_store(url)
    values = {
        "{begin}": to_millis(NINE),
        "{end}": to_millis(NINE + DAYS * DAY),
        "{days}": DAYS,
        "{schedules}": SCHEDULES,
        "{few}": f"scheduled_at > {to_millis(NINE + 20 * DAY)} OR partition = 0 AND scheduled_at = {to_millis(NINE)}",
    }
    with closing(store), store._database.outside_transactions() as connection:
        for statement in (*FILL, "ANALYZE"):
            text = statement
            for name, value in values.items():
                text = text.replace(name, str(value))
            connection.exec_driver_sql(text)
        yield store
    postgresql.give_back(url)


def plan_of(store: SqlStore, asked: Asked) -> str:
    statement, parameters = asked
    first = parameters[0] if isinstance(parameters, list) else parameters
    with store._database.writing() as connection:
        plan = connection.exec_driver_sql(f"EXPLAIN {statement}", first)  # type: ignore[arg-type]  # as they were asked
        return "\n".join(str(line) for (line,) in plan)


def test_old_history_is_found_by_index_ranges(large: SqlStore) -> None:
    for after in (None, SECOND_PAGE):
        with asked_of(large) as asked:
            outcome = large.prune_history(before=NINE + 45 * DAY, after=after, limit=LIMIT)
        assert outcome.runs == LIMIT
        assert min(outcome.skips, outcome.suspensions, outcome.events) >= LIMIT // 5
        plans = [plan_of(large, entry) for entry in asked]
        assert len(plans) == 16
        for plan in plans:
            assert "Seq Scan" not in plan, plan
        assert re.search(r"Index (Only )?Scan using ix_runs_scheduled_at_run_id on runs", plans[0]), plans[0]
        assert "Sort" not in plans[0]
        beside = [
            plan
            for plan, entry in zip(plans, asked, strict=True)
            if re.match(r"SELECT (skips|susp|audit)", entry[0])
        ]
        assert len(beside) == 3
        for plan in beside:
            assert re.search(r"Index Cond: .*schedule_id = schedules\.id\) AND \(.*(from_at|at) < ", plan), (
                plan
            )


def test_a_schedule_that_somebody_is_at_work_on_is_left_and_not_waited_for(large: SqlStore) -> None:
    with large._database.writing() as connection:
        connection.exec_driver_sql("SELECT id FROM schedules WHERE id = 's1000' FOR UPDATE")
        outcome = large.prune_history(before=NINE + 45 * DAY, after=LONE_PLACE, limit=2)
    assert outcome.runs == 1
    assert large.get_run(RunId("s1000.1.5")) is not None
    assert large.get_run(RunId("s1001.1.5")) is None
