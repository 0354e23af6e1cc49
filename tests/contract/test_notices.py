"""The notices protocol: whoever listens hears of what was committed, and of nothing else."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import psycopg
import pytest

from rota.domain.job import Job
from rota.domain.run import RunState
from rota.domain.schedule import ScheduleStatus
from rota.domain.sink import CelerySink
from rota.store.port import Answer, Creation, Fence, Notice, Store
from rota.store.port.notices import SOON
from rota.store.sql import SqlStore, open_sql_store
from rota.store.sql.databases import open_database
from rota.store.sql.notices import notify
from tests.conftest import NewDatabase, OpenStore
from tests.contract.builders import (
    HOUR,
    MADE_AT,
    MILLISECOND,
    MINUTE,
    NINE,
    SECOND,
    change_of,
    change_to,
    cursor,
    failure,
    new_schedule,
    planned_run_at,
    run_at,
    status_change,
    success,
)
from tests.contract.ears import DEADLINE_SECONDS, Ears
from tests.contract.steps import (
    admit_runs,
    commit,
    create,
    fence_of,
    open_attempt,
    plan,
    queue_run,
    settle,
    wanted,
)

Listen = Callable[[Store], Ears]


@pytest.fixture
def listen() -> Iterator[Listen]:
    opened: list[Ears] = []

    def begin(store: Store) -> Ears:
        ears = Ears(store)
        opened.append(ears)
        if isinstance(store, SqlStore) and store._database._writers.dialect.name == "postgresql":
            # When it has begun to listen it cannot know what it has missed.
            ears.await_notices(*Notice)
        return ears

    yield begin
    for ears in opened:
        ears.close()


@pytest.fixture
def ears(store: Store, listen: Listen) -> Ears:
    return listen(store)


def create_due(store: Store, id_: str, due: datetime | None) -> None:
    """A schedule whose first instant is then; it is created at `MADE_AT`."""
    assert store.commit_creation(new_schedule(id_, due=due), now=MADE_AT) is Creation.CREATED


def test_a_place_that_is_free_again_is_heard_of(store: Store, ears: Ears) -> None:
    store.commit_job(Job(name="sales_report", max_running=1), now=MADE_AT)
    ears.await_notices(Notice.QUEUED)
    run = queue_run(store)
    open_attempt(store, run)
    queue_another(store)
    ears.await_notices(Notice.QUEUED)
    settle(store, success(run.run_id, at=NINE))
    ears.await_notices(Notice.QUEUED)


def test_a_place_that_an_answer_frees_is_heard_of(store: Store, ears: Ears) -> None:
    store.commit_job(Job(name="sales_report", max_running=1, sink=CelerySink(task="t")), now=MADE_AT)
    ears.await_notices(Notice.QUEUED)
    run = queue_run(store)
    store.commit_takes(wanted("sales_report"), now=NINE, lease=MINUTE, limit=1)
    queue_another(store)
    ears.await_notices(Notice.QUEUED)
    answer = Answer(run_id=run.run_id, attempt=1, opened_at=NINE, settlement=success(run.run_id, at=NINE))
    assert store.commit_answers("relay", [answer]) == [True]
    ears.await_notices(Notice.QUEUED)


def queue_another(store: Store) -> None:
    """Gives cause for QUEUED alone: notices come in the order of the commits, so what it follows was heard before."""
    queue_run(store, "another", partition=3)


def test_a_schedule_that_is_due_soon_is_heard_of(store: Store, ears: Ears) -> None:
    for number, due in enumerate([MADE_AT - HOUR, MADE_AT + SECOND, MADE_AT + SOON]):
        create_due(store, f"s{number}", due)
        ears.await_notices(Notice.DUE)


def test_a_schedule_that_a_look_finds_in_time_is_not_heard_of(store: Store, ears: Ears) -> None:
    create_due(store, "later", MADE_AT + SOON + MILLISECOND)
    create_due(store, "never", None)
    queue_another(store)
    ears.await_notices(Notice.QUEUED)


def test_a_notice_may_be_followed_at_once(store: Store, ears: Ears) -> None:
    looked = threading.Event()
    found: list[object] = []

    def look(notice: Notice) -> None:
        found.append(store.get_schedule(new_schedule("s1").schedule.schedule_id))
        looked.set()

    create_due(store, "s1", MADE_AT)
    ears.await_notices(Notice.DUE)
    subscription = store.subscribe(look)
    create_due(store, "s2", MADE_AT)
    assert looked.wait(DEADLINE_SECONDS)
    subscription.close()
    assert found[0] is not None


def test_a_change_that_makes_something_due_soon_is_heard_of(store: Store, ears: Ears) -> None:
    schedule = create(store)
    schedule = commit(store, replace(change_of(schedule, at=MADE_AT), cursor=cursor(MADE_AT + SECOND)))
    ears.await_notices(Notice.DUE)
    schedule = commit(store, status_change(schedule, ScheduleStatus.PAUSED, at=MADE_AT))
    commit(store, status_change(schedule, ScheduleStatus.ACTIVE, at=MADE_AT))
    ears.await_notices(Notice.DUE)


def test_a_change_that_makes_nothing_due_soon_is_not_heard_of(store: Store, ears: Ears) -> None:
    schedule = create(store)
    schedule = commit(store, change_of(schedule, at=MADE_AT))
    schedule = commit(store, replace(change_of(schedule, at=MADE_AT), cursor=cursor(NINE + HOUR)))
    commit(store, status_change(schedule, ScheduleStatus.PAUSED, at=MADE_AT))
    queue_another(store)
    ears.await_notices(Notice.QUEUED)


def test_a_planned_run_is_heard_of_where_it_is_due_soon(store: Store, ears: Ears) -> None:
    schedule = create(store)
    far = planned_run_at(schedule, NINE + HOUR)
    commit(store, replace(change_of(schedule, at=MADE_AT), expected_cursor=None, runs=(far,)))
    queue_another(store)
    ears.await_notices(Notice.QUEUED)
    near = planned_run_at(schedule, NINE + 2 * HOUR, due=MADE_AT + MINUTE)
    commit(store, replace(change_of(schedule, at=MADE_AT), expected_cursor=None, runs=(near,)))
    ears.await_notices(Notice.DUE)
    moved = replace(change_to(far, RunState.PLANNED), run=replace(far, due_at=MADE_AT + SECOND))
    commit(store, replace(change_of(schedule, at=MADE_AT), expected_cursor=None, run_changes=(moved,)))
    ears.await_notices(Notice.DUE)


def test_runs_that_are_queued_are_heard_of(store: Store, ears: Ears) -> None:
    schedule = create(store)
    admit_runs(store, schedule, run_at(schedule, NINE))
    ears.await_notices(Notice.QUEUED)


def test_planned_runs_that_fall_due_are_heard_of(store: Store, ears: Ears) -> None:
    schedule = create(store, new_schedule(due=NINE + HOUR))
    schedule = plan(store, schedule, planned_run_at(schedule, NINE + 2 * HOUR, due=NINE + HOUR))
    outcome = store.commit_planned(fence_of(store, 0), now=NINE + HOUR, limit=10)
    assert outcome.queued == 1
    ears.await_notices(Notice.QUEUED)


def test_a_run_on_request_is_heard_of(store: Store, ears: Ears) -> None:
    schedule = create(store)
    queued = replace(run_at(schedule, NINE), origin="manual", admitted_at=MADE_AT, available_at=MADE_AT)
    commit(store, replace(change_of(schedule, at=MADE_AT), expected_cursor=None, runs=(queued,)))
    ears.await_notices(Notice.QUEUED)


def test_of_settlements_the_retry_is_heard_of(store: Store, ears: Ears) -> None:
    for id_ in ("retried", "done"):
        open_attempt(store, queue_run(store, id_))
    ears.await_notices(Notice.QUEUED)
    assert settle(store, success("done.1.20260110T090000Z", at=NINE)) == [True]
    create_due(store, "s1", MADE_AT)
    ears.await_notices(Notice.DUE)
    assert settle(store, failure("retried.1.20260110T090000Z", at=NINE, retry_at=NINE + HOUR)) == [True]
    ears.await_notices(Notice.QUEUED)


def test_what_is_refused_is_not_heard_of(store: Store, ears: Ears) -> None:
    create_due(store, "s1", NINE)
    assert store.commit_creation(new_schedule("s1", due=MADE_AT), now=MADE_AT) is Creation.ID_TAKEN
    stale = Fence(partition=0, epoch=7)
    assert store.commit_planned(stale, now=NINE, limit=10).queued == 0
    queue_another(store)
    ears.await_notices(Notice.QUEUED)


def test_after_its_close_a_subscription_hears_nothing(store: Store, ears: Ears) -> None:
    gone = Ears(store)
    gone.close()
    gone.close()
    create_due(store, "s1", MADE_AT)
    ears.await_notices(Notice.DUE)
    gone.await_notices()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_what_is_rolled_back_is_not_heard_of(open_store: OpenStore, listen: Listen, kind: str) -> None:
    store = open_store(kind)
    assert isinstance(store, SqlStore)
    ears = listen(store)
    with contextlib.suppress(ZeroDivisionError), store._database.writing() as connection:
        notify(connection, Notice.DUE)
        raise ZeroDivisionError
    queue_another(store)
    ears.await_notices(Notice.QUEUED)


def listening(connection: psycopg.Connection[tuple[int]]) -> list[int]:
    """The server's processes of connections that listen."""
    found = connection.execute(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"
    )
    return [pid for (pid,) in found]


