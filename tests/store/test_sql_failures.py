"""What becomes of a commit that PostgreSQL gives up or cuts off: tried again where that may help, else told of."""

import inspect
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from unittest.mock import MagicMock

import psycopg
import pytest
from sqlalchemy import Connection, event

from rota.domain.identity import RunId
from rota.domain.job import Job
from rota.store.port import RunFilter, StoreUnavailable
from rota.store.sql import SqlStore, open_sql_store
from rota.store.sql.batches import WRITING
from rota.store.sql.engine import TRIES_MAX, GivenUp
from tests.contract.builders import NINE, admission
from tests.contract.steps import create, fence_of

IMPATIENT = timedelta(milliseconds=300)


@pytest.fixture
def store(url: str) -> Iterator[SqlStore]:
    opened = open_sql_store(url, busy_timeout=IMPATIENT)
    yield opened
    opened.close()


def raise_at(store: SqlStore, table: str, code: str, *, times: int) -> list[str]:
    """Has the server raise the code in the next `times` statements that write the table; the list grows with each."""
    raised: list[str] = []

    def fail(connection: Connection, _: object, statement: str, *others: object) -> None:
        if len(raised) < times and statement.startswith((f"INSERT INTO {table}", f"UPDATE {table}")):
            raised.append(statement)
            connection.exec_driver_sql(
                f"DO $$ BEGIN RAISE EXCEPTION 'given up' USING ERRCODE = '{code}'; END $$"
            )

    event.listen(store._database._writers, "before_cursor_execute", fail)
    return raised


@pytest.mark.parametrize("code", ["40001", "40P01"])
def test_what_is_given_up_for_others_is_done_again_and_once(store: SqlStore, code: str) -> None:
    schedule, fence = create(store), fence_of(store, 0)
    raised = raise_at(store, "runs", code, times=TRIES_MAX - 1)
    [outcome] = store.commit_admissions(fence, [admission(schedule)], now=NINE)
    assert (outcome, len(raised)) == ("admitted", TRIES_MAX - 1)
    assert len(store.list_runs(RunFilter(), before=None, limit=10)) == 1
    assert len(store.read_intents(["sales_report"], now=NINE, limit=10)) == 1


def test_what_is_always_given_up_is_told_of_at_last(store: SqlStore) -> None:
    raised = raise_at(store, "jobs", "40001", times=100)
    with pytest.raises(StoreUnavailable, match="given up"):
        store.commit_job(Job(name="mail"), now=NINE)
    assert len(raised) == TRIES_MAX
    assert store.get_job("mail") is None


class Anything:
    """It has whatever is asked of it; it is long, but nothing comes of a walk through it."""

    def __getattr__(self, name: str) -> "Anything":
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[object]:
        return iter(())


GIVEN: dict[object, object] = {datetime: NINE, int: 1, str: "x", RunId: RunId("x"), Job: Job(name="mail")}


@pytest.mark.parametrize("method", sorted(name for name in dir(SqlStore) if name.startswith(WRITING)))
def test_every_commit_is_tried_as_often_as_one_may_be(method: str) -> None:
    """What it is handed does not matter: each transaction is given up as it begins."""
    database = MagicMock()
    database.writing.side_effect = GivenUp("given up")
    commit = getattr(SqlStore(database), method)
    parameters = inspect.signature(commit).parameters.values()
    values = {value.name: GIVEN.get(value.annotation, Anything()) for value in parameters}
    with pytest.raises(StoreUnavailable, match="given up"):
        commit(**values)
    assert database.writing.call_count == TRIES_MAX


def test_what_can_be_walked_through_once_is_there_for_the_second_try_too(store: SqlStore) -> None:
    fence = fence_of(store, 0)
    raise_at(store, "partitions", "40P01", times=1)
    store.commit_checkpoints(iter([(fence, NINE)]))
    assert store.list_partitions()[0].checkpoint == NINE


