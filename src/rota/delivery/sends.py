"""Sends: what a relay hands to a sink, and how sinks that block do it in threads of their own.

A relay never waits for a send. It starts one and is told, from whatever thread, what became of each message of it.
Threads are daemons: one that hangs in somebody's client does not keep a stopping process alive. Nor does it keep its
place: what is written off frees it, and another thread takes it.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from queue import Empty, SimpleQueue
from typing import Protocol

from rota.delivery.outcome import Outcome, failure_of
from rota.store.port import TakenDelivery
from rota.telemetry import get_logger

THREADS_MAX = 64
"""Of one kind of sink."""
LOST_MAX = 256
"""Threads that hang and were replaced, of one kind of sink; there are no more of them than that."""

log = get_logger("delivery")


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """One try of one message, in the hands of a relay."""

    taken: TakenDelivery
    destination: str
    began: datetime

    @property
    def lease_ends_at(self) -> datetime:
        """Until when the delivery is the relay's."""
        return self.taken.delivery.next_at or self.began


Done = Callable[[Send, Outcome], None]
"""Told what became of a send; it only notes it down."""


class Sender(Protocol):
    """Sends to all sinks of one kind."""

    batch_max: int
    """How many messages to one destination it is handed at a time, at most."""

    def start(self, batch: Sequence[Send], done: Done) -> None:
        """Begins to send them, all to one destination; each is `done` once, in whatever order."""
        ...

    def write_off(self, send: Send) -> None:
        """The relay has given it up, long after it should have ended: whatever it holds is to be had again."""
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

        self._calls: dict[int, Call] = {}
        """By the identity of each send that is under way."""

    def start(self, batch: Sequence[Send], done: Done) -> None:
        def send() -> None:
            for each, outcome in zip(batch, self._outcomes(batch), strict=True):
                self._calls.pop(id(each), None)
                done(each, outcome)

        if self._threads is None:
            send()
            return
        call = Call(send)
        self._calls.update((id(each), call) for each in batch)
        self._threads.start(call)

    def write_off(self, send: Send) -> None:
        call = self._calls.pop(id(send), None)
        if call is not None and self._threads is not None:
            self._threads.replace(call)

    def close(self) -> None:
        if self._threads is not None:
            self._threads.close()
        self._sink.close()

    def _outcomes(self, batch: Sequence[Send]) -> Sequence[Outcome]:
        try:
            outcomes = self._sink.send(batch)
        except BaseException as error:  # noqa: BLE001 - a try has failed, whatever its client raised: an exit as well
            return [failure_of(error) for _ in batch]
        if len(outcomes) != len(batch):
            return [failure_of(ValueError("it does not say what became of each message")) for _ in batch]
        return outcomes


class Call:
    """What a thread is to do, or does."""

    __slots__ = ("_do", "is_begun", "is_lost")

    def __init__(self, do: Callable[[], None]) -> None:
        self._do = do
        self.is_begun = False
        self.is_lost = False

    def __call__(self) -> None:
        self._do()


class Threads:
    """Up to `size` daemon threads, made as they are needed and used again; calls beyond that wait. One thread starts
    and replaces them."""

    def __init__(self, name: str, *, size: int) -> None:
        self._name = name
        self._size = size
        self._waiting: SimpleQueue[Call | None] = SimpleQueue()
        self._idle: SimpleQueue[None] = SimpleQueue()
        self._lock = threading.Lock()
        """Held to change whether a call is begun, is lost or has ended."""
        self._living = 0
        """Threads that are made and not lost."""
        self._lost = 0
        self._made = 0

    def start(self, call: Call) -> None:
        self._waiting.put(call)
        if not self._take_idle():
            self._make()

    def replace(self, call: Call) -> None:
        """Gives up a call, once: if a thread hangs in it another one takes its place, and if none has begun it none
        will."""
        with self._lock:
            if call.is_lost or (call.is_begun and self._lost >= LOST_MAX):
                return
            call.is_lost = True
            if not call.is_begun:
                return
            self._lost += 1
            self._living -= 1
        self._make()

    def close(self) -> None:
        """They end when their calls do."""
        with self._lock:
            living = self._living
        for _ in range(living):
            self._waiting.put(None)

    def _make(self) -> None:
        with self._lock:
            if self._living >= self._size:
                return
            self._living += 1
        self._made += 1
        threading.Thread(target=self._work, name=f"{self._name}-{self._made}", daemon=True).start()

    def _take_idle(self) -> bool:
        """Whether a thread waits for a call; it is then counted as having one."""
        try:
            self._idle.get_nowait()
        except Empty:
            return False
        return True

    def _work(self) -> None:
        while (call := self._waiting.get()) is not None:
            if not self._do(call):
                return
            # The call holds its messages, which are not to live until the next one comes.
            del call
            self._idle.put(None)

    def _do(self, call: Call) -> bool:
        """Whether the thread is still one of these when it has done the call."""
        with self._lock:
            call.is_begun = not call.is_lost
        if not call.is_begun:
            return True
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - a thread outlives whatever its calls do
            log.warning("thread.call_failed", problem=f"{type(error).__name__}: {error}")
        with self._lock:
            call.is_begun = False
            if call.is_lost:
                self._lost -= 1
            return not call.is_lost
