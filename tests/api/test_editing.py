"""Edits over HTTP: a merge-patch makes the next version, which says what it keeps, and a dry run tells it before."""

from datetime import timedelta

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
MEDIA_TYPES = [
    "application/json",
    "application/merge-patch+json",
    "Application/Merge-Patch+JSON; charset=utf-8",
]


def edit(client: TestClient, version: int, **patch: object) -> Body:
    """The schedule after an edit of that version."""
    return body_of(client.patch(PATH, json=patch, headers=for_version(version)))


@pytest.fixture
def daily(client: TestClient, clock: ManualClock, work_off: WorkOff) -> TestClient:
    """A daily report at nine in New York, which ran an hour ago."""
    client.post("/schedules", json=report(recurrence={"cron": "0 9 * * *"}))
    clock.advance(timedelta(hours=3))
    work_off()
    return client


@pytest.mark.parametrize("media_type", MEDIA_TYPES)
def test_an_edit_makes_the_next_version_and_a_new_etag(client: TestClient, media_type: str) -> None:
    client.post("/schedules", json=REPORT)
    edited = client.patch(
        PATH,
        content=b'{"timezone": "Europe/London"}',
        headers={"content-type": media_type} | for_version(1),
    )
    shown = client.get(PATH)
    assert edited.headers["etag"] == shown.headers["etag"] == '"2"'
    assert body_of(edited) == body_of(shown)
    expected = {"version": 2, "latest_version": 2, "pending": None, "next_due": "2026-01-12T09:00:00Z"}
    assert body_of(edited) | expected == body_of(edited)


def test_a_patch_changes_the_members_that_it_names_and_no_others(client: TestClient) -> None:
    overdue = {"policy": "latest_only", "grace": "PT5M"}
    given = report(
        params={"a": {"b": 1, "c": 2}, "d": 3}, labels={"x": "1", "y": "2"}, overdue=overdue, gap="forward"
    )
    before = body_of(client.post("/schedules", json=given), status=201)
    after = edit(
        client,
        1,
        params={"a": {"b": None, "e": 5}, "d": [None]},
        labels={"x": None, "z": "3"},
        overdue={"grace": "PT9M"},
        gap=None,
        recurrence={"every": "PT1H", "anchor": "2026-01-10T00:00:00Z"},
    )
    assert after["params"] == {"a": {"c": 2, "e": 5}, "d": [None]}
    assert after["labels"] == {"y": "2", "z": "3"}
    assert after["overdue"] == {"policy": "latest_only", "grace": "PT9M"}
    assert after["recurrence"] == {"every": "PT1H", "anchor": "2026-01-10T00:00:00Z"}
    assert (after["gap"], after["timezone"], after["job"]) == ("skip", before["timezone"], before["job"])
    assert edit(client, 2, overdue={"policy": "expire", "deadline": "PT1H"})["overdue"] == {
        "policy": "expire",
        "deadline": "PT1H",
    }
    assert edit(client, 3, overdue=None, params=None, labels=None) | {"params": {}, "labels": {}} == body_of(
        client.get(PATH)
    )


@pytest.mark.parametrize(
    "patch",
    [
        {},
        {"reason": "nothing"},
        {"timezone": "America/New_York"},
        {"recurrence": {"cron": "0 9 * * 1-5"}, "params": {}, "labels": {}, "overdue": None},
        {"params": {"gone": None}, "labels": {"gone": None}},
    ],
)
def test_a_patch_that_changes_nothing_writes_nothing(
    client: TestClient, store: MemoryStore, patch: Body
) -> None:
    client.post("/schedules", json=REPORT)
    before = rows_of(store)
    unchanged = client.patch(PATH, json=patch, headers=for_version(1))
    assert (unchanged.status_code, unchanged.headers["etag"]) == (200, '"1"')
    assert rows_of(store) == before


def test_a_change_of_labels_alone_makes_no_version(client: TestClient) -> None:
    client.post("/schedules", json=REPORT)
    assert edit(client, 1, labels={"customer": "acme"}) | {"latest_version": 1} == body_of(client.get(PATH))
    assert [item["id"] for item in items_of(client.get("/schedules?label=customer=acme"))] == ["report-7"]
    assert actions_of(client) == ["schedule.edit", "schedule.create"]


