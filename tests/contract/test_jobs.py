"""The job protocol: jobs by name, created or replaced."""

from dataclasses import replace
from datetime import timedelta

import pytest

from rota.domain.job import Job, RetryPolicy
from rota.domain.overdue import CatchUpAll, Expire, LatestOnly, OverduePolicy
from rota.store.port import Store
from tests.contract.builders import HOUR, MADE_AT
from tests.contract.steps import read_pages

FULL = Job(
    name="sales_report",
    overdue=Expire(deadline=timedelta(minutes=5)),
    retry=RetryPolicy(
        max_attempts=3,
        initial_delay=timedelta(milliseconds=250),
        factor=1.5,
        max_delay=timedelta(minutes=7),
        jitter=0.35,
    ),
    timeout=timedelta(hours=2),
    lease=timedelta(seconds=12, milliseconds=500),
    params_bytes_max=1000,
    description="Sends the sales report: fünf Seiten.",
)


@pytest.mark.parametrize(
    "overdue",
    [
        CatchUpAll(),
        CatchUpAll(max_age=timedelta(days=3)),
        LatestOnly(grace=timedelta()),
        Expire(deadline=HOUR),
    ],
    ids=str,
)
def test_a_job_is_read_back_whole(store: Store, overdue: OverduePolicy) -> None:
    job = replace(FULL, overdue=overdue)
    assert store.commit_job(job, now=MADE_AT)
    assert store.get_job("sales_report") == job


def test_a_job_of_defaults_is_read_back_whole(store: Store) -> None:
    assert store.commit_job(Job(name="mail"), now=MADE_AT)
    assert store.get_job("mail") == Job(name="mail")


def test_a_job_is_replaced_whole(store: Store) -> None:
    assert store.commit_job(FULL, now=MADE_AT)
    assert store.commit_job(Job(name="mail"), now=MADE_AT)
    assert not store.commit_job(Job(name="sales_report"), now=MADE_AT + HOUR)
    assert store.get_job("sales_report") == Job(name="sales_report")
    assert not store.commit_job(Job(name="sales_report"), now=MADE_AT + HOUR)
    assert len(store.list_jobs(after=None, limit=10)) == 2


def test_an_unknown_job_is_not_found(store: Store) -> None:
    store.commit_job(FULL, now=MADE_AT)
    assert store.get_job("sales_repor") is None


def test_pages_of_jobs_are_complete_and_repeat_nothing(store: Store) -> None:
    wanted = ["Z", "a", "a-1", "a1", "a_1", "b"]
    for name in reversed(wanted):
        store.commit_job(replace(FULL, name=name), now=MADE_AT)
    seen = read_pages(lambda last: store.list_jobs(after=last.name if last else None, limit=4), limit=4)
    assert [job.name for job in seen] == wanted
    assert [job.name for job in store.list_jobs(after="a0", limit=1)] == ["a1"]
