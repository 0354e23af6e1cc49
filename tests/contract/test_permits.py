"""The work protocol: of a job with `max_running` no more runs are in hand, of all workers and relays together."""

from datetime import timedelta

import pytest

from rota.domain.delivery import Delivery, DeliveryEnd, failed, sent
from rota.domain.job import Job
from rota.domain.run import Run, RunState
from rota.domain.settlement import Settlement
from rota.domain.sink import CelerySink, DeliveryPolicy, Sink, WorkerSink
from rota.store.port import OpenedAttempt, RunFilter, Store, TakenDelivery
from tests.contract.builders import MADE_AT, MINUTE, NINE, SECOND, audit_event, failure, success
from tests.contract.racing import all_at_once
from tests.contract.steps import open_all, queue_at, run_of, settle, wanted

JOBS = ["mail"]
LEASE = timedelta(seconds=30)
CELERY = CelerySink(task="tasks.mail")
MANY = 24
LIMIT = 3


def limit(store: Store, max_running: int | None, *, sink: Sink = WorkerSink()) -> None:  # noqa: B008  a frozen value
    store.commit_job(Job(name="mail", max_running=max_running, sink=sink), now=MADE_AT)


def queue(store: Store, count: int) -> list[Run]:
    return [queue_at(store, f"s{number:02}", job="mail") for number in range(count)]


def claim(store: Store) -> list[OpenedAttempt]:
    return store.commit_claims("w", wanted(*JOBS), now=NINE, limit=2)


def take(store: Store, *, at: timedelta = timedelta(0)) -> list[TakenDelivery]:
    return store.commit_takes(wanted(*JOBS), now=NINE + at, lease=LEASE, limit=2)


def test_a_full_job_is_not_claimed_and_not_waited_for(store: Store) -> None:
    limit(store, 1)
    first, second = queue(store, 2)
    queue_at(store, "other", at=NINE + MINUTE, job="report")
    assert [attempt.run.run_id for attempt in claim(store)] == [first.run_id]
    assert claim(store) == []
    assert store.read_next_intent_time(JOBS) is None
    assert store.read_next_intent_time([*JOBS, "report"]) == NINE + MINUTE
    assert settle(store, success(first.run_id, at=NINE)) == [True]
    assert store.read_next_intent_time(JOBS) == NINE
    assert [attempt.run.run_id for attempt in claim(store)] == [second.run_id]


@pytest.mark.parametrize("end", ["succeeded", "retried", "failed"])
def test_the_place_of_an_attempt_that_ends_is_free(store: Store, end: str) -> None:
    limit(store, 1)
    first, _ = queue(store, 2)
    claim(store)
    ends: dict[str, Settlement] = {
        "succeeded": success(first.run_id, at=NINE),
        "retried": failure(first.run_id, at=NINE, retry_at=NINE + MINUTE),
        "failed": failure(first.run_id, at=NINE),
    }
    assert settle(store, ends[end]) == [True]
    assert len(claim(store)) == 1


def test_a_limit_counts_what_is_in_hand_already_and_a_higher_one_lets_more_in(store: Store) -> None:
    first, *_ = queue(store, 4)
    assert len(claim(store)) == 2
    limit(store, 2)
    assert claim(store) == []
    assert settle(store, success(first.run_id, at=NINE)) == [True]
    assert len(claim(store)) == 1
    limit(store, 3)
    assert len(claim(store)) == 1
    limit(store, None)
    limit(store, 3)
    assert store.read_next_intent_time(JOBS) is None


def test_a_message_that_comes_back_goes_on_with_the_place_of_its_delivery(store: Store) -> None:
    limit(store, 1, sink=CELERY)
    first, second = queue(store, 2)
    [taken] = take(store)
    assert take(store) == []
    assert store.read_next_delivery_time(JOBS) == NINE + LEASE
    assert len(open_all(store, [taken.delivery])) == 1
    assert run_of(store, first.run_id).attempt == 1
    assert (take(store), store.read_next_delivery_time(JOBS)) == ([], None)
    assert settle(store, success(first.run_id, at=NINE)) == [True]
    [taken] = take(store)
    assert taken.run == second


def test_what_was_sent_is_in_hand_and_what_failed_is_not(store: Store) -> None:
    limit(store, 1, sink=CELERY)
    queue(store, 2)
    policy = DeliveryPolicy(redeliver_after=MINUTE, initial_delay=SECOND, jitter=0)
    [taken] = take(store)
    end(store, taken, sent(taken.delivery, policy, now=NINE))
    assert take(store) == []
    [again] = take(store, at=MINUTE)
    assert (again.delivery.run_id, again.delivery.tries) == (taken.delivery.run_id, 2)
    end(store, again, failed(again.delivery, policy, error="refused", now=NINE + MINUTE))
    [other] = take(store, at=MINUTE)
    assert other.delivery.run_id != taken.delivery.run_id
    # The place is the other's now: the first waits, however long its next try is due.
    assert take(store, at=MINUTE + 2 * SECOND) == []
    assert store.read_next_delivery_time(JOBS) == NINE + MINUTE + LEASE


def end(store: Store, taken: TakenDelivery, becomes: Delivery) -> None:
    delivery = taken.delivery
    told = DeliveryEnd(
        run_id=delivery.run_id,
        attempt=delivery.attempt,
        tries=delivery.tries,
        becomes=becomes,
    )
    assert store.commit_delivery_ends([told], now=NINE) == [True]


def test_a_cancelled_delivery_gives_its_place_back(store: Store) -> None:
    limit(store, 1, sink=CELERY)
    first, second = queue(store, 2)
    take(store)
    store.commit_cancel(first.run_id, event=audit_event(first.schedule_id, at=NINE), now=NINE)
    [taken] = take(store)
    assert taken.delivery.run_id == second.run_id


def test_many_workers_at_once_never_exceed_the_limit_and_come_through(store: Store) -> None:
    limit(store, LIMIT)
    runs = {run.run_id for run in queue(store, MANY)}
    most: list[int] = []

    def work(number: int) -> list[str]:
        done: list[str] = []
        while store.list_runs(RunFilter(state=RunState.QUEUED), before=None, limit=1):
            opened = store.commit_claims(f"w{number}", wanted(*JOBS), now=NINE, limit=2)
            most.append(len(store.list_runs(RunFilter(state=RunState.RUNNING), before=None, limit=MANY)))
            ids = [attempt.run.run_id for attempt in opened]
            settle(store, *(success(run_id, at=NINE) for run_id in ids))
            done += ids
        return done

    taken = all_at_once(work)
    assert sorted(run_id for of_one in taken for run_id in of_one) == sorted(runs)
    assert 1 < max(most) <= LIMIT
