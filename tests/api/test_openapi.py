"""The description of the API, held to what the API does."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import jsonschema_rs
import pytest
from pydantic import BaseModel
from starlette.testclient import TestClient

from rota.api import answer_shapes
from rota.api.application import create_api
from rota.api.bodies import REASON_FIELDS
from rota.api.deliveries import REDRIVE_FIELDS
from rota.api.origins import LOOPBACK_HOSTS, READING
from rota.api.planning import BACKFILL_FIELDS, MOVE_FIELDS, PLAN_FIELDS
from rota.api.request_shapes import (
    BackfillRequest,
    CancelRequest,
    CelerySink,
    ClaimRequest,
    DeliveryFields,
    Document,
    DocumentEntry,
    EditFields,
    EffectBegin,
    EffectRecord,
    EndedEntry,
    EndOf,
    Ends,
    HeartbeatOf,
    Heartbeats,
    JobFields,
    MoveRequest,
    NewSchedule,
    OpeningRequest,
    OverduePatch,
    PlanRequest,
    PreviewRequest,
    Reason,
    RedriveRequest,
    ReplayManyRequest,
    ReplayRequest,
    ReportedProgress,
    Resumption,
    RetryFields,
    SqsSink,
    WantedJob,
    WebhookSink,
    WorkerSink,
)
from rota.api.runs import CANCEL_FIELDS, REPLAY_FIELDS
from rota.api.schedules import RESUME_FIELDS
from rota.domain.edit_form import EDIT_FIELDS, OVERDUE_FIELDS
from rota.domain.job_form import JOB_FIELDS, RETRY_FIELDS
from rota.domain.sink_form import DELIVERY_FIELDS, SINK_FIELDS
from rota.service.applying import DOCUMENT_FIELDS, ENTRY_FIELDS
from rota.service.context import Context
from rota.service.creation import SCHEDULE_FIELDS
from rota.service.jobs import put_job
from rota.service.occurrences import PREVIEW_FIELDS
from rota.service.work_requests import (
    CLAIM_FIELDS,
    EFFECT_BEGIN_FIELDS,
    EFFECT_RECORD_FIELDS,
    OPENING_FIELDS,
    REPORTS_FIELDS,
    WANTED_FIELDS,
)
from rota.wire.reports import END_FIELDS, HEARTBEAT_FIELDS, PROGRESS_FIELDS
from tests.api.conftest import Body, body_of, report
from tests.api.descriptions import operations_of, references_in

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "http.md"
README = ROOT / "README.md"

RUN = "report-7.1.20260109T140000Z"


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
        ("PATCH", "/schedules/{schedule_id}"): "schedule.edit",
        ("POST", "/apply"): "schedule.apply",
        ("POST", "/schedules/{schedule_id}/plan"): "schedule.plan",
        ("POST", "/schedules/{schedule_id}/backfill"): "schedule.backfill",
        ("POST", "/schedules/{schedule_id}/run"): "run.request",
        ("POST", "/schedules/{schedule_id}/occurrences/{scheduled_at}/skip"): "occurrence.skip",
        ("POST", "/schedules/{schedule_id}/occurrences/{scheduled_at}/move"): "occurrence.move",
        ("GET", "/schedules/{schedule_id}/versions"): "schedule.versions",
        ("GET", "/schedules/{schedule_id}/versions/{number}"): "schedule.version",
        ("POST", "/schedules/{schedule_id}/pause"): "schedule.pause",
        ("POST", "/schedules/{schedule_id}/resume"): "schedule.resume",
        ("GET", "/schedules/{schedule_id}/upcoming"): "schedule.upcoming",
        ("GET", "/schedules/{schedule_id}/occurrences"): "schedule.occurrences",
        ("GET", "/schedules/{schedule_id}/history"): "schedule.history",
        ("POST", "/preview"): "schedule.preview",
        ("GET", "/runs"): "run.list",
        ("GET", "/runs/{run_id}"): "run.show",
        ("POST", "/runs/{run_id}/cancel"): "run.cancel",
        ("POST", "/runs/{run_id}/replay"): "run.replay",
        ("POST", "/runs/cancel"): "run.cancel_many",
        ("POST", "/runs/replay"): "run.replay_many",
        ("GET", "/deliveries"): "delivery.list",
        ("POST", "/deliveries/redrive"): "delivery.redrive_many",
        ("POST", "/deliveries/{run_id}/redrive"): "delivery.redrive",
        ("GET", "/jobs"): "job.list",
        ("GET", "/jobs/{name}"): "job.show",
        ("PUT", "/jobs/{name}"): "job.put",
        ("GET", "/zones"): "zone.check",
        ("POST", "/zones/apply"): "zone.apply",
        ("GET", "/partitions"): "partition.list",
        ("POST", "/attempts/claim"): "attempt.claim",
        ("POST", "/attempts/open"): "attempt.open",
        ("POST", "/attempts/heartbeat"): "attempt.heartbeat",
        ("POST", "/attempts/settle"): "attempt.settle",
        ("POST", "/effects/begin"): "effect.begin",
        ("POST", "/effects/record"): "effect.record",
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
        (ReplayRequest, REASON_FIELDS),
        (Resumption, RESUME_FIELDS),
        (EditFields, EDIT_FIELDS),
        (OverduePatch, OVERDUE_FIELDS - {"policy"}),
        (Document, DOCUMENT_FIELDS),
        (DocumentEntry, ENTRY_FIELDS),
        (EndedEntry, ENTRY_FIELDS),
        (PlanRequest, PLAN_FIELDS),
        (MoveRequest, MOVE_FIELDS),
        (BackfillRequest, BACKFILL_FIELDS),
        (ClaimRequest, CLAIM_FIELDS),
        (WantedJob, WANTED_FIELDS),
        (OpeningRequest, OPENING_FIELDS),
        (HeartbeatOf, HEARTBEAT_FIELDS),
        (ReportedProgress, PROGRESS_FIELDS),
        (EndOf, END_FIELDS),
        (Ends, REPORTS_FIELDS),
        (EffectBegin, EFFECT_BEGIN_FIELDS),
        (EffectRecord, EFFECT_RECORD_FIELDS),
        (CancelRequest, CANCEL_FIELDS),
        (ReplayManyRequest, REPLAY_FIELDS),
        (RedriveRequest, REDRIVE_FIELDS),
        (DeliveryFields, DELIVERY_FIELDS),
        (WorkerSink, SINK_FIELDS["worker"]),
        (WebhookSink, SINK_FIELDS["webhook"]),
        (CelerySink, SINK_FIELDS["celery"]),
        (SqsSink, SINK_FIELDS["sqs"]),
    ],
)
def test_a_shape_has_the_fields_that_the_domain_takes(shape: type[BaseModel], fields: frozenset[str]) -> None:
    assert {field.alias or name for name, field in shape.model_fields.items()} == fields


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
        ("PATCH", "/schedules/report-7", EditFields),
        ("POST", "/apply", Document),
        ("POST", "/schedules/report-7/plan", PlanRequest),
        ("POST", "/schedules/report-7/occurrences/2026-01-12T09:00/move", MoveRequest),
        ("POST", "/schedules/report-7/backfill", BackfillRequest),
        ("POST", f"/runs/{RUN}/replay", ReplayRequest),
        ("POST", "/attempts/open", OpeningRequest),
        ("POST", "/attempts/heartbeat", Heartbeats),
        ("POST", "/attempts/settle", Ends),
        ("POST", "/effects/begin", EffectBegin),
        ("POST", "/effects/record", EffectRecord),
        ("POST", "/runs/cancel", CancelRequest),
        ("POST", "/runs/replay", ReplayManyRequest),
        ("POST", "/deliveries/redrive", RedriveRequest),
    ],
)
def test_the_examples_are_accepted(
    client: TestClient, method: str, path: str, shape: type[BaseModel]
) -> None:
    if path.startswith(("/schedules/", "/runs/")):
        client.post("/schedules", json=report(recurrence={"cron": "0 9 * * *"}))
        client.post(
            "/schedules/report-7/backfill", json={"from": "2026-01-09T09:00", "until": "2026-01-09T09:00"}
        )
        client.post(f"/runs/{RUN}/cancel")
    for example in examples_of(shape):
        shape.model_validate(example, strict=True)
        answered = client.request(method, path, json=example, headers={"If-Match": "*"})
        assert answered.is_success, answered.text
