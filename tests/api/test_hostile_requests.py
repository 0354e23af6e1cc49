"""No request makes the server fail, whatever it holds: the answer is a success or a problem that says what to do.

What is accepted has the shape that the API is described with, so that the description promises no less than is refused.
"""

import json
from urllib.parse import quote

import pytest
from fastapi import FastAPI
from httpx2 import Response
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError
from starlette.testclient import TestClient

from rota.api.answer_shapes import Problem
from rota.api.request_shapes import JobFields, NewSchedule, PreviewRequest, Reason, Resumption
from rota.service.context import Context
from tests.api.conftest import JSON, with_one_schedule
from tests.api.hostile import (
    VALID_JOBS,
    VALID_PREVIEWS,
    VALID_SCHEDULES,
    hostile_text,
    json_values,
    mutated,
)

ROUTES: list[tuple[str, str, type[BaseModel]]] = [
    ("POST", "/schedules", NewSchedule),
    ("POST", "/preview", PreviewRequest),
    ("PUT", "/jobs/cleanup", JobFields),
    ("POST", "/schedules/report-7/pause", Reason),
    ("POST", "/schedules/report-7/resume", Resumption),
    ("POST", "/runs/report-7.1.20260112T140000Z/cancel", Reason),
]
EXPECTED = {200, 201, 400, 404, 405, 409, 413, 415, 422}

pytestmark = pytest.mark.slow

modest = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(scope="module")
def client(shared_api: FastAPI, shared_client: TestClient, shared_context: Context) -> TestClient:
    """One API for all examples of a test: what one leaves behind is there for the next."""
    shared_api.state.context = with_one_schedule(shared_context)
    return shared_client


def check(response: Response) -> Response:
    assert response.status_code in EXPECTED, response.text
    if response.status_code >= 400:
        assert response.headers["content-type"] == "application/problem+json"
        problem = Problem.model_validate_json(response.content, strict=True)
        assert problem.status == response.status_code
        assert problem.detail
        assert len(response.content) < 300_000
    return response


def check_body(client: TestClient, method: str, path: str, shape: type[BaseModel], body: object) -> None:
    content = json.dumps(body, ensure_ascii=True)
    response = check(client.request(method, path, content=content, headers=JSON))
    if response.is_success:
        try:
            shape.model_validate_json(content, strict=True)
        except ValidationError as error:
            pytest.fail(f"{path} accepted {content} against its description: {error}")
    elif response.status_code == 422:
        assert response.json()["errors"]


@pytest.mark.parametrize(("method", "path"), [(m, p) for m, p, _ in ROUTES])
@given(content=st.binary(max_size=200))
@modest
def test_bytes_of_any_kind_are_answered(client: TestClient, method: str, path: str, content: bytes) -> None:
    check(client.request(method, path, content=content, headers=JSON))


@pytest.mark.parametrize(("method", "path", "shape"), ROUTES)
@given(body=json_values | st.dictionaries(st.sampled_from(["id", "params", "reason", "retry"]), json_values))
@modest
def test_json_of_any_kind_is_answered(
    client: TestClient, method: str, path: str, shape: type[BaseModel], body: object
) -> None:
    check_body(client, method, path, shape, body)


@given(body=mutated(VALID_SCHEDULES))
@settings(modest, max_examples=150)
def test_a_schedule_with_something_wrong_is_answered(client: TestClient, body: object) -> None:
    check_body(client, "POST", "/schedules", NewSchedule, body)


@given(body=mutated(VALID_PREVIEWS))
@settings(modest, max_examples=150)
def test_a_preview_with_something_wrong_is_answered(client: TestClient, body: object) -> None:
    check_body(client, "POST", "/preview", PreviewRequest, body)


@given(body=mutated(VALID_JOBS), name=hostile_text)
@settings(modest, max_examples=60)
def test_a_job_with_something_wrong_is_answered(client: TestClient, body: object, name: str) -> None:
    check_body(client, "PUT", "/jobs/cleanup", JobFields, body)
    check_body(client, "PUT", f"/jobs/{_quoted(name)}", JobFields, body)


@given(
    route=st.sampled_from(
        [
            ("GET", "/schedules/{}"),
            ("DELETE", "/schedules/{}"),
            ("POST", "/schedules/{}/pause"),
            ("POST", "/schedules/{}/resume"),
            ("GET", "/schedules/{}/upcoming"),
            ("GET", "/schedules/{}/occurrences"),
            ("GET", "/schedules/{}/history"),
            ("GET", "/runs/{}"),
            ("POST", "/runs/{}/cancel"),
            ("GET", "/jobs/{}"),
            ("GET", "/{}"),
        ]
    ),
    name=hostile_text,
)
@settings(modest, max_examples=60)
def test_an_id_of_any_kind_is_answered(client: TestClient, route: tuple[str, str], name: str) -> None:
    method, path = route
    check(client.request(method, path.format(_quoted(name))))


@given(
    path=st.sampled_from(
        ["/schedules", "/runs", "/jobs", "/schedules/report-7/upcoming", "/schedules/report-7"]
    ),
    query=st.dictionaries(
        st.sampled_from(["status", "state", "job", "schedule", "origin", "label", "cursor", "limit", "count"])
        | st.text(max_size=5),
        hostile_text | st.sampled_from(["active", "queued", "a=b", "1", "200", "-1"]),
        max_size=3,
    ),
)
@settings(modest, max_examples=60)
def test_a_query_of_any_kind_is_answered(client: TestClient, path: str, query: dict[str, str]) -> None:
    written = "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in query.items())
    check(client.get(f"{path}?{written}"))


@given(
    headers=st.dictionaries(
        st.sampled_from(
            [b"Idempotency-Key", b"Rota-Actor", b"Content-Type", b"Accept", b"If-Match", b"X-Rota"]
        ),
        st.binary(max_size=40).map(lambda value: value.translate(None, b"\r\n\x00")),
    )
)
@settings(modest, max_examples=50)
def test_headers_of_any_kind_are_answered(client: TestClient, headers: dict[bytes, bytes]) -> None:
    check(client.post("/schedules", content=b"{}", headers=headers))
    check(client.post("/schedules/report-7/pause", headers=headers))


def _quoted(text: str) -> str:
    return quote(text, safe="", errors="replace")
