"""Real processes of the command line, and waiting for what they do: always with a limit."""

import http.client
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self, cast
from urllib.parse import urlsplit

LIMIT_SECONDS = 60
LOOK_SECONDS = 0.05


@contextmanager
def _hearing_interrupts() -> Iterator[None]:
    """Tests that a shell runs in the background ignore SIGINT, and what they start would inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Process:
    """One `rota` process; leaving the block ends it if it still runs."""

    def __init__(self, *arguments: str, cwd: Path, **settings: str) -> None:
        self.log = cwd / f"{arguments[0]}.log"
        with self.log.open("wb") as log, _hearing_interrupts():
            self._process = subprocess.Popen(
                [sys.executable, "-m", "rota", *arguments],
                cwd=cwd,
                env=os.environ | {"ROTA_POLL_SECONDS": "0.2", **settings},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(LIMIT_SECONDS)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def read_line(self) -> str:
        """The next line of standard output; empty at its end. Fails where none comes in time."""
        output = self._process.stdout
        assert output is not None
        line = b""
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([output], [], [], LIMIT_SECONDS)
            assert ready, self.log.read_text()
            read = os.read(output.fileno(), 1)
            if not read:
                break
            line += read
        return line.decode().rstrip("\n")

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def has_ended_after(self, number: signal.Signals) -> bool:
        """Whether it has ended; sends the signal where it has not."""
        self.send(number)
        return self._process.poll() is not None

    def wait(self) -> int:
        """Its exit code."""
        return self._process.wait(LIMIT_SECONDS)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Its exit code after the signal."""
        self.send(number)
        return self.wait()

    def wait_for_log(self, words: str) -> None:
        """Until its log has these words."""
        wait_until(lambda: words in self.log.read_text(), log=self.log)


def url_in(line: str) -> str:
    """The address that `rota up` and `rota serve` announce."""
    assert line.startswith("Rota listens on http://127.0.0.1:"), line
    return line.removeprefix("Rota listens on ")


def request(url: str, path: str, body: object = None) -> tuple[int, dict[str, object]]:
    """The status and the JSON body of a GET, or of a POST with a body."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=LIMIT_SECONDS)
    try:
        if body is None:
            connection.request("GET", path)
        else:
            connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
        response = connection.getresponse()
        return response.status, cast("dict[str, object]", json.loads(response.read()))
    finally:
        connection.close()


def wait_for_state(url: str, run_id: str, state: str, *, log: Path) -> dict[str, object]:
    """The run, once it is in that state."""
    wait_until(lambda: request(url, f"/runs/{run_id}")[1].get("state") == state, log=log)
    return request(url, f"/runs/{run_id}")[1]


def wait_until(condition: Callable[[], bool], *, log: Path) -> None:
    """Looks again and again; fails with the log where the condition does not come true in time."""
    never = threading.Event()
    for _ in range(round(LIMIT_SECONDS / LOOK_SECONDS)):
        if condition():
            return
        never.wait(LOOK_SECONDS)
    raise AssertionError(log.read_text())


def set_time(clock: Path, instant: str) -> None:
    """Moves the clock of every process that reads this file: at once, so that none reads half of it."""
    new = clock.with_suffix(".new")
    new.write_text(instant)
    new.replace(clock)
