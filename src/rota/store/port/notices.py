"""What a store tells those who would else look again and again: that there may be something for them to do.

A notice is a hint. It names nothing, comes after the commit that it tells of, and may come twice, late, for nothing, or
not at all: whoever hears one looks into the store, and looks now and then without one.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from enum import Enum
from threading import Event, Lock
from typing import Protocol

from rota.domain.run import RunState
from rota.domain.schedule import ScheduleStatus
from rota.store.port.schedules import ScheduleChange

SOON = timedelta(seconds=65)
"""How near the instant must be at which a change makes something fall due, for a notice of it.

What is due later is found in time without one: a dispatcher looks every `poll_seconds`, which are 60 at most, and the
rest is for clocks that differ a little. On PostgreSQL a commit that notifies waits for every other one that does, so
schedules which are due later do not pay for those that are due soon.
"""


class Notice(Enum):
    DUE = "due"
    """Something may fall due earlier than was known."""
    QUEUED = "queued"
    """Deliveries are there, or will be available earlier than was known."""


Heard = Callable[[Notice], None]
"""Called with a notice, in a thread of the store's or of whoever commits: it only notes it down, and raises nothing."""


class Subscription(Protocol):
    def close(self) -> None:
        """Nothing is heard any more; again is nothing. A thread or connection behind it has ended."""


class NoticeStore(Protocol):
    def subscribe(self, heard: Heard) -> Subscription:
        """Has `heard` called from now on, until it is closed, whichever process commits; on SQLite only what this store
        commits. After a time in which something may have been missed it is called for every notice.
        """


def sets(event: Event, wanted: Notice) -> Heard:
    """Sets the event whenever `wanted` is heard."""

    def heard(notice: Notice) -> None:
        if notice is wanted:
            event.set()

    return heard


def is_soon(due_at: datetime | None, *, now: datetime) -> bool:
    return due_at is not None and due_at <= now + SOON


def makes_due_soon(change: ScheduleChange) -> bool:
    """Whether what the change leaves may fall due soon: its schedule, or a planned run of it."""
    if change.cursor is None:
        # The cursor that stays may be due long since, where the schedule is active again.
        is_due = change.status is ScheduleStatus.ACTIVE
    else:
        is_due = is_soon(change.cursor.due_at, now=change.at)
    written = (*change.runs, *(changed.run for changed in change.run_changes))
    return is_due or any(
        run.state is RunState.PLANNED and is_soon(run.due_at, now=change.at) for run in written
    )


class Audience:
    """Who listens to a store in this process. Threads may share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._seats: dict[object, Heard] = {}

    def subscribe(self, heard: Heard) -> Subscription:
        seat = Seat(self)
        with self._lock:
            self._seats[seat] = heard
        return seat

    def leave(self, seat: Subscription) -> None:
        with self._lock:
            self._seats.pop(seat, None)

    def tell(self, notices: set[Notice]) -> None:
        if not notices:
            return
        with self._lock:
            listening = list(self._seats.values())
        for heard in listening:
            for notice in notices:
                heard(notice)

    def close(self) -> None:
        """Sends everyone away; a later subscription begins anew."""
        with self._lock:
            self._seats.clear()


class Seat:
    """One subscription of an audience."""

    def __init__(self, audience: Audience) -> None:
        self._audience = audience

    def close(self) -> None:
        self._audience.leave(self)
