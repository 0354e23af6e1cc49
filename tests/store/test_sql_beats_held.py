"""Set-based admission on PostgreSQL while somebody holds the row of a schedule: nobody else has to wait for it."""

from collections.abc import Iterator

import psycopg
import pytest
from sqlalchemy import Connection, event

from rota.store.port import BeatsOutcome
from rota.store.sql import SqlStore, open_sql_store
from tests.conftest import NewDatabase
from tests.contract.beating import LONG_AGO, beats_of
from tests.contract.builders import NINE, new_schedule
from tests.contract.steps import PARTITIONS, create, deliveries, fence_of, hold
from tests.store.watch import asked_of

SCHEDULES = 200
HELD = new_schedule("s007", partition=3)
HOLD = "SELECT * FROM schedules WHERE id = 's007' FOR UPDATE"


@pytest.fixture
def url(new_database: NewDatabase) -> str:
    return new_database("postgresql")


@pytest.fixture
def store(url: str) -> Iterator[SqlStore]:
    store = open_sql_store(url)
    hold(store)
    for number in range(SCHEDULES):
        create(store, new_schedule(f"s{number:03d}", partition=number % PARTITIONS))
    yield store
    store.close()


@pytest.fixture
def other(url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(url) as connection:
        yield connection


def beat(store: SqlStore, *, each: int = SCHEDULES) -> BeatsOutcome:
    fences = [fence_of(store, partition) for partition in range(PARTITIONS)]
    return store.commit_beats(fences, beats_of(HELD, NINE), after=LONG_AGO, now=NINE, each=each)


def test_all_others_are_admitted_and_it_is_when_it_is_let_go(
    store: SqlStore, other: psycopg.Connection
) -> None:
    other.execute(HOLD)
    assert beat(store) == BeatsOutcome(admitted=SCHEDULES - 1)
    assert beat(store) == BeatsOutcome()
    other.rollback()
    assert beat(store) == BeatsOutcome(admitted=1)
    assert len(deliveries(store)) == SCHEDULES


def test_it_takes_no_place_of_another(store: SqlStore, other: psycopg.Connection) -> None:
    other.execute(HOLD)
    assert beat(store, each=3).admitted == 3 * PARTITIONS


def test_only_the_first_commit_of_a_burst_waits_for_it(store: SqlStore, other: psycopg.Connection) -> None:
    waited: list[str] = []

    def note(_: Connection, cursor: object, statement: str, *more: object) -> None:
        if statement.startswith("SET LOCAL lock_timeout = "):
            waited.append(statement)

    event.listen(store._database._writers, "before_cursor_execute", note)
    other.execute(HOLD)
    while beat(store, each=10).admitted:
        pass
    assert len(waited) == 1
    other.rollback()
    assert beat(store).admitted == 1
    assert len(waited) == 2, "when the burst is over it chooses without locks again"


def test_what_another_changed_before_it_let_go_is_heeded(store: SqlStore, other: psycopg.Connection) -> None:
    other.execute(HOLD)
    assert beat(store, each=1).admitted == PARTITIONS
    other.execute("UPDATE schedules SET status = 'paused', revision = revision + 1 WHERE id = 's007'")
    other.commit()
    assert beat(store).admitted == SCHEDULES - PARTITIONS - 1


def test_for_a_fence_and_for_the_commit_it_waits_as_long_as_ever(store: SqlStore) -> None:
    with asked_of(store) as asked:
        beat(store, each=1)
    statements = [statement for statement, _ in asked]
    [shortly] = [
        place for place, each in enumerate(statements) if each.startswith("SET LOCAL lock_timeout = ")
    ]
    [fences] = [place for place, each in enumerate(statements) if each.endswith("FOR SHARE")]
    [as_ever] = [
        place for place, each in enumerate(statements) if each == "SET LOCAL lock_timeout TO DEFAULT"
    ]
    assert fences + 1 == shortly == as_ever - 2
