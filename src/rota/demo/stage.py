"""The demonstration's stage: a clock file, real processes on one SQLite file, and a client for their HTTP API."""

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

from rota.demo.halting import GO_ON, REACHED
from rota.demo.telling import say
from rota.domain.errors import RotaError
from rota.domain.instants import format_instant

PATIENCE_SECONDS = 30.0
LOOK_EVERY_SECONDS = 0.02
LEASE = timedelta(seconds=60)
"""Of the dispatchers, on the stage's clock."""

T = TypeVar("T")


class StageBroken(RotaError):
    """A process or an answer that the demonstration needs did not come; the log files in its folder say more."""


class Process:
    """One real process with the stage's clock and database; its log goes to a file of its own."""

    def __init__(self, name: str, command: list[str], *, folder: Path, environment: dict[str, str]) -> None:
        self.name = name
        self._log = (folder / f"{name}.log").open("wb")
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-m", *command],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def wait_for_line(self, text: str) -> str:
        """The first line of its output that holds `text`."""
        output = self._process.stdout
        if output is None:
            raise StageBroken(f"{self.name} has no output.")
        watchdog = threading.Timer(PATIENCE_SECONDS, self._process.kill)
        watchdog.start()
        try:
            for line in output:
                if text in line:
                    return line.strip()
        finally:
            watchdog.cancel()
        raise StageBroken(f"{self.name} never said {text!r}.")

    def kill(self) -> None:
        """SIGKILL: nothing of it runs any more, no handler, no clean-up."""
        self._process.send_signal(signal.SIGKILL)
        self._end()

    def freeze(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def go_on(self) -> None:
        """Ends a stop between deciding and committing."""
        self._process.send_signal(GO_ON)

    def stop(self) -> None:
        """SIGTERM, as an operator stops it."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.send_signal(signal.SIGTERM)
        self._end()

    def _end(self) -> None:
        try:
            self._process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._log.close()


class Stage:
    """Everything that the story's scenes use."""

    def __init__(self, folder: Path, *, smtp_port: int, now: datetime) -> None:
        self.folder = folder
        self.database = folder / "rota.db"
        self.clock_file = folder / "clock"
        self._processes: list[Process] = []
        self._url = ""
        self.set_clock(now)
        self._environment = {
            "ROTA_DATABASE_URL": str(self.database),
            "ROTA_CLOCK_FILE": str(self.clock_file),
            "ROTA_PARTITIONS": "4",
            "ROTA_LEASE_SECONDS": f"{LEASE.total_seconds():g}",
            "ROTA_POLL_SECONDS": "0.05",
            "ROTA_DEMO_FOLDER": str(folder),
            "ROTA_DEMO_SMTP_PORT": str(smtp_port),
        }

    def set_clock(self, now: datetime) -> None:
        """Moves the time of every process at once."""
        self.now = now
        written = self.clock_file.with_suffix(".new")
        written.write_text(format_instant(now))
        written.replace(self.clock_file)

    def start_api(self) -> None:
        process = self._start("api", ["rota", "serve", "--port", "0"])
        line = process.wait_for_line("http://")
        self._url = "http://" + line.partition("http://")[2].split()[0].rstrip("/.,")

    def start_dispatcher(self, name: str) -> Process:
        return self._start(name, ["rota", "dispatch"])

    def start_halting_dispatcher(self, name: str, moment: str) -> Process:
        """A dispatcher that stands still around its next commit; see `halting.py`."""
        return self._start(name, ["rota.demo.halting", moment])

    def wait_until_halted(self, process: Process) -> str:
        """The line that it says when it stands still."""
        return process.wait_for_line(REACHED)

    def start_worker(self, name: str) -> Process:
        return self._start(name, ["rota", "work", "rota.demo.reports:app"])

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.stop()
        self._processes.clear()

    def forget(self, process: Process) -> None:
        """The process has ended already."""
        self._processes.remove(process)

    def command(self, *arguments: str) -> None:
        """One command line in a process of its own, told as it is typed; it writes its answer itself, as to whoever
        types it. Raises `StageBroken` where it fails.
        """
        typed = f"rota {shlex.join(arguments)}"
        say(f"$ {typed}")
        try:
            done = subprocess.run(  # noqa: S603 - our own interpreter and module
                [sys.executable, "-m", "rota", *arguments],
                env={**os.environ, **self._environment},
                stderr=subprocess.PIPE,
                text=True,
                timeout=PATIENCE_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise StageBroken(f"Waited {PATIENCE_SECONDS:g} s in vain for `{typed}`.") from None
        if done.returncode != 0:
            raise StageBroken(f"`{typed}` ended with {done.returncode}: {done.stderr.strip()}")

    def ask(self, method: str, path: str, body: dict[str, object] | None = None) -> dict[str, object]:
        """One HTTP request; the JSON answer. Raises `StageBroken` for anything but a 2xx."""
        request = urllib.request.Request(  # noqa: S310 - the URL is the stage's own server on loopback
            self._url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"} if body is not None else {},
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as response:  # noqa: S310 - the same
                answer: dict[str, object] = json.load(response)
                return answer
        except urllib.error.HTTPError as error:
            raise StageBroken(f"{method} {path} answered {error.code}: {error.read().decode()}") from None

    def run(self, run_id: str) -> dict[str, object] | None:
        """The run by HTTP; None where there is none yet."""
        try:
            return self.ask("GET", f"/runs/{run_id}")
        except StageBroken:
            return None

    def wait_for_run(self, run_id: str, state: str) -> dict[str, object]:
        """The run as soon as it is in that state."""

        def look() -> dict[str, object] | None:
            run = self.run(run_id)
            return run if run is not None and run["state"] == state else None

        return wait_for(look, f"{run_id} to be {state}")

    def _start(self, name: str, command: list[str]) -> Process:
        process = Process(name, command, folder=self.folder, environment=self._environment)
        self._processes.append(process)
        return process


def wait_for(look: Callable[[], T | None], what: str) -> T:
    """The first thing that `look` finds. Raises `StageBroken` after `PATIENCE_SECONDS`."""
    pause = threading.Event()
    for _ in range(int(PATIENCE_SECONDS / LOOK_EVERY_SECONDS)):
        found = look()
        if found is not None:
            return found
        pause.wait(LOOK_EVERY_SECONDS)
    raise StageBroken(f"Waited {PATIENCE_SECONDS:g} s in vain for {what}.")
