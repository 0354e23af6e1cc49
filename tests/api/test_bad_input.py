"""Every named bad input is a 4xx that names the field and changes nothing."""

import json
from typing import cast

import pytest
from starlette.testclient import TestClient

from rota.api.bodies import BODY_BYTES_MAX
from rota.service.paging import encode_cursor
from rota.store.memory import MemoryStore
from tests.api.conftest import JSON, REPORT, Body, body_of, fields_of, for_version, report, rows_of

FIELDS: dict[str, tuple[Body, list[str]]] = {
    "unknown zone": ({"timezone": "America/New_Yrok"}, ["timezone"]),
    "zone by path": ({"timezone": "../../etc/passwd"}, ["timezone"]),
    "zone of another type": ({"timezone": 5}, ["timezone"]),
    "impossible cron": ({"recurrence": {"cron": "0 0 30 2 *"}}, ["recurrence.cron"]),
    "cron of four fields": ({"recurrence": {"cron": "0 0 * *"}}, ["recurrence.cron"]),
    "impossible rrule": (
        {"recurrence": {"rrule": "DTSTART:20260105T090000\nRRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"}},
        ["recurrence.rrule"],
    ),
    "broken rrule": ({"recurrence": {"rrule": "FREQ=SOMETIMES"}}, ["recurrence.rrule"]),
    "calendar days as elapsed time": ({"recurrence": {"every": "P1D"}}, ["recurrence.every"]),
    "two kinds": ({"recurrence": {"cron": "0 9 * * *", "at": "2030-01-01T00:00"}}, ["recurrence"]),
    "no kind": ({"recurrence": {}}, ["recurrence"]),
    "recurrence as text": ({"recurrence": "0 9 * * *"}, ["recurrence"]),
    "local time in a gap": ({"recurrence": {"at": "2026-03-08T02:30"}}, ["recurrence.at"]),
    "local time that has passed": ({"recurrence": {"at": "2026-01-10T06:59"}}, ["recurrence.at"]),
    "instant that has passed": ({"recurrence": {"at": "2020-01-10T12:00:00Z"}}, ["recurrence.at"]),
    "instant of the present": ({"recurrence": {"at": "2026-01-10T12:00:00Z"}}, ["recurrence.at"]),
    "rule that has ended": (
        {"recurrence": {"rrule": "DTSTART:20200105T090000\nRRULE:FREQ=DAILY;COUNT=3"}},
        ["recurrence.rrule"],
    ),
    "unknown job": ({"job": "nothing"}, ["job"]),
    "job of another type": ({"job": ["sales_report"]}, ["job"]),
    "id with a dot": ({"id": "report.7"}, ["id"]),
    "id of another type": ({"id": 7}, ["id"]),
    "unknown field": ({"cron": "0 9 * * *"}, ["cron"]),
    "unknown choice": ({"gap": "jump"}, ["gap"]),
    "period too coarse": ({"period": "week"}, ["period"]),
    "overlap that is not offered": ({"overlap": "replace"}, ["overlap"]),
    "spread over days": ({"spread": "P2D"}, ["spread"]),
    "unknown policy": ({"overdue": {"policy": "never"}}, ["overdue.policy"]),
    "policy without its deadline": ({"overdue": {"policy": "expire"}}, ["overdue.deadline"]),
    "params of another type": ({"params": [1]}, ["params"]),
    "labels of another type": ({"labels": {"customer": 7}}, ["labels.customer"]),
    "end before start": (
        {"starts_at": "2027-01-01T00:00:00Z", "ends_at": "2026-06-01T00:00:00Z"},
        ["ends_at"],
    ),
    "end that has passed": ({"ends_at": "2025-01-01T00:00:00Z"}, ["ends_at"]),
    "local time for an instant": ({"starts_at": "2027-01-01T00:00"}, ["starts_at"]),
    "a time at the end of time": ({"recurrence": {"at": "9998-12-31T23:59"}}, ["recurrence.at"]),
    "no occurrences": ({"max_occurrences": 0}, ["max_occurrences"]),
    "a flag for a number": ({"max_occurrences": True}, ["max_occurrences"]),
    "several at once": ({"timezone": None, "job": None, "gap": 1}, ["job", "timezone", "gap"]),
}

