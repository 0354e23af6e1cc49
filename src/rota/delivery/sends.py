"""Sends: what a relay hands to a sink, and how sinks that block do it in threads of their own.

A relay never waits for a send. It starts one and is told, from whatever thread, what became of each message of it.
Threads are daemons: one that hangs in somebody's client does not keep a stopping process alive.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from queue import Empty, SimpleQueue
from typing import Protocol

from rota.delivery.outcome import Outcome, failure_of
from rota.store.port import TakenDelivery

THREADS_MAX = 64
"""Of one kind of sink."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """One try of one message, in the hands of a relay."""

    taken: TakenDelivery
    destination: str
    began: datetime


Done = Callable[[Send, Outcome], None]
"""Told what became of a send; it only notes it down."""


class Sender(Protocol):
    """Sends to all sinks of one kind."""

    batch_max: int
    """How many messages to one destination it is handed at a time, at most."""

    def start(self, batch: Sequence[Send], done: Done) -> None:
        """Begins to send them, all to one destination; each is `done` once, in whatever order."""
        ...

    def close(self) -> None:
        """No further sends. What is under way is left alone or given up; nobody asks for it any more."""
        ...


class BlockingSink(Protocol):
    """Sends in the caller's thread, which it may hold up for a bounded time. Threads share it."""

    batch_max: int

    def send(self, batch: Sequence[Send]) -> Sequence[Outcome]:
        """What became of each, in their order."""
        ...

    def close(self) -> None: ...


class ThreadedSender:
    """Makes a sender of a sink that blocks; without threads (`inline`) it sends where it is started, for tests."""

    def __init__(self, sink: BlockingSink, *, inline: bool = False) -> None:
        self.batch_max = sink.batch_max
        self._sink = sink
        self._threads = None if inline else Threads("rota-send", size=THREADS_MAX)

    def start(self, batch: Sequence[Send], done: Done) -> None:
        def send() -> None:
            for each, outcome in zip(batch, self._outcomes(batch), strict=True):
                done(each, outcome)

        if self._threads is None:
            send()
        else:
            self._threads.start(send)

    def close(self) -> None:
        if self._threads is not None:
            self._threads.close()
        self._sink.close()

    def _outcomes(self, batch: Sequence[Send]) -> Sequence[Outcome]:
        try:
            return self._sink.send(batch)
        except Exception as error:  # noqa: BLE001 - a try has failed, whatever its client raised
            return [failure_of(error) for _ in batch]


class Threads:
    """Up to `size` daemon threads, made as they are needed and used again; calls beyond that wait. One thread starts
    them."""

    def __init__(self, name: str, *, size: int) -> None:
        self._name = name
        self._size = size
        self._waiting: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._idle: SimpleQueue[None] = SimpleQueue()
        self._made = 0

    def start(self, call: Callable[[], None]) -> None:
        self._waiting.put(call)
        if not self._take_idle() and self._made < self._size:
            self._made += 1
            threading.Thread(target=self._work, name=f"{self._name}-{self._made}", daemon=True).start()

    def close(self) -> None:
        """They end when their calls do."""
        for _ in range(self._made):
            self._waiting.put(None)

    def _take_idle(self) -> bool:
        """Whether a thread waits for a call; it is then counted as having one."""
        try:
            self._idle.get_nowait()
        except Empty:
            return False
        return True

    def _work(self) -> None:
        while (call := self._waiting.get()) is not None:
            call()
            # The call holds its messages, which are not to live until the next one comes.
            del call
            self._idle.put(None)
