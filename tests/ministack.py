"""SQS and its kin for tests: the emulator `ministack`, on loopback, in a process of its own."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

START_SECONDS = 60
PARENT_DIED = 1
"""PR_SET_PDEATHSIG of prctl(2)."""


@contextmanager
def running_ministack() -> Iterator[str]:
    """The address of an emulator in which there is nothing yet."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory(prefix="rota-ministack-") as name:
        log = Path(name) / "server.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "ministack"],
                cwd=name,
                env={
                    **os.environ,
                    "BIND_HOST": "127.0.0.1",
                    "GATEWAY_PORT": str(port),
                    "HOME": name,
                    "TMPDIR": name,
                },
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - it takes no lock
            )
        try:
            _wait_for(url, process, log)
            yield url
        finally:
            process.kill()
            process.wait(timeout=START_SECONDS)


def _wait_for(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    for _ in range(START_SECONDS * 20):
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"{url}/_ministack/health", timeout=5):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            Event().wait(0.05)
    raise RuntimeError(f"ministack did not start: {log.read_text(errors='replace')}")


def _die_with_parent() -> None:
    """A test process that is killed leaves no server behind (Linux)."""
    try:
        ctypes.CDLL(None).prctl(PARENT_DIED, signal.SIGKILL)
    except (AttributeError, OSError):
        return