MALFORMED = {
    "not JSON": b"{",
    "not UTF-8": b'{"id": "\xff"}',
    "a list": b"[]",
    "a number": b"1",
    "NaN": b'{"params": {"x": NaN}}',
    "infinity": b'{"params": {"x": -Infinity}}',
    "a number that overflows": b'{"params": {"x": 1e999}}',
    "an integer beyond 2^53": b'{"params": {"x": 9007199254740993}}',
    "an integer of 5000 digits": b'{"params": {"x": ' + b"9" * 5000 + b"}}",
    "a NUL byte": b'{"params": {"x": "\x00"}}',
    "an escaped NUL": b'{"params": {"x": "\\u0000"}}',
    "a NUL in a name": b'{"params": {"\\u0000": 1}}',
    "half of a surrogate pair": b'{"params": {"x": "\\ud83d"}}',
    "a repeated member": b'{"id": "a", "id": "b"}',
    "a repeated inner member": b'{"params": {"x": 1, "x": 2}}',
    "deep objects": b'{"params": ' + b'{"x":' * 100 + b"1" + b"}" * 100 + b"}",
    "very deep lists": b'{"params": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "a byte order mark": b'\xef\xbb\xbf{"id": "a"}',
    "two values": b"{} {}",
}


@pytest.mark.parametrize(("changed", "fields"), FIELDS.values(), ids=FIELDS.keys())
def test_a_bad_field_is_named_and_nothing_is_written(
    client: TestClient, store: MemoryStore, changed: Body, fields: list[str]
) -> None:
    before = rows_of(store)
    refused = client.post("/schedules", json=report(**changed), headers={"Idempotency-Key": "k"})
    assert fields_of(refused) == fields
    assert rows_of(store) == before


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/schedules"),
        ("POST", "/preview"),
        ("POST", "/apply"),
        ("PATCH", "/schedules/report-7"),
        ("POST", "/schedules/report-7/pause"),
        ("POST", "/runs/x/cancel"),
    ],
)
@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_body_is_refused_and_nothing_is_written(
    client: TestClient, store: MemoryStore, method: str, path: str, body: bytes
) -> None:
    client.post("/schedules", json=REPORT)
    before = rows_of(store)
    refused = client.request(method, path, content=body, headers=JSON | for_version(1))
    assert body_of(refused, status=400)["type"] == "urn:rota:problem:malformed-body"
    assert rows_of(store) == before


@pytest.mark.parametrize(
    ("case", "advice"),
    [
        ("a repeated member", "'id' more than once"),
        ("a repeated inner member", "'x' more than once"),
        ("deep objects", "flatten it"),
        ("very deep lists", "flatten it"),
        ("an integer of 5000 digits", "send it as a string"),
        ("not UTF-8", "encode it as UTF-8"),
    ],
)
def test_a_refusal_says_what_to_do(client: TestClient, case: str, advice: str) -> None:
    refused = client.post("/schedules", content=MALFORMED[case], headers=JSON)
    assert advice in str(body_of(refused, status=400)["detail"])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"params": {"a": {"b": "\\u0000"}}}', "params.a.b"),
        (b'{"params": {"\\u0000": 1}}', "params"),
        (b'{"id": "p\\u0000"}', "id"),
        (b'{"params": {"a": ' + b"[" * 40 + b"]" * 40 + b"}}", "params.a"),
        (b'{"labels": {"n": 9007199254740993}}', "labels.n"),
    ],
)
def test_a_malformed_member_is_named(client: TestClient, body: bytes, field: str) -> None:
    assert fields_of(client.post("/schedules", content=body, headers=JSON), status=400) == [field]


def test_a_long_body_is_told_to_keep_its_data_elsewhere(client: TestClient) -> None:
    refused = client.post("/schedules", content=b" " * (BODY_BYTES_MAX + 1), headers=JSON)
    assert "send its address" in str(body_of(refused, status=413)["detail"])


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/schedules"),
        ("POST", "/preview"),
        ("PUT", "/jobs/x"),
        ("PATCH", "/schedules/x"),
        ("POST", "/schedules/x/plan"),
        ("POST", "/schedules/x/backfill"),
        ("POST", "/schedules/x/occurrences/2026-01-12T14:00:00Z/move"),
        ("POST", "/apply"),
    ],
)
def test_a_body_that_has_to_be_there_is_missed(client: TestClient, method: str, path: str) -> None:
    assert "empty" in str(body_of(client.request(method, path), status=400)["detail"])


