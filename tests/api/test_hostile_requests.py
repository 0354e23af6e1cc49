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
from rota.api.request_shapes import (
    BackfillRequest,
    Document,
    EditFields,
    JobFields,
    MoveRequest,
    NewSchedule,
    PlanRequest,
    PreviewRequest,
    Reason,
    ReplayRequest,
    Resumption,
)
from rota.service.context import Context
from tests.api.conftest import JSON, with_one_schedule
from tests.api.hostile import (
    VALID_BACKFILLS,
    VALID_DOCUMENTS,
    VALID_EDITS,
    VALID_JOBS,
    VALID_PREVIEWS,
    VALID_SCHEDULES,
    hostile_text,
    json_values,
    mutated,
    near_instant,
)

ROUTES: list[tuple[str, str, type[BaseModel]]] = [
    ("POST", "/schedules", NewSchedule),
    ("POST", "/preview", PreviewRequest),
    ("PUT", "/jobs/cleanup", JobFields),
    ("POST", "/schedules/report-7/pause", Reason),
    ("POST", "/schedules/report-7/resume", Resumption),
    ("PATCH", "/schedules/report-7", EditFields),
    ("POST", "/schedules/report-7/plan", PlanRequest),
    ("POST", "/schedules/report-7/backfill", BackfillRequest),
    ("POST", "/schedules/report-7/run", Reason),
    ("POST", "/schedules/report-7/occurrences/2026-01-12T09:00/skip", Reason),
    ("POST", "/schedules/report-7/occurrences/2026-01-13T09:00/move", MoveRequest),
    ("POST", "/apply", Document),
    ("POST", "/zones/apply", Reason),
    ("POST", "/runs/report-7.1.20260112T140000Z/cancel", Reason),
    ("POST", "/runs/report-7.1.20260112T140000Z/replay", ReplayRequest),
]
EXPECTED = {200, 201, 400, 404, 405, 409, 412, 413, 415, 422, 428}
ANY_VERSION = {"If-Match": "*"}

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
    response = check(client.request(method, path, content=content, headers=JSON | ANY_VERSION))
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
    check(client.request(method, path, content=content, headers=JSON | ANY_VERSION))


@pytest.mark.parametrize(("method", "path", "shape"), ROUTES)
@given(
    body=json_values
    | st.dictionaries(
        st.sampled_from(["id", "params", "reason", "retry", "labels", "overdue", "until", "to", "schedules"]),
        json_values,
    )
)
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


@given(body=mutated(VALID_EDITS), version=st.sampled_from(["*", '"1"', '"9"']))
@settings(modest, max_examples=150)
def test_an_edit_with_something_wrong_is_answered(client: TestClient, body: object, version: str) -> None:
    check_body(client, "PATCH", "/schedules/report-7", EditFields, body)
    content = json.dumps(body)
    check(client.patch("/schedules/report-7", content=content, headers=JSON | {"If-Match": version}))
    check(client.patch("/schedules/report-7?dry_run=true", content=content, headers=JSON | ANY_VERSION))


@given(body=mutated(VALID_DOCUMENTS))
@settings(modest, max_examples=100)
def test_a_document_with_something_wrong_is_answered(client: TestClient, body: object) -> None:
    check_body(client, "POST", "/apply?dry_run=true", Document, body)
    check_body(client, "POST", "/apply", Document, body)


@given(body=mutated(VALID_BACKFILLS))
@settings(modest, max_examples=50)
def test_a_backfill_with_something_wrong_is_answered(client: TestClient, body: object) -> None:
    check_body(client, "POST", "/schedules/report-7/backfill?dry_run=true", BackfillRequest, body)
    check_body(client, "POST", "/schedules/report-7/backfill", BackfillRequest, body)


@given(written=near_instant | hostile_text, to=near_instant | hostile_text)
@settings(modest, max_examples=100)
def test_a_moment_of_any_kind_is_answered(client: TestClient, written: str, to: str) -> None:
    path = f"/schedules/report-7/occurrences/{_quoted(written)}"
    check(client.post(f"{path}/skip"))
    check_body(client, "POST", f"{path}/move", MoveRequest, {"to": to})
    named = "/schedules/report-7/occurrences/2026-01-15T09:00/move"
    check_body(client, "POST", named, MoveRequest, {"to": to})
    check_body(client, "POST", "/schedules/report-7/plan?dry_run=true", PlanRequest, {"until": to})


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
            ("GET", "/schedules/{}/versions"),
            ("GET", "/schedules/report-7/versions/{}"),
            ("POST", "/schedules/{}/run"),
            ("POST", "/schedules/{}/occurrences/2026-01-12T09:00/skip"),
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
        [
            "/schedules",
            "/runs",
            "/jobs",
            "/schedules/report-7/upcoming",
            "/schedules/report-7",
            "/schedules/report-7/versions",
            "/zones",
        ]
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
        st.binary(max_size=40).map(lambda value: value.translate(None, b"\r\n\x00"))
        | st.text('*W/",1 ', max_size=9).map(str.encode),
    )
)
@settings(modest, max_examples=50)
def test_headers_of_any_kind_are_answered(client: TestClient, headers: dict[bytes, bytes]) -> None:
    check(client.post("/schedules", content=b"{}", headers=headers))
    check(client.post("/schedules/report-7/pause", headers=headers))
    check(client.post("/schedules/report-7/run", headers=headers))
    check(client.patch("/schedules/report-7", content=b'{"labels": {"a": "1"}}', headers=headers))


def _quoted(text: str) -> str:
    return quote(text, safe="", errors="replace")
