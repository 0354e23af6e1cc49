"""A real server on loopback, which tests give one context after the other: starting one takes as long as many tests."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from rota.api.application import create_api
from rota.service.context import Context

STOPS_WITHIN_SECONDS = 30


class Served:
    """One server; `serve` says what it answers from."""

    def __init__(self, api: FastAPI, url: str) -> None:
        self.api = api
        self.url = url

    def serve(self, context: Context) -> None:
        self.api.state.context = context


@contextmanager
def running_server(context: Context, *, port: int = 0) -> Iterator[Served]:
    """A server that answers from that context; it has stopped at the end."""
    api = create_api(context)
    # As the command line does: the port is free again at once.
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(2048)
    config = uvicorn.Config(api, log_config=None, access_log=False, timeout_graceful_shutdown=5)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        # The kernel accepts for the listener, so the first request waits for the server and nothing else has to.
        yield Served(api, f"http://127.0.0.1:{listener.getsockname()[1]}")
    finally:
        api.state.waiting_room.end()
        server.should_exit = True
        thread.join(timeout=STOPS_WITHIN_SECONDS)
        listener.close()
    assert not thread.is_alive()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
