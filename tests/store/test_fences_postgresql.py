"""The fence on a real PostgreSQL (I6): why it is a row lock, who waits for whom, and what a frozen holder keeps."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from threading import Event

import psycopg
import pytest
from psycopg import sql
from psycopg.errors import LockNotAvailable
from sqlalchemy import event

from rota.config import Settings
from rota.domain.beat import BeatKey, beat_of
from rota.domain.cadence import Cadence
from rota.domain.identity import RunId
from rota.domain.run import RunState
from rota.domain.schedule import Schedule
from rota.store.port import (
    AdmissionOutcome,
    BeatsOutcome,
    ChangeOutcome,
    Fence,
    PlannedOutcome,
    StoreUnavailable,
)
from rota.store.sql import SqlStore, open_sql_store, postgresql
from rota.zones import load_zone
from tests.contract.builders import (
    DAY,
    HOUR,
    MADE_AT,
    NINE,
    admission,
    change_of,
    loss,
    new_schedule,
    planned_run_at,
    run_at,
)
from tests.contract.steps import create, open_attempt, plan

TTL = timedelta(seconds=15)
LATER = NINE + HOUR
WAIT_SECONDS = 30

IS_WAITING = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


@pytest.fixture
def open_store(url: str) -> Iterator[Callable[[], SqlStore]]:
    opened: list[SqlStore] = []

    def open_one() -> SqlStore:
        opened.append(open_sql_store(url))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: Callable[[], SqlStore]) -> SqlStore:
    """With one partition, that nobody holds."""
    store = open_store()
    store.ensure_partitions(1)
    return store


@pytest.fixture
def rival(open_store: Callable[[], SqlStore]) -> SqlStore:
    """Another process on the same database."""
    return open_store()


def acquire(store: SqlStore, owner: str, *, later: timedelta = timedelta(0)) -> list[Fence]:
    return store.commit_acquisitions(owner, held=[], now=NINE + later, ttl=TTL, limit=10)


def hold(store: SqlStore) -> Fence:
    [fence] = acquire(store, "holder")
    return fence


def connect(url: str, *, autocommit: bool = False) -> psycopg.Connection:
    return psycopg.connect(url, autocommit=autocommit)


def wait_until(url: str, statement: str, *, is_there: bool) -> None:
    """Until the statement finds something, or nothing."""
    with connect(url, autocommit=True) as watcher:
        for _ in range(WAIT_SECONDS * 100):
            if (watcher.execute(statement).fetchone() is not None) is is_there:
                return
            Event().wait(0.01)
    raise AssertionError(f"waited in vain: {statement}")


def rows_of(url: str) -> dict[str, list[str]]:
    """Every row of every table."""
    with connect(url, autocommit=True) as connection:
        names = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
        ).fetchall()
        return {
            name: sorted(
                str(row[0])
                for row in connection.execute(
                    sql.SQL("SELECT t::text FROM {} AS t").format(sql.Identifier(name))
                ).fetchall()
            )
            for (name,) in names
        }


TAKE_OVER = "UPDATE partitions SET owner = 'rival', epoch = epoch + 1 WHERE partition = 0"
CONDITION_ALONE = """
UPDATE schedules SET next_due = next_due + 1
WHERE id = 'report-7' AND EXISTS (SELECT epoch FROM partitions WHERE partition = 0 AND epoch = 1)
"""


def test_a_condition_on_the_epoch_alone_lets_a_stale_owner_commit_after_a_take_over(
    url: str, store: SqlStore
) -> None:
    hold(store)
    create(store)
    with connect(url) as stale, connect(url) as taker:
        taker.execute(TAKE_OVER)
        # The statement sees the epoch of its snapshot, and waits for nobody.
        assert stale.execute(CONDITION_ALONE).rowcount == 1
        taker.commit()
        assert taker.execute("SELECT owner, epoch FROM partitions").fetchall() == [("rival", 2)]
        stale.commit()
    [schedule] = [
        record.schedule for record in [store.get_schedule(new_schedule().schedule.schedule_id)] if record
    ]
    assert schedule.cursor.due_at == NINE + timedelta(milliseconds=1), "the stale owner has written"


def test_a_fence_that_is_read_under_a_share_lock_sees_the_take_over_that_it_waited_for(
    url: str, store: SqlStore
) -> None:
    fence = hold(store)
    element = admission(create(store))
    with connect(url) as taker, ThreadPoolExecutor(1) as pool:
        taker.execute(TAKE_OVER)
        told = pool.submit(store.commit_admissions, fence, [element], now=NINE)
        wait_until(url, IS_WAITING, is_there=True)
        before = rows_of(url)
        taker.commit()
        assert told.result(timeout=WAIT_SECONDS) == [AdmissionOutcome.FENCED]
    after = rows_of(url)
    assert {name for name in after if after[name] != before[name]} == {"partitions"}


Write = Callable[[SqlStore, Fence], object]


def prepare_admission(store: SqlStore) -> Write:
    element = admission(create(store))
    return lambda store, fence: store.commit_admissions(fence, [element], now=NINE)


def prepare_change(store: SqlStore) -> Write:
    change = replace(change_of(create(store)), careful_until=LATER)
    return lambda store, fence: store.commit_change(change, fence=fence)


def prepare_checkpoint(_: SqlStore) -> Write:
    return lambda store, fence: store.commit_checkpoints([(fence, NINE)])


def prepare_planned(store: SqlStore) -> Write:
    schedule = create(store, new_schedule(due=NINE + DAY))
    plan(store, schedule, planned_run_at(schedule, NINE))
    return lambda store, fence: store.commit_planned(fence, now=NINE, limit=10)


def prepare_recovery(store: SqlStore) -> Write:
    [fence] = store.commit_acquisitions("before", held=[], now=MADE_AT, ttl=TTL, limit=1)
    schedule: Schedule = create(store)
    assert store.commit_admissions(fence, [admission(schedule)], now=NINE) == [AdmissionOutcome.ADMITTED]
    run = admission(schedule).runs[0]
    open_attempt(store, run)
    settlement = loss(RunId(run.run_id), at=LATER, retry_at=LATER)
    return lambda store, fence: store.commit_settlements([settlement], fences=[fence])


def prepare_beats(store: SqlStore) -> Write:
    new = new_schedule()
    create(store, new)
    version = new.first.version
    cadence = Cadence(version.definition.recurrence, load_zone("UTC"), gap="skip", fold=version.fold)
    key = BeatKey(
        cadence_id=version.cadence_id, period=version.period, series=version.series, scheduled_at=NINE
    )
    beat = beat_of(key, cadence, now=NINE)
    assert beat is not None
    return lambda store, fence: store.commit_beats([fence], [beat], after=MADE_AT, now=NINE, each=10)


def prepare_freed(store: SqlStore) -> Write:
    [fence] = store.commit_acquisitions("before", held=[], now=MADE_AT, ttl=TTL, limit=1)
    schedule = create(store)
    waits = replace(run_at(schedule, NINE), state=RunState.WAITING, available_at=None)
    element = admission(schedule, runs=[waits])
    assert store.commit_admissions(fence, [element], now=NINE) == [AdmissionOutcome.ADMITTED]
    return lambda store, fence: store.commit_freed([fence], now=NINE, limit=10)


WRITES: dict[str, Callable[[SqlStore], Write]] = {
    "commit_admissions": prepare_admission,
    "commit_beats": prepare_beats,
    "commit_change": prepare_change,
    "commit_checkpoints": prepare_checkpoint,
    "commit_freed": prepare_freed,
    "commit_planned": prepare_planned,
    "commit_settlements": prepare_recovery,
}
"""Every way in which a dispatcher writes under a fence."""

REFUSALS: dict[str, object] = {
    "commit_admissions": [AdmissionOutcome.FENCED],
    "commit_beats": BeatsOutcome(fenced=frozenset({0})),
    "commit_change": ChangeOutcome.STALE,
    "commit_checkpoints": None,
    "commit_freed": 0,
    "commit_planned": PlannedOutcome(),
    "commit_settlements": [False],
}


@contextmanager
def before_each_commit(store: SqlStore, call: Callable[[], None]) -> Iterator[None]:
    """Calls at the end of each of the store's writing transactions, when all but the commit is done."""
    engine = store._database._writers

    def listen(_: object) -> None:
        call()

    event.listen(engine, "commit", listen)
    try:
        yield
    finally:
        event.remove(engine, "commit", listen)


