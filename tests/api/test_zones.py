"""Updates of the tz data over HTTP: what differs is told, and taken up on request."""

from dataclasses import replace

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from rota.api import answer_shapes
from rota.cadences import Cadences
from rota.domain.zone import Zone
from rota.service.context import Context
from rota.store.memory import MemoryStore
from rota.zones import Zones
from tests.api.conftest import JOB, REPORT, body_of, fields_of, items_of, report, rows_of

WHERE = "America/New_York"


class OtherZones(Zones):
    """The zones of another release, in which New York is an hour ahead."""

    def release(self) -> str:
        return self.named

    def load(self, name: str) -> Zone:
        zone = super().load(name)
        return Zone(name, lambda seconds: zone.offset_seconds_at(seconds) + 3600) if name == WHERE else zone

    named = "2025a"


class NewerZones(OtherZones):
    named = "2099z"


@pytest.fixture(params=[OtherZones])
def outdated(
    client: TestClient, shared_api: FastAPI, context: Context, request: pytest.FixtureRequest
) -> TestClient:
    """Schedules that were computed with the rules of another release."""
    zones = request.param()
    shared_api.state.context = replace(context, zones=zones, cadences=Cadences(zones))
    client.post("/schedules", json=REPORT)
    client.post("/schedules", json=report(id="elapsed", recurrence={"every": "PT1H"}))
    client.post("/schedules", json=report(id="elsewhere", timezone="UTC"))
    shared_api.state.context = context
    return client


def test_where_nothing_differs_there_is_nothing_to_do(client: TestClient, context: Context) -> None:
    client.post("/schedules", json=REPORT)
    release = context.zones.release()
    assert body_of(client.get("/zones")) == {"tzdata": release, "zones": []}
    done = body_of(client.post("/zones/apply"))
    assert done | {"zones": [], "counts": {"version": 0, "restamped": 0, "failed": 0}} == done


def test_zones_that_differ_are_listed_with_what_depends_on_them(
    outdated: TestClient, context: Context
) -> None:
    assert body_of(outdated.get("/zones"))["zones"] == [
        {
            "timezone": WHERE,
            "stored_tzdata": "2025a",
            "tzdata": context.zones.release(),
            "is_newer_here": True,
            "schedules": 2,
            "schedules_changed": 1,
        }
    ]


def test_until_they_are_taken_up_a_schedule_waits_and_readiness_warns(outdated: TestClient) -> None:
    refused = outdated.get("/schedules/report-7/upcoming")
    assert body_of(refused, status=409)["type"] == "urn:rota:problem:zone-rules-differ"
    ready = body_of(outdated.get("/health/ready"))
    assert isinstance(ready["zones"], dict)
    assert ready["zones"]["differing"] == [{"timezone": WHERE, "stored_tzdata": "2025a"}]
    assert isinstance(ready["warnings"], list)
    assert ready["warnings"][-1].startswith(f"tzdata: schedules in {WHERE} were computed with other rules")


def test_a_dry_run_tells_the_version_that_would_be_made_and_writes_nothing(
    outdated: TestClient, store: MemoryStore
) -> None:
    before = rows_of(store)
    told = body_of(outdated.post("/zones/apply?dry_run=true"))
    assert rows_of(store) == before
    assert (told["dry_run"], told["counts"]) == (True, {"version": 1, "restamped": 1, "failed": 0})
    assert isinstance(told["schedules"], list)
    by_id = {item["schedule_id"]: item for item in told["schedules"]}
    assert by_id["elapsed"]["outcome"] == "restamped"
    assert by_id["report-7"]["next"][0]["scheduled_at"] == "2026-01-12T14:00:00Z"


def test_a_schedule_whose_instants_change_gets_a_version_and_the_others_a_stamp(
    outdated: TestClient, context: Context
) -> None:
    done = body_of(outdated.post("/zones/apply", json={"reason": "new law"}, headers={"Rota-Actor": "ops"}))
    assert done["schedules"] == [
        {"schedule_id": "elapsed", "outcome": "restamped"},
        {"schedule_id": "report-7", "version": 2, "outcome": "version"},
    ]
    version = body_of(outdated.get("/schedules/report-7/versions/2"))
    assert (version["tzdata"], version["reason"], version["actor"]) == (
        context.zones.release(),
        "new law",
        "ops",
    )
    assert body_of(outdated.get("/schedules/elapsed")) | {
        "version": 1,
        "tzdata": context.zones.release(),
    } == body_of(outdated.get("/schedules/elapsed"))
    assert items_of(outdated.get("/schedules/elapsed/history"))[0]["action"] == "schedule.restamp"
    again = body_of(outdated.post("/zones/apply"))
    assert (again["counts"], again["schedules"]) == ({"version": 0, "restamped": 0, "failed": 0}, [])
    assert body_of(outdated.get("/health/ready"))["zones"] == {
        "tzdata": context.zones.release(),
        "differing": [],
    }


@pytest.mark.parametrize("outdated", [NewerZones], indirect=True)
def test_an_older_release_is_not_taken_up(outdated: TestClient, store: MemoryStore) -> None:
    before = rows_of(store)
    done = body_of(outdated.post("/zones/apply"))
    assert isinstance(done["zones"], list)
    assert [(zone["timezone"], zone["is_newer_here"]) for zone in done["zones"]] == [(WHERE, False)]
    assert done["schedules"] == []
    assert rows_of(store) == before


def test_every_answer_has_the_shape_that_it_is_described_with(outdated: TestClient) -> None:
    answer_shapes.Readiness.model_validate_json(outdated.get("/health/ready").content)
    answer_shapes.ZoneCheck.model_validate_json(outdated.get("/zones").content)
    for query in ("?dry_run=true", ""):
        answered = outdated.post(f"/zones/apply{query}")
        answer_shapes.ZoneUpdate.model_validate_json(answered.content)


def test_a_bad_command_names_its_fields(outdated: TestClient) -> None:
    assert fields_of(outdated.post("/zones/apply", json={"zones": [JOB]})) == ["zones"]
