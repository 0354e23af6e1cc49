"""Answers: attempts that a message made and ended, opened and settled in one commit."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from rota.domain.identity import RunId
from rota.domain.job import Job
from rota.domain.json_text import encode_json
from rota.domain.overlap import Places
from rota.domain.run import Attempt, AttemptOutcome, Run, RunState
from rota.domain.settlement import Settlement
from rota.domain.sink import CelerySink
from rota.store.port import Answer, Store, TooManyElements
from tests.contract.builders import (
    HOUR,
    MADE_AT,
    MINUTE,
    NINE,
    SECOND,
    admission,
    audit_event,
    definition,
    failure,
    new_schedule,
    run_at,
    success,
)
from tests.contract.racing import all_at_once
from tests.contract.steps import (
    admit,
    admit_runs,
    attempts_of,
    create,
    delivery_of,
    fence_of,
    in_batches,
    open_attempt,
    plan,
    queue_run,
    run_of,
    settle,
    wanted,
)

JOBS = ["sales_report"]
LEASE = timedelta(seconds=45)
ENDED = NINE + 3 * SECOND
BEGAN = NINE + SECOND
MANY = 12


@pytest.fixture(autouse=True)
def sending(store: Store) -> None:
    send(store)


def send(store: Store, *, max_running: int | None = None) -> None:
    job = Job(name=JOBS[0], sink=CelerySink(task="tasks.report"), lease=LEASE, max_running=max_running)
    store.commit_job(job, now=MADE_AT)


def take(store: Store, *, at: datetime = NINE) -> list[str]:
    taken = store.commit_takes(wanted(*JOBS), now=at, lease=MINUTE, limit=2)
    return [each.run.schedule_id for each in taken]


def answer_of(run: Run, settlement: Settlement | None = None, *, opened_at: datetime = BEGAN) -> Answer:
    """Of the run's next attempt: it succeeded, unless told otherwise."""
    attempt = run.attempt + 1
    settled = settlement or success(run.run_id, at=ENDED, attempt=attempt)
    return Answer(run_id=run.run_id, attempt=attempt, opened_at=opened_at, settlement=settled)


def tell(store: Store, *answers: Answer) -> list[bool]:
    return in_batches(store, answers, lambda batch: store.commit_answers("relay-1", batch))


def test_an_answer_opens_and_settles_its_attempt(store: Store) -> None:
    run = queue_run(store)
    assert take(store) == [run.schedule_id]
    result = encode_json({"sent": 1})
    assert tell(store, answer_of(run, success(run.run_id, at=ENDED, result=result))) == [True]
    assert run_of(store, run.run_id) == replace(
        run, state=RunState.SUCCEEDED, attempt=1, started_at=BEGAN, finished_at=ENDED
    )
    attempt = Attempt(
        run_id=run.run_id,
        number=1,
        worker="relay-1",
        opened_at=BEGAN,
        lease_expires_at=BEGAN + LEASE,
        finished_at=ENDED,
        outcome=AttemptOutcome.SUCCEEDED,
    )
    assert attempts_of(store, run.run_id) == (attempt,)
    detail = store.get_run(run.run_id)
    assert detail is not None
    assert (detail.result, detail.delivery) == (result, None)
    assert store.read_next_delivery_time(JOBS) is None


def test_an_attempt_that_took_longer_than_its_lease_held_it_to_its_end(store: Store) -> None:
    run = queue_run(store)
    assert tell(store, answer_of(run, success(run.run_id, at=NINE + HOUR))) == [True]
    [attempt] = attempts_of(store, run.run_id)
    assert (attempt.opened_at, attempt.lease_expires_at) == (BEGAN, NINE + HOUR)
    assert store.read_lost(range(4), now=NINE + 2 * HOUR, limit=9) == []


def test_an_answer_that_is_told_again_changes_nothing(store: Store) -> None:
    run = queue_run(store)
    take(store)
    answer = answer_of(run)
    assert tell(store, answer, answer) == [True, False]
    before = store.get_run(run.run_id)
    assert tell(store, replace(answer, opened_at=NINE + MINUTE)) == [False]
    assert store.get_run(run.run_id) == before


def test_a_run_that_does_not_wait_for_the_attempt_is_left_as_it_is(store: Store) -> None:
    opened, cancelled, settled, other = (queue_run(store, id_) for id_ in "abcd")
    open_attempt(store, opened)
    store.commit_cancel(cancelled.run_id, event=audit_event(cancelled.schedule_id, at=NINE), now=NINE)
    open_attempt(store, settled)
    assert settle(store, failure(settled.run_id, at=ENDED)) == [True]
    runs = [opened, cancelled, settled, other]
    before = [store.get_run(run.run_id) for run in runs]
    late = replace(answer_of(other), attempt=2)
    unknown = answer_of(replace(other, run_id=RunId("unknown")))
    told = [*(answer_of(run) for run in runs[:3]), late, unknown]
    assert tell(store, *told) == [False] * 5
    assert [store.get_run(run.run_id) for run in runs] == before


