"""Relays, limits and places on PostgreSQL: what another connection holds is passed over, and nobody waits for it."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import psycopg
import pytest

from rota.domain.delivery import DeliveryEnd
from rota.domain.identity import RunId
from rota.domain.job import Job
from rota.domain.run import RunState
from rota.domain.schedule import Schedule
from rota.domain.sink import CelerySink
from rota.store.port import AdmissionOutcome, ScheduleFilter
from rota.store.sql import SqlStore, open_sql_store
from tests.contract.builders import DAY, MADE_AT, MINUTE, NINE, audit_event, success
from tests.contract.steps import admit, fence_of, open_attempt, queue_at, run_of, settle, wanted
from tests.contract.test_places import open_and_wait, placed

JOBS = ["sales_report"]
PATIENCE = timedelta(milliseconds=200)
"""Whoever waited for a lock would fail after this time."""
HOLD_RUN = "SELECT 1 FROM runs WHERE run_id = %s FOR UPDATE"
HOLD_DELIVERY = "SELECT 1 FROM deliveries WHERE run_id = %s FOR UPDATE"
HOLD_PLACES = "SELECT 1 FROM places FOR UPDATE"
LEASE = timedelta(seconds=30)


@pytest.fixture
def store(url: str) -> Iterator[SqlStore]:
    opened = open_sql_store(url, busy_timeout=PATIENCE)
    yield opened
    opened.close()


def schedule_of(store: SqlStore) -> Schedule:
    [record] = store.list_schedules(ScheduleFilter(), after=None, limit=2)
    return record.schedule


def taken(store: SqlStore, *, at: timedelta = LEASE) -> list[str]:
    found = store.commit_takes(wanted(*JOBS), now=NINE + at, lease=LEASE, limit=2)
    return [each.run.schedule_id for each in found]


@pytest.mark.parametrize("hold", [HOLD_RUN, HOLD_DELIVERY])
def test_a_delivery_that_another_one_holds_is_left_for_a_later_take(
    store: SqlStore, url: str, hold: str
) -> None:
    store.commit_job(Job(name=JOBS[0], sink=CelerySink(task="t")), now=MADE_AT)
    held = queue_at(store, "a")
    assert taken(store, at=timedelta(0)) == ["a"]
    queue_at(store, "b")
    with psycopg.connect(url) as other:
        assert other.execute(hold, [held.run_id]).fetchone()
        assert taken(store) == ["b"]
        assert taken(store) == []
    assert taken(store) == ["a"]


def test_a_limited_job_that_another_one_gives_out_is_passed_over(store: SqlStore, url: str) -> None:
    store.commit_job(Job(name=JOBS[0], max_running=5), now=MADE_AT)
    queue_at(store, "limited")
    queue_at(store, "free", job="mail")
    with psycopg.connect(url) as other:
        other.execute("SELECT 1 FROM jobs FOR NO KEY UPDATE")
        opened = store.commit_claims("w", wanted(*JOBS, "mail"), now=NINE, limit=2)
        assert [attempt.run.schedule_id for attempt in opened] == ["free"]
    opened = store.commit_claims("w", wanted(*JOBS, "mail"), now=NINE, limit=2)
    assert [attempt.run.schedule_id for attempt in opened] == ["limited"]


def test_a_permit_whose_run_is_not_in_hand_keeps_nobodys_place(store: SqlStore, url: str) -> None:
    """I12: as after a console, or a limit that was set just as the run ended."""
    store.commit_job(Job(name=JOBS[0], max_running=1), now=MADE_AT)
    queue_at(store, "a")
    with psycopg.connect(url) as console:
        console.execute("INSERT INTO permits (run_id, job) VALUES ('gone', 'sales_report')")
    assert len(store.commit_claims("w", wanted(*JOBS), now=NINE, limit=2)) == 1
    assert store.commit_claims("w", wanted(*JOBS), now=NINE, limit=2) == []


def test_a_place_whose_run_is_not_open_counts_for_nothing(store: SqlStore, url: str) -> None:
    """I12: the schedule runs again, and gets its places anew."""
    first, second = open_and_wait(store)
    with psycopg.connect(url) as console:
        console.execute("UPDATE runs SET state = 'cancelled' WHERE run_id = %s", [first.run_id])
        console.execute("DELETE FROM runs WHERE run_id = %s", [second.run_id])
    schedule = schedule_of(store)
    assert store.read_places(first.schedule_id) == ()
    third = replace(second, run_id=RunId("report-7.1.third"), period_key="third")
    third = replace(third, state=RunState.QUEUED, available_at=NINE)
    assert admit(store, fence_of(store, 0), [placed(schedule, third)]) == [AdmissionOutcome.ADMITTED]
    assert store.read_places(first.schedule_id) == (third.run_id,)


def test_an_admission_passes_over_places_that_another_one_frees(store: SqlStore, url: str) -> None:
    first, second = open_and_wait(store)
    schedule = schedule_of(store)
    element = placed(schedule, expected=(first.run_id, second.run_id))
    fence = fence_of(store, 0)
    with psycopg.connect(url) as other:
        other.execute(HOLD_PLACES)
        assert admit(store, fence, [element]) == [AdmissionOutcome.STALE]
    assert admit(store, fence, [element]) == [AdmissionOutcome.ADMITTED]


def test_recovery_passes_over_a_run_whose_place_is_held(store: SqlStore, url: str) -> None:
    first, second = open_and_wait(store)
    open_attempt(store, first)
    fence = fence_of(store, 0)
    with psycopg.connect(url) as other:
        other.execute(HOLD_PLACES)
        assert settle(store, success(first.run_id, at=NINE), fences=[fence]) == [False]
    assert run_of(store, first.run_id).state is RunState.RUNNING
    assert settle(store, success(first.run_id, at=NINE), fences=[fence]) == [True]
    assert run_of(store, second.run_id).state is RunState.QUEUED


def test_who_gives_a_delivery_back_does_not_put_an_intent_beside_a_cancelled_run(
    store: SqlStore, url: str
) -> None:
    store.commit_job(Job(name=JOBS[0], sink=CelerySink(task="t")), now=MADE_AT)
    run = queue_at(store, "a")
    assert taken(store, at=timedelta(0)) == ["a"]
    store.commit_cancel(run.run_id, event=audit_event("a", at=NINE), now=NINE)
    told = DeliveryEnd(run_id=run.run_id, attempt=1, tries=1, becomes=None)
    assert store.commit_delivery_ends([told], now=NINE + MINUTE) == [False]
    assert store.read_intents(JOBS, now=NINE + DAY, limit=9) == []


def test_effects_go_with_their_run_when_history_is_given_up(store: SqlStore, url: str) -> None:
    with psycopg.connect(url) as console:
        console.execute(
            "INSERT INTO effects (run_id, name, begun_by, begun_at) VALUES ('a.1.20260110T090000Z', 'mail', 1, 0)"
        )
    run = queue_at(store, "a")
    open_attempt(store, run)
    settle(store, success(run.run_id, at=NINE))
    with psycopg.connect(url) as console:
        console.execute("UPDATE schedules SET status = 'ended', next_due = NULL, next_scheduled_at = NULL")
    assert store.prune_history(before=NINE + 900 * DAY, after=None, limit=9).runs == 1
    with psycopg.connect(url) as console:
        assert console.execute("SELECT count(*) FROM effects").fetchone() == (0,)
