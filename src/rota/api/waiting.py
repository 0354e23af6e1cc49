"""Long polls: requests that wait for work on the server's event loop, and hold no thread while they do.

Those that ask for the same jobs are a group, first come, first served. A notice wakes the first of each group; it looks
into the store, and where it found something and there may be more it wakes the next. So a thousand that wait cost one
look for each notice, and not a thousand. A group also looks when its next run becomes available, and once a second
where a notice may not have come (another process on SQLite, a listener that is being connected anew).

Everything here runs on the event loop, but for `end`.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from starlette.concurrency import run_in_threadpool

from rota.service.context import Context
from rota.service.work import subscribe_to_work

LOOK_SECONDS = 1.0
WOKEN_AT_ONCE = 2
"""By one that found more than it takes: a few at a time, so that many are fed soon and few look in vain."""

Jobs = frozenset[str]


class Closes(Protocol):
    def close(self) -> None: ...


class Group:
    """Those that wait for the same jobs."""

    def __init__(self) -> None:
        self.waiting: deque[asyncio.Future[None]] = deque()
        self.timer: asyncio.TimerHandle | None = None

    def wake(self, count: int) -> None:
        while count > 0 and self.waiting:
            future = self.waiting.popleft()
            if not future.done():
                future.set_result(None)
                count -= 1

    def wake_in(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        """Wakes the first in so many seconds, unless it is to be woken earlier."""
        at = loop.time() + seconds
        if self.timer is None or self.timer.cancelled() or self.timer.when() > at:
            self.stop_timer()
            self.timer = loop.call_at(at, self._look)

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _look(self) -> None:
        self.timer = None
        self.wake(1)
        if self.waiting:
            # Whoever was woken may leave with what it finds: the others are not to wait for a notice alone.
            self.wake_in(asyncio.get_running_loop(), LOOK_SECONDS)


class WaitingRoom:
    """The requests of one server that wait."""

    def __init__(self) -> None:
        self._groups: dict[Jobs, Group] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._context: Context | None = None
        self._subscription: Closes | None = None
        self._claims = 0
        self.notices = 0
        """How many were heard: who looks and then waits hands over what it was before the look."""
        self.is_ended = False

    async def enter(self, context: Context) -> None:
        """Listens to the context's store from now on. Raises `StoreUnavailable`."""
        loop = asyncio.get_running_loop()
        if self._loop is loop and self._context is context:
            return
        # Before the wait below, so that one request subscribes and the others go on.
        self._loop, self._context = loop, context
        former, self._subscription = self._subscription, None
        if former is not None:
            await run_in_threadpool(former.close)
        try:
            self._subscription = await run_in_threadpool(subscribe_to_work, context, self._heard(loop))
        except BaseException:
            self._context = None
            raise

    async def wait(
        self, jobs: Jobs, gone: asyncio.Future[None], *, seconds: float, look_in: float, notices: int
    ) -> bool:
        """Until it is this one's turn to look, at most `seconds`; whether it is.

        `gone` is done when the client has left, and `look_in` says when there will be something.
        """
        if self.is_ended:
            return False
        if notices != self.notices:
            return True
        loop = asyncio.get_running_loop()
        group = self._groups.setdefault(jobs, Group())
        turn: asyncio.Future[None] = loop.create_future()
        group.waiting.append(turn)
        group.wake_in(loop, min(look_in, LOOK_SECONDS))
        try:
            await asyncio.wait({turn, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            with suppress(ValueError):
                group.waiting.remove(turn)
            if not group.waiting:
                group.stop_timer()
                if self._groups.get(jobs) is group:
                    del self._groups[jobs]
        if gone.done() and turn.done():
            self.pass_on(jobs, 1)
        return turn.done() and not gone.done() and not self.is_ended

    def pass_on(self, jobs: Jobs, count: int = WOKEN_AT_ONCE) -> None:
        """There may be more than one has taken: it is the next one's turn."""
        group = self._groups.get(jobs)
        if group is not None:
            group.wake(count)

    def look_in(self, jobs: Jobs, seconds: float) -> None:
        """One that leaves knows when there will be more: it is the next one's turn then."""
        group = self._groups.get(jobs)
        if group is not None and group.waiting:
            group.wake_in(asyncio.get_running_loop(), min(seconds, LOOK_SECONDS))

    def is_backlogs_turn(self, every: int) -> bool:
        """Whether this claim, of all here, asks for a backlog first."""
        self._claims += 1
        return self._claims % every == 0

    def end(self) -> None:
        """By any thread: nobody waits any more, so that a server that stops need not wait for them either."""
        self.is_ended = True
        if self._loop is not None:
            with suppress(RuntimeError):  # its loop has ended already
                self._loop.call_soon_threadsafe(self._wake_all)

    async def close(self) -> None:
        """Listens no more."""
        self.end()
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            await run_in_threadpool(subscription.close)

    def _heard(self, loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
        def heard() -> None:
            with suppress(RuntimeError):  # the loop has ended, and with it everyone who waited
                loop.call_soon_threadsafe(self._notice)

        return heard

    def _notice(self) -> None:
        self.notices += 1
        for group in list(self._groups.values()):
            group.wake(1)

    def _wake_all(self) -> None:
        for group in list(self._groups.values()):
            group.wake(len(group.waiting))