def test_two_that_wait_for_each_other_both_come_through(url: str) -> None:
    """A real deadlock: each holds a job of the other's, and the server ends one."""
    stores = [open_sql_store(url), open_sql_store(url)]
    for name in ("a", "b"):
        stores[0].commit_job(Job(name=name), now=NINE)
    both = threading.Barrier(2, timeout=20)
    met: set[int] = set()

    def work(number: int) -> None:
        own, other = ("a", "b") if number == 0 else ("b", "a")

        def hold_own(connection: Connection, _: object, statement: str, *others: object) -> None:
            if statement.startswith("SELECT jobs.max_running") and number not in met:
                met.add(number)
                connection.exec_driver_sql("SELECT 1 FROM jobs WHERE name = %s FOR UPDATE", (own,))
                both.wait()

        event.listen(stores[number]._database._writers, "before_cursor_execute", hold_own)
        stores[number].commit_job(Job(name=other, description=f"by {number}"), now=NINE)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, range(2)))
    jobs = {job.name: job.description for job in stores[0].list_jobs(after=None, limit=10)}
    assert jobs == {"a": "by 1", "b": "by 0"}
    for store in stores:
        store.close()


def test_a_lock_that_is_held_too_long_is_told_of_in_a_line(url: str, store: SqlStore) -> None:
    store.commit_job(Job(name="mail"), now=NINE)
    with psycopg.connect(url) as holder:
        holder.execute("SELECT * FROM jobs FOR UPDATE")
        with pytest.raises(StoreUnavailable, match="lock timeout") as caught:
            store.commit_job(Job(name="mail"), now=NINE)
    assert "\n" not in str(caught.value)
    assert not store.commit_job(Job(name="mail", description="later"), now=NINE)


def test_a_connection_that_is_cut_off_between_two_calls_is_not_noticed(url: str, store: SqlStore) -> None:
    store.ping()
    assert store.commit_job(Job(name="mail"), now=NINE)
    assert cut_off(url) > 0
    store.ping()
    assert not store.commit_job(Job(name="mail"), now=NINE)


def test_a_connection_that_is_cut_off_within_a_commit_leaves_nothing_and_is_replaced(
    url: str, store: SqlStore
) -> None:
    schedule, fence = create(store), fence_of(store, 0)
    done: list[int] = []

    def cut(_: Connection, cursor: object, statement: str, *others: object) -> None:
        if not done and statement.startswith("INSERT INTO runs"):
            done.append(cut_off(url))

    event.listen(store._database._writers, "after_cursor_execute", cut)
    with pytest.raises(StoreUnavailable, match=r"terminat|closed"):
        store.commit_admissions(fence, [admission(schedule)], now=NINE)
    assert store.list_runs(RunFilter(), before=None, limit=10) == []
    assert store.commit_admissions(fence, [admission(schedule)], now=NINE) == ["admitted"]


def test_no_failure_keeps_a_connection_from_the_pool(url: str, store: SqlStore) -> None:
    """More failures than the pool has connections."""
    for number in range(40):
        raised = raise_at(store, "jobs", "57014", times=1)
        with pytest.raises(StoreUnavailable):
            store.commit_job(Job(name=f"job-{number}"), now=NINE)
        assert raised
        store.ping()
    assert store._database._writers.pool.checkedout() == 0  # type: ignore[attr-defined]  # a QueuePool's


def test_a_full_pool_is_told_of_and_serves_again(store: SqlStore) -> None:
    size = store._database._writers.pool.size()  # type: ignore[attr-defined]  # a QueuePool's
    held = [store._database._writers.connect() for _ in range(size)]
    with pytest.raises(StoreUnavailable, match="waited too long for each other"):
        store.commit_job(Job(name="mail"), now=NINE)
    for connection in held:
        connection.close()
    assert store.commit_job(Job(name="mail"), now=NINE)


def test_a_server_that_takes_no_more_connections_is_told_of(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("CREATE ROLE rota_limited LOGIN CONNECTION LIMIT 0")
        try:
            with pytest.raises(StoreUnavailable, match="too many connections") as caught:
                open_sql_store(url.replace("rota@", "rota_limited@"))
        finally:
            admin.execute("DROP ROLE rota_limited")
    assert "\n" not in str(caught.value)


def cut_off(url: str) -> int:
    """How many connections of Rota to this database the server was told to end, which it has done by now."""
    with psycopg.connect(url, autocommit=True) as admin:
        ended = admin.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name = 'rota'"
        ).fetchall()
    return len(ended)
