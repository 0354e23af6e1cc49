"""Several worker processes as one: started, started anew when they die, and told to drain when this one is stopped.

Processes and not threads: handlers that compute have a core each, and one that crashes its process takes no other with
it. A child is `rota work`, and what it held when it died is recovered as everybody's is. Its standard input is a pipe
that only tells it whether this process lives: without it, it drains (`supervised.py`).
"""

import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta

from rota.clock import monotonic_seconds
from rota.domain.backoff import Backoff
from rota.telemetry import get_logger

LOOKED_AFTER_SECONDS = 0.1
PAUSES = Backoff(initial_delay=timedelta(milliseconds=500), max_delay=timedelta(seconds=30), jitter=0.2)
STEADY_SECONDS = 60.0
"""One that ran for so long has not failed at once: the next pause is a short one again."""

SUPERVISOR: ContextVar[int | None] = ContextVar("SUPERVISOR", default=None)
"""The pipe that ends with this process's supervisor; None: it has none."""

log = get_logger("cli")


class Child:
    """One of the processes; `run` is the loop of a thread."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        name: str,
        pauses: Backoff = PAUSES,
        seconds: Callable[[], float] = monotonic_seconds,
    ) -> None:
        """`seconds` never go back."""
        self._command = list(command)
        self._name = name
        self._pauses = pauses
        self._seconds = seconds

    def run(self, stop: threading.Event, _wake: threading.Event) -> None:
        """Keeps it running until `stop` is set; then asks it to drain, and waits for that."""
        failures = 0
        while not stop.is_set():
            began = self._seconds()
            # The pipe is open as long as this process lives.
            started = subprocess.Popen(self._command, stdin=subprocess.PIPE)  # noqa: S603 - our own command
            with started as process:
                log.info("child.start", child=self._name, pid=process.pid)
                if not self._watch(process, stop):
                    log.info("child.stop", child=self._name, pid=process.pid, code=process.returncode)
                    return
            failures = 1 if self._seconds() - began >= STEADY_SECONDS else failures + 1
            pause = self._pauses.delay_after(failures, seed=f"{self._name}/{failures}")
            log.warning(
                "child.died",
                child=self._name,
                pid=process.pid,
                code=process.returncode,
                again_in_seconds=pause.total_seconds(),
            )
            stop.wait(pause.total_seconds())

    def _watch(self, process: subprocess.Popen[bytes], stop: threading.Event) -> bool:
        """Until it has ended; whether it did so without being asked."""
        while process.poll() is None:
            if stop.wait(LOOKED_AFTER_SECONDS):
                process.terminate()
                process.wait()
                return False
        return True


@contextmanager
def stopped_with_supervisor(stop: threading.Event) -> Iterator[None]:
    """Sets `stop` when this process's supervisor is gone; without one it does nothing."""
    pipe = SUPERVISOR.get()
    if pipe is not None:
        threading.Thread(target=_wait_for_end, args=(pipe, stop), name="rota-supervisor", daemon=True).start()
    yield


def _wait_for_end(pipe: int, stop: threading.Event) -> None:
    while os.read(pipe, 1):
        pass
    # Before anything that could fail: nobody may read the log any more.
    stop.set()
    log.warning("child.left_alone")
