"""Deliveries: intents that a relay takes, sends and ends, under the number of their try."""

from dataclasses import replace
from datetime import timedelta

import pytest

from rota.domain.delivery import Delivery, DeliveryEnd, DeliveryState, failed, first_taken, redriven, sent
from rota.domain.identity import RunId
from rota.domain.job import Job
from rota.domain.run import Run, RunState
from rota.domain.sink import CelerySink, DeliveryPolicy, Sink, WorkerSink
from rota.store.port import DeliveryFilter, Store, TakenDelivery, TooManyElements, Wanted
from tests.contract.builders import (
    HOUR,
    MADE_AT,
    MILLISECOND,
    MINUTE,
    NINE,
    SECOND,
    audit_event,
    failure,
    new_schedule,
    run_at,
)
from tests.contract.racing import all_at_once
from tests.contract.steps import (
    admit_runs,
    create,
    delivery_of,
    in_batches,
    open_all,
    queue_at,
    queue_run,
    read_pages,
    run_of,
    settle,
    wanted,
)

JOBS = ["sales_report"]
LEASE = timedelta(seconds=30)
CELERY = CelerySink(task="tasks.report")
POLICY = DeliveryPolicy(
    initial_delay=SECOND, max_delay=MINUTE, jitter=0, max_age=HOUR, redeliver_after=5 * MINUTE
)
MANY = 24


@pytest.fixture(autouse=True)
def sending(store: Store) -> None:
    send_to(store, CELERY)


def send_to(store: Store, sink: Sink, *, job: str = JOBS[0], priority: int = 5) -> None:
    store.commit_job(Job(name=job, sink=sink, delivery=POLICY, priority=priority), now=MADE_AT)


def take(
    store: Store,
    asked: list[Wanted] | None = None,
    *,
    at: timedelta = timedelta(0),
    limit: int = 2,
    intents_first: bool = False,
    backlog_first: bool = False,
) -> list[TakenDelivery]:
    return store.commit_takes(
        wanted(*JOBS) if asked is None else asked,
        now=NINE + at,
        lease=LEASE,
        limit=limit,
        intents_first=intents_first,
        backlog_first=backlog_first,
    )


def end(store: Store, *ends: tuple[Delivery, Delivery | None]) -> list[bool]:
    told = [
        DeliveryEnd(run_id=of.run_id, attempt=of.attempt, tries=of.tries, becomes=becomes)
        for of, becomes in ends
    ]
    return in_batches(store, told, lambda batch: store.commit_delivery_ends(batch, now=NINE))


def listed(store: Store, **filter_: object) -> list[Delivery]:
    return store.list_deliveries(DeliveryFilter(**filter_), after=None, limit=100)  # type: ignore[arg-type]  # its fields


def delivery_shown(store: Store, run: Run) -> Delivery | None:
    detail = store.get_run(run.run_id)
    assert detail is not None
    return detail.delivery


def taken_one(store: Store, id_: str = "report-7") -> Delivery:
    queue_run(store, id_)
    [taken] = take(store)
    return taken.delivery


def test_an_intent_becomes_a_delivery_that_is_the_relays_until_its_lease_ends(store: Store) -> None:
    new = new_schedule()
    schedule = create(store, new)
    run = run_at(schedule, NINE)
    admit_runs(store, schedule, run)
    assert store.read_next_delivery_time(JOBS) == NINE
    [taken] = take(store)
    delivery = first_taken(
        run_id=run.run_id,
        attempt=1,
        schedule_id=run.schedule_id,
        job=run.job,
        until=NINE + LEASE,
        now=NINE,
    )
    job = Job(name=JOBS[0], sink=CELERY, delivery=POLICY)
    assert taken == TakenDelivery(delivery=delivery, run=run, version=new.first.version, job=job)
    assert (delivery_shown(store, run), listed(store)) == (delivery, [delivery])
    assert store.read_intents(JOBS, now=NINE, limit=9) == []
    assert store.read_next_delivery_time(JOBS) == NINE + LEASE
    assert take(store, at=LEASE - MILLISECOND) == []
    [again] = take(store, at=LEASE)
    assert again.delivery == replace(delivery, tries=2, next_at=NINE + 2 * LEASE)