@pytest.mark.parametrize("method", WRITES)
def test_a_write_keeps_its_partition_from_being_taken_until_it_is_committed(
    url: str, store: SqlStore, rival: SqlStore, method: str
) -> None:
    write = WRITES[method](store)
    fence = hold(store)
    seen: list[object] = []

    def try_to_take_over() -> None:
        seen.append(acquire(rival, "rival", later=DAY))
        with connect(url) as taker, pytest.raises(LockNotAvailable):
            taker.execute("SELECT epoch FROM partitions FOR NO KEY UPDATE NOWAIT")

    before = rows_of(url)
    with before_each_commit(store, try_to_take_over):
        write(store, fence)
    assert seen == [[]]
    assert rows_of(url) != before
    assert acquire(rival, "rival", later=DAY) == [replace(fence, epoch=fence.epoch + 1)]


@pytest.mark.parametrize("method", WRITES)
def test_a_write_under_a_stale_fence_changes_nothing(
    url: str, store: SqlStore, rival: SqlStore, method: str
) -> None:
    write = WRITES[method](store)
    fence = hold(store)
    [taken] = acquire(rival, "rival", later=DAY)
    before = rows_of(url)
    assert write(store, fence) == REFUSALS[method]
    assert rows_of(url) == before
    write(rival, taken)
    assert rows_of(url) != before, "its new holder may"


