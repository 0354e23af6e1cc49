"""The work protocol: reading deliveries, and opening the attempts that they stand for."""

from dataclasses import replace
from datetime import timedelta

import pytest

from rota.domain.identity import RunId
from rota.domain.job import Job
from rota.domain.json_text import encode_json
from rota.domain.run import RunState
from rota.store.port import Intent, OpenedAttempt, Store, TooManyElements
from tests.contract.builders import (
    HOUR,
    MADE_AT,
    MILLISECOND,
    MINUTE,
    NINE,
    SECOND,
    definition,
    failure,
    new_schedule,
    run_at,
    success,
)
from tests.contract.steps import (
    admit_runs,
    attempts_of,
    create,
    delivery_of,
    first_attempt,
    open_all,
    open_attempt,
    plan,
    queue_run,
    run_of,
    settle,
)

JOBS = ["sales_report"]
ID = RunId("report-7.1.20260110T090000Z")


def delivered_ids(store: Store, jobs: list[str], *, minutes: int = 0, limit: int = 100) -> list[str]:
    deliveries = store.read_intents(jobs, now=NINE + minutes * MINUTE, limit=limit)
    return [delivery.run_id for delivery in deliveries]


def test_deliveries_are_read_by_available_instant_then_run_id(store: Store) -> None:
    for id_, minutes, job in (
        ("d", 0, "mail"),
        ("b", 5, "mail"),
        ("c", 5, "report"),
        ("a", 5, "mail"),
        ("e", 1, "mail"),
    ):
        schedule = create(store, new_schedule(id_, job=job))
        admit_runs(store, schedule, replace(run_at(schedule, NINE), available_at=NINE + minutes * MINUTE))
    in_order = [f"{id_}.1.20260110T090000Z" for id_ in ("d", "e", "a", "b", "c")]
    both = ["report", "mail"]
    assert delivered_ids(store, both, minutes=5) == in_order
    assert delivered_ids(store, both, minutes=5, limit=3) == in_order[:3]
    assert delivered_ids(store, both, minutes=4) == in_order[:2]
    assert delivered_ids(store, ["mail"], minutes=5) == in_order[:4]
    assert delivered_ids(store, ["report", "unknown"], minutes=5) == in_order[4:]
    assert delivered_ids(store, [], minutes=5) == []


def test_a_delivery_is_available_at_its_instant_and_not_before(store: Store) -> None:
    run = queue_run(store)
    assert store.read_intents(JOBS, now=NINE - MILLISECOND, limit=10) == []
    assert store.read_intents(JOBS, now=NINE, limit=10) == [
        Intent(run_id=run.run_id, attempt=1, job="sales_report", available_at=NINE)
    ]


def test_reading_takes_nothing(store: Store) -> None:
    queue_run(store)
    assert delivered_ids(store, JOBS) == delivered_ids(store, JOBS) == [ID]


def test_the_next_delivery_time_is_the_earliest_of_these_jobs(store: Store) -> None:
    assert store.read_next_intent_time(JOBS) is None
    for id_, minutes, job in (("a", 7, "mail"), ("b", 3, "mail"), ("c", 1, "report")):
        schedule = create(store, new_schedule(id_, job=job))
        admit_runs(store, schedule, replace(run_at(schedule, NINE), available_at=NINE + minutes * MINUTE))
    assert store.read_next_intent_time(["mail"]) == NINE + 3 * MINUTE
    assert store.read_next_intent_time(["mail", "report"]) == NINE + MINUTE
    assert store.read_next_intent_time(["unknown"]) is None
    assert store.read_next_intent_time([]) is None


def test_an_opening_starts_the_run_and_takes_its_delivery(store: Store) -> None:
    store.commit_job(Job(name="sales_report", lease=timedelta(seconds=45)), now=MADE_AT)
    new = new_schedule(of=definition(params=encode_json({"page": 1})))
    schedule = create(store, new)
    run = run_at(schedule, NINE)
    admit_runs(store, schedule, run)
    started = replace(run, state=RunState.RUNNING, attempt=1, started_at=NINE + SECOND)
    assert store.commit_openings("worker-1", [delivery_of(run)], now=NINE + SECOND) == [
        OpenedAttempt(
            run=started, version=new.first.version, job=Job(name="sales_report", lease=timedelta(seconds=45))
        )
    ]
    assert run_of(store, ID) == started
    assert attempts_of(store, ID) == (first_attempt(run, lease=timedelta(seconds=45)),)
    assert delivered_ids(store, JOBS, minutes=60) == []
    assert store.read_next_intent_time(JOBS) is None


def test_a_job_without_a_row_has_the_defaults(store: Store) -> None:
    opened = open_attempt(store, queue_run(store))
    assert opened.job == Job(name="sales_report")
    [attempt] = attempts_of(store, ID)
    assert attempt.lease_expires_at == NINE + Job(name="sales_report").lease


