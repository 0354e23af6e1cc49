"""Deliveries over HTTP: listed, and dead ones tried again."""

from datetime import timedelta

import pytest
from starlette.testclient import TestClient

from rota.service import deliveries
from rota.service.context import Context
from rota.store.memory import MemoryStore
from rota.testing.clock import ManualClock
from tests.api.conftest import Body, body_of, fields_of, items_of, let_die, report, rows_of

SINK = {"sink": {"type": "webhook", "url": "https://shop.example/hooks"}}


@pytest.fixture
def dead(client: TestClient, context: Context, clock: ManualClock) -> list[str]:
    """Three dead deliveries, of two schedules and two jobs, and one that is queued and not taken yet."""
    clock.advance(timedelta(seconds=1))
    run_ids = []
    for schedule_id, job in (("a-1", "mail"), ("b-1", "mail"), ("c-1", "print")):
        client.put(f"/jobs/{job}", json=SINK)
        client.post("/schedules", json=report(id=schedule_id, job=job))
        run_ids.append(str(body_of(client.post(f"/schedules/{schedule_id}/run"), status=201)["run_id"]))
    for job in ("mail", "print"):
        let_die(context, job)
    client.post("/schedules/c-1/run")
    return run_ids


def deliveries_of(client: TestClient, query: str = "") -> list[tuple[object, object]]:
    return [(item["run_id"], item["state"]) for item in items_of(client.get(f"/deliveries?{query}"))]


def test_deliveries_are_listed_by_run_id_and_by_filters(client: TestClient, dead: list[str]) -> None:
    a, b, c = [(run_id, "dead") for run_id in dead]
    assert deliveries_of(client) == [a, b, c]
    assert deliveries_of(client, "state=dead&job=mail") == [a, b]
    assert deliveries_of(client, "schedule=c-1") == [c]
    assert deliveries_of(client, "state=sending") == []
    page = body_of(client.get("/deliveries?limit=2"))
    assert deliveries_of(client, f"limit=2&cursor={page['next_cursor']}") == [c]
    assert fields_of(client.get("/deliveries?state=lost&origin=manual&cursor=x")) == [
        "origin",
        "state",
        "cursor",
    ]


def test_a_delivery_tells_of_its_tries_also_on_its_runs_page(client: TestClient, dead: list[str]) -> None:
    [item] = items_of(client.get("/deliveries?schedule=a-1"))
    assert item == {
        "run_id": dead[0],
        "attempt": 1,
        "schedule_id": "a-1",
        "job": "mail",
        "state": "dead",
        "tries": 1,
        "first_at": "2026-01-10T12:00:01Z",
        "next_at": None,
        "sent_at": None,
        "error": "503 Service Unavailable",
    }
    run = body_of(client.get(f"/runs/{dead[0]}"))
    assert (run["delivery"], run["state"], run["error"]) == (item, "queued", None)


def test_a_dead_delivery_is_tried_again_at_once_and_its_history_says_who_asked(
    client: TestClient, dead: list[str], clock: ManualClock
) -> None:
    clock.advance(timedelta(days=2))
    redriven = body_of(
        client.post(
            f"/deliveries/{dead[0]}/redrive",
            json={"reason": "the receiver is back"},
            headers={"Rota-Actor": "ops"},
        )
    )
    now = "2026-01-12T12:00:01Z"
    assert redriven | {"state": "retrying", "next_at": now, "first_at": now} == redriven
    event = items_of(client.get("/schedules/a-1/history"))[0]
    assert (event["action"], event["actor"], event["reason"], event["details"]) == (
        "delivery.redrive",
        "ops",
        "the receiver is back",
        {"run_id": dead[0]},
    )


def test_redriving_what_is_not_dead_changes_nothing(
    client: TestClient, dead: list[str], store: MemoryStore
) -> None:
    redriven = body_of(client.post(f"/deliveries/{dead[0]}/redrive"))
    before = rows_of(store)
    assert body_of(client.post(f"/deliveries/{dead[0]}/redrive")) == redriven
    assert rows_of(store) == before