def test_a_holder_frozen_in_a_transaction_is_cut_off_and_taken_over(
    url: str,
    store: SqlStore,
    rival: SqlStore,
    open_store: Callable[[], SqlStore],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    element = admission(create(store))
    monkeypatch.setattr(postgresql, "IDLE_IN_TRANSACTION", timedelta(milliseconds=300))
    frozen = open_store()
    fence = hold(frozen)
    taken: list[Fence] = []

    def freeze() -> None:
        taken.extend(acquire(rival, "rival", later=DAY))
        assert taken == [], "as long as it may go on, its partition stays its own"
        wait_until(url, IDLE_IN_TRANSACTION, is_there=True)
        wait_until(url, IDLE_IN_TRANSACTION, is_there=False)
        taken.extend(acquire(rival, "rival", later=DAY))

    before = rows_of(url)
    with before_each_commit(frozen, freeze), pytest.raises(StoreUnavailable):
        frozen.commit_admissions(fence, [element], now=NINE)
    assert taken == [replace(fence, epoch=fence.epoch + 1)]
    after = rows_of(url)
    assert {name for name in after if after[name] != before[name]} == {"partitions"}
    assert frozen.commit_admissions(fence, [element], now=NINE) == [AdmissionOutcome.FENCED]
    assert rival.commit_admissions(taken[0], [element], now=NINE) == [AdmissionOutcome.ADMITTED]


IDLE_IN_TRANSACTION = (
    "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'"
)


def test_a_transaction_may_be_idle_for_less_than_the_shortest_lease(url: str, store: SqlStore) -> None:
    [shortest] = [
        bound.ge for bound in Settings.model_fields["lease_seconds"].metadata if hasattr(bound, "ge")
    ]
    assert timedelta(seconds=shortest) > postgresql.IDLE_IN_TRANSACTION
    with store._database.writing() as connection:
        told = connection.exec_driver_sql("SHOW idle_in_transaction_session_timeout").scalar()
    assert told == "5s"
