"""What is needed to settle an attempt that somebody else opened."""

from rota.domain.job import Job
from rota.store.port import AttemptKey, OpenAttemptRow, Store
from tests.contract.builders import MADE_AT, NINE, failure, success
from tests.contract.steps import open_attempt, queue_run, run_of, settle

JOB = Job(name="sales_report", priority=7)


def test_an_open_attempt_is_found_with_its_run_and_job(store: Store) -> None:
    store.commit_job(JOB, now=MADE_AT)
    opened = open_attempt(store, queue_run(store, "a")).run
    other = open_attempt(store, queue_run(store, "b", job="never stored")).run
    asked = [AttemptKey(run_id=run.run_id, attempt=1) for run in (other, opened)]
    assert store.read_open_attempts(asked) == [
        OpenAttemptRow(run=other, job=Job(name="never stored")),
        OpenAttemptRow(run=opened, job=JOB),
    ]


def test_an_attempt_that_is_not_its_runs_current_one_is_not_found(store: Store) -> None:
    run = queue_run(store)
    first, second = (AttemptKey(run_id=run.run_id, attempt=number) for number in (1, 2))
    assert store.read_open_attempts([first]) == [None]
    open_attempt(store, run)
    assert store.read_open_attempts([second]) == [None]
    settle(store, failure(run.run_id, at=NINE, retry_at=NINE))
    assert store.read_open_attempts([first, second]) == [None, None]
    opened = open_attempt(store, run_of(store, run.run_id)).run
    found = store.read_open_attempts([first, second])
    assert [None if entry is None else entry.run for entry in found] == [None, opened]
    settle(store, success(run.run_id, at=NINE, attempt=2))
    assert store.read_open_attempts([second]) == [None]
