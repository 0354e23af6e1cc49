"""`If-Match` on an edit: needed, well formed, and of the latest version."""

import pytest
from starlette.testclient import TestClient

from rota.store.memory import MemoryStore
from rota.store.port import ChangeOutcome, Fence, ScheduleChange
from tests.api.conftest import REPORT, actions_of, body_of, fields_of, for_version, rows_of

EDIT = {"timezone": "Europe/London"}
PATH = "/schedules/report-7"


def edit(client: TestClient, *lines: str | bytes, query: str = "") -> object:
    """The answer to an edit with these lines of `If-Match`, as its status and its type."""
    headers = [(b"If-Match", line if isinstance(line, bytes) else line.encode("latin-1")) for line in lines]
    answered = client.patch(PATH + query, json=EDIT, headers=headers)
    return answered.status_code, answered.json().get("type", "").removeprefix("urn:rota:problem:")


@pytest.mark.parametrize(
    "lines",
    [
        ['"1"'],
        ['W/"1"'],
        ["*"],
        ['"7", "1"'],
        ['"7","1","8"'],
        ['W/"7",\tW/"1"'],
        ['"a,b", "1"'],
        [',, "1",'],
        ['"7"', '"1"'],
        ['"é", "1"'],
    ],
)
def test_an_edit_for_the_latest_version_is_taken(client: TestClient, lines: list[str]) -> None:
    client.post("/schedules", json=REPORT)
    assert edit(client, *lines) == (200, "")
    assert body_of(client.get(PATH))["timezone"] == "Europe/London"


@pytest.mark.parametrize("line", ['"2"', 'W/"0"', '""', '"01"', '"1.0"', '"2", "3"', '"a,1,b"', '"é"', '"*"'])
def test_an_edit_for_another_version_fails_and_changes_nothing(
    client: TestClient, store: MemoryStore, line: str
) -> None:
    client.post("/schedules", json=REPORT)
    before = rows_of(store)
    assert edit(client, line) == edit(client, line, query="?dry_run=true") == (412, "precondition-failed")
    assert rows_of(store) == before


@pytest.mark.parametrize(
    "lines",
    [
        ["1"],
        [""],
        [","],
        ['"1'],
        ['1"'],
        ["'1'"],
        ['w/"1"'],
        ['W/ "1"'],
        ['"1" "2"'],
        ['*, "1"'],
        ['"1", *'],
        ['"1"', "*"],
        ["**"],
        ['"1 "'],
        ['"1"; "2"'],
        [" " * 30_000 + "x"],
        ['"1",' * 8_000 + "1"],
    ],
)
def test_a_malformed_precondition_is_told_apart(
    client: TestClient, store: MemoryStore, lines: list[str]
) -> None:
    client.post("/schedules", json=REPORT)
    before = rows_of(store)
    assert edit(client, *lines) == (400, "malformed-precondition")
    assert rows_of(store) == before


def test_an_edit_without_a_precondition_is_told_what_to_send(client: TestClient, store: MemoryStore) -> None:
    client.post("/schedules", json=REPORT)
    before = rows_of(store)
    for query in ("", "?dry_run=true"):
        refused = client.patch(PATH + query, json=EDIT)
        assert fields_of(refused, status=428) == ["If-Match"]
        assert "ETag" in refused.json()["detail"]
    assert rows_of(store) == before


def test_a_failed_precondition_names_the_latest_version(client: TestClient) -> None:
    client.post("/schedules", json=REPORT)
    client.patch(PATH, json=EDIT, headers=for_version(1))
    refused = client.patch(PATH, json={"params": {"a": 1}}, headers=for_version(1))
    assert fields_of(refused, status=412) == ["If-Match"]
    assert '"2"' in refused.json()["detail"]


def test_what_is_not_there_is_not_found_whatever_the_precondition(client: TestClient) -> None:
    for headers in ({"If-Match": "*"}, for_version(1)):
        assert client.patch(PATH, json=EDIT, headers=headers).status_code == 404


def test_neither_a_pause_nor_a_run_makes_an_edit_fail(client: TestClient) -> None:
    client.post("/schedules", json=REPORT)
    client.post(f"{PATH}/pause")
    client.post(f"{PATH}/run")
    client.post(f"{PATH}/plan", json={"until": "2026-01-13T00:00:00Z"})
    assert edit(client, '"1"') == (200, "")


def test_an_edit_that_is_overtaken_fails_by_its_precondition(
    client: TestClient, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.post("/schedules", json=REPORT)
    commit = store.commit_change
    overtaking: list[int] = []

    def commit_after_another(change: ScheduleChange, *, fence: Fence | None = None) -> ChangeOutcome:
        if not overtaking:
            overtaking.append(1)
            client.patch(PATH, json={"params": {"other": 1}}, headers=for_version(1))
        return commit(change, fence=fence)

    monkeypatch.setattr(store, "commit_change", commit_after_another)
    assert edit(client, '"1"') == (412, "precondition-failed")
    assert body_of(client.get(PATH))["params"] == {"other": 1}
    assert actions_of(client) == ["schedule.edit", "schedule.create"]
