"""Runs that somebody asks for over HTTP: one now, one that has ended once more."""

from datetime import timedelta

import pytest
from starlette.testclient import TestClient

from rota.store.memory import MemoryStore
from rota.testing.clock import ManualClock
from tests.api.conftest import (
    REPORT,
    WorkOff,
    actions_of,
    body_of,
    fields_of,
    for_version,
    items_of,
    report,
    rows_of,
)

PATH = "/schedules/report-7"
KEY = {"Idempotency-Key": "order-1742"}
RUN = "report-7.1.20260110T130000Z"
WHY = {"reason": "the mail server was down"}


@pytest.fixture
def ended_run(client: TestClient, clock: ManualClock, work_off: WorkOff) -> TestClient:
    """A run of an hourly schedule, which was cancelled."""
    client.post("/schedules", json=report(recurrence={"cron": "0 * * * *"}, params={"v": 1}))
    clock.advance(timedelta(hours=1))
    work_off()
    assert body_of(client.post(f"/runs/{RUN}/cancel"))["state"] == "cancelled"
    return client


def test_a_run_on_request_is_queued_at_once_and_found_where_the_answer_says(client: TestClient) -> None:
    client.post("/schedules", json=report(params={"a": 1}))
    created = client.post(f"{PATH}/run", json={"reason": "now"}, headers={"Rota-Actor": "ops"})
    run = body_of(created, status=201)
    assert run | {"origin": "manual", "state": "queued", "scheduled_at": "2026-01-10T12:00:01Z"} == run
    assert isinstance(run["made_by"], dict)
    assert (run["made_by"]["version"], run["made_by"]["params"]) == (1, {"a": 1})
    assert body_of(client.get(created.headers["location"])) == run
    assert created.headers["location"] == f"/runs/{run['run_id']}"
    event = items_of(client.get(f"{PATH}/history"))[0]
    assert (event["action"], event["actor"], event["reason"]) == ("run.request", "ops", "now")
    assert event["details"] == {"run_id": run["run_id"]}


def test_a_repeated_key_makes_one_run_and_shows_it_as_it_is(client: TestClient, clock: ManualClock) -> None:
    client.post("/schedules", json=REPORT)
    created = client.post(f"{PATH}/run", headers=KEY)
    clock.advance(timedelta(hours=1))
    client.post(f"{created.headers['location']}/cancel")
    again = client.post(f"{PATH}/run", headers=KEY)
    assert (created.status_code, again.status_code) == (201, 200)
    assert again.headers["location"] == created.headers["location"]
    assert body_of(again)["state"] == "cancelled"
    assert len(items_of(client.get("/runs"))) == 1


def test_without_a_key_every_request_makes_a_run(client: TestClient) -> None:
    client.post("/schedules", json=REPORT)
    assert [client.post(f"{PATH}/run").status_code for _ in range(3)] == [201] * 3
    assert len({run["run_id"] for run in items_of(client.get("/runs?origin=manual"))}) == 3


def test_a_run_on_request_uses_up_no_period_and_needs_no_active_schedule(
    client: TestClient, clock: ManualClock, work_off: WorkOff
) -> None:
    client.post("/schedules", json=report(recurrence={"cron": "0 9 * * *"}))
    client.post(f"{PATH}/pause")
    assert client.post(f"{PATH}/run").status_code == 201
    client.post(f"{PATH}/resume")
    clock.advance(timedelta(hours=2))
    work_off()
    assert {run["origin"] for run in items_of(client.get("/runs"))} == {"manual", "schedule"}


def test_a_key_of_another_request_is_refused(client: TestClient, store: MemoryStore) -> None:
    client.post("/schedules", json=REPORT, headers=KEY)
    client.post("/schedules", json=report(id="other"))
    client.post("/schedules/other/run", headers={"Idempotency-Key": "k"})
    before = rows_of(store)
    for key in (KEY, {"Idempotency-Key": "k"}):
        refused = client.post(f"{PATH}/run", headers=key)
        assert fields_of(refused) == ["Idempotency-Key"]
        assert refused.json()["type"] == "urn:rota:problem:key-reused"
    assert rows_of(store) == before


