"""What a schedule was, over HTTP: its versions and their windows."""

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import REPORT, body_of, for_version, items_of

PATH = "/schedules/report-7"


@pytest.fixture
def edited(client: TestClient) -> TestClient:
    """A schedule of three versions."""
    client.post("/schedules", json=REPORT)
    for number, zone in enumerate(["Europe/London", "Asia/Tokyo"], start=1):
        patch = {"timezone": zone, "reason": f"to {zone}"}
        client.patch(PATH, json=patch, headers=for_version(number) | {"Rota-Actor": "ops"})
    return client


def test_versions_are_listed_latest_first_with_windows_that_touch(edited: TestClient) -> None:
    versions = items_of(edited.get(f"{PATH}/versions"))
    assert [(item["version"], item["timezone"]) for item in versions] == [
        (3, "Asia/Tokyo"),
        (2, "Europe/London"),
        (1, "America/New_York"),
    ]
    assert [(item["actor"], item["reason"]) for item in versions] == [
        ("ops", "to Asia/Tokyo"),
        ("ops", "to Europe/London"),
        (None, None),
    ]
    assert versions[0]["effective_until"] is None
    assert [item["effective_until"] for item in versions[1:]] == [
        item["effective_from"] for item in versions[:-1]
    ]


def test_a_version_is_shown_as_it_is_listed(edited: TestClient) -> None:
    for item in items_of(edited.get(f"{PATH}/versions")):
        assert body_of(edited.get(f"{PATH}/versions/{item['version']}")) == item


@pytest.mark.parametrize(
    "number", ["0", "4", "01", "-1", "1.0", "x", "%00", "%D9%A3", "9" * 5000, "1e0", "+1"]
)
def test_a_version_that_there_is_not_is_not_found(edited: TestClient, number: str) -> None:
    assert body_of(edited.get(f"{PATH}/versions/{number}"), status=404)["errors"] == []


def test_every_edit_is_in_the_history(edited: TestClient) -> None:
    details = [event["details"] for event in items_of(edited.get(f"{PATH}/history"))]
    assert [detail.get("version") for detail in details if isinstance(detail, dict)] == [3, 2, None]
