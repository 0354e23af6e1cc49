"""Loops of steps: each does one bounded piece of work and says how long it may be left alone, or until it is woken."""

import threading
from collections.abc import Callable
from datetime import timedelta

from rota.clock import Clock

Step = Callable[[], float]
"""Does one step, outlives whatever that raises, and answers how many seconds it may wait now."""


def step_until(stop: threading.Event, wake: threading.Event, *, clock: Clock, step: Step) -> None:
    """Steps until `stop` is set (set `wake` too, to end a wait)."""
    while not stop.is_set():
        wake.clear()
        seconds = step()
        if not stop.is_set():
            clock.wait(wake, seconds)


def step_until_done(
    is_done: Callable[[], bool], wake: threading.Event, *, clock: Clock, step: Step, within: timedelta
) -> bool:
    """Steps once, and on until there is nothing left to wait for or the time is over; whether all is done."""
    is_over = threading.Event()

    def end() -> None:
        is_over.set()
        wake.set()

    # A timer and not a date: it has to end however the wall clock moves.
    timer = threading.Timer(within.total_seconds(), end)
    timer.daemon = True
    timer.start()
    try:
        while True:
            wake.clear()
            seconds = step()
            done = is_done()
            if is_over.is_set() or done:
                return done
            clock.wait(wake, seconds)
    finally:
        timer.cancel()