@pytest.mark.parametrize("run_id", ["a-1.1.20260101T000000Z", "nonsense", "%00"])
@pytest.mark.usefixtures("dead")
def test_a_run_without_a_delivery_is_not_found(client: TestClient, run_id: str) -> None:
    assert client.post(f"/deliveries/{run_id}/redrive").status_code == 404


@pytest.mark.parametrize(
    ("filter_", "redriven"),
    [
        ({"state": "dead"}, [0, 1, 2]),
        ({"job": "mail"}, [0, 1]),
        ({"job": "mail", "schedule": "b-1", "state": "dead"}, [1]),
        ({"schedule": "nobody"}, []),
    ],
)
def test_the_dead_ones_that_match_are_redriven_and_a_dry_run_counts_them(
    client: TestClient, dead: list[str], store: MemoryStore, filter_: Body, redriven: list[int]
) -> None:
    before = rows_of(store)
    expected = {"redriven": len(redriven), "is_complete": True}
    foretold = client.post("/deliveries/redrive?dry_run=true", json=filter_)
    assert body_of(foretold) == {"dry_run": True, **expected}
    assert rows_of(store) == before
    assert body_of(client.post("/deliveries/redrive", json=filter_)) == {"dry_run": False, **expected}
    assert deliveries_of(client, "state=retrying") == [(dead[place], "retrying") for place in redriven]
    assert body_of(client.post("/deliveries/redrive", json=filter_))["redriven"] == 0


def test_a_request_redrives_a_bounded_number_and_is_repeated_for_the_rest(
    client: TestClient, dead: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "REDRIVEN_PER_REQUEST_MAX", 2)
    monkeypatch.setattr(deliveries, "COUNTED_MAX", 2)
    monkeypatch.setattr(deliveries, "LIMIT_MAX", 1)
    all_dead = {"state": "dead"}
    assert body_of(client.post("/deliveries/redrive?dry_run=true", json=all_dead))["is_complete"] is False
    answers = [body_of(client.post("/deliveries/redrive", json=all_dead)) for _ in dead]
    assert [(answer["redriven"], answer["is_complete"]) for answer in answers] == [
        (2, False),
        (1, True),
        (0, True),
    ]


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, ["state"]),
        ({"reason": "x"}, ["state"]),
        ({"state": "sent"}, ["state"]),
        ({"state": "lost"}, ["state"]),
        ({"job": 5, "schedule": ""}, ["job", "schedule"]),
        ({"job": "mail", "label": "a=b"}, ["label"]),
        ({"job": "mail", "reason": 5}, ["reason"]),
    ],
)
def test_a_bad_filter_is_named(
    client: TestClient, dead: list[str], store: MemoryStore, body: Body, fields: list[str]
) -> None:
    before = rows_of(store)
    assert sorted(fields_of(client.post("/deliveries/redrive", json=body))) == fields
    assert rows_of(store) == before


def test_what_a_handler_recorded_is_on_its_runs_page(client: TestClient, context: Context) -> None:
    client.post("/schedules", json=report())
    run_id = str(body_of(client.post("/schedules/report-7/run"), status=201)["run_id"])
    now = context.clock.now()
    intents = context.store.read_intents(["sales_report"], now=now, limit=1)
    context.store.commit_openings("w1", intents, now=now)
    [intent] = intents
    context.store.commit_effect_begin(intent, "send-mail", now=now)
    context.store.commit_effect(intent, "send-mail", result=None, now=now)
    context.store.commit_effect_begin(intent, "charge", now=now)
    effects = body_of(client.get(f"/runs/{run_id}"))["effects"]
    at = "2026-01-10T12:00:00Z"
    assert effects == [
        {"name": "charge", "begun_by": 1, "begun_at": at, "recorded_at": None, "result": None},
        {"name": "send-mail", "begun_by": 1, "begun_at": at, "recorded_at": at, "result": None},
    ]