@pytest.mark.parametrize(
    ("patch", "fields"),
    [
        ({"id": "other", "job": "other", "cron": "* * * * *"}, ["id", "job", "cron"]),
        ({"status": "paused", "version": 3}, ["status", "version"]),
        ({"timezone": None}, ["timezone"]),
        ({"timezone": "Europe/Lundon"}, ["timezone"]),
        ({"recurrence": None}, ["recurrence"]),
        ({"recurrence": {}}, ["recurrence"]),
        ({"recurrence": {"cron": "0 0 30 2 *"}}, ["recurrence.cron"]),
        ({"recurrence": {"at": "2026-01-10T06:59"}}, ["recurrence.at"]),
        ({"overdue": {"deadline": "PT5M"}}, ["overdue.policy"]),
        ({"overdue": {"policy": "expire", "deadline": "soon"}}, ["overdue.deadline"]),
        ({"overdue": {"maxage": None}}, ["overdue.maxage"]),
        ({"labels": {"a": 5}}, ["labels.a"]),
        ({"labels": {"a": {"b": None}}}, ["labels.a"]),
        ({"params": [1]}, ["params"]),
        ({"period": "week"}, ["period"]),
        ({"ends_at": "2025-01-01T00:00:00Z"}, ["ends_at"]),
        (
            {"boundary": "later", "replaces_pending": None, "reason": 5},
            ["reason", "boundary", "replaces_pending"],
        ),
        ({"boundary": "effective_from"}, ["effective_from"]),
        ({"boundary": "now", "effective_from": "2026-01-11T00:00:00Z"}, ["boundary"]),
        ({"effective_from": "2026-01-11T00:00"}, ["effective_from"]),
        ({"effective_from": "2026-01-10T12:00:00Z", "timezone": "UTC"}, ["effective_from"]),
    ],
)
def test_a_bad_patch_names_its_fields_and_changes_nothing(
    client: TestClient, store: MemoryStore, patch: Body, fields: list[str]
) -> None:
    client.post("/schedules", json=REPORT)
    before = rows_of(store)
    for query in ("", "?dry_run=true"):
        assert fields_of(client.patch(PATH + query, json=patch, headers=for_version(1))) == fields
    assert rows_of(store) == before


def test_params_over_the_limit_of_the_job_are_too_large(client: TestClient) -> None:
    client.post("/schedules", json=REPORT)
    patch = {"params": {"text": "x" * 64 * 1024}}
    assert fields_of(client.patch(PATH, json=patch, headers=for_version(1)), status=413) == ["params"]


def test_a_repeated_edit_fails_and_is_done_one_time(client: TestClient) -> None:
    client.post("/schedules", json=REPORT)
    edit(client, 1, timezone="Europe/London")
    again = client.patch(PATH, json={"timezone": "Europe/London"}, headers=for_version(1))
    assert again.status_code == 412
    assert body_of(client.get(PATH))["latest_version"] == 2


def test_the_history_says_who_edited_what_and_why(client: TestClient) -> None:
    client.post("/schedules", json=REPORT)
    patch = {"timezone": "Europe/London", "labels": {"a": "1"}, "reason": "they moved"}
    client.patch(PATH, json=patch, headers=for_version(1) | {"Rota-Actor": "ops"})
    event = items_of(client.get(f"{PATH}/history"))[0]
    assert (event["action"], event["actor"], event["reason"]) == ("schedule.edit", "ops", "they moved")
    assert event["details"] == {
        "version": 2,
        "boundary": "keep_period",
        "effective_from": "2026-01-10T12:00:02Z",
        "changed": {
            "timezone": {"from": "America/New_York", "to": "Europe/London"},
            "labels": {"from": {}, "to": {"a": "1"}},
        },
        "carried": [],
        "replaced": None,
    }


def test_a_dry_run_tells_what_the_edit_then_does_and_writes_nothing(
    daily: TestClient, store: MemoryStore
) -> None:
    patch = {"timezone": "America/Los_Angeles"}
    before = rows_of(store)
    told = body_of(daily.patch(f"{PATH}?dry_run=true", json=patch, headers=for_version(1)))
    assert rows_of(store) == before
    assert (told["dry_run"], told["operation"], told["version"], told["is_pending"]) == (
        True,
        "edit",
        2,
        False,
    )
    assert told["changed"] == {"timezone": {"from": "America/New_York", "to": "America/Los_Angeles"}}
    edit(daily, 1, **patch)
    upcoming = body_of(daily.get(f"{PATH}/upcoming?count=5"))
    assert (told["next"], told["suppressed"]) == (upcoming["occurrences"], upcoming["suppressed"])