def test_what_is_not_available_yet_or_not_asked_for_is_not_taken(store: Store) -> None:
    queue_at(store, "later", at=NINE + MINUTE)
    queue_at(store, "other", job="mail")
    assert take(store, at=MINUTE - MILLISECOND) == []
    assert take(store, [], at=MINUTE) == []
    assert [taken.run.schedule_id for taken in take(store, at=MINUTE)] == ["later"]


def test_deliveries_come_before_intents_and_of_a_job_no_more_than_is_wanted(store: Store) -> None:
    send_to(store, CELERY, job="mail", priority=9)
    sent_again = taken_one(store, "a")
    for id_, job in (("b", "sales_report"), ("c", "mail"), ("d", "mail"), ("e", "sales_report")):
        queue_at(store, id_, job=job)
    asked = [Wanted(job="sales_report", limit=2), Wanted(job="mail", limit=1)]
    found = [take(store, asked, at=LEASE, limit=1) for _ in range(2)]
    assert [taken.run.schedule_id for [taken] in found] == ["a", "c"]
    assert found[0][0].delivery.run_id == sent_again.run_id
    assert [each.run.schedule_id for each in take(store, asked, at=LEASE)] == ["d", "b"]
    assert take(store, [Wanted(job="sales_report", limit=0)], at=LEASE) == []


def test_intents_come_before_deliveries_where_that_is_asked_for(store: Store) -> None:
    taken_one(store, "a")
    for id_ in "bcd":
        queue_at(store, id_)
    first = take(store, at=LEASE, limit=1, intents_first=True)
    bounded = take(store, wanted(*JOBS, limit=1), at=LEASE, intents_first=True)
    both = take(store, at=LEASE, intents_first=True)
    assert [[each.run.schedule_id for each in taken] for taken in (first, bounded, both)] == [
        ["b"],
        ["c"],
        ["d", "a"],
    ]


def test_of_the_places_of_a_job_intents_take_theirs_first_where_that_is_asked_for(store: Store) -> None:
    store.commit_job(Job(name=JOBS[0], sink=CELERY, delivery=POLICY, max_running=1), now=MADE_AT)
    delivery = taken_one(store, "a")
    queue_at(store, "b")
    assert end(store, (delivery, failed(delivery, POLICY, error="refused", now=NINE))) == [True]
    taken = take(store, at=SECOND, intents_first=True)
    assert [each.run.schedule_id for each in taken] == ["b"]
    assert take(store, at=SECOND, intents_first=True) == []


def test_a_backlog_comes_first_where_that_is_asked_for(store: Store) -> None:
    for id_, turn in (("a", 0), ("b", 0), ("late", 1)):
        queue_at(store, id_, turn=turn)
    taken = [take(store, limit=1, backlog_first=True), take(store, limit=1)]
    assert [each.run.schedule_id for [each] in taken] == ["late", "a"]


def test_jobs_that_workers_fetch_are_left_to_them_but_for_what_an_earlier_sink_left(store: Store) -> None:
    delivery = taken_one(store, "a")
    queue_run(store, "b")
    send_to(store, WorkerSink())
    assert store.read_next_delivery_time(JOBS) == NINE + LEASE
    [taken] = take(store, at=LEASE)
    assert (taken.run.schedule_id, taken.job.sink) == ("a", WorkerSink())
    assert end(store, (taken.delivery, None)) == [True]
    assert delivery_shown(store, taken.run) is None
    waiting = store.read_intents(JOBS, now=NINE, limit=1)
    assert [(intent.run_id, intent.attempt) for intent in waiting] == [(delivery.run_id, 1)]
    claimed = [store.commit_claims("w", wanted(*JOBS), now=NINE, limit=1) for _ in range(2)]
    assert [attempt.run.schedule_id for [attempt] in claimed] == ["a", "b"]


def test_a_delivery_that_is_given_back_after_a_retry_is_that_retrys_intent(store: Store) -> None:
    run = queue_run(store)
    open_all(store, [delivery_of(run)])
    settle(store, failure(run.run_id, at=NINE, retry_at=NINE + MINUTE))
    [taken] = take(store, at=MINUTE)
    assert taken.delivery.attempt == 2
    assert end(store, (taken.delivery, None)) == [True]
    assert store.read_intents(JOBS, now=NINE + MINUTE, limit=9) == [delivery_of(taken.run)]


