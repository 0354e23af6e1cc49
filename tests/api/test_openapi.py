"""The description of the API, held to what the API does."""

import re
import shlex
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import cast

import jsonschema_rs
import pytest
from fastapi import FastAPI
from pydantic import BaseModel
from starlette.testclient import TestClient

from rota.api import answer_shapes, request_shapes
from rota.api.application import create_api
from rota.api.bodies import REASON_FIELDS
from rota.api.origins import LOOPBACK_HOSTS, READING
from rota.api.request_shapes import (
    JobFields,
    NewSchedule,
    PreviewRequest,
    Reason,
    Resumption,
    RetryFields,
    Shape,
)
from rota.api.schedules import RESUME_FIELDS
from rota.domain.job_form import JOB_FIELDS, RETRY_FIELDS
from rota.service.context import Context
from rota.service.creation import SCHEDULE_FIELDS
from rota.service.jobs import put_job
from rota.service.occurrences import PREVIEW_FIELDS
from rota.testing.clock import ManualClock
from tests.api.conftest import JOB, REPORT, Body, WorkOff, body_of, items_of, report

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "http.md"
README = ROOT / "README.md"

Operation = tuple[str, str, Body]


@pytest.fixture(scope="module")
def described(shared_api: FastAPI) -> Body:
    return cast("Body", shared_api.openapi())


def operations_of(described: Body) -> Iterator[Operation]:
    paths = cast("dict[str, dict[str, Body]]", described["paths"])
    for path, operations in paths.items():
        for method, operation in operations.items():
            yield method.upper(), path, operation


def references_in(value: object) -> Iterator[str]:
    match value:
        case {"$ref": str(reference)}:
            yield reference
        case dict():
            for member in value.values():
                yield from references_in(member)
        case list():
            for member in value:
                yield from references_in(member)
        case _:
            pass


def test_it_is_openapi_3_1_and_complete(described: Body, client: TestClient) -> None:
    components = cast("dict[str, dict[str, Body]]", described["components"])
    schemas = components["schemas"]
    assert described["openapi"] == "3.1.0"
    assert {reference.removeprefix("#/components/schemas/") for reference in references_in(described)} <= set(
        schemas
    )
    assert "HTTPValidationError" not in schemas
    for schema in schemas.values():
        jsonschema_rs.meta.validate(schema)
    assert body_of(client.get("/openapi.json")) == described


def test_problems_are_described_as_problem_json_and_nothing_else_is(described: Body) -> None:
    for method, path, operation in operations_of(described):
        responses = cast("dict[str, dict[str, dict[str, Body]]]", operation["responses"])
        assert {"421", "500", "503"} <= set(responses)
        for status, response in responses.items():
            is_problem = int(status) >= 400 and (path, status) != ("/health/ready", "503")
            expected = "application/problem+json" if is_problem else "application/json"
            assert list(response["content"]) == [expected], (method, path, status)


def test_the_problems_of_an_operation_are_those_that_it_can_have(described: Body) -> None:
    for method, path, operation in operations_of(described):
        statuses = set(cast("dict[str, object]", operation["responses"]))
        assert ("403" in statuses) is (method not in READING), (method, path)
        assert ("422" in statuses) is (not path.startswith("/health/")), (method, path)


def test_every_operation_is_named_after_what_it_does(described: Body) -> None:
    names = {(method, path): operation["operationId"] for method, path, operation in operations_of(described)}
    assert names == {
        ("POST", "/schedules"): "schedule.create",
        ("GET", "/schedules"): "schedule.list",
        ("GET", "/schedules/{schedule_id}"): "schedule.show",
        ("DELETE", "/schedules/{schedule_id}"): "schedule.end",
        ("POST", "/schedules/{schedule_id}/pause"): "schedule.pause",
        ("POST", "/schedules/{schedule_id}/resume"): "schedule.resume",
        ("GET", "/schedules/{schedule_id}/upcoming"): "schedule.upcoming",
        ("GET", "/schedules/{schedule_id}/occurrences"): "schedule.occurrences",
        ("GET", "/schedules/{schedule_id}/history"): "schedule.history",
        ("POST", "/preview"): "schedule.preview",
        ("GET", "/runs"): "run.list",
        ("GET", "/runs/{run_id}"): "run.show",
        ("POST", "/runs/{run_id}/cancel"): "run.cancel",
        ("GET", "/jobs"): "job.list",
        ("GET", "/jobs/{name}"): "job.show",
        ("PUT", "/jobs/{name}"): "job.put",
        ("GET", "/health/live"): "health.live",
        ("GET", "/health/ready"): "health.ready",
    }


def test_the_page_about_http_has_every_operation_and_its_parameters(described: Body) -> None:
    page = PAGE.read_text()
    headed = re.findall(r"^### `([A-Z]+) (\S+)`$", page, flags=re.MULTILINE)
    assert sorted(headed) == sorted((method, path) for method, path, _ in operations_of(described))
    for method, path, operation in operations_of(described):
        section = page.partition(f"### `{method} {path}`")[2].partition("\n### ")[0]
        for parameter in cast("list[dict[str, str]]", operation.get("parameters", [])):
            assert parameter["in"] == "path" or f"`{parameter['name']}`" in section, (method, path, parameter)


