"""The partitions over HTTP: who holds them, how late admission is, and how much waits."""

from datetime import timedelta
from typing import cast

import pytest
from starlette.testclient import TestClient

from rota.api import answer_shapes
from rota.domain.identity import ScheduleId
from rota.service import partitions
from rota.service.context import Context
from rota.store.memory import MemoryStore
from rota.testing.clock import ManualClock
from tests.api.conftest import Body, WorkOff, body_of, fields_of, report

HOURLY = report(recurrence={"cron": "0 * * * *"})


def overview(client: TestClient) -> Body:
    answered = client.get("/partitions")
    answer_shapes.PartitionOverview.model_validate_json(answered.content)
    return body_of(answered)


def partition_of(client: TestClient, number: int) -> Body:
    return cast("list[Body]", overview(client)["partitions"])[number]


def test_without_a_dispatcher_nothing_is_held(client: TestClient) -> None:
    nothing = {"count": 0, "is_at_least": False}
    told = overview(client)
    assert (told["at"], told["dispatchers"]) == ("2026-01-10T12:00:00Z", [])
    assert told["totals"] == {
        "partitions": 4,
        "held": 0,
        "lag_ms": 0,
        "due": nothing,
        "planned_due": nothing,
    }
    assert told["partitions"] == [
        {
            "partition": number,
            "owner": None,
            "epoch": 0,
            "expires_at": None,
            "is_held": False,
            "checkpoint": None,
            "lag_ms": 0,
            "due": nothing,
            "planned_due": nothing,
        }
        for number in range(4)
    ]


def test_a_holder_is_told_with_its_lease_and_how_far_it_has_come(
    client: TestClient, clock: ManualClock, work_off: WorkOff
) -> None:
    work_off()
    clock.advance(timedelta(seconds=6))
    work_off()
    told = partition_of(client, 2)
    assert told | {"owner": "d1", "epoch": 1, "is_held": True} == told
    assert (told["expires_at"], told["checkpoint"]) == ("2026-01-10T12:00:21Z", "2026-01-10T12:00:00Z")
    assert overview(client)["dispatchers"] == [{"owner": "d1", "partitions": 4}]
    clock.advance(timedelta(seconds=15))
    told = overview(client)
    assert told["dispatchers"] == []
    assert cast("Body", told["totals"])["held"] == 0
    assert partition_of(client, 2)["owner"] == "d1", "who held it last is still told"


def test_partitions_are_counted_for_the_dispatcher_that_holds_them(
    client: TestClient, store: MemoryStore, clock: ManualClock
) -> None:
    for owner, limit in (("b", 1), ("a", 2), ("c", 0)):
        store.commit_presence(owner, now=clock.now(), ttl=timedelta(seconds=15))
        store.commit_acquisitions(owner, held=[], now=clock.now(), ttl=timedelta(seconds=15), limit=limit)
    assert overview(client)["dispatchers"] == [
        {"owner": "a", "partitions": 2},
        {"owner": "b", "partitions": 1},
        {"owner": "c", "partitions": 0},
    ]


def test_what_is_due_is_counted_and_its_lag_is_that_of_the_earliest(
    client: TestClient, context: Context, clock: ManualClock
) -> None:
    for number in range(9):
        client.post("/schedules", json=HOURLY | {"id": f"r{number}"})
    client.post("/schedules/r0/plan", json={"until": "2026-01-10T14:00:00Z"})
    clock.advance(timedelta(hours=1))
    assert cast("Body", overview(client)["totals"])["lag_ms"] == 0
    clock.advance(timedelta(hours=1, milliseconds=250))
    told = overview(client)
    assert told["totals"] == {
        "partitions": 4,
        "held": 0,
        "lag_ms": 3_600_250,
        "due": {"count": 9, "is_at_least": False},
        "planned_due": {"count": 2, "is_at_least": False},
    }
    record = context.store.get_schedule(ScheduleId("r0"))
    assert record is not None
    assert partition_of(client, record.schedule.partition)["lag_ms"] == 3_600_250


@pytest.mark.parametrize(("each", "in_all"), [(2, 1_000), (1_000, 8)])
def test_counting_stops_at_a_limit_and_says_so(
    client: TestClient, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, each: int, in_all: int
) -> None:
    for number in range(40):
        client.post("/schedules", json=HOURLY | {"id": f"r{number}"})
    clock.advance(timedelta(hours=1))
    monkeypatch.setattr(partitions, "COUNTED_MAX", each)
    monkeypatch.setattr(partitions, "COUNTED_IN_ALL_MAX", in_all)
    told = overview(client)
    assert cast("Body", told["totals"])["due"] == {"count": 8, "is_at_least": True}
    for number in range(4):
        assert partition_of(client, number)["due"] == {"count": 2, "is_at_least": True}


def test_an_unknown_parameter_is_named(client: TestClient) -> None:
    assert fields_of(client.get("/partitions?limit=3")) == ["limit"]
