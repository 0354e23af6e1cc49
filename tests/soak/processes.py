"""Processes of a soak: started, killed, frozen, and started again; none outlives the one that started them."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIMIT_SECONDS = 240
AT_WORK = "room="
PARENT_DIED = 1
"""PR_SET_PDEATHSIG of prctl(2)."""


class Process:
    """One command, in at most one process at a time. Each start logs to a file of its own."""

    def __init__(
        self, name: str, arguments: Sequence[str], *, folder: Path, environment: dict[str, str]
    ) -> None:
        self.name = name
        self.starts = 0
        self._command = [sys.executable, "-m", *arguments]
        self._folder, self._environment = folder, environment
        self._process: subprocess.Popen[bytes] | None = None
        self.is_frozen = False

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> Path:
        return self._folder / f"{self.name}-{self.starts}.log"

    @property
    def has_begun(self) -> bool:
        """It is at its work; before, it is only being loaded."""
        return self.is_running and self.has_worked

    @property
    def has_worked(self) -> bool:
        """Each logs something as soon as it works; a start that fails is told in other words."""
        return self.starts > 0 and AT_WORK in self.log.read_text(errors="replace")

    def start(self) -> None:
        self.starts += 1
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=ROOT,
                env=os.environ | self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - it takes no lock
            )
        self.is_frozen = False

    def kill(self) -> None:
        self._send(signal.SIGKILL)
        assert self._process is not None
        self._process.wait(LIMIT_SECONDS)

    def freeze(self) -> None:
        self._send(signal.SIGSTOP)
        self.is_frozen = True

    def thaw(self) -> None:
        self._send(signal.SIGCONT)
        self.is_frozen = False

    def stop(self) -> int:
        """Asks it to end, once it listens; its exit code."""
        wait_until(lambda: self.has_begun or not self.is_running)
        self._send(signal.SIGTERM)
        assert self._process is not None
        return self._process.wait(LIMIT_SECONDS)

    def exit_code(self) -> int | None:
        """None while it runs."""
        return None if self._process is None else self._process.poll()

    def _send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """Everybody in a soak."""

    dispatchers: list[Process]
    workers: list[Process]
    driver: Process

    @property
    def mortals(self) -> list[Process]:
        return [*self.dispatchers, *self.workers]

    @property
    def all(self) -> list[Process]:
        return [*self.mortals, self.driver]


def cast_of(*, url: str, folder: Path, seed: int, lease_seconds: float) -> Cast:
    """Three dispatchers, two workers and the driver, none of them started."""
    environment = {
        "ROTA_DATABASE_URL": url,
        "ROTA_LEASE_SECONDS": str(lease_seconds),
        "ROTA_POLL_SECONDS": "0.2",
        "ROTA_PARTITIONS": "16",
        "ROTA_DRAIN_SECONDS": "5",
        "SOAK_EFFECTS": str(folder / "effects.jsonl"),
        # Or each start would compile all of it, where byte code is not to be written beside the sources.
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
        "PYTHONDONTWRITEBYTECODE": "",
    }

    def process(name: str, *arguments: str) -> Process:
        return Process(name, arguments, folder=folder, environment=environment)

    journal = str(folder / "journal.jsonl")
    return Cast(
        dispatchers=[process(f"dispatcher-{number}", "rota", "dispatch") for number in range(1, 4)],
        workers=[process(f"worker-{number}", "rota", "work", "tests.soak.effects:app") for number in (1, 2)],
        driver=process("driver", "tests.soak.driver", journal, str(seed)),
    )


def wait(seconds: float) -> None:
    threading.Event().wait(seconds)


def wait_until(condition: Callable[[], bool]) -> None:
    """Looks again and again. Raises `TimeoutError`."""
    for _ in range(LIMIT_SECONDS * 10):
        if condition():
            return
        wait(0.1)
    raise TimeoutError(f"{condition} did not come true in {LIMIT_SECONDS} s")


def _die_with_parent() -> None:
    """A soak that is killed leaves nobody behind (Linux)."""
    try:
        ctypes.CDLL(None).prctl(PARENT_DIED, signal.SIGKILL)
    except (AttributeError, OSError):
        return
