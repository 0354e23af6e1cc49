"""Notices of a memory store: told when the lock of the commit that they tell of is free again."""

from threading import Lock
from types import TracebackType

from rota.store.port import Audience, Heard, Notice, Subscription


class Commits:
    """The lock of a memory store, which is held for a whole commit or read."""

    def __init__(self, audience: Audience) -> None:
        self._audience = audience
        self._lock = Lock()
        self._noted: set[Notice] = set()

    def note(self, notice: Notice) -> None:
        """By whoever holds the lock: what it commits gives cause for the notice."""
        self._noted.add(notice)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        noted, self._noted = self._noted, set()
        self._lock.release()
        if error is None:
            self._audience.tell(noted)


class Notices:
    """Who listens, and the lock under which notices are noted."""

    def __init__(self) -> None:
        self._audience = Audience()
        self._lock = Commits(self._audience)

    def subscribe(self, heard: Heard) -> Subscription:
        return self._audience.subscribe(heard)
