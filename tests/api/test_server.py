"""The API as it is run: a uvicorn server on loopback, and a SQLite file that outlives it."""

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn
from httpx2 import Client

from rota.api.application import create_api
from rota.api.bodies import BODY_BYTES_MAX
from rota.config import Settings
from rota.store.sql import open_sql_store
from rota.testing.clock import ManualClock
from rota.wiring import open_context
from tests.api.conftest import JOB, JSON, REPORT, START, body_of, fields_of, for_version, items_of, report

pytestmark = pytest.mark.slow


@contextmanager
def served(file: Path) -> Iterator[Client]:
    """A client of a server on that database; the server is stopped at the end."""
    store = open_sql_store(f"sqlite:///{file}")
    context = open_context(Settings(partitions=4), store=store, clock=ManualClock(START))
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_api(context), log_config=None, timeout_graceful_shutdown=5))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        # The kernel accepts for the listener, so the first request waits for the server and nothing else has to.
        with Client(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=30) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join(timeout=30)
        listener.close()
        store.close()
    assert not thread.is_alive()


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with served(tmp_path / "rota.db") as opened:
        yield opened


def connection_to(client: Client) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(client.base_url.host, client.base_url.port, timeout=30)


def test_a_schedule_lives_through_a_restart(tmp_path: Path) -> None:
    key = {"Idempotency-Key": "order-1742"}
    with served(tmp_path / "rota.db") as client:
        assert client.put(f"/jobs/{JOB}", json={}).status_code == 201
        created = client.post("/schedules", json=report(params={"z": 1, "a": "ü"}), headers=key)
        assert created.headers["location"] == "/schedules/report-7"
        paused = body_of(client.post("/schedules/report-7/pause", json={"reason": "holiday"}))
    with served(tmp_path / "rota.db") as client:
        assert body_of(client.get("/schedules/report-7")) == paused
        again = client.post("/schedules", json=report(params={"z": 1, "a": "ü"}), headers=key)
        assert (again.status_code, again.content) == (201, created.content)
        assert client.put(f"/jobs/{JOB}", json={}).status_code == 200
        assert body_of(client.post("/schedules/report-7/resume"))["status"] == "active"
        assert body_of(client.delete("/schedules/report-7"))["status"] == "ended"
        events = [event["action"] for event in items_of(client.get("/schedules/report-7/history"))]
        assert events == ["schedule.end", "schedule.resume", "schedule.pause", "schedule.create"]
        assert body_of(client.get("/health/ready"))["status"] == "ready"


def test_the_same_request_from_many_at_once_makes_one_schedule(client: Client) -> None:
    client.put(f"/jobs/{JOB}", json={})

    def create(key: str) -> tuple[int, bytes]:
        response = client.post("/schedules", json=report(id=None), headers={"Idempotency-Key": key})
        return response.status_code, response.content

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(create, ["k"] * 24))
    assert {status for status, _ in answers} == {201}
    assert len({content for _, content in answers}) == 1
    assert len(items_of(client.get("/schedules"))) == 1


def test_of_many_edits_of_one_version_at_once_one_is_done(client: Client) -> None:
    client.put(f"/jobs/{JOB}", json={})
    client.post("/schedules", json=REPORT)

    def edit(number: int) -> int:
        patch = {"params": {"number": number}}
        return client.patch("/schedules/report-7", json=patch, headers=for_version(1)).status_code

    with ThreadPoolExecutor(8) as pool:
        statuses = sorted(pool.map(edit, range(16)))
    assert statuses == [200] + [412] * 15
    assert [item["version"] for item in items_of(client.get("/schedules/report-7/versions"))] == [2, 1]


def test_the_same_request_for_a_run_from_many_at_once_makes_one(client: Client) -> None:
    client.put(f"/jobs/{JOB}", json={})
    client.post("/schedules", json=REPORT)

    def ask(key: str) -> tuple[int, str]:
        response = client.post("/schedules/report-7/run", headers={"Idempotency-Key": key})
        return response.status_code, response.headers["location"]

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, ["k"] * 16))
    assert sorted(status for status, _ in answers) == [200] * 15 + [201]
    assert len({location for _, location in answers}) == 1
    assert len(items_of(client.get("/runs"))) == 1


def test_a_body_in_chunks_is_taken(client: Client) -> None:
    client.put(f"/jobs/{JOB}", json={})
    text = json.dumps(REPORT).encode()
    created = client.post("/schedules", content=iter([text[:10], text[10:11], text[11:]]), headers=JSON)
    assert body_of(created, status=201)["id"] == "report-7"


def test_a_body_that_is_too_long_is_refused_however_it_is_sent(client: Client) -> None:
    body = b"{" + b" " * BODY_BYTES_MAX * 8 + b"}"
    assert client.post("/schedules", content=body, headers=JSON).status_code == 413
    pieces = (body[at : at + 10_000] for at in range(0, len(body), 10_000))
    assert client.post("/schedules", content=pieces, headers=JSON).status_code == 413
    assert client.get("/health/live").status_code == 200


def test_a_chunked_body_without_end_is_cut_off(client: Client) -> None:
    connection = connection_to(client)
    connection.putrequest("POST", "/schedules")
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders()
    piece = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    sent = 0
    # How a connection that is cut off looks to its sender differs between systems, but all say OSError.
    with contextlib.suppress(OSError):
        while sent < 1 << 30:
            connection.send(piece)
            sent += len(piece)
    connection.close()
    assert sent < 1 << 28
    assert client.get("/health/live").status_code == 200


@pytest.mark.parametrize(
    "path", ["/schedules/%00", "/runs/%ff%fe", "/jobs/..%2f..%2fetc", "/%E2%80%AE", "/runs/%2e%2e"]
)
def test_a_hostile_path_is_not_found(client: Client, path: str) -> None:
    connection = connection_to(client)
    connection.request("GET", path)
    response = connection.getresponse()
    problem = json.loads(response.read())
    connection.close()
    assert response.status == problem["status"] == 404
    assert response.headers["content-type"] == "application/problem+json"


def test_a_refused_request_leaves_the_connection_usable(client: Client) -> None:
    connection = connection_to(client)
    for body, status in [(b"{", 400), (b"[]", 400), (b"{}", 422)]:
        connection.request("POST", "/schedules", body=body, headers=JSON)
        response = connection.getresponse()
        response.read()
        assert response.status == status
    connection.request("POST", "/schedules", body=b"x", headers={"Content-Type": "text/plain"})
    assert connection.getresponse().status == 415
    connection.close()


def test_an_unknown_job_in_a_database_is_named(client: Client) -> None:
    assert fields_of(client.post("/schedules", json=REPORT)) == ["job"]
