"""A job in wire form."""

from datetime import timedelta

import pytest

from rota.domain.errors import InvalidRequest
from rota.domain.job import Job, RetryPolicy
from rota.domain.job_form import job_to_wire, parse_job
from rota.domain.overdue import Expire

WHOLE = Job(
    name="sales_report",
    overdue=Expire(deadline=timedelta(hours=2)),
    retry=RetryPolicy(
        max_attempts=3,
        initial_delay=timedelta(0),
        factor=1.5,
        max_delay=timedelta(minutes=7),
        jitter=0,
    ),
    timeout=timedelta(minutes=10),
    lease=timedelta(minutes=1),
    params_bytes_max=100,
    description="Mails the sales of the day before.",
)


@pytest.mark.parametrize("job", [WHOLE, Job(name="a")])
def test_a_job_is_read_back_as_it_was_written(job: Job) -> None:
    assert parse_job(job.name, job_to_wire(job)) == job


def test_a_job_may_name_itself() -> None:
    assert parse_job("a", {"name": "a"}) == Job(name="a")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"name": "b"}, "name"),
        ({"color": "red"}, "color"),
        ({"overdue": 1}, "overdue.policy"),
        ({"retry": 5}, "retry"),
        ({"retry": {"attempts": 5}}, "retry.attempts"),
        ({"retry": {"max_attempts": 0}}, "retry.max_attempts"),
        ({"retry": {"max_attempts": 2.5}}, "retry.max_attempts"),
        ({"retry": {"max_attempts": True}}, "retry.max_attempts"),
        ({"retry": {"factor": 0.5}}, "retry.factor"),
        ({"retry": {"factor": float("nan")}}, "retry.factor"),
        ({"retry": {"jitter": 1.1}}, "retry.jitter"),
        ({"retry": {"initial_delay": "P1M"}}, "retry.initial_delay"),
        ({"timeout": "PT0S"}, "timeout"),
        ({"lease": "PT0S"}, "lease"),
        ({"lease": "PT4S"}, "lease"),
        ({"lease": "PT2H"}, "lease"),
        ({"params_bytes_max": 65_537}, "params_bytes_max"),
        ({"description": 1}, "description"),
        ({"description": "x" * 1_001}, "description"),
    ],
)
def test_a_bad_field_is_named(fields: dict[str, object], expected: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_job("a", fields)
    assert [error.field for error in caught.value.errors] == [expected]


@pytest.mark.parametrize("name", ["", "A", "7", "a b", "a/b", "ä", "x" * 81, "a\n"])
def test_a_name_is_a_slug(name: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_job(name, {})
    assert [error.field for error in caught.value.errors] == ["name"]
