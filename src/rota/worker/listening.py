"""Being told by a server that there is work: a long poll in a thread of its own.

A poll claims nothing (its limit is 0): its answer only says that a claim is worth while, so what it says may come twice
or get lost. It is armed by a claim that found nothing, and disarmed by the answer: a worker without a free slot does
not ask, and nobody tells it what it cannot take.
"""

import http.client
import json
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta

from rota.clock import monotonic_seconds
from rota.domain.backoff import Backoff
from rota.domain.durations import format_duration
from rota.domain.errors import RotaError
from rota.telemetry import get_logger
from rota.worker.gateway import LONG_POLL, WakeUp
from rota.worker.server_answers import ServerAddress, ServerUnavailable, read_answer

ANSWER_SECONDS = LONG_POLL.total_seconds() + 10
EARLY_SECONDS = LONG_POLL.total_seconds() / 2
"""An answer that comes sooner and brings nothing has not waited: the server stops, or a proxy leaves `wait` out."""
PAUSES = Backoff(initial_delay=timedelta(milliseconds=100), max_delay=timedelta(seconds=5), jitter=0.2)
"""Between polls that failed, and between those that did not wait."""

log = get_logger("worker")


class Listener:
    """One subscription. `left` is called when it is closed."""

    def __init__(
        self, address: ServerAddress, wake_up: WakeUp, *, left: Callable[["Listener"], None]
    ) -> None:
        self._address = address
        self._wake_up = wake_up
        self._left = left
        self._changed = threading.Condition()
        self._asked: tuple[str, tuple[str, ...]] | None = None
        """For whom, and for which jobs, it polls; None: it is not armed."""
        self._is_closed = False
        self._connection: http.client.HTTPConnection | None = None
        self._thread = threading.Thread(target=self._run, name="rota-listener", daemon=True)
        self._thread.start()

    def arm(self, worker: str, jobs: Sequence[str]) -> None:
        asked = worker, tuple(jobs)
        with self._changed:
            if asked == self._asked:
                return
            if self._asked is not None:
                # The server sees it go, and the thread asks anew at once.
                self._hang_up()
            self._asked = asked
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            if self._is_closed:
                return
            self._is_closed = True
            self._hang_up()
            self._changed.notify()
        self._left(self)
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=ANSWER_SECONDS)

    def _run(self) -> None:
        failures = early = 0
        while (asked := self._wait_armed()) is not None:
            began = monotonic_seconds()
            try:
                is_there = self._poll(*asked)
            except (OSError, http.client.HTTPException, RotaError) as error:
                if self._pause(asked, failures + 1):
                    failures += 1
                    if failures == 1:
                        log.warning("worker.poll_failed", problem=f"{type(error).__name__}: {error}")
                self._close_connection()
                continue
            if failures or is_there:
                # After an outage nobody knows what came meanwhile.
                self._disarm(asked)
                self._wake_up()
            failures = 0
            has_waited = is_there or monotonic_seconds() - began >= EARLY_SECONDS
            early = 0 if has_waited else early + 1
            if early:
                self._pause(asked, early)
        self._close_connection()

    def _pause(self, asked: tuple[str, tuple[str, ...]], count: int) -> bool:
        """Before the same is asked once more; whether it is still to be asked. A change ends the pause."""
        with self._changed:
            if self._is_closed or self._asked not in (asked, None):
                return False
            delay = PAUSES.delay_after(count, seed=f"{asked[0]}/{count}")
            self._changed.wait(delay.total_seconds())
            return True

    def _wait_armed(self) -> tuple[str, tuple[str, ...]] | None:
        """What to poll for; None: it is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._asked is not None)
            return None if self._is_closed else self._asked

    def _disarm(self, asked: tuple[str, tuple[str, ...]]) -> None:
        with self._changed:
            if self._asked == asked:
                self._asked = None

    def _poll(self, worker: str, jobs: tuple[str, ...]) -> bool:
        """Whether a claim is worth while; waits for that, but not for ever."""
        body = {"worker": worker, "jobs": list(jobs), "limit": 0, "wait": format_duration(LONG_POLL)}
        connection = self._open_connection(worker, jobs)
        connection.request(
            "POST",
            self._address.path_of("/attempts/claim"),
            body=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        response = connection.getresponse()
        answer = read_answer(self._address, "/attempts/claim", status=response.status, data=response.read())
        return answer.get("may_be_more") is True

    def _open_connection(self, *asked: object) -> http.client.HTTPConnection:
        """A connection that `_hang_up` can end from now on. Raises `OSError`, and `ServerUnavailable`."""
        connection = self._connection
        if connection is None:
            is_secure = self._address.scheme == "https"
            kind = http.client.HTTPSConnection if is_secure else http.client.HTTPConnection
            connection = kind(self._address.host, self._address.port, timeout=ANSWER_SECONDS)
        if connection.sock is None:
            connection.connect()
        with self._changed:
            self._connection = connection
            if self._is_closed or self._asked != asked:
                raise ServerUnavailable("Nobody waits for the answer any more.")
        return connection

    def _close_connection(self) -> None:
        with self._changed:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _hang_up(self) -> None:
        """Ends a wait for an answer, from another thread."""
        connection = None if self._connection is None else self._connection.sock
        if connection is not None:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
