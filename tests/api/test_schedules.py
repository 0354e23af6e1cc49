"""Schedules over HTTP: created, shown, listed, paused, resumed, ended."""

from datetime import timedelta

import pytest
from starlette.testclient import TestClient

from rota.store.memory import MemoryStore
from rota.testing.clock import ManualClock
from tests.api.conftest import REPORT, Body, WorkOff, body_of, fields_of, items_of, report, rows_of


def test_a_created_schedule_is_answered_whole_and_can_be_found(client: TestClient) -> None:
    created = client.post("/schedules", json=REPORT)
    shown = client.get(created.headers["location"])
    assert created.headers["location"] == "/schedules/report-7"
    assert created.headers["etag"] == shown.headers["etag"] == '"1"'
    assert body_of(created, status=201) == body_of(shown)
    assert body_of(shown) | {
        "status": "active",
        "next_due": "2026-01-12T14:00:00Z",
        "fold": "first",
    } == body_of(shown)


@pytest.mark.parametrize(
    "more",
    [
        {"recurrence": {"every": "PT15M"}},
        {"overdue": {"policy": "latest_only", "grace": "PT1M"}, "params": {"b": {"d": 1, "c": 2}, "a": 1}},
        {"overdue": {"policy": "expire", "deadline": "PT5M"}, "labels": {"b": "1", "a": "2"}},
        {
            "overdue": {"policy": "catch_up_all", "max_age": None},
            "params": {"overdue": {"policy": 1, "grace": 2}},
        },
    ],
)
def test_a_creation_is_answered_as_the_schedule_is_shown_byte_for_byte(
    client: TestClient, more: Body
) -> None:
    created = client.post("/schedules", json=report(**more), headers={"Idempotency-Key": "k"})
    assert created.content == client.get("/schedules/report-7").content
    again = client.post("/schedules", json=report(**more), headers={"Idempotency-Key": "k"})
    assert (again.status_code, again.content) == (201, created.content)


def test_an_id_is_made_where_none_is_given(client: TestClient) -> None:
    first = body_of(client.post("/schedules", json=report(id=None)), status=201)
    second = body_of(client.post("/schedules", json=report(id=None)), status=201)
    assert first["id"] != second["id"]


def test_the_same_body_again_answers_with_the_same_schedule(client: TestClient) -> None:
    created = client.post("/schedules", json=REPORT)
    again = client.post("/schedules", json=REPORT)
    assert again.status_code == 200
    assert again.headers["location"] == created.headers["location"]
    assert again.json() == created.json()
    assert len(items_of(client.get("/schedules"))) == 1


def test_another_body_of_the_same_id_is_a_conflict(client: TestClient) -> None:
    client.post("/schedules", json=REPORT)
    refused = client.post("/schedules", json=report(timezone="Europe/London"))
    assert fields_of(refused, status=409) == ["id"]
    assert body_of(client.get("/schedules/report-7"))["timezone"] == "America/New_York"


def test_a_repeated_key_gets_the_same_answer_byte_for_byte(client: TestClient, clock: ManualClock) -> None:
    body = report(id=None, params={"b": 1, "a": [2.5, None]}, recurrence={"every": "PT15M"})
    created = client.post("/schedules", json=body, headers={"Idempotency-Key": "order-1742"})
    clock.advance(timedelta(hours=23))
    client.post(created.headers["location"] + "/pause")
    again = client.post("/schedules", json=body, headers={"Idempotency-Key": "order-1742"})
    assert (again.status_code, again.content) == (201, created.content)
    assert again.headers == created.headers
    assert len(items_of(client.get("/schedules"))) == 1


def test_a_key_is_forgotten_after_a_day(client: TestClient, clock: ManualClock) -> None:
    body = report(id=None)
    first = client.post("/schedules", json=body, headers={"Idempotency-Key": "k"})
    clock.advance(timedelta(hours=24))
    second = client.post("/schedules", json=body, headers={"Idempotency-Key": "k"})
    assert first.headers["location"] != second.headers["location"]


def test_a_key_with_another_body_is_refused(client: TestClient) -> None:
    client.post("/schedules", json=report(id="one"), headers={"Idempotency-Key": "k"})
    refused = client.post("/schedules", json=report(id="two"), headers={"Idempotency-Key": "k"})
    assert fields_of(refused) == ["Idempotency-Key"]
    assert refused.json()["type"] == "urn:rota:problem:key-reused"
    assert client.get("/schedules/two").status_code == 404


