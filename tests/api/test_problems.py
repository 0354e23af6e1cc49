"""Errors that no use case raises on purpose, and the page that lists them all."""

import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from structlog.testing import capture_logs

from rota.api.application import create_api
from rota.api.origins import FOREIGN_HOST, FOREIGN_ORIGIN
from rota.api.problems import INTERNAL, KINDS, METHOD_NOT_ALLOWED, NO_SUCH_ROUTE
from rota.config import Settings
from rota.domain.errors import (
    Conflict,
    IllegalTransition,
    InvalidExpression,
    RotaError,
    Stale,
    ZoneRulesDiffer,
)
from rota.domain.job import Job
from rota.store.memory import MemoryStore
from rota.store.port import StoreUnavailable, TooManyElements
from rota.testing.clock import ManualClock
from rota.wiring import open_context
from tests.api.conftest import body_of, fields_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "errors.md"


class FailingStore(MemoryStore):
    """A store that raises what it is told to."""

    error: Exception | None = None

    def list_jobs(self, *, after: str | None, limit: int) -> list[Job]:
        if self.error is not None:
            raise self.error
        return super().list_jobs(after=after, limit=limit)


@pytest.fixture
def failing(clock: ManualClock) -> FailingStore:
    return FailingStore()


@pytest.fixture
def failing_client(failing: FailingStore, clock: ManualClock) -> TestClient:
    context = open_context(Settings(), store=failing, clock=clock)
    return TestClient(create_api(context), raise_server_exceptions=False)


@pytest.mark.parametrize(
    "path", ["/", "/nothing", "/schedules/", "/schedules/a/b", "/docs", "//schedules", "/runs/a/b"]
)
def test_an_unknown_address_is_a_problem(client: TestClient, path: str) -> None:
    response = client.get(path)
    assert fields_of(response, status=404) == []
    assert response.json()["type"] == "urn:rota:problem:no-such-route"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/schedules", "GET, POST"),
        ("PUT", "/schedules/report-7", "DELETE, GET, PATCH"),
        ("PATCH", "/schedules", "GET, POST"),
        ("GET", "/schedules/report-7/run", "POST"),
        ("DELETE", "/schedules/report-7/versions/1", "GET"),
        ("POST", "/zones", "GET"),
        ("GET", "/schedules/report-7/pause", "POST"),
        ("DELETE", "/jobs/sales_report", "GET, PUT"),
        ("OPTIONS", "/preview", "POST"),
        ("BREW", "/runs", "GET"),
        ("POST", "/health/live", "GET"),
    ],
)
def test_a_wrong_method_is_a_problem_that_names_the_right_ones(
    client: TestClient, method: str, path: str, allowed: str
) -> None:
    response = client.request(method, path)
    assert fields_of(response, status=405) == []
    assert response.headers["allow"] == allowed
    *others, last = allowed.split(", ")
    taken = f"{', '.join(others)} or {last}" if others else last
    assert response.json()["detail"] == f"{method} is not taken here; take {taken}."


def test_a_store_that_is_away_is_a_503_that_says_when_to_try_again(
    failing: FailingStore, failing_client: TestClient
) -> None:
    failing.error = StoreUnavailable("The database is locked.")
    response = failing_client.get("/jobs")
    assert fields_of(response, status=503) == []
    assert response.headers["retry-after"] == "1"


@pytest.mark.parametrize(
    "error", [RuntimeError("the secret"), TooManyElements("the secret"), RotaError("the secret")]
)
def test_a_fault_is_logged_and_tells_nothing_of_the_inside(
    failing: FailingStore, failing_client: TestClient, error: Exception
) -> None:
    failing.error = error
    with capture_logs() as logged:
        response = failing_client.get("/jobs")
    assert fields_of(response, status=500) == []
    assert "secret" not in response.text
    assert [(entry["event"], entry["path"], entry["exc_info"]) for entry in logged] == [
        ("request.failed", "/jobs", error)
    ]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Conflict("x"), 409),
        (Stale("x"), 409),
        (IllegalTransition("x"), 409),
        (ZoneRulesDiffer("x"), 409),
        (InvalidExpression("hour", "x"), 422),
    ],
)
def test_each_error_has_its_status(
    failing: FailingStore, failing_client: TestClient, error: RotaError, status: int
) -> None:
    failing.error = error
    assert fields_of(failing_client.get("/jobs"), status=status) == (["hour"] if status == 422 else [])


def test_answers_are_not_cached(client: TestClient) -> None:
    for path in ("/jobs", "/nothing", "/health/ready", "/schedules?x=1"):
        assert client.get(path).headers["cache-control"] == "no-store"


def test_the_page_about_errors_lists_every_problem_with_its_status() -> None:
    rows = re.findall(r"^\| `urn:rota:problem:([a-z-]+)` \| (\d+) \|", PAGE.read_text(), flags=re.MULTILINE)
    kinds = {*KINDS.values(), NO_SUCH_ROUTE, METHOD_NOT_ALLOWED, FOREIGN_ORIGIN, FOREIGN_HOST, INTERNAL}
    assert sorted(rows) == sorted({(kind.slug, str(kind.status)) for kind in kinds})


def test_a_problem_without_a_field_says_so_with_an_empty_list(client: TestClient) -> None:
    assert body_of(client.get("/runs/nothing"), status=404)["errors"] == []
