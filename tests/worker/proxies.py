"""Servers that stand in front of a real one, or in its place."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import urllib3

from tests.worker.served import Served


@contextmanager
def behind_a_proxy(server: Served, status: int, *, times: int) -> Iterator[str]:
    """A proxy that answers so many settlements itself, as while the server behind it is replaced."""
    left = [times]

    class Proxy(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.path == "/attempts/settle" and left[0] > 0:
                left[0] -= 1
                self._answer(status, b"nobody is here")
                return
            headers = {"Content-Type": "application/json"}
            passed = urllib3.request(self.command, server.url + self.path, body=body, headers=headers)
            self._answer(passed.status, passed.data)

        def do_PUT(self) -> None:
            self.do_POST()

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  it is called so
            pass

    with serving(Proxy) as url:
        yield url


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()