def test_a_key_makes_one_run_of_a_schedule_even_after_it_was_forgotten(
    client: TestClient, clock: ManualClock
) -> None:
    client.post("/schedules", json=REPORT)
    client.post(f"{PATH}/run", headers=KEY)
    clock.advance(timedelta(days=2))
    assert fields_of(client.post(f"{PATH}/run", headers=KEY)) == ["Idempotency-Key"]


@pytest.mark.parametrize("key", [b"", b"x" * 256, b"caf\xc3\xa9"])
@pytest.mark.parametrize("path", [f"{PATH}/run", f"/runs/{RUN}/replay"])
def test_a_bad_key_is_named(ended_run: TestClient, store: MemoryStore, path: str, key: bytes) -> None:
    before = rows_of(store)
    assert fields_of(ended_run.post(path, json=WHY, headers={b"Idempotency-Key": key})) == ["Idempotency-Key"]
    assert rows_of(store) == before


def test_a_schedule_that_has_ended_runs_no_more_on_request(client: TestClient) -> None:
    client.post("/schedules", json=REPORT)
    client.delete(PATH)
    assert client.post(f"{PATH}/run").status_code == 409


def test_a_replay_is_a_run_of_its_own_with_the_version_and_params_of_the_first(ended_run: TestClient) -> None:
    ended_run.patch(PATH, json={"params": {"v": 2}}, headers=for_version(1))
    created = ended_run.post(f"/runs/{RUN}/replay", json=WHY, headers={"Rota-Actor": "ops"})
    run = body_of(created, status=201)
    expected = {"run_id": f"{RUN}.r1", "replay_of": RUN, "origin": "replay", "version": 1, "state": "queued"}
    assert run | expected == run
    assert isinstance(run["made_by"], dict)
    assert run["made_by"]["params"] == {"v": 1}
    assert body_of(ended_run.get(created.headers["location"])) == run
    event = items_of(ended_run.get(f"{PATH}/history"))[0]
    assert (event["action"], event["actor"], event["reason"]) == ("run.replay", "ops", WHY["reason"])


def test_replays_are_numbered_and_a_key_makes_one(ended_run: TestClient) -> None:
    first = ended_run.post(f"/runs/{RUN}/replay", json=WHY, headers=KEY)
    again = ended_run.post(f"/runs/{RUN}/replay", json=WHY, headers=KEY)
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.headers["location"] == first.headers["location"] == f"/runs/{RUN}.r1"
    second = body_of(ended_run.post(f"/runs/{RUN}/replay", json=WHY), status=201)
    assert second["run_id"] == f"{RUN}.r2"
    ended_run.post(f"/runs/{RUN}.r1/cancel")
    of_a_replay = body_of(ended_run.post(f"/runs/{RUN}.r1/replay", json=WHY), status=201)
    assert (of_a_replay["run_id"], of_a_replay["replay_of"]) == (f"{RUN}.r3", RUN)
    assert actions_of(ended_run).count("run.replay") == 3


def test_a_run_that_has_not_ended_is_not_replayed(ended_run: TestClient, store: MemoryStore) -> None:
    ended_run.post(f"/runs/{RUN}/replay", json=WHY)
    before = rows_of(store)
    assert ended_run.post(f"/runs/{RUN}.r1/replay", json=WHY).status_code == 409
    assert rows_of(store) == before


def test_a_replay_says_why(ended_run: TestClient, store: MemoryStore) -> None:
    before = rows_of(store)
    assert fields_of(ended_run.post(f"/runs/{RUN}/replay", json={})) == ["reason"]
    assert rows_of(store) == before


@pytest.mark.parametrize("id_", ["nothing", "%00", "a" * 3000, "%ff"])
def test_what_does_not_exist_is_not_replayed(client: TestClient, id_: str) -> None:
    assert client.post(f"/runs/{id_}/replay", json=WHY, headers=KEY).status_code == 404