def test_a_refused_request_does_not_use_up_its_key(client: TestClient) -> None:
    key = {"Idempotency-Key": "k"}
    assert client.post("/schedules", json=report(timezone="Mars/Base"), headers=key).status_code == 422
    assert client.post("/schedules", json=REPORT, headers=key).status_code == 201


def test_pause_and_resume_show_the_state_and_may_be_repeated(client: TestClient, clock: ManualClock) -> None:
    client.post("/schedules", json=REPORT)
    paused = client.post("/schedules/report-7/pause")
    clock.advance(timedelta(hours=1))
    again = client.post("/schedules/report-7/pause", json={"reason": "twice"})
    assert body_of(paused)["status"] == "paused"
    assert body_of(again) == body_of(paused)
    resumed = client.post("/schedules/report-7/resume", json={"apply_overdue": True})
    assert body_of(resumed)["status"] == "active"
    assert body_of(client.post("/schedules/report-7/resume")) == body_of(resumed)
    assert [response.headers["etag"] for response in (paused, again, resumed)] == ['"1"'] * 3


def test_a_dry_run_of_a_pause_or_a_resumption_tells_and_writes_nothing(
    client: TestClient, store: MemoryStore, clock: ManualClock
) -> None:
    client.post("/schedules", json=report(recurrence={"cron": "0 * * * *"}))
    before = rows_of(store)
    told = body_of(client.post("/schedules/report-7/pause?dry_run=true", json={"reason": "x"}))
    assert rows_of(store) == before
    assert told["changed"] == {"status": {"from": "active", "to": "paused"}}
    client.post("/schedules/report-7/pause?dry_run=false")
    assert body_of(client.post("/schedules/report-7/pause?dry_run=true"))["changed"] == {}
    clock.advance(timedelta(hours=3))
    before = rows_of(store)
    skips = body_of(client.post("/schedules/report-7/resume?dry_run=true"))
    runs = body_of(client.post("/schedules/report-7/resume?dry_run=true", json={"apply_overdue": True}))
    assert rows_of(store) == before
    assert isinstance(skips["skipped"], list)
    assert [(item["count"], item["reason"]) for item in skips["skipped"]] == [(2, "paused")]
    assert isinstance(runs["kept"], list)
    assert [item["scheduled_at"] for item in runs["kept"]] == ["2026-01-10T15:00:00Z"]


@pytest.mark.parametrize("command", ["pause", "resume"])
def test_a_dry_run_is_refused_where_the_command_is(client: TestClient, command: str) -> None:
    client.post("/schedules", json=REPORT)
    client.delete("/schedules/report-7")
    for query in ("", "?dry_run=true"):
        assert client.post(f"/schedules/report-7/{command}{query}").status_code == 409


def test_what_fell_into_a_pause_is_skipped_or_follows_the_policy_as_asked(
    client: TestClient, clock: ManualClock, work_off: WorkOff
) -> None:
    policy = {"policy": "catch_up_all", "max_age": None}
    for id_ in ("skips", "applies"):
        client.post("/schedules", json=report(id=id_, recurrence={"cron": "0 * * * *"}, overdue=policy))
        client.post(f"/schedules/{id_}/pause")
    clock.advance(timedelta(hours=3))
    client.post("/schedules/skips/resume")
    client.post("/schedules/applies/resume", json={"apply_overdue": True})
    work_off()
    skipped = items_of(client.get("/schedules/skips/occurrences"))
    applied = items_of(client.get("/schedules/applies/occurrences"))
    assert [(item["kind"], item.get("count"), item["reason"]) for item in skipped[-1:]] == [
        ("skip", 2, "paused")
    ]
    assert [item["kind"] for item in applied] == ["run"] * 3


def test_an_ended_schedule_stays_and_its_id_is_never_used_again(client: TestClient) -> None:
    client.post("/schedules", json=REPORT)
    ended = client.delete("/schedules/report-7")
    assert body_of(ended) | {"status": "ended", "status_reason": "deleted", "next_due": None} == body_of(
        ended
    )
    assert body_of(client.delete("/schedules/report-7")) == body_of(ended)
    assert body_of(client.get("/schedules/report-7")) == body_of(ended)
    assert client.post("/schedules", json=REPORT).status_code == 409
    assert client.post("/schedules/report-7/pause").status_code == 409
    assert client.post("/schedules/report-7/resume").status_code == 409