def test_what_was_sent_and_not_opened_is_sent_again(store: Store) -> None:
    delivery = taken_one(store)
    became = sent(delivery, POLICY, now=NINE)
    assert end(store, (delivery, became)) == [True]
    assert listed(store) == [became]
    assert store.read_next_delivery_time(JOBS) == NINE + 5 * MINUTE
    assert take(store, at=5 * MINUTE - MILLISECOND) == []
    [again] = take(store, at=5 * MINUTE)
    assert (again.delivery.state, again.delivery.tries) == (DeliveryState.SENDING, 2)
    assert (again.delivery.sent_at, again.delivery.sends) == (NINE, 1)
    assert again.delivery.first_at == NINE + 5 * MINUTE


def test_what_became_of_tries_is_counted_until_a_redrive(store: Store) -> None:
    delivery = taken_one(store)
    for number in range(3):
        became = (
            sent(delivery, POLICY, now=NINE)
            if number == 0
            else failed(delivery, POLICY, error="no", now=NINE)
        )
        assert end(store, (delivery, became)) == [True]
        [taken] = take(store, at=HOUR)
        delivery = taken.delivery
    assert (delivery.tries, delivery.sends, delivery.failures) == (4, 1, 2)
    dead = failed(delivery, POLICY, error="no such queue", now=NINE, is_final=True)
    assert end(store, (delivery, dead)) == [True]
    event = audit_event(delivery.schedule_id, "run.cancel", at=NINE)
    again = store.commit_redrive(dead.run_id, event=event, now=NINE)
    assert again is not None
    assert (again.tries, again.sends, again.failures) == (4, 0, 0)
    assert listed(store) == [again]


def test_a_message_opens_its_attempt_once_and_is_gone_then(store: Store) -> None:
    delivery = taken_one(store)
    assert end(store, (delivery, sent(delivery, POLICY, now=NINE))) == [True]
    [opened] = store.commit_openings("receiver", [delivery], now=NINE)
    assert opened is not None
    assert (opened.run.state, opened.run.attempt) == (RunState.RUNNING, 1)
    assert (listed(store), store.read_next_delivery_time(JOBS)) == ([], None)
    assert store.commit_openings("receiver", [delivery], now=NINE) == [None]
    assert end(store, (delivery, failed(delivery, POLICY, error="late", now=NINE))) == [False]
    assert listed(store) == []


def test_a_try_that_failed_is_followed_by_another_and_the_run_stays_queued(store: Store) -> None:
    delivery = taken_one(store)
    became = failed(delivery, POLICY, error="refused", now=NINE, retry_after=7 * SECOND)
    assert end(store, (delivery, became)) == [True]
    run = run_of(store, delivery.run_id)
    assert (run.state, run.error, delivery_shown(store, run)) == (RunState.QUEUED, None, became)
    assert store.read_next_delivery_time(JOBS) == NINE + 7 * SECOND
    [again] = take(store, at=7 * SECOND)
    assert (again.delivery.tries, again.delivery.error) == (2, "refused")


def test_an_end_of_another_try_changes_nothing(store: Store) -> None:
    delivery = taken_one(store)
    [again] = take(store, at=LEASE)
    late = sent(delivery, POLICY, now=NINE + LEASE)
    assert end(store, (delivery, late), (replace(delivery, attempt=2), None)) == [False, False]
    assert listed(store) == [again.delivery]
    now = sent(again.delivery, POLICY, now=NINE + LEASE)
    assert end(store, (again.delivery, now), (again.delivery, None)) == [True, False]
    unknown = replace(delivery, run_id=RunId("unknown"))
    assert end(store, (unknown, unknown), (again.delivery, now)) == [False, False]


def test_a_dead_delivery_is_not_taken_and_can_be_redriven(store: Store) -> None:
    delivery = taken_one(store)
    dead = failed(delivery, POLICY, error="no such queue", now=NINE, is_final=True)
    assert end(store, (delivery, dead)) == [True]
    assert (take(store, at=HOUR), store.read_next_delivery_time(JOBS)) == ([], None)
    event = audit_event(delivery.schedule_id, "run.cancel", at=NINE)
    expected = redriven(dead, now=NINE + HOUR)
    assert store.commit_redrive(dead.run_id, event=event, now=NINE + HOUR) == expected
    assert store.commit_redrive(dead.run_id, event=event, now=NINE + 2 * HOUR) == expected
    assert store.commit_redrive(RunId("unknown"), event=event, now=NINE) is None
    assert store.list_audit(delivery.schedule_id, limit=9).count(event) == 1
    [again] = take(store, at=HOUR)
    assert (again.delivery.run_id, again.delivery.tries) == (dead.run_id, 2)


