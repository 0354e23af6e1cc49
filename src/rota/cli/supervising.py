"""Several worker processes as one: started, started anew when they die, and told to drain when this one is stopped.

Processes and not threads: handlers that compute have a core each, and one that crashes its process takes no other with
it. A child knows nothing of this; it is `rota work`, and what it held when it died is recovered as everybody's is.
"""

import subprocess
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta

from rota.clock import monotonic_seconds
from rota.domain.backoff import Backoff
from rota.telemetry import get_logger

LOOKED_AFTER_SECONDS = 0.1
PAUSES = Backoff(initial_delay=timedelta(milliseconds=500), max_delay=timedelta(seconds=30), jitter=0.2)
STEADY_SECONDS = 60.0
"""One that ran for so long has not failed at once: the next pause is a short one again."""

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
            process = subprocess.Popen(self._command)  # noqa: S603 - our own command, with the options that it was given
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
