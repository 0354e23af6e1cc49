"""Occurrences decided one by one over HTTP: planned ahead, skipped, moved, backfilled."""

from datetime import timedelta
from typing import cast

import pytest
from starlette.testclient import TestClient

from rota.store.memory import MemoryStore
from rota.testing.clock import ManualClock
from tests.api.conftest import (
    REPORT,
    Body,
    WorkOff,
    actions_of,
    body_of,
    fields_of,
    for_version,
    items_of,
    report,
    rows_of,
    upcoming_of,
)

PATH = "/schedules/report-7"
MONDAY = "report-7.1.20260112T140000Z"
TUESDAY = "report-7.1.20260113T140000Z"


@pytest.fixture
def scheduled(client: TestClient) -> TestClient:
    """At nine in New York from Monday to Friday; it is Saturday."""
    client.post("/schedules", json=REPORT)
    return client


def list_of(body: Body, name: str) -> list[Body]:
    return cast("list[Body]", body[name])


def test_occurrences_are_planned_up_to_the_instant_and_one_time_only(scheduled: TestClient) -> None:
    until = {"until": "2026-01-13T14:00:00Z", "reason": "promised"}
    planned = body_of(scheduled.post(f"{PATH}/plan", json=until, headers={"Rota-Actor": "ops"}))
    assert [(run["run_id"], run["state"]) for run in list_of(planned, "runs")] == [
        (MONDAY, "planned"),
        (TUESDAY, "planned"),
    ]
    assert planned | {"created": 2, "existing": 0, "dry_run": False, "version": 1} == planned
    again = body_of(scheduled.post(f"{PATH}/plan", json=until))
    assert again | {"created": 0, "existing": 2, "runs": []} == again
    assert [(item["state"], item["run_id"]) for item in upcoming_of(scheduled, "occurrences")] == [
        ("planned", MONDAY),
        ("planned", TUESDAY),
        ("named", None),
    ]
    event = items_of(scheduled.get(f"{PATH}/history"))[0]
    assert (event["action"], event["actor"], event["reason"]) == ("schedule.plan", "ops", "promised")


def test_a_planned_run_keeps_its_version_and_instant_through_an_edit(
    scheduled: TestClient, clock: ManualClock, work_off: WorkOff
) -> None:
    scheduled.post(f"{PATH}/plan", json={"until": "2026-01-12T09:00"})
    scheduled.patch(PATH, json={"timezone": "America/Los_Angeles"}, headers=for_version(1))
    assert [item["note"] for item in upcoming_of(scheduled, "suppressed")] == [
        f"day:2026-01-12 is used by run {MONDAY}"
    ]
    clock.advance(timedelta(days=2, hours=6))
    work_off()
    skip, run = items_of(scheduled.get(f"{PATH}/occurrences"))
    assert (run["run_id"], run["state"]) == (MONDAY, "queued")
    assert skip["reason"] == "period_used"


def test_a_planned_run_that_falls_due_while_paused_is_held(
    scheduled: TestClient, clock: ManualClock, work_off: WorkOff
) -> None:
    scheduled.post(f"{PATH}/pause")
    assert body_of(scheduled.post(f"{PATH}/plan", json={"until": "2026-01-12T14:00:00Z"}))["created"] == 1
    clock.advance(timedelta(days=3))
    work_off()
    assert body_of(scheduled.get(f"/runs/{MONDAY}"))["state"] == "held"
    told = body_of(scheduled.post(f"{PATH}/resume?dry_run=true"))
    assert [(item.get("run_id"), item["reason"]) for item in list_of(told, "skipped")][:1] == [
        (MONDAY, "paused")
    ]
    scheduled.post(f"{PATH}/resume")
    work_off()
    assert body_of(scheduled.get(f"/runs/{MONDAY}")) | {"state": "skipped", "reason": "paused"} == body_of(
        scheduled.get(f"/runs/{MONDAY}")
    )


