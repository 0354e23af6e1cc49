"""A document of schedules over HTTP: applied whole or not at all, and again without effect."""

import pytest
from starlette.testclient import TestClient

from rota.store.memory import MemoryStore
from rota.store.port import StoreUnavailable
from tests.api.conftest import JOB, REPORT, Body, actions_of, body_of, fields_of, items_of, report, rows_of

DAILY: Body = {"job": JOB, "timezone": "UTC", "recurrence": {"cron": "0 9 * * *"}}


def applied(client: TestClient, schedules: Body, *, query: str = "", **more: object) -> list[Body]:
    """The outcomes of a document."""
    answered = body_of(client.post(f"/apply{query}", json={"schedules": schedules, **more}))
    assert answered["dry_run"] is (query == "?dry_run=true")
    assert isinstance(answered["schedules"], list)
    return answered["schedules"]


def outcomes(client: TestClient, schedules: Body) -> list[object]:
    return [item["outcome"] for item in applied(client, schedules)]


def test_a_document_creates_edits_ends_and_leaves_alone(client: TestClient) -> None:
    for id_ in ("edited", "ended", "same", "other"):
        client.post("/schedules", json=DAILY | {"id": id_})
    document: Body = {
        "new": DAILY | {"params": {"a": None}, "labels": {"customer": "acme"}},
        "edited": DAILY | {"timezone": "Europe/London"},
        "ended": {"ended": True},
        "same": DAILY,
    }
    told = applied(client, document, reason="contract", query="?dry_run=true")
    assert [item["outcome"] for item in told] == ["created", "edited", "ended", "unchanged"]
    assert applied(client, document, reason="contract") == told
    assert outcomes(client, document) == ["unchanged"] * 4
    shown = {item["id"]: item for item in items_of(client.get("/schedules"))}
    assert {id_: (item["version"], item["status"]) for id_, item in shown.items()} == {
        "new": (1, "active"),
        "edited": (2, "active"),
        "ended": (1, "ended"),
        "same": (1, "active"),
        "other": (1, "active"),
    }
    assert shown["new"]["params"] == {"a": None}
    for id_ in ("new", "edited", "ended"):
        assert items_of(client.get(f"/schedules/{id_}/history"))[0]["reason"] == "contract"
    assert actions_of(client, "same") == ["schedule.create"]


def test_what_an_entry_leaves_out_takes_its_default(client: TestClient) -> None:
    client.post("/schedules", json=report(params={"a": 1}, labels={"x": "1"}, gap="forward"))
    assert outcomes(client, {"report-7": {name: REPORT[name] for name in ("timezone", "recurrence")}}) == [
        "edited"
    ]
    assert body_of(client.get("/schedules/report-7")) | {
        "params": {},
        "labels": {},
        "gap": "skip",
    } == body_of(client.get("/schedules/report-7"))


def test_a_dry_run_writes_nothing(client: TestClient, store: MemoryStore) -> None:
    client.post("/schedules", json=REPORT)
    before = rows_of(store)
    applied(client, {"new": DAILY, "report-7": DAILY}, query="?dry_run=true")
    assert rows_of(store) == before


@pytest.mark.parametrize(
    ("entry", "fields"),
    [
        (5, [""]),
        ({}, [".job", ".timezone", ".recurrence"]),
        (DAILY | {"timezone": "Mars/Base", "cron": "x"}, [".cron"]),
        (DAILY | {"timezone": "Mars/Base"}, [".timezone"]),
        (DAILY | {"recurrence": {"cron": "0 0 30 2 *"}}, [".recurrence.cron"]),
        (DAILY | {"job": "nothing"}, [".job"]),
        (DAILY | {"ended": "yes"}, [".ended"]),
        (DAILY | {"reason": ""}, [".reason"]),
        (DAILY | {"reason": "x" * 1_001}, [".reason"]),
        (DAILY | {"boundary": "later"}, [".boundary"]),
        (DAILY | {"labels": {"a": 1}}, [".labels.a"]),
        (DAILY | {"params": {"text": "x" * 64 * 1024}}, [""]),
        (DAILY | {"id": "new"}, [".id"]),
    ],
)
def test_one_wrong_entry_is_named_and_nothing_is_done(
    client: TestClient, store: MemoryStore, entry: object, fields: list[str]
) -> None:
    before = rows_of(store)
    for query in ("", "?dry_run=true"):
        refused = client.post(f"/apply{query}", json={"schedules": {"good": DAILY, "new": entry}})
        assert fields_of(refused) == [f"schedules.new{field}" for field in fields]
    assert rows_of(store) == before


@pytest.mark.parametrize(
    ("document", "fields"),
    [
        ({"schedule": {}}, ["schedule"]),
        ({"schedules": []}, ["schedules"]),
        ({"schedules": None, "reason": 5}, ["reason", "schedules"]),
        ({"schedules": {"A.b": DAILY}}, ["schedules.A.b"]),
        ({"schedules": {"": DAILY}}, ["schedules."]),
    ],
)
def test_a_bad_document_names_its_fields(client: TestClient, document: Body, fields: list[str]) -> None:
    assert fields_of(client.post("/apply", json=document)) == fields


def test_what_contradicts_what_is_stored_is_named(client: TestClient, store: MemoryStore) -> None:
    client.put("/jobs/other", json={})
    client.post("/schedules", json=REPORT)
    client.post("/schedules", json=DAILY | {"id": "gone"})
    client.delete("/schedules/gone")
    before = rows_of(store)
    refused = client.post("/apply", json={"schedules": {"report-7": DAILY | {"job": "other"}, "gone": DAILY}})
    assert fields_of(refused) == ["schedules.report-7.job", "schedules.gone"]
    assert rows_of(store) == before


def test_an_empty_document_does_nothing(client: TestClient) -> None:
    assert applied(client, {}) == []
    assert body_of(client.post("/apply", json={})) == {"dry_run": False, "schedules": []}


def test_a_store_that_is_away_is_not_a_fault_of_the_document(
    client: TestClient, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(schedule_id: str) -> None:
        raise StoreUnavailable("The database is locked.")

    monkeypatch.setattr(store, "get_schedule", away)
    assert client.post("/apply", json={"schedules": {"new": DAILY}}).status_code == 503


def test_what_is_to_end_and_is_not_there_says_so(client: TestClient) -> None:
    assert applied(client, {"gone": {"ended": True}}) == [
        {"schedule_id": "gone", "outcome": "unchanged", "note": "there is no such schedule"}
    ]