def test_a_dead_delivery_of_a_job_that_workers_fetch_by_now_is_given_back_once_it_is_redriven(
    store: Store,
) -> None:
    delivery = taken_one(store)
    dead = failed(delivery, POLICY, error="no such queue", now=NINE, is_final=True)
    assert end(store, (delivery, dead)) == [True]
    send_to(store, WorkerSink())
    assert store.commit_claims("w", wanted(*JOBS), now=NINE, limit=1) == []
    event = audit_event(delivery.schedule_id, "run.cancel", at=NINE)
    store.commit_redrive(dead.run_id, event=event, now=NINE)
    assert store.read_next_delivery_time(JOBS) == NINE
    [taken] = take(store)
    assert taken.job.sink == WorkerSink()
    assert end(store, (taken.delivery, None)) == [True]
    [opened] = store.commit_claims("w", wanted(*JOBS), now=NINE, limit=1)
    assert (opened.run.run_id, opened.run.attempt) == (dead.run_id, 1)


def test_a_run_that_is_cancelled_takes_its_delivery_along(store: Store) -> None:
    delivery = taken_one(store)
    store.commit_cancel(delivery.run_id, event=audit_event(delivery.schedule_id, at=NINE), now=NINE)
    assert (listed(store), take(store, at=HOUR)) == ([], [])
    assert end(store, (delivery, None)) == [False]
    assert store.read_intents(JOBS, now=NINE + HOUR, limit=9) == []
    assert store.commit_openings("receiver", [delivery], now=NINE) == [None]


def test_deliveries_are_listed_by_run_and_found_by_state_job_and_schedule(store: Store) -> None:
    send_to(store, CELERY, job="mail")
    for number in range(3):
        queue_at(store, f"s{number}")
    queue_at(store, "m0", job="mail")
    first, second = (taken.delivery for taken in take(store))
    third, mail = (taken.delivery for taken in take(store, wanted(*JOBS, "mail")))
    dead = failed(second, POLICY, error="no", now=NINE, is_final=True)
    assert end(store, (second, dead)) == [True]
    everything = sorted([first, dead, third, mail], key=lambda delivery: delivery.run_id)
    assert listed(store) == everything
    assert listed(store, state=DeliveryState.DEAD) == [dead]
    assert [each.schedule_id for each in listed(store, state=DeliveryState.SENDING)] == ["m0", "s0", "s2"]
    mails = [each for each in everything if each.job == "mail"]
    assert (listed(store, job="mail"), listed(store, schedule_id="m0")) == (mails, mails)

    def read(last: Delivery | None) -> list[Delivery]:
        after = None if last is None else last.run_id
        return store.list_deliveries(DeliveryFilter(), after=after, limit=2)

    assert read_pages(read, limit=2) == everything


def test_many_relays_at_once_take_each_delivery_once(store: Store) -> None:
    queued = [queue_at(store, f"s{number:02}").run_id for number in range(MANY)]

    def relay(_: int) -> list[str]:
        found: list[str] = []
        while (next_at := store.read_next_delivery_time(JOBS)) is not None and next_at <= NINE:
            found += [taken.delivery.run_id for taken in take(store)]
        return found

    taken = all_at_once(relay)
    assert sorted(run_id for of_one in taken for run_id in of_one) == sorted(queued)
    assert {delivery.tries for delivery in listed(store)} == {1}


def test_more_than_a_call_takes_is_refused(store: Store) -> None:
    delivery = taken_one(store)
    with pytest.raises(TooManyElements):
        take(store, limit=store.elements_max + 1)
    told = DeliveryEnd(run_id=delivery.run_id, attempt=1, tries=1, becomes=None)
    with pytest.raises(TooManyElements):
        store.commit_delivery_ends([told] * (store.elements_max + 1), now=NINE)
    assert listed(store) == [delivery]
