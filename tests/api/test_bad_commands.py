"""A command with something wrong in its body or its address is a 422 that names it, and nothing is done."""

import pytest
from starlette.testclient import TestClient

from rota.store.memory import MemoryStore
from tests.api.conftest import REPORT, Body, fields_of, rows_of


@pytest.mark.parametrize(
    ("path", "body", "fields"),
    [
        ("/schedules/report-7/pause", {"reason": 5}, ["reason"]),
        ("/schedules/report-7/pause", {"reason": ""}, ["reason"]),
        ("/schedules/report-7/pause", {"reason": "x" * 1_001}, ["reason"]),
        ("/schedules/report-7/pause", {"apply_overdue": True}, ["apply_overdue"]),
        ("/schedules/report-7/resume", {"apply_overdue": "yes", "why": 1}, ["why", "apply_overdue"]),
        ("/schedules/report-7/resume", {"apply_overdue": None}, ["apply_overdue"]),
        ("/runs/x/cancel", {"because": "of that"}, ["because"]),
        ("/runs/x/replay", {"reason": ""}, ["reason"]),
        ("/runs/x/replay", {"reason": None}, ["reason"]),
        ("/runs/x/replay", {"why": "x"}, ["why"]),
        ("/schedules/report-7/run", {"reason": 5, "params": {}}, ["params", "reason"]),
        ("/schedules/report-7/run", {"reason": 5}, ["reason"]),
        ("/schedules/report-7/plan", {"until": 5, "reason": "", "x": 1}, ["x", "until", "reason"]),
        ("/schedules/report-7/plan", {}, ["until"]),
        ("/schedules/report-7/plan", {"until": "soon"}, ["until"]),
        ("/schedules/report-7/plan", {"until": "2026-01-10T12:00:00Z"}, ["until"]),
        ("/schedules/report-7/plan", {"until": "2026-03-08T02:30"}, ["until"]),
        ("/schedules/report-7/plan", {"until": "9999-12-31T23:59:59Z"}, ["until"]),
        ("/schedules/report-7/occurrences/2026-01-12T09:00/skip", {"to": "x"}, ["to"]),
        ("/schedules/report-7/occurrences/monday/skip", {}, ["scheduled_at"]),
        ("/schedules/report-7/occurrences/0001-01-01T00:00:00Z/skip", {}, ["scheduled_at"]),
        ("/schedules/report-7/occurrences/2026-13-12T09:00/skip", {}, ["scheduled_at"]),
        ("/schedules/report-7/occurrences/20261312T090000Z/skip", {}, ["scheduled_at"]),
        ("/schedules/report-7/occurrences/0001-01-01T00:00/skip", {}, ["scheduled_at"]),
        ("/schedules/report-7/occurrences/9998-12-31T23:59/skip", {}, ["scheduled_at"]),
        ("/schedules/report-7/occurrences/9999-01-01T00:00/skip", {}, ["scheduled_at"]),
        ("/schedules/report-7/occurrences/2026-01-12T09:00/move", {"reason": None}, ["to"]),
        ("/schedules/report-7/occurrences/2026-01-12T09:00/move", {"to": [], "x": 1}, ["x", "to"]),
        ("/schedules/report-7/occurrences/2026-01-12T09:00/move", {"to": "2026-01-10T11:59:59Z"}, ["to"]),
        ("/schedules/report-7/backfill", {"spacing": "soon"}, ["from", "until", "spacing"]),
        ("/schedules/report-7/backfill", {"from": 1, "until": 2, "x": 1}, ["x", "from", "until"]),
        (
            "/schedules/report-7/backfill",
            {"from": "2026-01-09T00:00", "until": "2026-01-05T00:00"},
            ["from"],
        ),
        (
            "/schedules/report-7/backfill",
            {"from": "2026-01-05T00:00", "until": "2026-01-11T00:00"},
            ["until"],
        ),
        (
            "/schedules/report-7/backfill",
            {"from": "1969-12-31T23:59:59Z", "until": "2026-01-09T00:00"},
            ["from"],
        ),
        (
            "/schedules/report-7/backfill",
            {"from": "2026-01-05T00:00", "until": "2026-01-09T00:00", "spacing": "PT0S"},
            ["spacing"],
        ),
        ("/zones/apply", {"reason": 5}, ["reason"]),
    ],
)
def test_a_bad_command_names_its_fields(
    client: TestClient, store: MemoryStore, path: str, body: Body, fields: list[str]
) -> None:
    client.post("/schedules", json=REPORT)
    before = rows_of(store)
    assert fields_of(client.post(path, json=body)) == fields
    assert rows_of(store) == before