def test_the_history_says_who_did_what_and_why(client: TestClient) -> None:
    client.post("/schedules", json=REPORT)
    who = {b"Rota-Actor": "Zoë <zoe@example.com>".encode()}
    client.post("/schedules/report-7/pause", json={"reason": "holiday"}, headers=who)
    client.delete("/schedules/report-7?reason=moved")
    events = items_of(client.get("/schedules/report-7/history"))
    assert [(event["action"], event["actor"], event["reason"]) for event in events] == [
        ("schedule.end", None, "moved"),
        ("schedule.pause", "Zoë <zoe@example.com>", "holiday"),
        ("schedule.create", None, None),
    ]
    assert len(items_of(client.get("/schedules/report-7/history?limit=2"))) == 2


def test_schedules_are_listed_by_id_and_filtered(client: TestClient) -> None:
    client.put("/jobs/cleanup", json={})
    client.post("/schedules", json=report(id="c", labels={"customer": "acme=co"}))
    client.post("/schedules", json=report(id="a", job="cleanup"))
    client.post("/schedules", json=report(id="b"))
    client.post("/schedules/b/pause")

    def listed(query: str) -> list[object]:
        return [item["id"] for item in items_of(client.get(f"/schedules?{query}"))]

    assert listed("") == ["a", "b", "c"]
    assert listed("status=paused") == ["b"]
    assert listed("job=cleanup") == ["a"]
    assert listed("label=customer=acme=co") == ["c"]
    assert listed("label=customer=acme") == []
    assert listed("job=nothing") == []


def test_upcoming_occurrences_tell_local_time_and_offset(client: TestClient) -> None:
    client.post("/schedules", json=report(recurrence={"cron": "30 2 * * *"}, gap="forward"))
    upcoming = body_of(client.get("/schedules/report-7/upcoming?count=60"))["occurrences"]
    assert isinstance(upcoming, list)
    assert len(upcoming) == 60
    moved = next(item for item in upcoming if item["named_local"] == "2026-03-08T02:30")
    assert (moved["local"], moved["offset"], moved["scheduled_at"]) == (
        "2026-03-08T03:00",
        "-04:00",
        "2026-03-08T07:00:00Z",
    )
    assert moved["note"]


def test_a_preview_shows_what_a_schedule_would_do(client: TestClient) -> None:
    body = {
        "timezone": "Europe/London",
        "recurrence": {"cron": "30 1 * * *"},
        "after": "2026-03-28T00:00:00Z",
        "count": 2,
    }
    preview = body_of(client.post("/preview", json=body))
    occurrences, skipped = preview["occurrences"], preview["skipped"]
    assert isinstance(occurrences, list)
    assert isinstance(skipped, list)
    assert [item["scheduled_at"] for item in occurrences] == ["2026-03-28T01:30:00Z", "2026-03-30T00:30:00Z"]
    assert [item["local"] for item in skipped] == ["2026-03-29T01:30"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/schedules/{}"),
        ("POST", "/schedules/{}/pause"),
        ("POST", "/schedules/{}/resume"),
        ("DELETE", "/schedules/{}"),
        ("GET", "/schedules/{}/upcoming"),
        ("GET", "/schedules/{}/occurrences"),
        ("GET", "/schedules/{}/history"),
        ("GET", "/schedules/{}/versions"),
        ("GET", "/schedules/{}/versions/1"),
        ("POST", "/schedules/{}/run"),
        ("POST", "/schedules/{}/occurrences/2026-01-12T09:00:00Z/skip"),
        ("GET", "/runs/{}"),
        ("POST", "/runs/{}/cancel"),
        ("GET", "/jobs/{}"),
    ],
)
@pytest.mark.parametrize(
    "id_", ["nothing", "%2e%2e", "%00", "a" * 3000, "%F0%9F%95%90", "UPPER", "%ff", "%0d%0a", "%2e", "%2f"]
)
def test_what_does_not_exist_is_not_found(client: TestClient, method: str, path: str, id_: str) -> None:
    response = client.request(method, path.format(id_))
    assert response.status_code in {404, 405}
    assert response.headers["content-type"] == "application/problem+json"
