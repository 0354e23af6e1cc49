"""Answers and dead deliveries on PostgreSQL: one commit each, in which nobody waits for what another batch can do."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

import psycopg
import pytest

from rota.domain.delivery import DeliveryEnd, failed
from rota.domain.job import Job
from rota.domain.run import Run, RunState
from rota.domain.sink import CelerySink, DeliveryPolicy
from rota.store.port import AdmissionOutcome, Answer, AttemptKey, OpenedAttempt, StoreUnavailable
from rota.store.sql import SqlStore, answers, open_sql_store
from tests.conftest import NewDatabase
from tests.contract.builders import MADE_AT, MINUTE, NINE, SECOND, audit_event, run_at, success
from tests.contract.steps import admit, attempts_of, fence_of, queue_at, record_of, run_of, wanted
from tests.contract.test_places import TEN, give, open_and_wait, overlapping, placed, waiting
from tests.store.meeting import Meeting

PATIENCE = timedelta(milliseconds=300)
"""Whoever waits for a lock fails after this time."""
JOB = Job(name="sales_report", sink=CelerySink(task="tasks.report"))
HOLD_RUN = "SELECT 1 FROM runs WHERE run_id = %s FOR UPDATE"
HOLD_PLACES = "SELECT 1 FROM places FOR UPDATE"


@pytest.fixture
def store(url: str) -> Iterator[SqlStore]:
    opened = open_sql_store(url, busy_timeout=PATIENCE)
    opened.commit_job(JOB, now=MADE_AT)
    yield opened
    opened.close()


@pytest.fixture
def other(url: str) -> Iterator[psycopg.Connection]:
    """Of somebody who is slow."""
    with psycopg.connect(url) as connection:
        yield connection


@pytest.fixture
def meeting(new_database: NewDatabase) -> Iterator[Meeting]:
    meeting = Meeting(new_database("postgresql"))
    meeting.first.commit_job(JOB, now=MADE_AT)
    yield meeting
    meeting.close()


def answer_of(run: Run) -> Answer:
    return Answer(run_id=run.run_id, attempt=1, opened_at=NINE, settlement=success(run.run_id, at=TEN))


def answer(store: SqlStore, run: Run) -> object:
    return store.commit_answers("relay", [answer_of(run)])


def die(store: SqlStore, run: Run) -> object:
    """Ends the run's delivery, which is at its first try."""
    detail = store.get_run(run.run_id)
    assert detail is not None
    assert detail.delivery is not None
    dead = failed(detail.delivery, DeliveryPolicy(), error="no such queue", now=TEN, is_final=True)
    told = DeliveryEnd(run_id=run.run_id, attempt=1, tries=1, becomes=dead)
    return store.commit_delivery_ends([told], now=TEN)


def take(store: SqlStore) -> None:
    assert store.commit_takes(wanted(JOB.name), now=TEN, lease=MINUTE, limit=2)


def test_an_answer_that_breaks_off_leaves_nothing_behind(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = queue_at(store, "a")
    take(store)
    before = store.get_run(run.run_id)

    def break_off(*_: object) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(answers, "free_places", break_off)
        with pytest.raises(RuntimeError, match="killed"):
            answer(store, run)
    assert store.get_run(run.run_id) == before
    assert answer(store, run) == [True]


def test_before_anybody_waits_for_a_run_the_others_are_answered(
    store: SqlStore, other: psycopg.Connection
) -> None:
    runs = [queue_at(store, id_) for id_ in ("a", "held", "z")]
    told = [answer_of(run) for run in runs]
    other.execute(HOLD_RUN, [runs[1].run_id])
    with pytest.raises(StoreUnavailable, match="lock timeout"):
        store.commit_answers("relay", told)
    assert [run_of(store, run.run_id).state for run in runs] == [
        RunState.SUCCEEDED,
        RunState.QUEUED,
        RunState.SUCCEEDED,
    ]
    other.rollback()
    assert store.commit_answers("relay", told) == [False, True, False]


def test_before_anybody_waits_for_a_place_the_others_are_answered(
    store: SqlStore, other: psycopg.Connection
) -> None:
    placed_run, waiter = open_and_wait(store)
    free = queue_at(store, "a")
    other.execute(HOLD_PLACES)
    with pytest.raises(StoreUnavailable, match="lock timeout"):
        store.commit_answers("relay", [answer_of(placed_run), answer_of(free)])
    assert run_of(store, free.run_id).state is RunState.SUCCEEDED
    other.rollback()
    assert answer(store, placed_run) == [True]
    assert run_of(store, waiter.run_id).state is RunState.QUEUED


def test_an_answer_that_meets_the_opening_of_its_attempt_is_stale(meeting: Meeting) -> None:
    run = queue_at(meeting.first, "a")
    take(meeting.first)
    key = AttemptKey(run_id=run.run_id, attempt=1)
    [opened], told = meeting.of(
        lambda store: store.commit_openings("receiver", [key], now=NINE),
        lambda store: answer(store, run),
    )
    assert isinstance(opened, OpenedAttempt)
    assert told == [False]
    assert [attempt.worker for attempt in attempts_of(meeting.first, run.run_id)] == ["receiver"]


def test_an_answer_that_meets_itself_is_heard_once(meeting: Meeting) -> None:
    run = queue_at(meeting.first, "a")
    told = meeting.of(lambda store: answer(store, run), lambda store: answer(store, run))
    assert told == ([True], [False])


@pytest.mark.parametrize("ends", [answer, die])
def test_a_run_that_is_admitted_to_wait_meanwhile_is_queued(
    meeting: Meeting, ends: Callable[[SqlStore, Run], object]
) -> None:
    schedule = overlapping(meeting.first)
    first = run_at(schedule, NINE)
    give(meeting.first, placed(schedule, first))
    take(meeting.first)
    second = waiting(run_at(schedule, TEN))
    element = placed(record_of(meeting.first, schedule).schedule, second, expected=(first.run_id,))
    fence = fence_of(meeting.first, 0)
    outcomes, told = meeting.of(
        lambda store: admit(store, fence, [element], now=TEN), lambda store: ends(store, first)
    )
    assert (outcomes, told) == ([AdmissionOutcome.ADMITTED], [True])
    queued = replace(second, state=RunState.QUEUED, available_at=TEN)
    assert run_of(meeting.first, second.run_id) == queued
    assert meeting.first.read_places(schedule.schedule_id) == (second.run_id,)


def test_a_delivery_that_dies_while_its_run_is_cancelled_is_gone(meeting: Meeting) -> None:
    run = queue_at(meeting.first, "a")
    take(meeting.first)
    event = audit_event("a", at=TEN)
    _, told = meeting.of(
        lambda store: store.commit_cancel(run.run_id, event=event, now=TEN + SECOND),
        lambda store: die(store, run),
    )
    assert told == [False]
    assert run_of(meeting.first, run.run_id).state is RunState.CANCELLED
