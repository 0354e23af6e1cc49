"""The work protocol: claims, which take deliveries and open their attempts in one step."""

from dataclasses import replace
from datetime import timedelta

import pytest

from rota.domain.identity import RunId
from rota.domain.job import Job
from rota.domain.run import RunState
from rota.store.port import OpenedAttempt, Store, TooManyElements
from tests.contract.builders import (
    HOUR,
    MADE_AT,
    MILLISECOND,
    MINUTE,
    NINE,
    SECOND,
    failure,
    new_schedule,
    run_at,
    success,
)
from tests.contract.racing import CALLERS, all_at_once
from tests.contract.steps import (
    admit_runs,
    attempts_of,
    create,
    deliveries,
    delivery_of,
    first_attempt,
    open_all,
    open_attempt,
    plan,
    queue_at,
    queue_run,
    run_of,
    settle,
    wanted,
)

JOBS = ["sales_report"]
ID = RunId("report-7.1.20260110T090000Z")
MANY = 40


def claim(store: Store, jobs: list[str] = JOBS, *, minutes: int = 0, limit: int = 2) -> list[OpenedAttempt]:
    return store.commit_claims("worker-1", wanted(*jobs), now=NINE + minutes * MINUTE, limit=limit)


def claimed_ids(store: Store, jobs: list[str] = JOBS, *, minutes: int = 0, limit: int = 2) -> list[str]:
    """Everything that is to be had, claim after claim."""
    found: list[str] = []
    while opened := claim(store, jobs, minutes=minutes, limit=limit):
        found += [attempt.run.run_id for attempt in opened]
    return found


def test_a_claim_starts_the_run_and_takes_its_delivery(store: Store) -> None:
    store.commit_job(Job(name="sales_report", lease=timedelta(seconds=45)), now=MADE_AT)
    new = new_schedule()
    schedule = create(store, new)
    run = run_at(schedule, NINE)
    admit_runs(store, schedule, run)
    started = replace(run, state=RunState.RUNNING, attempt=1, started_at=NINE + SECOND)
    assert store.commit_claims("worker-1", wanted(*JOBS), now=NINE + SECOND, limit=2) == [
        OpenedAttempt(
            run=started, version=new.first.version, job=Job(name="sales_report", lease=timedelta(seconds=45))
        )
    ]
    assert run_of(store, ID) == started
    assert attempts_of(store, ID) == (first_attempt(run, lease=timedelta(seconds=45)),)
    assert deliveries(store) == []
    assert claim(store, minutes=60) == []


def test_claims_take_the_earliest_first_whatever_their_jobs(store: Store) -> None:
    for id_, minutes, job in (
        ("d", 0, "mail"),
        ("b", 5, "mail"),
        ("c", 5, "report"),
        ("a", 5, "mail"),
        ("e", 1, "mail"),
        ("f", 2, "other"),
        ("g", 6, "mail"),
    ):
        queue_at(store, id_, at=NINE + minutes * MINUTE, job=job)
    in_order = [f"{id_}.1.20260110T090000Z" for id_ in ("d", "e", "a", "b", "c")]
    both = ["report", "mail", "unknown", "mail"]
    assert [attempt.run.run_id for attempt in claim(store, both, minutes=5)] == in_order[:2]
    assert [attempt.run.run_id for attempt in claim(store, both, minutes=5, limit=1)] == in_order[2:3]
    assert claimed_ids(store, both, minutes=5) == in_order[3:]
    assert [delivery.run_id[0] for delivery in deliveries(store, "mail", "other")] == ["f", "g"]


def test_a_claim_takes_nothing_ahead_of_its_instant(store: Store) -> None:
    queue_run(store)
    assert store.commit_claims("worker-1", wanted(*JOBS), now=NINE - MILLISECOND, limit=2) == []
    assert store.commit_claims("worker-1", [], now=NINE, limit=2) == []
    assert len(claim(store)) == 1


def test_a_claim_takes_no_more_than_its_limit(store: Store) -> None:
    runs = [queue_run(store, id_) for id_ in ("a", "b", "c")]
    assert [attempt.run.run_id for attempt in claim(store, limit=1)] == [runs[0].run_id]
    assert [delivery.run_id for delivery in deliveries(store)] == [runs[1].run_id, runs[2].run_id]


def test_a_retry_is_claimed_as_the_next_attempt(store: Store) -> None:
    queue_run(store)
    claim(store)
    assert settle(store, failure(ID, at=NINE + SECOND, retry_at=NINE + MINUTE)) == [True]
    assert claim(store) == []
    [opened] = claim(store, minutes=1)
    assert (opened.run.attempt, opened.run.started_at) == (2, NINE)
    assert settle(store, success(ID, at=NINE + HOUR, attempt=2)) == [True]
    assert claim(store, minutes=60) == []


def test_what_opens_nothing_keeps_nobodys_place(store: Store) -> None:
    """I12: runs whose version is not there fail, ahead of more good ones than a claim takes."""
    bad = []
    for id_ in ("bad-1", "bad-2"):
        schedule = create(store, new_schedule(id_))
        bad.append(replace(run_at(schedule, NINE), version=9))
        plan(store, schedule, bad[-1])
    good = [queue_run(store, f"good-{number}") for number in range(3)]
    claims = [claim(store) for _ in range(4)]
    assert [attempt.run.run_id for opened in claims for attempt in opened] == [run.run_id for run in good]
    for run in bad:
        failed = run_of(store, run.run_id)
        assert (failed.state, failed.attempt, failed.finished_at) == (RunState.FAILED, 0, NINE)
        assert "version 9 does not exist" in (failed.error or "")
    assert store.read_next_intent_time(JOBS) is None


def test_deliveries_of_others_are_claimed_once(store: Store) -> None:
    """A relay holds copies of what a worker claims."""
    first, second = (queue_run(store, id_) for id_ in ("a", "b"))
    open_attempt(store, first)
    assert claimed_ids(store) == [second.run_id]
    assert open_all(store, [delivery_of(first), delivery_of(second)], worker="relay") == [None, None]


def test_many_workers_at_once_claim_everything_and_each_run_once(store: Store) -> None:
    queued = [queue_run(store, f"s{number}", job=f"job-{number % 3}").run_id for number in range(MANY)]
    jobs = [f"job-{number}" for number in range(3)]

    def call(number: int) -> list[str]:
        found: list[str] = []
        # What another one holds is passed over, so an empty answer is not the end while there are deliveries.
        while store.read_next_intent_time(jobs) is not None:
            opened = store.commit_claims(f"worker-{number}", wanted(*jobs), now=NINE, limit=2)
            found += [attempt.run.run_id for attempt in opened]
        return found

    taken = all_at_once(call)
    assert len(taken) == CALLERS
    assert sorted(run_id for of_one in taken for run_id in of_one) == sorted(queued)
    for number, of_one in enumerate(taken):
        for run_id in of_one:
            assert [attempt.worker for attempt in attempts_of(store, run_id)] == [f"worker-{number}"]


def test_a_claim_of_more_than_the_store_takes_is_refused(store: Store) -> None:
    queue_run(store)
    with pytest.raises(TooManyElements):
        store.commit_claims("worker-1", wanted(*JOBS), now=NINE, limit=store.elements_max + 1)
    assert run_of(store, ID).state is RunState.QUEUED