@pytest.fixture
def url(new_database: NewDatabase) -> str:
    return new_database("postgresql")


@pytest.fixture
def server(url: str) -> Iterator[psycopg.Connection[tuple[int]]]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


def test_on_postgresql_one_store_hears_what_another_commits(url: str, listen: Listen) -> None:
    one, other = open_sql_store(url), open_sql_store(url)
    ears = listen(one)
    create_due(other, "s1", MADE_AT)
    ears.await_notices(Notice.DUE)
    queue_run(other)
    ears.await_notices(Notice.QUEUED)
    ears.close()
    one.close()
    other.close()


def test_a_connection_that_is_lost_is_made_anew_and_every_notice_told(
    url: str, listen: Listen, server: psycopg.Connection[tuple[int]]
) -> None:
    store = open_sql_store(url)
    ears = listen(store)
    for _ in range(2):
        [pid] = listening(server)
        server.execute("SELECT pg_terminate_backend(%s)", [pid])
        ears.await_notices(*Notice)
    create_due(store, "s1", MADE_AT)
    ears.await_notices(Notice.DUE)
    ears.close()
    store.close()


def listeners() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "rota-listener"]


@pytest.mark.parametrize("is_store_closed_first", [False, True])
def test_the_thread_and_its_connection_end_with_the_last_who_listens(
    url: str, listen: Listen, server: psycopg.Connection[tuple[int]], is_store_closed_first: bool
) -> None:
    store = open_sql_store(url)
    assert not listeners()
    first, second = listen(store), Ears(store)
    assert len(listening(server)) == len(listeners()) == 1
    first.close()
    assert len(listeners()) == 1
    if is_store_closed_first:
        store.close()
    second.close()
    assert not listeners()
    # It is again there for whoever comes later.
    listen(store).close()
    assert not listeners()
    store.close()


def test_without_a_server_nothing_is_heard_and_a_close_ends_the_thread(tmp_path: Path) -> None:
    store = SqlStore(open_database(f"postgresql://rota@/none?host={tmp_path}"))
    ears = Ears(store)
    ears.await_notices()
    ears.close()
    assert not listeners()
