"""The HTTP API over a memory store and a clock that stands still until a test moves it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from fastapi import FastAPI
from httpx2 import Response
from starlette.testclient import TestClient

from rota.api.application import create_api
from rota.config import Settings
from rota.domain.delivery import DeliveryEnd, failed
from rota.service.context import Context
from rota.service.creation import create_schedule
from rota.service.jobs import put_job
from rota.store.memory import MemoryStore
from rota.store.port import Wanted
from rota.testing.clock import ManualClock
from rota.wiring import open_context
from tests.dispatch.conftest import dispatcher_on

START = datetime(2026, 1, 10, 12, 0, tzinfo=UTC)
JOB = "sales_report"
REPORT: dict[str, object] = {
    "id": "report-7",
    "job": JOB,
    "timezone": "America/New_York",
    "recurrence": {"cron": "0 9 * * 1-5"},
}
JSON = {"content-type": "application/json"}

Body = dict[str, object]
WorkOff = Callable[[], None]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture(scope="session")
def shared_context() -> Context:
    """What tests share because it is slow to make and does not change: zones and compiled cadences."""
    return open_context(Settings(partitions=4), store=MemoryStore(), clock=ManualClock(START))


@pytest.fixture
def context(shared_context: Context, store: MemoryStore, clock: ManualClock) -> Context:
    store.ensure_partitions(shared_context.partition_count)
    return replace(shared_context, store=store, clock=clock)


def with_one_schedule(shared_context: Context) -> Context:
    """A context of a store that holds the job and the schedule of `REPORT`."""
    store = MemoryStore()
    store.ensure_partitions(shared_context.partition_count)
    context = replace(shared_context, store=store)
    put_job(context, JOB, {})
    create_schedule(context, REPORT)
    return context


@pytest.fixture(scope="session")
def shared_api(shared_context: Context) -> FastAPI:
    """One application for all tests, each of which gives it its own context: starting one takes as long as requests."""
    return create_api(shared_context)


@pytest.fixture(scope="session")
def described(shared_api: FastAPI) -> Body:
    """The description of the API."""
    return cast("Body", shared_api.openapi())


@pytest.fixture(scope="session")
def shared_client(shared_api: FastAPI) -> Iterator[TestClient]:
    with TestClient(shared_api, raise_server_exceptions=False) as opened:
        yield opened


@pytest.fixture
def client(shared_api: FastAPI, shared_client: TestClient, context: Context) -> TestClient:
    """A client of an API that knows one job."""
    shared_api.state.context = context
    assert shared_client.put(f"/jobs/{JOB}", json={}).status_code == 201
    return shared_client


@pytest.fixture
def work_off(context: Context, clock: ManualClock) -> WorkOff:
    """Admits whatever is due at the clock's time."""
    dispatcher = dispatcher_on(context, "d1")

    def run() -> None:
        while dispatcher.step(now := clock.now()).wake_at <= now:
            pass

    return run


def body_of(response: Response, *, status: int = 200) -> Body:
    """The JSON object of an answer that has this status."""
    assert response.status_code == status, response.text
    return cast("Body", response.json())


def items_of(response: Response) -> list[Body]:
    """The items of a page."""
    return cast("list[Body]", body_of(response)["items"])


def fields_of(response: Response, *, status: int = 422) -> list[str]:
    """The fields that a problem names."""
    assert response.headers["content-type"] == "application/problem+json"
    errors = cast("list[dict[str, str]]", body_of(response, status=status)["errors"])
    assert all(error["message"] for error in errors)
    return [error["field"] for error in errors]


def report(**fields: object) -> Body:
    """The body of a schedule, valid unless `fields` make it otherwise."""
    return {**REPORT, **fields}


def for_version(number: int) -> dict[str, str]:
    """The header of an edit that was made for that version."""
    return {"If-Match": f'"{number}"'}


def actions_of(client: TestClient, schedule_id: str = "report-7") -> list[object]:
    """What was done to the schedule, newest first."""
    return [event["action"] for event in items_of(client.get(f"/schedules/{schedule_id}/history"))]


def upcoming_of(client: TestClient, member: str, *, count: int = 3) -> list[Body]:
    """One of the lists of what is to come for `report-7`."""
    upcoming = body_of(client.get(f"/schedules/report-7/upcoming?count={count}"))
    return cast("list[Body]", upcoming[member])


def let_die(context: Context, job: str, *, error: str = "503 Service Unavailable") -> None:
    """Takes the queued runs of a job with a sink, as a relay does, and gives their deliveries up."""
    now = context.clock.now()
    taken = context.store.commit_takes([Wanted(job=job)], now=now, lease=timedelta(minutes=1), limit=10)
    ends = [
        DeliveryEnd(
            run_id=each.delivery.run_id,
            attempt=each.delivery.attempt,
            tries=each.delivery.tries,
            becomes=failed(each.delivery, each.job.delivery, error=error, now=now, is_final=True),
        )
        for each in taken
    ]
    assert taken
    assert all(context.store.commit_delivery_ends(ends, now=now))


def rows_of(store: MemoryStore) -> Mapping[str, object]:
    """Everything that the store holds, as a value."""
    return {
        name: {key: list(value) if isinstance(value, list) else value for key, value in rows.items()}
        if isinstance(rows, dict)
        else (set(rows) if isinstance(rows, set) else rows)
        for name, rows in vars(store).items()
        if name != "_lock"
    }
