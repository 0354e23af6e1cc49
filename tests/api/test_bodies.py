"""Bodies and headers as a server hands them over: in pieces, too long, cut off, of another type."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, MutableMapping

import pytest
from starlette.testclient import TestClient

from rota.api.application import create_api
from rota.api.bodies import BODY_BYTES_MAX, DISCARDED_BYTES_MAX
from rota.service.context import Context
from tests.api.conftest import JSON, REPORT, body_of, fields_of, report

Message = MutableMapping[str, object]
PIECE = b" " * 64 * 1024


class Sender:
    """A client that sends pieces of a body for as long as it is listened to."""

    def __init__(self, pieces: Iterator[bytes], *, then_disconnects: bool = False) -> None:
        self.sent = 0
        self.status = 0
        self.headers: dict[str, str] = {}
        self._pieces = pieces
        self._then_disconnects = then_disconnects

    async def receive(self) -> Message:
        piece = next(self._pieces, None)
        if piece is None and self._then_disconnects:
            return {"type": "http.disconnect"}
        self.sent += len(piece or b"")
        return {"type": "http.request", "body": piece or b"", "more_body": piece is not None}

    async def send(self, message: Message) -> None:
        match message:
            case {"type": "http.response.start", "status": int(status), "headers": list(headers)}:
                self.status = status
                self.headers = {name.decode(): value.decode() for name, value in headers}
            case _:
                pass

    def call(self, context: Context, path: str, headers: dict[bytes, bytes]) -> None:
        scope: Message = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": list(headers.items()),
        }
        api: Callable[..., Awaitable[None]] = create_api(context)
        asyncio.run(call(api, scope, self))


async def call(api: Callable[..., Awaitable[None]], scope: Message, sender: Sender) -> None:
    await api(scope, sender.receive, sender.send)


JSON_HEADER = {b"content-type": b"application/json"}


def test_a_body_without_end_is_not_read_to_the_end(context: Context) -> None:
    sender = Sender(iter(lambda: PIECE, None))
    sender.call(context, "/schedules", JSON_HEADER)
    assert sender.status == 413
    assert sender.headers["connection"] == "close"
    assert sender.sent <= DISCARDED_BYTES_MAX + len(PIECE)


def test_a_body_a_little_too_long_is_read_so_that_the_answer_arrives(context: Context) -> None:
    sender = Sender(iter([PIECE] * (BODY_BYTES_MAX // len(PIECE)) + [b" "]))
    sender.call(context, "/schedules", JSON_HEADER)
    assert sender.status == 413
    assert "connection" not in sender.headers
    assert sender.sent == BODY_BYTES_MAX + 1


def test_a_body_that_is_cut_off_is_malformed(context: Context) -> None:
    sender = Sender(iter([b'{"id": "a"']), then_disconnects=True)
    sender.call(context, "/schedules", JSON_HEADER)
    assert sender.status == 400


def test_an_actor_that_is_not_utf8_is_refused(context: Context) -> None:
    sender = Sender(iter([b"{}"]))
    sender.call(context, "/schedules/report-7/pause", JSON_HEADER | {b"rota-actor": b"Zo\xeb"})
    assert sender.status == 422


def test_a_body_of_the_longest_length_is_decoded(client: TestClient) -> None:
    fits = b"{" + b" " * (BODY_BYTES_MAX - 2) + b"}"
    assert fields_of(client.post("/schedules", content=fits, headers=JSON)) == [
        "job",
        "timezone",
        "recurrence",
    ]
    assert client.post("/schedules", content=fits + b" ", headers=JSON).status_code == 413


@pytest.mark.parametrize(
    "media_type", ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", "", "json", "*/*"]
)
@pytest.mark.parametrize("path", ["/schedules", "/schedules/report-7/pause", "/apply"])
def test_a_body_that_is_not_said_to_be_json_is_not_read_as_such(
    client: TestClient, media_type: str, path: str
) -> None:
    client.post("/schedules", json=REPORT)
    refused = client.post(path, content=b"{}", headers={"content-type": media_type})
    assert body_of(refused, status=415)["type"] == "urn:rota:problem:unsupported-media-type"
    assert client.get("/schedules/report-7").json()["status"] == "active"


@pytest.mark.parametrize("media_type", ["application/json; charset=utf-8", "Application/JSON"])
def test_json_is_taken_with_a_charset_and_in_any_case(client: TestClient, media_type: str) -> None:
    client.post("/schedules", json=REPORT)
    paused = client.post(
        "/schedules/report-7/pause", content=b'{"reason": "x"}', headers={"content-type": media_type}
    )
    assert body_of(paused)["status"] == "paused"


@pytest.mark.parametrize(
    "path",
    [
        "/schedules/report-7/pause",
        "/schedules/report-7/resume",
        "/schedules/report-7/run",
        "/schedules/report-7/occurrences/2026-01-12T09:00/skip",
        "/zones/apply",
    ],
)
def test_a_command_needs_no_body_and_no_content_type(client: TestClient, path: str) -> None:
    client.post("/schedules", json=REPORT)
    assert client.post(path).is_success
    assert client.post(path, json={}).is_success
    assert client.post(path, headers={"content-type": "text/plain"}).is_success


def test_only_a_patch_may_be_said_to_be_a_merge_patch(client: TestClient) -> None:
    merge_patch = {"content-type": "application/merge-patch+json"}
    client.post("/schedules", json=REPORT)
    for path in ("/schedules", "/schedules/report-7/pause", "/apply"):
        assert client.post(path, content=b"{}", headers=merge_patch).status_code == 415
    refused = client.patch("/schedules/report-7", content=b"{}", headers={"content-type": "text/json"})
    detail = str(body_of(refused, status=415)["detail"])
    assert detail.endswith("send application/json or application/merge-patch+json.")


def test_params_and_labels_come_back_as_they_were_sent(client: TestClient) -> None:
    params = {"ü": ["🕐", 1.5, None, True, {"deep": [[]]}], "n": 2**53, "empty": ""}
    labels = {"kunde": "Zoë & Söhne"}
    created = body_of(client.post("/schedules", json=report(params=params, labels=labels)), status=201)
    assert created["params"] == params
    assert created["labels"] == labels
    assert body_of(client.get("/schedules/report-7")) == created