def test_more_than_ten_thousand_occurrences_are_not_planned_at_once(client: TestClient) -> None:
    client.post("/schedules", json=report(recurrence={"every": "PT1S"}))
    assert fields_of(client.post(f"{PATH}/plan", json={"until": "2026-01-11T12:00:00Z"})) == ["until"]


@pytest.mark.parametrize(
    "written",
    [
        "2026-01-13T14:00:00Z",
        "2026-01-13T14%3A00%3A00Z",
        "2026-01-13T09:00:00-05:00",
        "2026-01-13T15:00:00%2B01:00",
        "20260113T140000Z",
        "2026-01-13T09:00",
    ],
)
def test_an_occurrence_is_skipped_by_any_name_of_its_instant(scheduled: TestClient, written: str) -> None:
    skipped = body_of(scheduled.post(f"{PATH}/occurrences/{written}/skip"))
    assert (skipped["run_id"], skipped["state"], skipped["reason"]) == (TUESDAY, "skipped", "on_request")


def test_a_skipped_occurrence_stays_skipped_and_its_day_is_used(
    scheduled: TestClient, clock: ManualClock, work_off: WorkOff
) -> None:
    skip = f"{PATH}/occurrences/2026-01-13T09:00/skip"
    skipped = body_of(scheduled.post(skip, json={"reason": "not this Tuesday"}))
    assert body_of(scheduled.post(skip)) == skipped
    assert actions_of(scheduled) == ["occurrence.skip", "schedule.create"]
    assert [item["run_id"] for item in upcoming_of(scheduled, "skipped")] == [TUESDAY]
    scheduled.patch(PATH, json={"timezone": "America/Los_Angeles"}, headers=for_version(1))
    clock.advance(timedelta(days=4))
    work_off()
    ledger = items_of(scheduled.get(f"{PATH}/occurrences"))
    assert [(item["kind"], item["version"], item["reason"]) for item in ledger if item["reason"]] == [
        ("skip", 2, "period_used"),
        ("run", 1, "on_request"),
    ]


def test_a_moved_occurrence_falls_due_at_its_new_time_and_keeps_its_id(
    scheduled: TestClient, clock: ManualClock, work_off: WorkOff
) -> None:
    move = f"{PATH}/occurrences/2026-01-12T09:00/move"
    moved = body_of(scheduled.post(move, json={"to": "2026-01-12T11:00", "reason": "late start"}))
    expected = {
        "run_id": MONDAY,
        "state": "planned",
        "due_at": "2026-01-12T16:00:00Z",
        "period_key": "day:2026-01-12",
    }
    assert moved | expected == moved
    assert body_of(scheduled.post(move, json={"to": "2026-01-12T16:00:00Z"})) == moved
    assert actions_of(scheduled) == ["occurrence.move", "schedule.create"]
    states = []
    for hours in (51, 1):
        clock.advance(timedelta(hours=hours))
        work_off()
        states.append(body_of(scheduled.get(f"/runs/{MONDAY}"))["state"])
    assert states == ["planned", "queued"]
    assert len(items_of(scheduled.get("/runs"))) == 1


@pytest.mark.parametrize(
    "written", ["2026-01-17T09:00", "2026-01-13T09:01", "2026-01-01T09:00", "20260113T140001Z"]
)
@pytest.mark.parametrize(("act", "body"), [("skip", {}), ("move", {"to": "2026-02-01T00:00:00Z"})])
def test_what_the_schedule_does_not_name_is_not_found(
    scheduled: TestClient, store: MemoryStore, written: str, act: str, body: Body
) -> None:
    before = rows_of(store)
    assert scheduled.post(f"{PATH}/occurrences/{written}/{act}", json=body).status_code == 404
    assert rows_of(store) == before


@pytest.mark.parametrize(("act", "body"), [("skip", {}), ("move", {"to": "2026-02-01T00:00:00Z"})])
def test_what_has_fallen_due_is_past_planning(
    scheduled: TestClient, clock: ManualClock, work_off: WorkOff, act: str, body: Body
) -> None:
    path = f"{PATH}/occurrences/2026-01-12T09:00/{act}"
    clock.advance(timedelta(days=2, hours=2))
    assert scheduled.post(path, json=body).status_code == 409
    work_off()
    refused = scheduled.post(path, json=body)
    assert refused.status_code == 409
    assert MONDAY in refused.json()["detail"]


