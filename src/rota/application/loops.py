"""Loops side by side in one process: the dispatcher's, the worker's, the API's."""

import threading
from collections.abc import Callable, Sequence

from rota.domain.errors import RotaError

SIGNALS_LOOKED_AFTER_SECONDS = 0.5

Loop = Callable[[threading.Event, threading.Event], None]
"""Runs until its first event is set; its second one ends a wait."""


class LoopFailed(RotaError):
    """A loop ended on an error that is a defect and stands on standard error; the others were stopped too."""


def wait_for(stop: threading.Event) -> None:
    """Until it is set. In short waits: a signal whose handler is to set it may come just before one begins, and Python
    runs the handler when the wait is over.
    """
    while not stop.wait(SIGNALS_LOOKED_AFTER_SECONDS):
        pass


def run_side_by_side(loops: Sequence[tuple[str, Loop, threading.Event]], stop: threading.Event) -> None:
    """Runs each loop, given with its name and its wake event, in a thread until `stop` is set; waits for all to end.

    A loop that fails stops the others, so that no process goes on as half of itself; raises `LoopFailed` then.
    """
    unfinished = {name for name, _, _ in loops}

    def run(name: str, loop: Loop, wake: threading.Event) -> None:
        try:
            loop(stop, wake)
            unfinished.remove(name)
        finally:
            stop.set()

    threads = [
        threading.Thread(target=run, args=arguments, name=f"rota-{arguments[0]}", daemon=True)
        for arguments in loops
    ]
    for thread in threads:
        thread.start()
    wait_for(stop)
    for _, _, wake in loops:
        wake.set()
    for thread in threads:
        thread.join()
    if unfinished:
        names = " and ".join(sorted(unfinished))
        raise LoopFailed(f"The {names} of this process failed; the error stands on standard error.")
