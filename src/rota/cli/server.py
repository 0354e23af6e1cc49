"""The HTTP server of a process: it listens, says where, answers until it is told to stop."""

import errno
import socket
import threading
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp

from rota.cli.errors import Failed

GRACEFUL_SECONDS = 5
"""How long answers under way may take once the process is told to stop."""

BACKLOG = 2048


class Server:
    """One API on one address. `run` is the loop of a thread."""

    def __init__(
        self,
        api: ASGIApp,
        listener: socket.socket,
        *,
        announce: Callable[[str], None],
        stopping: Callable[[], None] = lambda: None,
    ) -> None:
        """`announce` is called with the URL as soon as requests are answered, `stopping` when no more are taken: it
        ends those that wait.
        """
        config = uvicorn.Config(
            api,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=GRACEFUL_SECONDS,
        )
        self._listener = listener
        self._stopping = stopping
        self._server = _AnnouncingServer(config, started=lambda: announce(url_of(listener)))

    def run(self, stop: threading.Event, _wake: threading.Event) -> None:
        """Answers until `stop` is set, then ends what is under way. It installs no signal handlers of its own."""
        threading.Thread(target=self._stop_after, args=(stop,), name="rota-api-stop", daemon=True).start()
        self._server.run(sockets=[self._listener])

    def _stop_after(self, stop: threading.Event) -> None:
        stop.wait()
        self._server.should_exit = True
        self._stopping()


class _AnnouncingServer(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, *, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._started()


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes a free one. Raises `Failed`."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (socket.gaierror, UnicodeError):
        raise Failed(f"--host: {host!r} is no address of this machine; 127.0.0.1 is.") from None
    listener = socket.socket(family, kind, protocol)
    try:
        # A restart need not wait until the kernel has forgotten the connections of the process before it.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        # At once, so that the port is taken before the database is opened.
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise Failed(
                f"--port: Something listens on {host}:{port} already; give another port, or 0 for a free one."
            ) from None
        raise Failed(f"--host: It cannot listen on {host}:{port}: {error.strerror}.") from None
    return listener


def url_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