def test_the_page_about_http_describes_every_member_of_a_schedule_in_order() -> None:
    table = PAGE.read_text().partition("| member | meaning |\n")[2].partition("\n\n")[0]
    named = [re.findall(r"`(\w+)`", row.split("|")[1]) for row in table.splitlines()[1:]]
    assert [name for names in named for name in names] == list(answer_shapes.Schedule.model_fields)


def commands_in(page: str) -> Iterator[list[str]]:
    """The `curl` commands of a page, as words."""
    for block in re.findall(r"^```\n(curl .*?)^```$", page, flags=re.MULTILINE | re.DOTALL):
        for command in re.split(r"^(?=curl )", block, flags=re.MULTILINE):
            if command:
                yield shlex.split(command)


def test_the_commands_of_the_page_about_http_work_after_those_of_the_readme(context: Context) -> None:
    put_job(context, "echo", {})
    client = TestClient(create_api(context, hosts=LOOPBACK_HOSTS))
    created = []
    for words in (words for page in (README, PAGE) for words in commands_in(page.read_text())):
        (url,) = (word for word in words if word.startswith("http://127.0.0.1:8080/"))
        body = words[words.index("-d") + 1] if "-d" in words else None
        method = words[words.index("-X") + 1] if "-X" in words else "GET" if body is None else "POST"
        headers = [words[at + 1].partition(": ") for at, word in enumerate(words) if word == "-H"]
        answered = client.request(
            method, url, content=body, headers={name: value for name, _, value in headers}
        )
        assert answered.is_success, (words, answered.text)
        created += [answered.headers["location"]] if answered.status_code == 201 else []
    assert created == [
        "/schedules/report-7",
        "/schedules/every-5-seconds",
        "/jobs/sales_report",
        "/schedules/sales-7",
    ]


@pytest.mark.parametrize(
    ("shape", "fields"),
    [
        (NewSchedule, SCHEDULE_FIELDS),
        (PreviewRequest, PREVIEW_FIELDS),
        (JobFields, JOB_FIELDS),
        (RetryFields, RETRY_FIELDS),
        (Reason, REASON_FIELDS),
        (Resumption, RESUME_FIELDS),
    ],
)
def test_a_shape_has_the_fields_that_the_domain_takes(shape: type[BaseModel], fields: frozenset[str]) -> None:
    assert set(shape.model_fields) == fields


def examples_of(shape: type[BaseModel]) -> list[Body]:
    return cast("list[Body]", shape.model_json_schema()["examples"])


@pytest.mark.parametrize(
    ("method", "path", "shape"),
    [
        ("POST", "/schedules", NewSchedule),
        ("POST", "/preview", PreviewRequest),
        ("PUT", "/jobs/example", JobFields),
        ("POST", "/schedules/report-7/pause", Reason),
        ("POST", "/schedules/report-7/resume", Resumption),
    ],
)
def test_the_examples_are_accepted(
    client: TestClient, method: str, path: str, shape: type[BaseModel]
) -> None:
    if path.startswith("/schedules/"):
        client.post("/schedules", json=REPORT)
    for example in examples_of(shape):
        shape.model_validate(example, strict=True)
        assert client.request(method, path, json=example).is_success


def test_every_answer_has_the_shape_that_it_is_described_with(
    client: TestClient, clock: ManualClock, context: Context, described: Body, work_off: WorkOff
) -> None:
    """The shapes refuse unknown members and have no defaults, so a member more or less is found."""
    client.post("/schedules", json=report(recurrence={"cron": "0 * * * *"}))
    clock.advance(timedelta(hours=1))
    work_off()
    deliveries = context.store.read_deliveries([JOB], now=clock.now(), limit=1)
    context.store.commit_openings("w1", deliveries, now=clock.now())
    client.post("/schedules/report-7/pause", json={"reason": "x"})
    clock.advance(timedelta(hours=1, minutes=1))
    client.post("/schedules/report-7/resume")
    work_off()
    client.post("/schedules/report-7/pause")
    parts = {"schedule_id": "report-7", "name": JOB, "run_id": "report-7.1.20260110T130000Z"}
    shown: list[str] = []
    for method, path, operation in operations_of(described):
        if method == "GET":
            response = client.get(path.format(**parts))
            responses = cast("dict[str, dict[str, dict[str, Body]]]", operation["responses"])
            (content,) = responses[str(response.status_code)]["content"].values()
            (reference,) = references_in(content)
            shape: type[Shape] = getattr(answer_shapes, reference.rpartition("/")[2])
            shape.model_validate_json(response.content)
            shown.append(shape.__name__)
    assert {"LedgerPage", "RunPage", "RunDetail", "History", "Schedule", "Upcoming", "Readiness"} <= set(
        shown
    )
    kinds = [item["kind"] for item in items_of(client.get("/schedules/report-7/occurrences"))]
    assert kinds == ["skip", "run"]


def test_no_member_of_an_answer_is_left_out() -> None:
    told = [
        shape
        for shape in vars(answer_shapes).values()
        if isinstance(shape, type) and issubclass(shape, Shape)
    ]
    own = [shape for shape in told if shape.__name__ not in vars(request_shapes)]
    assert len(own) > 20
    for shape in own:
        assert [name for name, field in shape.model_fields.items() if not field.is_required()] == []
