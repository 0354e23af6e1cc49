"""What a store asks of SQLite, how SQLite finds it, and at what cost: for the tests of plans."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, event, insert

from rota.domain.run import Attempt
from rota.domain.schedule import Schedule
from rota.store.sql import SqlStore, rows
from rota.store.sql.outbox import write_intents
from rota.store.sql.schema import attempts, runs, schedules, versions
from tests.contract.builders import HOUR, NINE, new_schedule, planned_run_at, run_at
from tests.contract.steps import PARTITIONS

Ask = Callable[[SqlStore], object]
Asked = tuple[str, object]
"""A statement and its parameters, or a list of them where it is executed for many rows."""


def schedule_of(number: int) -> Schedule:
    """Every second one is due."""
    due = NINE - HOUR if number % 2 == 0 else NINE + HOUR
    return new_schedule(f"s{number:04d}", due=due, partition=number % PARTITIONS).schedule


def fill(store: SqlStore, numbers: range) -> None:
    """Schedules, each with runs: one waiting, one whose lease goes on, one planned ahead; and a closed attempt."""
    made = [schedule_of(number) for number in numbers]
    queued = [run_at(schedule, NINE - HOUR) for schedule in made]
    running = [run_at(schedule, NINE - 2 * HOUR) for schedule in made]
    planned = [planned_run_at(schedule, NINE + HOUR) for schedule in made]
    with store._database.writing() as connection:
        connection.execute(insert(schedules), [rows.schedule_values(schedule) for schedule in made])
        connection.execute(
            insert(versions),
            [rows.version_values(new_schedule(schedule.schedule_id).first.version) for schedule in made],
        )
        connection.execute(insert(runs), [rows.run_values(run) for run in [*queued, *running, *planned]])
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
def asked_of(store: SqlStore) -> Iterator[list[Asked]]:
    """The statements that the store executes meanwhile, but for those that begin and end transactions."""
    asked: list[Asked] = []

    def note(_: Connection, cursor: object, statement: str, parameters: object, *more: object) -> None:
        if not statement.startswith(("BEGIN", "SAVEPOINT", "RELEASE")):
            asked.append((statement, parameters))

    engines = (store._database._readers, store._database._writers)
    for engine in engines:
        event.listen(engine, "before_cursor_execute", note)
    yield asked
    for engine in engines:
        event.remove(engine, "before_cursor_execute", note)


def plan_of(store: SqlStore, asked: Asked) -> list[str]:
    """The steps in which SQLite does it."""
    statement, parameters = asked
    first = parameters[0] if isinstance(parameters, list) else parameters
    assert isinstance(first, tuple)
    with store._database.writing() as connection:
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", first)
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
