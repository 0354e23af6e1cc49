"""Requests made from the description of the API; every answer is one that the description foresees."""

import re
from typing import cast

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case, CheckFunction, GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.specs.openapi.schemas import OpenApiSchema

from rota.api.application import create_api
from rota.api.parameters import IF_MATCH
from rota.service.context import Context
from tests.api.conftest import REPORT, with_one_schedule

pytestmark = pytest.mark.slow

load_all_checks()
CHECKED = cast(
    "list[CheckFunction]",
    CHECKS.get_by_names(
        [
            "not_a_server_error",
            "status_code_conformance",
            "content_type_conformance",
            "response_headers_conformance",
            "response_schema_conformance",
            "negative_data_rejection",
            "allow_header_conformance",
        ]
    ),
)
WELL_FORMED = re.compile(str(IF_MATCH.schema["pattern"]))
WITH_ONLY_A_PATH = [
    "health.live",
    "health.ready",
    "job.show",
    "partition.list",
    "run.show",
    "schedule.show",
    "zone.check",
]
WITH_MORE = [
    "delivery.list",
    "delivery.redrive",
    "delivery.redrive_many",
    "job.list",
    "job.put",
    "occurrence.move",
    "occurrence.skip",
    "run.cancel",
    "run.cancel_many",
    "run.list",
    "run.replay",
    "run.replay_many",
    "run.request",
    "schedule.apply",
    "schedule.backfill",
    "schedule.create",
    "schedule.edit",
    "schedule.end",
    "schedule.history",
    "schedule.list",
    "schedule.occurrences",
    "schedule.pause",
    "schedule.plan",
    "schedule.preview",
    "schedule.resume",
    "schedule.upcoming",
    "schedule.version",
    "schedule.versions",
    "effect.begin",
    "attempt.claim",
    "attempt.heartbeat",
    "attempt.open",
    "effect.record",
    "attempt.settle",
    "zone.apply",
]


@pytest.fixture(scope="module")
def described(shared_context: Context) -> OpenApiSchema:
    return schemathesis.openapi.from_asgi("/openapi.json", create_api(with_one_schedule(shared_context)))


def check_operation(described: OpenApiSchema, name: str, mode: GenerationMode) -> None:
    operation = described.find_operation_by_id(name)

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    def check(case: Case) -> None:  # type: ignore[type-arg]
        if "schedule_id" in case.path_parameters:
            case.path_parameters["schedule_id"] = REPORT["id"]
        if "scheduled_at" in case.path_parameters:
            case.path_parameters["scheduled_at"] = "2026-01-12T09:00"
        if WELL_FORMED.fullmatch(str(case.headers.get(IF_MATCH.name, ""))):
            case.headers[IF_MATCH.name] = "*"
        if name == "attempt.claim" and mode is GenerationMode.POSITIVE and isinstance(case.body, dict):
            # An answer that is as described is not worth a minute of waiting.
            case.body.pop("wait", None)
        case.call_and_validate(checks=CHECKED)

    check()


@pytest.mark.parametrize("name", WITH_ONLY_A_PATH + WITH_MORE)
def test_a_request_as_described_is_answered_as_described(described: OpenApiSchema, name: str) -> None:
    check_operation(described, name, GenerationMode.POSITIVE)


@pytest.mark.parametrize("name", WITH_MORE)
def test_a_request_against_the_description_is_refused(described: OpenApiSchema, name: str) -> None:
    check_operation(described, name, GenerationMode.NEGATIVE)


def test_every_operation_is_tried(described: OpenApiSchema) -> None:
    names = [
        operation["operationId"]
        for path in described.raw_schema["paths"].values()
        for operation in path.values()
    ]
    assert sorted(names) == sorted(WITH_ONLY_A_PATH + WITH_MORE)
