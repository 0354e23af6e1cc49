"""Lists in pages: every item is on one page, and a cursor that is not ours is refused."""

import base64
from datetime import timedelta

import pytest
from starlette.testclient import TestClient

from rota.domain.json_text import encode_json
from rota.testing.clock import ManualClock
from tests.api.conftest import Body, WorkOff, body_of, fields_of, for_version, report

POLICY = {"policy": "catch_up_all", "max_age": None}


@pytest.fixture
def full(client: TestClient, clock: ManualClock, work_off: WorkOff) -> TestClient:
    """Five jobs, and five schedules with three runs each, all at the same instants."""
    for id_ in "abcde":
        client.put(f"/jobs/{id_}", json={})
        client.post("/schedules", json=report(id=id_, recurrence={"cron": "0 * * * *"}, overdue=POLICY))
    clock.advance(timedelta(hours=3))
    work_off()
    for number in (1, 2):
        client.patch("/schedules/a", json={"params": {"number": number}}, headers=for_version(number))
    return client


def pages_of(client: TestClient, path: str, *, limit: int) -> list[list[Body]]:
    pages: list[list[Body]] = []
    cursor: object = None
    while not pages or cursor:
        query = f"limit={limit}" + (f"&cursor={cursor}" if cursor else "")
        page = body_of(client.get(f"{path}{'&' if '?' in path else '?'}{query}"))
        assert isinstance(page["items"], list)
        pages.append(page["items"])
        cursor = page["next_cursor"]
        assert len(pages) < 100
    return pages


@pytest.mark.parametrize("limit", [1, 2, 5, 6, 15, 200])
@pytest.mark.parametrize(
    ("path", "count"),
    [
        ("/schedules", 5),
        ("/jobs", 6),
        ("/runs", 15),
        ("/runs?schedule=a", 3),
        ("/schedules/a/occurrences", 3),
        ("/schedules/a/versions", 3),
    ],
)
def test_pages_hold_every_item_in_the_order_of_the_whole_list(
    full: TestClient, path: str, count: int, limit: int
) -> None:
    whole = pages_of(full, path, limit=200)
    pages = pages_of(full, path, limit=limit)
    assert [len(whole), len(whole[0])] == [1, count]
    assert [item for page in pages for item in page] == whole[0]
    assert [len(page) for page in pages[:-1]] == [limit] * (len(pages) - 1)
    assert 0 < len(pages[-1]) <= limit


def test_runs_are_filtered_by_each_of_their_fields(full: TestClient) -> None:
    full.post("/schedules", json=report(id="z", labels={"customer": "acme"}))
    run = body_of(full.get("/runs?limit=1"))["items"]
    assert isinstance(run, list)
    full.post(f"/runs/{run[0]['run_id']}/cancel")

    def count(query: str) -> int:
        return len(pages_of(full, f"/runs?{query}", limit=200)[0])

    assert count("state=cancelled") == 1
    assert count("state=queued") == 14
    assert count("state=queued&schedule=a") + count("state=cancelled&schedule=a") == 3
    assert count("origin=schedule") == 15
    assert count("origin=manual") == 0
    assert count("job=sales_report") == 15
    assert count("job=a") == 0
    assert count("label=customer=acme") == 0


def text_of(value: object) -> str:
    return base64.urlsafe_b64encode(encode_json(value).encode()).decode().rstrip("=")


BROKEN = {
    "empty": "",
    "not base64": "a",
    "not base64url": "++++",
    "not ASCII": "%C3%A9",
    "not JSON": base64.urlsafe_b64encode(b"hello").decode().rstrip("="),
    "not an object": text_of([]),
    "other members": text_of({"before": "a"}),
    "further members": text_of({"after": "a", "instant": "2026-01-10T12:00:00Z", "id": ""}),
    "other types": text_of({"after": 1}),
    "an empty name": text_of({"after": ""}),
    "no instant": text_of({"id": "a", "instant": "yesterday"}),
    "too long": text_of({"after": "a" * 10_000}),
    "a long name": text_of({"after": "a" * 1_000}),
    "padded": text_of({"after": "aa"}) + "==",
    "with spaces": base64.urlsafe_b64encode(b'{ "after": "a"}').decode().rstrip("="),
    "no version": text_of({"before": 0}),
    "the end of versions": text_of({"before": 1}),
    "a flag for a version": text_of({"before": True}),
    "a version that no schedule has": text_of({"before": 10**12}),
    "a text for a version": text_of({"before": "2"}),
    "deep": base64.urlsafe_b64encode(b"[" * 2_000).decode().rstrip("="),
}


@pytest.mark.parametrize(
    "path", ["/schedules", "/jobs", "/runs", "/schedules/a/occurrences", "/schedules/a/versions"]
)
@pytest.mark.parametrize("cursor", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_cursor_is_named(client: TestClient, path: str, cursor: str) -> None:
    client.post("/schedules", json=report(id="a"))
    assert fields_of(client.get(f"{path}?cursor={cursor}")) == ["cursor"]


def test_a_cursor_of_another_list_is_named(full: TestClient) -> None:
    by_name = body_of(full.get("/schedules?limit=1"))["next_cursor"]
    by_instant = body_of(full.get("/runs?limit=1"))["next_cursor"]
    by_number = body_of(full.get("/schedules/a/versions?limit=1"))["next_cursor"]
    assert fields_of(full.get(f"/runs?cursor={by_name}")) == ["cursor"]
    assert fields_of(full.get(f"/schedules?cursor={by_instant}")) == ["cursor"]
    assert fields_of(full.get(f"/runs?cursor={by_number}")) == ["cursor"]
    assert fields_of(full.get(f"/schedules/a/versions?cursor={by_name}")) == ["cursor"]
