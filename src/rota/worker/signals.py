"""What passes between a handler and its worker while an attempt runs."""

import threading
from collections.abc import Callable

from rota.domain.run import Progress


class Signals:
    """What passes between a handler and its worker while an attempt runs. Threads may share it.

    Of progress only the latest is kept, and `notify` is called only where no report was waiting yet: a handler that
    reports in a tight loop wakes its worker once for each report that is sent.
    """

    def __init__(self, notify: Callable[[], None]) -> None:
        self._notify = notify
        self._lock = threading.Lock()
        self._progress: Progress | None = None
        self._is_cancel_requested = False
        self._is_over = False

    @property
    def is_cancel_requested(self) -> bool:
        """Somebody asked the run to stop."""
        return self._is_cancel_requested

    @property
    def is_over(self) -> bool:
        """The attempt is not this handler's any more: stale, timed out or interrupted."""
        return self._is_over

    @property
    def has_progress(self) -> bool:
        return self._progress is not None

    def report(self, progress: Progress) -> None:
        with self._lock:
            is_first, self._progress = self._progress is None, progress
        if is_first:
            self._notify()

    def take_progress(self) -> Progress | None:
        """What was reported since the last call."""
        with self._lock:
            progress, self._progress = self._progress, None
            return progress

    def give_back(self, progress: Progress | None) -> None:
        """Progress that could not be sent is kept, unless the handler has reported since."""
        with self._lock:
            self._progress = self._progress or progress

    def request_cancel(self) -> None:
        self._is_cancel_requested = True

    def end(self) -> None:
        self._is_over = True