def test_a_past_range_is_backfilled_one_time_and_some_time_apart(
    scheduled: TestClient, clock: ManualClock, work_off: WorkOff
) -> None:
    body = {
        "from": "2026-01-07T00:00",
        "until": "2026-01-09T14:00:00Z",
        "spacing": "PT1M",
        "reason": "late data",
    }
    filled = body_of(scheduled.post(f"{PATH}/backfill", json=body))
    assert [(run["scheduled_at"], run["due_at"], run["origin"]) for run in list_of(filled, "runs")] == [
        ("2026-01-07T14:00:00Z", "2026-01-10T12:00:01Z", "backfill"),
        ("2026-01-08T14:00:00Z", "2026-01-10T12:01:01Z", "backfill"),
        ("2026-01-09T14:00:00Z", "2026-01-10T12:02:01Z", "backfill"),
    ]
    assert filled | {"created": 3, "left_out": {"period_used": 0, "owed": 0}} == filled
    again = body_of(scheduled.post(f"{PATH}/backfill", json=body))
    assert again | {"created": 0, "left_out": {"period_used": 3, "owed": 0}, "runs": []} == again
    assert actions_of(scheduled) == ["schedule.backfill", "schedule.create"]
    clock.advance(timedelta(minutes=1, seconds=1))
    work_off()
    states = [run["state"] for run in items_of(scheduled.get("/runs?origin=backfill"))]
    assert states == ["planned", "queued", "queued"]


def test_a_backfill_leaves_out_what_admission_still_owes(scheduled: TestClient, clock: ManualClock) -> None:
    clock.advance(timedelta(days=3))
    body = {"from": "2026-01-09T00:00", "until": "2026-01-13T00:00"}
    filled = body_of(scheduled.post(f"{PATH}/backfill", json=body))
    assert filled | {"created": 1, "left_out": {"period_used": 0, "owed": 1}} == filled


DRY = {
    "plan": {"until": "2026-01-20T00:00:00Z"},
    "backfill": {"from": "2026-01-05T00:00", "until": "2026-01-10T00:00"},
}


@pytest.mark.parametrize(("act", "body"), DRY.items())
def test_a_dry_run_tells_what_would_be_created_and_writes_nothing(
    scheduled: TestClient, store: MemoryStore, act: str, body: Body
) -> None:
    before = rows_of(store)
    told = body_of(scheduled.post(f"{PATH}/{act}?dry_run=true", json=body))
    assert rows_of(store) == before
    done = body_of(scheduled.post(f"{PATH}/{act}?dry_run=false", json=body))
    assert (told["dry_run"], done["dry_run"]) == (True, False)
    assert told | {"dry_run": False} == done
    assert done["created"] in {5, 6}


@pytest.mark.parametrize(
    ("act", "body"),
    [
        *DRY.items(),
        ("occurrences/2026-01-12T09:00/skip", {}),
        ("occurrences/2026-01-12T09:00/move", {"to": "2026-02-01T09:00"}),
    ],
)
def test_nothing_is_decided_for_a_schedule_that_has_ended(
    scheduled: TestClient, store: MemoryStore, act: str, body: Body
) -> None:
    scheduled.delete(PATH)
    before = rows_of(store)
    assert scheduled.post(f"{PATH}/{act}", json=body).status_code == 409
    assert rows_of(store) == before


@pytest.mark.parametrize(
    ("act", "body"),
    [*DRY.items(), ("occurrences/2026-01-12T09:00/move", {"to": "2026-02-01T09:00"})],
)
def test_nothing_is_decided_for_a_schedule_that_does_not_exist(
    client: TestClient, act: str, body: Body
) -> None:
    for id_ in ("nothing", "%00", "a.b"):
        assert client.post(f"/schedules/{id_}/{act}", json=body).status_code == 404
