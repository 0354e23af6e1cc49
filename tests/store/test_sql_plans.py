"""How SQLite finds what the hot calls ask for: by an index, at a cost that the size of the store does not change."""

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection, event, insert

from rota.domain.run import Attempt
from rota.domain.schedule import Schedule
from rota.store.port import AdmissionOutcome, LedgerKey, RunFilter, ScheduleFilter, ZoneRules
from rota.store.sql import SqlStore, rows
from rota.store.sql.outbox import write_intents
from rota.store.sql.schema import attempts, metadata, runs, schedules, skips, versions
from tests.contract.builders import DAY, HOUR, MINUTE, NINE, SECOND, admission, new_schedule, run_at, skip_at
from tests.contract.steps import PARTITIONS, hold

Ask = Callable[[SqlStore], object]

JOBS = ["sales_report", "mail"]
OTHER_RULES = ZoneRules(timezone="Asia/Tokyo", fingerprint="other")
BEFORE = LedgerKey(instant=NINE + DAY, id_="x")
HOT_READS: dict[str, Ask] = {
    "read_due_times": lambda store: store.read_due_times(range(PARTITIONS)),
    "read_due": lambda store: store.read_due(0, now=NINE, limit=3),
    "read_due but some": lambda store: store.read_due(0, now=NINE, limit=3, excluding=[OTHER_RULES]),
    "read_deliveries": lambda store: store.read_deliveries(JOBS, now=NINE, limit=3),
    "read_next_delivery_time": lambda store: store.read_next_delivery_time(JOBS),
    "read_lost": lambda store: store.read_lost([0], now=NINE, limit=3),
    "list_runs": lambda store: store.list_runs(RunFilter(), before=BEFORE, limit=3),
    "list_ledger": lambda store: store.list_ledger(_schedule(1).schedule_id, before=BEFORE, limit=3),
    "list_schedules": lambda store: store.list_schedules(
        ScheduleFilter(), after=_schedule(1).schedule_id, limit=3
    ),
    "get_schedule": lambda store: store.get_schedule(_schedule(1).schedule_id),
}


@pytest.mark.parametrize("name", HOT_READS)
def test_a_hot_read_scans_no_table_and_sorts_no_table(store: SqlStore, name: str) -> None:
    with seen_statements(store) as statements:
        HOT_READS[name](store)
    with store._database.reading() as connection:
        steps = [step for statement in statements for step in plan_of(connection, *statement)]
    scanned = {match[1] for step in steps if (match := re.match(r"SCAN (\w+)", step))}
    assert scanned.isdisjoint(metadata.tables)
    assert any(step.startswith("SEARCH") for step in steps)
    if name != "read_lost":  # Whose few rows come from several partitions.
        assert not [step for step in steps if "TEMP B-TREE" in step]


def test_due_schedules_are_found_by_their_partial_index(store: SqlStore) -> None:
    for name in ("read_due_times", "read_due", "read_due but some"):
        with seen_statements(store) as statements:
            HOT_READS[name](store)
        with store._database.reading() as connection:
            assert any("USING INDEX ix_schedules_due" in step for step in plan_of(connection, *statements[0]))


@pytest.mark.parametrize("name", HOT_READS)
def test_a_hot_read_costs_the_same_in_a_large_store(store: SqlStore, name: str) -> None:
    fill(store, range(20))
    HOT_READS[name](store)  # For what is done at a connection's first use.
    small = machine_steps(store, HOT_READS[name])
    fill(store, range(20, 1_000))
    assert machine_steps(store, HOT_READS[name]) <= small * 1.5


def test_a_skip_costs_the_same_however_many_its_schedule_has(store: SqlStore) -> None:
    [fence, *_] = hold(store)
    fill(store, range(20))
    first, few, many = (_schedule(number * PARTITIONS) for number in range(3))
    outcomes: list[AdmissionOutcome] = []
    with store._database.writing() as connection:
        for number in range(1_000):
            from_ = NINE - DAY + number * MINUTE
            connection.execute(insert(skips), [rows.skip_values(skip_at(many, from_, from_ + SECOND))])

    def admit(schedule: Schedule) -> Ask:
        skipped = admission(schedule, runs=[], skips=[skip_at(schedule, NINE, NINE + HOUR)])
        return lambda store: outcomes.extend(store.commit_admissions(fence, [skipped], now=NINE))

    admit(first)(store)
    steps = machine_steps(store, admit(few))
    assert machine_steps(store, admit(many)) <= steps * 1.5
    assert outcomes == [AdmissionOutcome.ADMITTED] * 3


def _schedule(number: int) -> Schedule:
    """Every second one is due."""
    due = NINE - HOUR if number % 2 == 0 else NINE + HOUR
    return new_schedule(f"s{number:04d}", due=due, partition=number % PARTITIONS).schedule


def fill(store: SqlStore, numbers: range) -> None:
    """Schedules, each with a waiting run, a running one whose lease goes on, and a closed attempt."""
    made = [_schedule(number) for number in numbers]
    queued = [run_at(schedule, NINE - HOUR) for schedule in made]
    running = [run_at(schedule, NINE - 2 * HOUR) for schedule in made]
    with store._database.writing() as connection:
        connection.execute(insert(schedules), [rows.schedule_values(schedule) for schedule in made])
        connection.execute(
            insert(versions),
            [rows.version_values(new_schedule(schedule.schedule_id).version) for schedule in made],
        )
        connection.execute(insert(runs), [rows.run_values(run) for run in [*queued, *running]])
        write_intents(connection, queued)
        for number, finished_at in ((1, NINE - HOUR), (2, None)):
            connection.execute(
                insert(attempts),
                [
                    rows.attempt_values(
                        Attempt(
                            run_id=run.run_id,
                            number=number,
                            worker="worker-1",
                            opened_at=NINE - HOUR,
                            lease_expires_at=NINE + (HOUR if finished_at is None else -HOUR),
                            finished_at=finished_at,
                        ),
                        partition=run.partition,
                    )
                    for run in running
                ],
            )


@contextmanager
def seen_statements(store: SqlStore) -> Iterator[list[tuple[str, object]]]:
    """The statements that the store's readers execute meanwhile, each with its parameters."""
    seen: list[tuple[str, object]] = []

    def note(_: Connection, cursor: object, statement: str, parameters: object, *more: object) -> None:
        if not statement.startswith("BEGIN"):
            seen.append((statement, parameters))

    event.listen(store._database._readers, "before_cursor_execute", note)
    yield seen
    event.remove(store._database._readers, "before_cursor_execute", note)


def plan_of(connection: Connection, statement: str, parameters: object) -> list[str]:
    assert isinstance(parameters, tuple)
    plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
    return [detail for *_, detail in plan]


def machine_steps(store: SqlStore, ask: Ask) -> int:
    """How many instructions of its virtual machine SQLite takes to answer: a time that no other load disturbs."""
    count = 0

    def step() -> int:
        nonlocal count
        count += 1
        return 0

    def watch(connection: sqlite3.Connection, *_: object) -> None:
        connection.set_progress_handler(step, 1)

    engines = (store._database._readers, store._database._writers)
    for engine in engines:
        event.listen(engine, "checkout", watch)
    ask(store)
    for engine in engines:
        event.remove(engine, "checkout", watch)
    return count
