"""Runs and jobs over HTTP."""

from datetime import timedelta

import pytest
from starlette.testclient import TestClient

from rota.service.context import Context
from rota.testing.clock import ManualClock
from tests.api.conftest import JOB, Body, WorkOff, body_of, items_of, report

RUN = "report-7.1.20260110T130000Z"


@pytest.fixture
def queued(client: TestClient, clock: ManualClock, work_off: WorkOff) -> TestClient:
    """One schedule with one run that waits for a worker."""
    client.post("/schedules", json=report(recurrence={"cron": "0 * * * *"}))
    clock.advance(timedelta(hours=1, seconds=2))
    work_off()
    return client


def test_a_run_is_shown_under_the_id_that_its_occurrence_gives_it(queued: TestClient) -> None:
    run = body_of(queued.get(f"/runs/{RUN}"))
    expected: Body = {
        "kind": "run",
        "schedule_id": "report-7",
        "version": 1,
        "scheduled_at": "2026-01-10T13:00:00Z",
        "local": "2026-01-10T08:00",
        "offset": "-05:00",
        "state": "queued",
        "origin": "schedule",
        "attempt": 0,
        "attempts": [],
        "result": None,
        "lateness": {"admitted_ms": 2000, "started_ms": None},
    }
    assert run | expected == run
    assert [item["run_id"] for item in items_of(queued.get("/runs"))] == [RUN]


def test_a_waiting_run_is_cancelled_and_may_be_cancelled_again(queued: TestClient) -> None:
    cancelled = queued.post(
        f"/runs/{RUN}/cancel", json={"reason": "not needed"}, headers={"Rota-Actor": "ops"}
    )
    assert body_of(cancelled)["state"] == "cancelled"
    assert body_of(queued.post(f"/runs/{RUN}/cancel")) == body_of(cancelled)
    event = items_of(queued.get("/schedules/report-7/history"))[0]
    assert (event["action"], event["actor"], event["reason"]) == ("run.cancel", "ops", "not needed")


def test_a_running_run_is_asked_to_stop_and_shows_its_attempt(
    queued: TestClient, context: Context, clock: ManualClock
) -> None:
    deliveries = context.store.read_intents([JOB], now=clock.now(), limit=1)
    context.store.commit_openings("w1", deliveries, now=clock.now())
    run = body_of(queued.post(f"/runs/{RUN}/cancel"))
    assert (run["state"], run["cancel_requested_at"]) == ("running", "2026-01-10T13:00:02Z")
    attempts = run["attempts"]
    assert isinstance(attempts, list)
    assert [(attempt["number"], attempt["worker"], attempt["outcome"]) for attempt in attempts] == [
        (1, "w1", None)
    ]


def test_a_job_is_created_then_replaced_and_listed_by_name(client: TestClient) -> None:
    created = client.put("/jobs/a.b-c_1", json={"retry": {"max_attempts": 3}, "timeout": "PT10M"})
    assert created.headers["location"] == "/jobs/a.b-c_1"
    job = body_of(created, status=201)
    assert body_of(client.get("/jobs/a.b-c_1")) == job
    assert job["timeout"] == "PT10M"
    replaced = body_of(client.put("/jobs/a.b-c_1", json={}))
    assert replaced["timeout"] is None
    assert [item["name"] for item in items_of(client.get("/jobs"))] == ["a.b-c_1", JOB]


def test_the_overdue_policy_of_a_job_is_shown_where_a_schedule_has_none(client: TestClient) -> None:
    policy = {"policy": "expire", "deadline": "PT5M"}
    client.put(f"/jobs/{JOB}", json={"overdue": policy})
    created = body_of(client.post("/schedules", json=report()), status=201)
    assert (created["overdue"], created["asked"]) == (
        policy,
        {"fold": "auto", "period": "auto", "overdue": None},
    )