def test_a_daily_report_that_ran_does_not_run_again_on_its_day(
    daily: TestClient, clock: ManualClock, work_off: WorkOff
) -> None:
    edit(daily, 1, timezone="America/Los_Angeles")
    suppressed = upcoming_of(daily, "suppressed")[0]
    assert suppressed["scheduled_at"] == "2026-01-10T17:00:00Z"
    assert suppressed["note"] == "day:2026-01-10 is used by run report-7.1.20260110T140000Z"
    clock.advance(timedelta(hours=3))
    work_off()
    skip, run = items_of(daily.get(f"{PATH}/occurrences"))
    assert (skip["kind"], skip["reason"], skip["version"]) == ("skip", "period_used", 2)
    assert run["version"] == 1


def test_with_the_boundary_now_the_new_version_begins_anew(daily: TestClient) -> None:
    edit(daily, 1, timezone="America/Los_Angeles", boundary="now")
    assert upcoming_of(daily, "suppressed") == []
    assert upcoming_of(daily, "occurrences")[0]["period_key"] == "day:2026-01-10#2"


def test_a_version_of_a_later_instant_is_pending_until_then(
    client: TestClient, clock: ManualClock, work_off: WorkOff
) -> None:
    client.post("/schedules", json=REPORT)
    pending = edit(
        client, 1, timezone="UTC", effective_from="2026-01-14T00:00:00Z", boundary="effective_from"
    )
    assert (pending["version"], pending["latest_version"]) == (1, 2)
    assert pending["effective_from"] == "2026-01-10T12:00:01Z"
    assert pending["pending"] == items_of(client.get(f"{PATH}/versions"))[0]
    assert pending["pending"]["effective_from"] == "2026-01-14T00:00:00Z"
    refused = client.patch(PATH, json={"timezone": "Europe/London"}, headers=for_version(2))
    assert refused.status_code == 409
    assert "replaces_pending" in refused.json()["detail"]
    planned = client.post(f"{PATH}/plan", json={"until": "2026-01-15T00:00:00Z"})
    assert fields_of(planned, status=409) == ["until"]
    told = body_of(
        client.patch(
            f"{PATH}?dry_run=true",
            json={"timezone": "Europe/London", "replaces_pending": True},
            headers=for_version(2),
        )
    )
    assert (told["replaces"], told["changes_version"], told["period"]) == (2, 2, "day")
    assert told["effective_from"] == "2026-01-14T00:00:00Z"
    clock.advance(timedelta(days=4, hours=1))
    work_off()
    assert body_of(client.get(PATH)) | {"version": 2, "pending": None} == body_of(client.get(PATH))


def test_a_pending_version_is_replaced_where_the_edit_says_so(client: TestClient) -> None:
    client.post("/schedules", json=REPORT)
    edit(client, 1, timezone="UTC", effective_from="2026-01-14T00:00:00Z")
    replaced = edit(client, 2, timezone="Europe/London", replaces_pending=True)
    assert replaced["version"] == 1
    assert isinstance(replaced["pending"], dict)
    assert (replaced["pending"]["version"], replaced["pending"]["timezone"]) == (3, "Europe/London")
    versions = items_of(client.get(f"{PATH}/versions"))
    assert versions[0]["effective_from"] == "2026-01-14T00:00:00Z"
    assert versions[1]["effective_from"] == versions[1]["effective_until"] == "2026-01-14T00:00:00Z"


def test_a_replacing_edit_takes_over_at_once_where_it_says_so(client: TestClient) -> None:
    client.post("/schedules", json=REPORT)
    edit(client, 1, timezone="UTC", effective_from="2026-01-14T00:00:00Z")
    replaced = edit(client, 2, timezone="Europe/London", replaces_pending=True, at_once=True)
    assert (replaced["version"], replaced["timezone"], replaced["pending"]) == (3, "Europe/London", None)


def test_a_schedule_that_has_ended_is_not_edited(client: TestClient) -> None:
    client.post("/schedules", json=REPORT)
    client.delete(PATH)
    assert client.patch(PATH, json={"timezone": "UTC"}, headers=for_version(1)).status_code == 409


def test_a_planned_one_time_schedule_is_moved_and_not_edited(client: TestClient) -> None:
    client.post("/schedules", json=report(recurrence={"at": "2026-02-01T09:00"}))
    client.post(f"{PATH}/plan", json={"until": "2026-03-01T00:00:00Z"})
    patch = {"recurrence": {"at": "2026-02-02T09:00"}}
    refused = client.patch(PATH, json=patch, headers=for_version(1))
    assert fields_of(refused, status=409) == ["recurrence"]
    move = refused.json()["detail"].partition("POST ")[2].rstrip(".")
    moved = body_of(client.post(move, json={"to": "2026-02-02T09:00"}))
    assert (moved["scheduled_at"], moved["due_at"]) == ("2026-02-01T14:00:00Z", "2026-02-02T14:00:00Z")