def test_a_replay_without_a_body_says_that_a_reason_is_required(client: TestClient) -> None:
    assert fields_of(client.post("/runs/x/replay")) == ["reason"]


def test_a_bad_preview_names_its_fields(client: TestClient) -> None:
    body = {
        "timezone": "Nowhere/At_All",
        "recurrence": {"cron": "61 * * * *"},
        "count": 0,
        "after": "now",
        "x": 1,
    }
    assert fields_of(client.post("/preview", json=body)) == ["x", "after", "count", "recurrence.cron"]
    body = {"timezone": "Nowhere/At_All", "recurrence": {"cron": "1 * * * *"}}
    assert fields_of(client.post("/preview", json=body)) == ["timezone"]


def test_a_bad_job_names_its_fields(client: TestClient, store: MemoryStore) -> None:
    before = rows_of(store)
    body = {"lease": "PT1S", "retry": {"factor": 0, "x": 1}, "timeout": "PT0S", "x": 1}
    fields = fields_of(client.put("/jobs/Sales", json=body))
    assert sorted(fields) == ["lease", "name", "retry.factor", "retry.x", "timeout", "x"]
    assert rows_of(store) == before


def test_params_over_64_kib_are_too_large_and_named(client: TestClient, store: MemoryStore) -> None:
    before = rows_of(store)
    refused = client.post("/schedules", json=report(params={"text": "x" * 64 * 1024}))
    assert fields_of(refused, status=413) == ["params"]
    assert rows_of(store) == before
    fitting = client.post("/schedules", json=report(params={"text": "x" * (64 * 1024 - len('{"text":""}'))}))
    assert fitting.status_code == 201


def test_a_job_may_set_a_lower_limit_for_params(client: TestClient) -> None:
    client.put("/jobs/small", json={"params_bytes_max": 10})
    refused = client.post("/schedules", json=report(job="small", params={"a": "0123456789"}))
    assert fields_of(refused, status=413) == ["params"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Idempotency-Key", b""),
        ("Idempotency-Key", b"x" * 256),
        ("Idempotency-Key", b"caf\xc3\xa9"),
        ("Rota-Actor", b""),
        ("Rota-Actor", b"x" * 121),
        ("Rota-Actor", b"tab\there"),
    ],
)
def test_a_bad_header_is_named(client: TestClient, store: MemoryStore, name: str, value: bytes) -> None:
    before = rows_of(store)
    assert fields_of(client.post("/schedules", json=REPORT, headers={name.encode(): value})) == [name]
    assert rows_of(store) == before


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/schedules?state=active", "state"),
        ("/schedules?status=sleeping", "status"),
        ("/schedules?status=active&status=paused", "status"),
        ("/schedules?job=", "job"),
        ("/schedules?job=%00", "job"),
        ("/schedules?label=customer", "label"),
        ("/schedules?label==acme", "label"),
        ("/schedules?label=customer=", "label"),
        ("/schedules?limit=0", "limit"),
        ("/schedules?limit=201", "limit"),
        ("/schedules?limit=-1", "limit"),
        ("/schedules?limit=1.0", "limit"),
        ("/schedules?limit=%D9%A3", "limit"),
        ("/schedules?limit=" + "9" * 5_000, "limit"),
        ("/schedules?limit", "limit"),
        ("/runs?state=done", "state"),
        ("/runs?origin=cron", "origin"),
        ("/runs?schedule=%00", "schedule"),
        ("/runs?%00=1", "\x00"),
        ("/jobs?job=x", "job"),
        ("/schedules/report-7?verbose=1", "verbose"),
        ("/schedules/report-7/upcoming?count=1001", "count"),
        ("/schedules/report-7/upcoming?count=ten", "count"),
        ("/schedules/report-7/occurrences?limit=x", "limit"),
        ("/schedules/report-7/history?cursor=x", "cursor"),
        ("/schedules/report-7/versions?limit=x", "limit"),
        ("/schedules/report-7/versions/1?limit=1", "limit"),
        ("/zones?dry_run=true", "dry_run"),
    ],
)
def test_a_bad_query_names_its_parameter(client: TestClient, path: str, field: str) -> None:
    client.post("/schedules", json=REPORT)
    assert fields_of(client.get(path)) == [field]


