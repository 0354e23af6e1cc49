"""What answers mean to a worker over HTTP: a server's own, those of a proxy in its place, and none at all."""

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler

import pytest

from rota import Rota
from rota.clock import SystemClock
from rota.config import Settings
from rota.domain.backoff import Backoff
from rota.domain.errors import MalformedBody, RotaError, WrongSetting
from rota.domain.job import Job, RetryPolicy
from rota.domain.run import RunState
from rota.domain.sink import SqsSink
from rota.store.port import Wanted
from rota.worker import session
from rota.worker.http_gateway import HttpGateway
from rota.worker.server_answers import ServerRefused, ServerUnavailable
from tests.worker.proxies import behind_a_proxy, serving
from tests.worker.scene import DEADLINE_SECONDS, Scene
from tests.worker.served import Served, free_port

NOTHING = timedelta(0)
AT_ONCE = RetryPolicy(max_attempts=3, initial_delay=NOTHING, jitter=0)


def test_a_worker_over_http_makes_the_jobs_of_a_file_known_too(server: Served) -> None:
    scene = Scene(server=server)
    app = Rota(settings=Settings(server_url=server.url))
    app.declare_jobs([Job(name="elsewhere", priority=9)], source="rota.toml")
    worker = app.build_worker(inline=True)
    worker.step(scene.now)
    job = scene.store.get_job("elsewhere")
    assert job is not None
    assert job.priority == 9
    app.close()
    scene.close()


@pytest.mark.parametrize("status", [400, 401, 403, 404, 421])
def test_what_a_proxy_says_in_the_servers_place_makes_no_failure_of_work_that_was_done(
    server: Served, status: int
) -> None:
    scene = Scene(server=server)
    scene.app.job("sales", retry=AT_ONCE)(lambda ctx: {"sent": True})
    run_id = scene.queue("sales")
    with behind_a_proxy(server, status, times=2) as url:
        scene.gateway = HttpGateway(url)
        worker = scene.worker(inline=True)
        for _ in range(2):
            with pytest.raises(ServerUnavailable):
                worker.step(scene.now)
            assert scene.run(run_id).state is RunState.RUNNING
        assert worker.step(scene.now).settled == 1
        scene.close()
    assert (scene.run(run_id).state, scene.detail(run_id).result) == (RunState.SUCCEEDED, '{"sent":true}')


def test_a_consumers_end_outlives_what_a_proxy_says_too(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "BETWEEN_TRIES", Backoff(initial_delay=NOTHING, max_delay=NOTHING, jitter=0))
    scene = Scene(server=server)
    scene.app.declare("report", sink=SqsSink(queue_url="https://sqs.example/1/reports"))
    scene.app.register_jobs()
    run_id = scene.queue("report")
    with behind_a_proxy(server, 404, times=2) as url:
        gateway = HttpGateway(url)
        message = {"run_id": run_id, "attempt": 1}
        attempt = session.open_session(gateway, message, worker="consumer", clock=scene.clock)
        assert attempt is not None
        with attempt:
            attempt.result = "done"
        gateway.close()
    scene.close()
    assert (scene.run(run_id).state, scene.detail(run_id).result) == (RunState.SUCCEEDED, '"done"')


@contextmanager
def answering(status: int, body: bytes) -> Iterator[str]:
    """A server that answers so, whatever it is asked."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  it is called so
            pass

    with serving(Handler) as url:
        yield url


@pytest.mark.parametrize(
    ("status", "body", "error", "sentence"),
    [
        (
            503,
            b'{"detail": "The database is away."}',
            ServerUnavailable,
            "answers 503: The database is away.",
        ),
        (502, b"<html>Bad gateway</html>", ServerUnavailable, "answers 502: <html>Bad gateway"),
        (429, b"", ServerUnavailable, "answers 429: nothing"),
        (404, b"no", ServerUnavailable, "does not exist; is it a server of Rota? It says: no"),
        (403, b"<html>Forbidden</html>", ServerUnavailable, "answers 403: <html>Forbidden"),
        (401, b"", ServerUnavailable, "answers 401: nothing"),
        (400, b"<html>Bad request</html>", ServerUnavailable, "answers 400: <html>Bad request"),
        (400, b'{"detail": "No."}', ServerUnavailable, "answers 400: No."),
        (
            400,
            b'{"type": "urn:rota:problem:malformed-body", "detail": "It is too deep."}',
            ServerRefused,
            "answers 400: It is too deep.",
        ),
        (413, b"too large", ServerRefused, "answers 413: too large"),
        (421, b'{"detail": "Host: x is not answered to."}', ServerUnavailable, "answers 421: Host: x is not"),
        (
            422,
            b'{"detail": "2 are wrong.", "errors": [{"field": "a", "message": "A."}, {"field": "b", "message": "B."}]}',
            ServerRefused,
            "2 are wrong. a: A. b: B.",
        ),
        (200, b"<html>Welcome</html>", MalformedBody, "answers no JSON object; is it a server of Rota?"),
        (200, b"{}", MalformedBody, "has no list 'attempts'"),
        (200, b'{"attempts": [{}], "may_be_more": false}', MalformedBody, "attempt has no 'origin'"),
    ],
)
def test_an_answer_that_is_none_is_told_in_a_sentence(
    status: int, body: bytes, error: type[RotaError], sentence: str
) -> None:
    with answering(status, body) as url:
        gateway = HttpGateway(url)
        with pytest.raises(error) as raised:
            gateway.claim("w", [Wanted(job="sales")], now=SystemClock().now(), limit=1)
        gateway.close()
    assert sentence in str(raised.value)


def test_a_server_that_is_not_there_is_unavailable() -> None:
    gateway = HttpGateway(f"http://127.0.0.1:{free_port()}")
    with pytest.raises(ServerUnavailable, match="cannot be reached"):
        gateway.claim("w", [Wanted(job="sales")], now=SystemClock().now(), limit=1)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "rota.example",
        "ftp://rota.example",
        "http://",
        "http://a:b@rota.example",
        "http://rota.example:x",
        "http://h/?a",
    ],
)
def test_a_url_that_is_none_is_a_wrong_setting(url: str) -> None:
    with pytest.raises(WrongSetting, match="server's URL"):
        HttpGateway(url)


def test_a_server_may_answer_beneath_a_path() -> None:
    assert HttpGateway("http://[::1]:8080/rota/")._address.url == "http://[::1]:8080/rota"


def test_a_worker_pauses_where_answers_come_at_once_and_bring_nothing() -> None:
    asked = threading.Semaphore(0)
    many = threading.Event()
    count = 0

    class Hasty(BaseHTTPRequestHandler):
        """As a server that stops, or a proxy that leaves `wait` out."""

        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            nonlocal count
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = b'{"attempts": [], "may_be_more": false, "next_in": null}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            count += 1
            asked.release()
            if count > 20:
                many.set()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  it is called so
            pass

    with serving(Hasty) as url:
        gateway = HttpGateway(url)
        with closing(gateway.subscribe(lambda: None)):
            gateway.claim("w", [Wanted(job="sales")], now=SystemClock().now(), limit=1)
            for _ in range(3):
                assert asked.acquire(timeout=DEADLINE_SECONDS)
            # Pauses that double: without them there are thousands in a second.
            assert not many.wait(1)
        gateway.close()
