"""What a console or a lost row has left: neither a run that waits nor a job with a limit stands still for it (I12)."""

from datetime import timedelta

import pytest
from sqlalchemy import delete, insert, update

from rota.cadences import Cadences
from rota.dispatch.dispatcher import Dispatcher
from rota.domain.job import Job
from rota.domain.run import RunState
from rota.domain.sink import CelerySink, WorkerSink
from rota.store.sql import SqlStore
from rota.store.sql.schema import outbox, permits, runs
from rota.testing.clock import ManualClock
from rota.zones import Zones
from tests.conftest import OpenStore
from tests.contract.builders import MADE_AT, MINUTE, NINE, SECOND
from tests.contract.steps import queue_at, run_of, wanted
from tests.contract.test_places import TEN, open_and_wait

JOBS = ["sales_report"]


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, open_store: OpenStore) -> SqlStore:
    opened = open_store(request.param)
    assert isinstance(opened, SqlStore)
    return opened


def test_a_run_that_waits_for_one_that_a_console_has_ended_is_queued_by_the_dispatcher(
    store: SqlStore,
) -> None:
    first, second = open_and_wait(store)
    with store._database.writing() as console:
        console.execute(update(runs).where(runs.c.run_id == first.run_id).values(state="succeeded"))
        console.execute(delete(outbox))
    assert run_of(store, second.run_id).state is RunState.WAITING
    dispatcher = Dispatcher(
        store,
        cadences=Cadences(Zones()),
        clock=ManualClock(TEN),
        owner="later",
        lease=timedelta(seconds=15),
        poll=SECOND,
        page=100,
    )
    report = dispatcher.step(TEN + 10 * MINUTE)
    assert report.recovered == 1
    assert run_of(store, second.run_id).state is RunState.QUEUED
    assert store.read_places(first.schedule_id) == (second.run_id,)


@pytest.mark.parametrize("is_sent", [False, True])
def test_a_permit_that_nobody_holds_does_not_make_a_job_look_full(store: SqlStore, *, is_sent: bool) -> None:
    """Who thinks so never comes to drop it."""
    sink = CelerySink(task="tasks.mail") if is_sent else WorkerSink()
    store.commit_job(Job(name=JOBS[0], max_running=1, sink=sink), now=MADE_AT)
    queue_at(store, "a")
    queue_at(store, "b")
    with store._database.writing() as console:
        console.execute(insert(permits).values(run_id="gone.1.x", job=JOBS[0]))
    look = store.read_next_delivery_time if is_sent else store.read_next_intent_time
    assert look(JOBS) == NINE
    if is_sent:
        assert len(store.commit_takes(wanted(*JOBS), now=NINE, lease=MINUTE, limit=2)) == 1
    else:
        assert len(store.commit_claims("w", wanted(*JOBS), now=NINE, limit=2)) == 1
    assert look(JOBS) == (NINE + MINUTE if is_sent else None)