def test_an_answer_that_asks_for_a_retry_queues_it(store: Store) -> None:
    run = queue_run(store)
    take(store)
    retry_at = NINE + MINUTE
    assert tell(store, answer_of(run, failure(run.run_id, at=ENDED, retry_at=retry_at))) == [True]
    queued = run_of(store, run.run_id)
    assert (queued.state, queued.attempt, queued.error) == (RunState.QUEUED, 1, "no paper")
    assert store.read_intents(JOBS, now=retry_at, limit=9) == [delivery_of(queued)]
    assert take(store, at=retry_at) == [run.schedule_id]
    again = failure(run.run_id, at=retry_at, attempt=2)
    assert tell(store, answer_of(queued, again, opened_at=retry_at)) == [True]
    failed = run_of(store, run.run_id)
    assert (failed.state, failed.attempt, failed.started_at) == (RunState.FAILED, 2, BEGAN)
    assert [attempt.number for attempt in attempts_of(store, run.run_id)] == [1, 2]
    assert store.read_next_delivery_time(JOBS) is None


def test_a_retry_that_is_available_as_early_as_the_attempt_before_it_is_queued(store: Store) -> None:
    """Its intent has the key that the other's had."""
    run = queue_run(store)
    for number in (1, 2):
        queued = run_of(store, run.run_id)
        again = failure(run.run_id, at=ENDED, attempt=number, retry_at=ENDED)
        assert tell(store, answer_of(queued, again)) == [True]
        assert store.read_intents(JOBS, now=ENDED, limit=9) == [delivery_of(run_of(store, run.run_id))]


def test_an_answer_whose_delivery_was_given_back_takes_the_intent_away(store: Store) -> None:
    run = queue_run(store)
    assert tell(store, answer_of(run)) == [True]
    assert (store.read_intents(JOBS, now=NINE, limit=9), take(store)) == ([], [])


def test_an_answer_frees_the_permit_of_its_delivery(store: Store) -> None:
    send(store, max_running=1)
    first, second = (queue_run(store, id_) for id_ in "ab")
    assert (take(store), take(store)) == ([first.schedule_id], [])
    assert tell(store, answer_of(first)) == [True]
    assert take(store) == [second.schedule_id]


def test_an_answer_frees_the_place_of_its_run_and_queues_the_one_that_waits(store: Store) -> None:
    schedule = create(store, new_schedule(of=replace(definition(), overlap="queue")))
    first, second = run_at(schedule, NINE), run_at(schedule, NINE + MINUTE)
    places: Places = (first.run_id, second.run_id)
    waiting = replace(second, state=RunState.WAITING, available_at=None)
    due = replace(admission(schedule, runs=[first, waiting]), expected_places=(), places=places)
    admit(store, fence_of(store, schedule.partition), [due])
    retry = failure(first.run_id, at=ENDED, retry_at=ENDED)
    assert tell(store, answer_of(first, retry)) == [True]
    assert store.read_places(schedule.schedule_id) == places
    again = success(first.run_id, at=ENDED, attempt=2)
    assert tell(store, answer_of(run_of(store, first.run_id), again)) == [True]
    assert store.read_places(schedule.schedule_id) == (second.run_id,)
    queued = run_of(store, second.run_id)
    assert (queued.state, queued.available_at) == (RunState.QUEUED, ENDED)


def test_an_answer_of_a_run_that_cannot_be_read_fails_it_and_stops_no_other(store: Store) -> None:
    """I12"""
    schedule = create(store, new_schedule("bad"))
    bad = replace(run_at(schedule, NINE), version=9)
    plan(store, schedule, bad)
    good = queue_run(store, "good")
    assert tell(store, answer_of(bad), answer_of(good)) == [False, True]
    failed = run_of(store, bad.run_id)
    assert (failed.state, failed.attempt, failed.finished_at) == (RunState.FAILED, 0, BEGAN)
    assert "version 9 does not exist" in (failed.error or "")
    assert attempts_of(store, bad.run_id) == ()
    assert store.read_next_delivery_time(JOBS) is None


def test_of_many_that_tell_the_same_at_once_each_answer_is_heard_once(store: Store) -> None:
    schedule = create(store)
    runs = [run_at(schedule, NINE + number * MINUTE) for number in range(MANY)]
    admit_runs(store, schedule, *runs)
    told = all_at_once(lambda _: tell(store, *(answer_of(run) for run in runs)))
    assert [sum(answers) for answers in zip(*told, strict=True)] == [1] * MANY
    assert {run_of(store, run.run_id).state for run in runs} == {RunState.SUCCEEDED}


def test_more_answers_than_the_store_takes_are_refused_whole(store: Store) -> None:
    run = queue_run(store)
    with pytest.raises(TooManyElements):
        store.commit_answers("relay-1", [answer_of(run)] * (store.elements_max + 1))
    assert run_of(store, run.run_id) == run
    assert store.commit_answers("relay-1", []) == []
