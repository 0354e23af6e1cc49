"""The same hostility where the store is PostgreSQL, which refuses what SQLite and Python's memory hold: NUL characters,
numbers beyond a column, halves of surrogate pairs."""

import json
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import quote

import pytest
from fastapi import FastAPI
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from starlette.testclient import TestClient

from rota.api.request_shapes import Document, EditFields, NewSchedule
from rota.service.context import Context
from rota.service.creation import create_schedule
from rota.service.jobs import put_job
from rota.store.sql import open_sql_store
from tests.api.conftest import JOB, JSON, REPORT
from tests.api.hostile import (
    VALID_DOCUMENTS,
    VALID_EDITS,
    VALID_SCHEDULES,
    hostile_text,
    json_values,
    mutated,
    near_instant,
)
from tests.api.test_hostile_requests import ANY_VERSION, ROUTES, check, check_body, modest
from tests.postgresql import Databases

pytestmark = pytest.mark.slow

NUMBERS = [0, -1, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64, 10**30]
EXTREME_INSTANTS = [
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "9999-12-31T23:59:59-14:00",
    "0001-01-01T00:00",
]
ADDRESSES = [
    "/schedules/{}",
    "/runs/{}",
    "/jobs/{}",
    "/schedules?label=a%3D{}",
    "/schedules?job={}",
    "/runs?schedule={}",
    "/runs?job={}",
    "/jobs?cursor={}",
    "/schedules?cursor={}",
    "/runs?cursor={}",
]
UNSTORABLE = ["\x00", "a\x00b", "%00", "\ud800"]
few = settings(modest, max_examples=20)


def as_json(value: object) -> str:
    """In ASCII, so that halves of surrogate pairs can be written."""
    return json.dumps(value, ensure_ascii=True)


@pytest.fixture(scope="module")
def client(
    shared_api: FastAPI, shared_client: TestClient, shared_context: Context, postgresql: Databases
) -> Iterator[TestClient]:
    url = postgresql.lend()
    store = open_sql_store(url)
    store.ensure_partitions(shared_context.partition_count)
    context = replace(shared_context, store=store)
    put_job(context, JOB, {})
    create_schedule(context, REPORT)
    shared_api.state.context = context
    yield shared_client
    store.close()
    postgresql.give_back(url)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_beyond_every_column_is_answered(client: TestClient, number: int) -> None:
    for path in (
        f"/schedules/report-7/versions/{number}",
        f"/schedules/report-7/versions?cursor={number}",
        f"/schedules/report-7/versions?limit={number}",
        f"/runs/report-7.{number}.20260110T140000Z",
    ):
        check(client.get(path))
    check(client.patch("/schedules/report-7", json={"params": {}}, headers={"If-Match": f'"{number}"'}))
    for fields in ({"max_occurrences": number}, {"params": {"n": number}}, {"labels": {"n": str(number)}}):
        check(client.post("/schedules", json={**REPORT, "id": f"n{abs(number)}", **fields}))
    check(client.put("/jobs/big", json={"retry": {"max_attempts": number}}))
    check(client.put("/jobs/big", json={"params_bytes_max": number}))


@pytest.mark.parametrize("text", UNSTORABLE)
def test_what_no_text_of_the_database_holds_is_answered(client: TestClient, text: str) -> None:
    written = quote(text, safe="", errors="surrogatepass")
    for path in ADDRESSES:
        check(client.get(path.format(written)))
    for body in ({"reason": text}, {"labels": {"a": text}}, {"labels": {text: "a"}}, {"params": {"a": text}}):
        content = as_json(body)
        check(client.patch("/schedules/report-7", content=content, headers=JSON | ANY_VERSION))
        check(client.post("/schedules/report-7/run", content=content, headers=JSON))
    check(client.put("/jobs/mail", content=as_json({"description": text}), headers=JSON))
    check(client.put(f"/jobs/{written}", json={}))


@pytest.mark.parametrize("instant", EXTREME_INSTANTS)
def test_an_instant_at_the_end_of_all_dates_is_answered(client: TestClient, instant: str) -> None:
    for field in ("starts_at", "ends_at"):
        check(client.post("/schedules", json={**REPORT, "id": "far", field: instant}))
    check(client.post("/schedules", json={**REPORT, "id": "once", "recurrence": {"at": instant}}))
    check(
        client.post(
            "/schedules", json={**REPORT, "id": "every", "recurrence": {"every": "PT1H", "anchor": instant}}
        )
    )
    check(client.post("/schedules/report-7/plan", json={"until": instant}))
    check(client.post("/schedules/report-7/backfill", json={"from": instant, "until": instant}))
    edit = {"boundary": "effective_from", "effective_from": instant, "params": {"a": 1}}
    check(client.patch("/schedules/report-7", json=edit, headers=ANY_VERSION))
    path = f"/schedules/report-7/occurrences/{quote(instant, safe='')}"
    check(client.post(f"{path}/skip"))
    check(client.post(f"{path}/move", json={"to": instant}))


@pytest.mark.parametrize(("method", "path", "shape"), ROUTES)
@given(
    body=st.dictionaries(
        st.sampled_from(["id", "params", "reason", "retry", "labels", "overdue", "until", "to", "schedules"]),
        json_values,
    )
)
@settings(modest, max_examples=8)
def test_json_of_any_kind_is_answered(
    client: TestClient, method: str, path: str, shape: type[BaseModel], body: object
) -> None:
    check_body(client, method, path, shape, body)


@given(schedule=mutated(VALID_SCHEDULES), edit=mutated(VALID_EDITS), document=mutated(VALID_DOCUMENTS))
@few
def test_what_has_something_wrong_is_answered(
    client: TestClient, schedule: object, edit: object, document: object
) -> None:
    check_body(client, "POST", "/schedules", NewSchedule, schedule)
    check_body(client, "PATCH", "/schedules/report-7", EditFields, edit)
    check_body(client, "POST", "/apply", Document, document)


@given(name=hostile_text | near_instant, value=hostile_text)
@few
def test_an_address_of_any_kind_is_answered(client: TestClient, name: str, value: str) -> None:
    written, asked = quote(name, safe="", errors="replace"), quote(value, safe="", errors="replace")
    for method, path in (
        ("GET", f"/schedules/{written}"),
        ("POST", f"/schedules/{written}/pause"),
        ("GET", f"/schedules/{written}/history"),
        ("GET", f"/schedules/report-7/versions/{written}"),
        ("POST", f"/runs/{written}/cancel"),
        ("GET", f"/jobs/{written}"),
        ("POST", f"/schedules/report-7/occurrences/{written}/skip"),
        ("GET", f"/runs?label={asked}&job={written}"),
        ("GET", f"/schedules?cursor={asked}&status={written}"),
    ):
        check(client.request(method, path))


@given(
    key=st.binary(min_size=1, max_size=40).map(lambda key: key.translate(None, b"\r\n\x00")),
    actor=st.binary(max_size=20),
)
@few
def test_headers_of_any_kind_are_answered(client: TestClient, key: bytes, actor: bytes) -> None:
    headers = {
        name: value.translate(None, b"\r\n\x00")
        for name, value in ((b"Idempotency-Key", key), (b"Rota-Actor", actor))
    }
    check(client.post("/schedules/report-7/run", headers=headers))
    check(client.post("/schedules/report-7/pause", headers=headers))