def test_a_delivery_opens_nothing_the_second_time(store: Store) -> None:
    delivery = delivery_of(queue_run(store))
    assert open_all(store, [delivery], worker="worker-1") != [None]
    before = store.get_run(ID)
    assert open_all(store, [delivery], worker="worker-2", now=NINE + HOUR) == [None]
    assert store.get_run(ID) == before


def test_a_delivery_twice_in_a_batch_opens_one_attempt(store: Store) -> None:
    delivery = delivery_of(queue_run(store))
    first, second = open_all(store, [delivery, delivery])
    assert first is not None
    assert second is None
    assert len(attempts_of(store, ID)) == 1


@pytest.mark.parametrize("attempt", [0, 2, 3])
def test_a_delivery_of_another_attempt_opens_nothing(store: Store, attempt: int) -> None:
    run = queue_run(store)
    assert open_all(store, [delivery_of(run, attempt=attempt)]) == [None]
    assert run_of(store, ID) == run
    assert delivered_ids(store, JOBS) == [ID]


def test_a_delivery_of_an_unknown_run_opens_nothing(store: Store) -> None:
    run = replace(queue_run(store), run_id=RunId("unknown"))
    assert open_all(store, [delivery_of(run)]) == [None]


def test_a_copy_of_an_older_delivery_does_not_open_the_next_attempt(store: Store) -> None:
    copy = delivery_of(queue_run(store))
    open_all(store, [copy])
    assert settle(store, failure(ID, at=NINE + SECOND, retry_at=NINE + MINUTE)) == [True]
    assert open_all(store, [copy], now=NINE + HOUR) == [None]
    assert run_of(store, ID).state is RunState.QUEUED


def test_a_settled_run_is_not_opened_again(store: Store) -> None:
    run = queue_run(store)
    open_attempt(store, run)
    assert settle(store, success(ID, at=NINE + SECOND)) == [True]
    before = store.get_run(ID)
    for attempt in (1, 2):
        assert open_all(store, [delivery_of(run, attempt=attempt)]) == [None]
    assert store.get_run(ID) == before


def test_each_place_of_a_batch_tells_of_its_delivery(store: Store) -> None:
    runs = [queue_run(store, id_) for id_ in ("a", "b", "c")]
    open_attempt(store, runs[1])
    opened = open_all(store, [delivery_of(run) for run in reversed(runs)], worker="worker-2")
    assert [None if attempt is None else attempt.run.run_id for attempt in opened] == [
        runs[2].run_id,
        None,
        runs[0].run_id,
    ]


def test_a_later_attempt_keeps_the_first_start_and_counts_on(store: Store) -> None:
    open_attempt(store, queue_run(store))
    for number in (2, 3):
        retry_at = NINE + number * MINUTE
        assert settle(store, failure(ID, at=NINE + SECOND, attempt=number - 1, retry_at=retry_at)) == [True]
        opened = open_attempt(store, run_of(store, ID), now=retry_at, worker=f"worker-{number}")
        assert (opened.run.attempt, opened.run.started_at, opened.run.available_at) == (
            number,
            NINE,
            retry_at,
        )
    attempts = attempts_of(store, ID)
    assert [(attempt.number, attempt.worker) for attempt in attempts] == [
        (1, "worker-1"),
        (2, "worker-2"),
        (3, "worker-3"),
    ]
    assert [attempt.opened_at for attempt in attempts] == [NINE, NINE + 2 * MINUTE, NINE + 3 * MINUTE]


def test_a_run_without_its_version_fails_and_stops_no_other(store: Store) -> None:
    """I12: left waiting it would be delivered first, for ever."""
    schedule = create(store, new_schedule("bad"))
    bad = replace(run_at(schedule, NINE), version=9)
    plan(store, schedule, bad)
    good = queue_run(store, "good")
    opened = open_all(store, [delivery_of(bad), delivery_of(good)], now=NINE + SECOND)
    assert [attempt and attempt.run.run_id for attempt in opened] == [None, good.run_id]
    failed = run_of(store, bad.run_id)
    assert failed.error is not None
    assert "version 9 does not exist" in failed.error
    assert failed == replace(
        bad, state=RunState.FAILED, error=failed.error, finished_at=NINE + SECOND, attempt=0
    )
    assert attempts_of(store, bad.run_id) == ()
    assert store.read_next_intent_time(JOBS) is None
    assert open_all(store, [delivery_of(bad)], now=NINE + HOUR) == [None]
    assert run_of(store, bad.run_id) == failed


def test_more_deliveries_than_the_store_takes_are_refused_whole(store: Store) -> None:
    delivery = delivery_of(queue_run(store))
    with pytest.raises(TooManyElements):
        store.commit_openings("worker-1", [delivery] * (store.elements_max + 1), now=NINE)
    assert run_of(store, ID).state is RunState.QUEUED


def test_an_empty_batch_has_no_answers(store: Store) -> None:
    assert store.commit_openings("worker-1", [], now=NINE) == []
    assert store.commit_heartbeats([], now=NINE) == []
    assert store.commit_settlements([]) == []
