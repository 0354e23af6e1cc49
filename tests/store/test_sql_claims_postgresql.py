"""Claims on PostgreSQL pass over what another connection holds, be it a delivery or its run, and wait for nobody."""

from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest

from rota.domain.run import RunState
from rota.store.sql import SqlStore, open_sql_store
from tests.contract.builders import NINE
from tests.contract.steps import queue_run, run_of, wanted

JOBS = ["sales_report"]
PATIENCE = timedelta(milliseconds=200)
"""Whoever waited for a lock would fail after this time."""

HOLD_RUN = "SELECT 1 FROM runs WHERE run_id = %s FOR UPDATE"
HOLD_DELIVERY = "SELECT 1 FROM outbox WHERE run_id = %s FOR UPDATE"


@pytest.fixture
def store(url: str) -> Iterator[SqlStore]:
    opened = open_sql_store(url, busy_timeout=PATIENCE)
    yield opened
    opened.close()


def claimed(store: SqlStore) -> list[str]:
    return [
        opened.run.schedule_id for opened in store.commit_claims("worker-1", wanted(*JOBS), now=NINE, limit=2)
    ]


@pytest.mark.parametrize("hold", [HOLD_RUN, HOLD_DELIVERY])
def test_what_another_one_holds_is_left_for_a_later_claim(store: SqlStore, url: str, hold: str) -> None:
    held, *_ = [queue_run(store, id_) for id_ in ("a", "b", "c")]
    with psycopg.connect(url) as other:
        assert other.execute(hold, [held.run_id]).fetchone()
        assert "a" not in claimed(store) + claimed(store)
        assert run_of(store, held.run_id) == held
        assert store.read_next_intent_time(JOBS) == NINE
    assert claimed(store) == ["a"]
    assert store.read_next_intent_time(JOBS) is None


def test_what_is_held_of_one_job_keeps_no_place_of_anothers(store: SqlStore, url: str) -> None:
    """The earliest are all of one job, and somebody holds them; those of the other are behind them."""
    for number in range(3):
        queue_run(store, f"first-{number}")
        queue_run(store, f"other-{number}", job="mail")
    with psycopg.connect(url) as holder:
        holder.execute("SELECT 1 FROM outbox WHERE job = 'sales_report' AND run_id < 'first-2' FOR UPDATE")
        opened = store.commit_claims("worker-1", wanted(*JOBS, "mail"), now=NINE, limit=3)
        ids = [attempt.run.schedule_id for attempt in opened]
        assert ids == ["first-2", "other-0", "other-1"]
        rest = store.commit_claims("worker-1", wanted(*JOBS, "mail"), now=NINE, limit=3)
        assert [attempt.run.schedule_id for attempt in rest] == ["other-2"]
    opened = store.commit_claims("worker-1", wanted(*JOBS, "mail"), now=NINE, limit=3)
    assert [attempt.run.schedule_id for attempt in opened] == ["first-0", "first-1"]


def test_a_change_of_a_run_and_a_claim_of_it_do_not_wait_for_each_other(store: SqlStore, url: str) -> None:
    """The change holds the run and then takes its delivery, which is the other way round."""
    run = queue_run(store)
    with psycopg.connect(url) as changing:
        changing.execute(HOLD_RUN, [run.run_id])
        assert claimed(store) == []
        changing.execute("DELETE FROM outbox WHERE run_id = %s", [run.run_id])
        changing.execute("UPDATE runs SET state = 'cancelled' WHERE run_id = %s", [run.run_id])
    assert claimed(store) == []
    assert run_of(store, run.run_id).state is RunState.CANCELLED


def test_a_delivery_of_no_run_is_taken_away(store: SqlStore, url: str) -> None:
    run, good = queue_run(store, "gone"), queue_run(store, "here")
    with psycopg.connect(url) as other:
        other.execute("DELETE FROM runs WHERE run_id = %s", [run.run_id])
    assert claimed(store) == [good.schedule_id]
    assert store.read_next_intent_time(JOBS) is None