WRONG_CURSOR = encode_cursor({"somewhere": "else"})


@pytest.mark.parametrize(
    ("method", "path", "fields"),
    [
        (
            "GET",
            f"/schedules?x=1&status=sleeping&limit=0&label=customer&cursor={WRONG_CURSOR}&job=&y=2",
            ["cursor", "job", "label", "limit", "status", "x", "y"],
        ),
        (
            "GET",
            "/runs?state=done&origin=cron&schedule=&job=&label==&limit=no&cursor=x&status=active",
            ["cursor", "job", "label", "limit", "origin", "schedule", "state", "status"],
        ),
        ("GET", "/jobs?limit=0&cursor=x&job=x&job=x", ["cursor", "job", "limit"]),
        ("GET", "/jobs?limit=0&limit=1&limit=2&cursor=x", ["cursor", "limit"]),
        ("GET", "/schedules/report-7?x=1&y=1", ["x", "y"]),
        ("GET", "/schedules/report-7/upcoming?count=0&limit=5", ["count", "limit"]),
        ("GET", "/schedules/report-7/occurrences?count=0&limit=0&cursor=x", ["count", "cursor", "limit"]),
        ("GET", "/schedules/report-7/history?cursor=x&limit=0", ["cursor", "limit"]),
        ("DELETE", "/schedules/report-7?why=x&reason=", ["reason", "why"]),
        ("GET", "/schedules/report-7/versions?limit=0&cursor=x&count=1", ["count", "cursor", "limit"]),
        ("POST", "/schedules/report-7/pause?dry_run=1&x=1", ["dry_run", "x"]),
        ("POST", "/schedules/report-7/resume?dry_run=True", ["dry_run"]),
        ("POST", "/schedules/report-7/pause?dry_run=true&dry_run=true", ["dry_run"]),
        ("POST", "/schedules/report-7/run?dry_run=true", ["dry_run"]),
        ("POST", "/zones/apply?dry_run=", ["dry_run"]),
    ],
)
def test_all_bad_parameters_of_a_query_are_named_at_once(
    client: TestClient, method: str, path: str, fields: list[str]
) -> None:
    client.post("/schedules", json=REPORT)
    assert sorted(fields_of(client.request(method, path))) == fields


def test_every_route_but_those_for_probes_refuses_an_unknown_parameter(client: TestClient) -> None:
    paths = cast("dict[str, dict[str, object]]", body_of(client.get("/openapi.json"))["paths"])
    for path, operations in paths.items():
        for method in operations:
            body: Body | None = {} if method in {"post", "put", "patch"} else None
            parts = dict.fromkeys(("schedule_id", "run_id", "name", "number", "scheduled_at"), "x")
            asked = client.request(method, path.format(**parts) + "?zz=1", json=body)
            if path.startswith("/health/"):
                assert asked.is_success
            else:
                assert fields_of(asked) == ["zz"], (method, path)


def test_a_bad_reason_for_an_end_is_named_and_ends_nothing(client: TestClient) -> None:
    client.post("/schedules", json=REPORT)
    assert fields_of(client.delete("/schedules/report-7?reason=")) == ["reason"]
    assert fields_of(client.delete("/schedules/report-7?why=x")) == ["why"]
    assert body_of(client.get("/schedules/report-7"))["status"] == "active"


def test_an_answer_about_many_bad_fields_stays_short(client: TestClient) -> None:
    body = json.dumps({f"field{number}": number for number in range(10_000)})
    refused = client.post("/schedules", content=body, headers=JSON)
    assert len(fields_of(refused)) == 100
    long_name = client.post("/schedules", json=report(**{"x" * 200_000: 1}))
    assert len(long_name.content) < 10_000
    assert len(client.post("/schedules", json=report(job="x" * 200_000)).content) < 10_000


def test_an_error_tells_where_and_what_in_the_members_of_rfc_9457(client: TestClient) -> None:
    problem = body_of(client.post("/schedules", json=report(timezone="Mars/Base")), status=422)
    assert set(problem) == {"type", "title", "status", "detail", "instance", "errors"}
    assert (problem["status"], problem["instance"]) == (422, "/schedules")
    assert "Mars/Base" in cast("str", problem["detail"])
