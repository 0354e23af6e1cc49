"""Hearing what is notified on PostgreSQL: a thread with a connection of its own, as long as somebody listens.

The connection is taken out of the pool, so that it is no one else's. When it is lost, the thread connects anew, later
and later up to `PAUSE_MAX`. Whenever it has begun to listen, every notice is told once: what was committed before may
have been missed. Behind a pooler that gives each transaction another connection nothing is ever heard, and whoever
waits goes on by looking every now and then.
"""

import os
import select
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import psycopg
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from rota.store.port import Audience, Heard, Notice, Subscription
from rota.store.sql.notices import channel_of

PAUSE_MIN_SECONDS = 0.1
PAUSE_MAX_SECONDS = 5.0
CHECKED_AFTER_SECONDS = 30.0
"""Silence after which the connection is tried out: a server that is gone without a word says nothing either. How long
the trial takes then is set for the connection (`postgresql.SILENCE`)."""

END_SECONDS = 5.0
"""How long a close waits for the thread, which a server that does not answer may hold; it ends by itself then."""

NOTICES = {channel_of(notice): notice for notice in Notice}
LOSSES = (SQLAlchemyError, psycopg.Error, OSError)


class Listener(Audience):
    """The audience of one database, to whom every process's notices are told."""

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self._engine = engine
        self._thread: ListeningThread | None = None

    def subscribe(self, heard: Heard) -> Subscription:
        seat = super().subscribe(heard)
        with self._lock:
            if self._thread is None and self._seats:
                self._thread = ListeningThread(self._engine, self.tell)
                self._thread.start()
        return seat

    def leave(self, seat: Subscription) -> None:
        super().leave(seat)
        self._end_thread()

    def close(self) -> None:
        super().close()
        self._end_thread()

    def _end_thread(self) -> None:
        with self._lock:
            thread = None if self._seats else self._thread
            if thread is not None:
                self._thread = None
        if thread is not None:
            thread.end()


class ListeningThread:
    """Tells what it hears until it is ended."""

    def __init__(self, engine: Engine, tell: Callable[[set[Notice]], None]) -> None:
        self._engine = engine
        self._tell = tell
        self._ended, self._end = os.pipe()
        self._thread = threading.Thread(target=self._run, name="rota-listener", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        # The pipe, and not an event: the thread waits for it and for the server at once. The thread closes the rest.
        os.close(self._end)
        if self._thread is not threading.current_thread():
            self._thread.join(END_SECONDS)

    def _run(self) -> None:
        pause = PAUSE_MIN_SECONDS
        try:
            while not self._is_ended_within(pause=None):
                try:
                    with self._listening() as connection:
                        self._tell(set(Notice))
                        pause = PAUSE_MIN_SECONDS
                        self._hear(connection)
                except LOSSES:
                    if self._is_ended_within(pause=pause):
                        return
                    pause = min(2 * pause, PAUSE_MAX_SECONDS)
        finally:
            os.close(self._ended)

    @contextmanager
    def _listening(self) -> Iterator["psycopg.Connection[object]"]:
        with self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            # Before it is detached, after which it is not told any more.
            driver = cast("psycopg.Connection[object]", connection.connection.driver_connection)
            connection.detach()
            for channel in NOTICES:
                connection.exec_driver_sql(f"LISTEN {channel}")
            yield driver

    def _hear(self, connection: "psycopg.Connection[object]") -> None:
        """Until the thread is ended. Raises what a lost connection raises."""
        while True:
            is_readable, is_ended = self._wait(connection.fileno(), CHECKED_AFTER_SECONDS)
            if is_ended:
                return
            if not is_readable:
                connection.execute("SELECT 1")
            heard = {notify.channel for notify in connection.notifies(timeout=0)}
            self._tell({NOTICES[channel] for channel in heard if channel in NOTICES})

    def _is_ended_within(self, *, pause: float | None) -> bool:
        _, is_ended = self._wait(None, pause or 0.0)
        return is_ended

    def _wait(self, server: int | None, seconds: float) -> tuple[bool, bool]:
        """Whether the server has sent something, and whether the thread is to end; neither where time is over."""
        poll = select.poll()
        poll.register(self._ended, select.POLLIN)
        if server is not None:
            poll.register(server, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll(seconds * 1000)}
        return server in ready, self._ended in ready
