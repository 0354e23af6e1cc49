"""The signals that stop a process: the first asks, a later one ends it at once."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from rota.clock import monotonic_seconds
from rota.telemetry import get_logger

log = get_logger("application")

STOPPING = (signal.SIGINT, signal.SIGTERM)
SAME_SECONDS = 1.0
"""What comes so soon after the first signal is the same one: wrappers send it to a process and to its group."""


@contextmanager
def stopped_by_signals(
    stop: threading.Event, *, seconds: Callable[[], float] = monotonic_seconds
) -> Iterator[None]:
    """SIGINT and SIGTERM set `stop`; one that comes `SAME_SECONDS` after the first, or later, ends the process with
    128 and its number, whatever is under way. `seconds` never go back.

    Does nothing outside of the main thread, which alone receives signals. The handler only writes to a pipe that a
    thread reads: it may run while the main thread holds the lock of `stop`, and setting it there would wait for that
    lock forever.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reading, writing = os.pipe()
    asked_at: float | None = None

    def handle(number: int, _frame: FrameType | None) -> None:
        nonlocal asked_at
        now = seconds()
        if asked_at is None:
            asked_at = now
            os.write(writing, bytes([number]))
        elif now - asked_at >= SAME_SECONDS:
            os._exit(128 + number)

    def watch() -> None:
        asked_by = os.read(reading, 1)
        # Before anything that could fail: a log that nobody reads any more must not keep the process alive.
        stop.set()
        if asked_by:
            log.info("process.stopping", signal=signal.Signals(asked_by[0]).name)

    watcher = threading.Thread(target=watch, name="rota-signals", daemon=True)
    watcher.start()
    before = {number: signal.signal(number, handle) for number in STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(writing)
        watcher.join()
        os.close(reading)
