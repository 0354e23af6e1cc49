"""Where handlers run: threads for sync ones, one event loop for async ones, or at once and in place.

A handler ends its own attempt and nothing else, whatever it raises: `SystemExit`, an exception that cannot be shown,
a cancelled asyncio task. A thread cannot be stopped from outside, so a call that is told to stop goes on until its
handler heeds it. Threads are daemons (those of `concurrent.futures` are not): a handler that never returns does not
keep a stopping process alive.
"""

import asyncio
import inspect
import threading
import traceback
from collections import deque
from collections.abc import Callable, Coroutine
from queue import Empty, SimpleQueue
from typing import Protocol

from rota.domain.run import AttemptOutcome
from rota.domain.settlement import AttemptEnd
from rota.telemetry import get_logger
from rota.worker.context import RunContext
from rota.worker.outcome import end_of_error, end_of_result, verdict_of
from rota.worker.registry import RegisteredJob
from rota.worker.signals import Signals

LOOP_ENDS_WITHIN_SECONDS = 1.0
"""How long a closing event loop waits for the tasks that it cancelled."""

log = get_logger("worker")

Done = Callable[[AttemptEnd], None]
"""Told how a call ended, from whatever thread it ran in."""
AsyncCall = Coroutine[object, None, AttemptEnd]
Stop = Callable[[], None]
"""Asks a call to stop: cancels an async one; a sync one has only its context to look at."""


class Calls(Protocol):
    """Runs handlers. The worker bounds how many at a time; `start` never waits for one in threads."""

    def start(self, entry: RegisteredJob, context: RunContext, signals: Signals, done: Done) -> Stop: ...
    def close(self) -> None:
        """No further calls. Async ones are cancelled; threads end when their handlers do."""
        ...


class ThreadedCalls:
    """Up to `size` threads, made as they are needed and used again, and one thread with an event loop."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._waiting: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._idle: SimpleQueue[None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._loop: LoopThread | None = None

    def start(self, entry: RegisteredJob, context: RunContext, signals: Signals, done: Done) -> Stop:
        if entry.is_async:
            if self._loop is None:
                self._loop = LoopThread()
            return self._loop.start(lambda: await_handler(entry, context, signals), done)
        self._waiting.put(lambda: done(call_handler(entry, context, signals)))
        if not self._take_idle() and len(self._threads) < self._size:
            thread = threading.Thread(
                target=self._work, name=f"rota-handler-{len(self._threads)}", daemon=True
            )
            self._threads.append(thread)
            thread.start()
        return stop_nothing

    def close(self) -> None:
        threads, self._threads = self._threads, []
        for _ in threads:
            self._waiting.put(None)
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.close()

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
            # The call holds its handler's context, which is not to live until the next one comes.
            del call
            self._idle.put(None)


class LoopThread:
    """An event loop in a daemon thread. One thread starts calls; the loop is woken once for all that wait to begin."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_woken = False
        self._tasks: set[asyncio.Task[AttemptEnd]] = set()
        self._thread = threading.Thread(target=self._run, name="rota-handler-loop", daemon=True)
        self._thread.start()

    def start(self, call: Callable[[], AsyncCall], done: Done) -> Stop:
        begun: list[asyncio.Task[AttemptEnd]] = []

        def begin() -> None:
            task = self._loop.create_task(call())
            begun.append(task)
            self._tasks.add(task)
            task.add_done_callback(finish)

        def finish(task: asyncio.Task[AttemptEnd]) -> None:
            self._tasks.discard(task)
            # A task that is cancelled before its first step never reaches its handler.
            done(AttemptEnd(outcome=AttemptOutcome.INTERRUPTED) if task.cancelled() else task.result())

        def cancel() -> None:
            # The loop keeps the order of its calls, so the task has begun by now.
            begun[0].cancel()

        def stop() -> None:
            self._loop.call_soon_threadsafe(cancel)

        # First the call, then the question: the loop takes the answer back before it looks for calls.
        self._waiting.append(begin)
        if not self._is_woken:
            self._is_woken = True
            self._loop.call_soon_threadsafe(self._begin_waiting)
        return stop

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end_tasks(), self._loop)
        self._thread.join(timeout=2 * LOOP_ENDS_WITHIN_SECONDS)
        if self._thread.is_alive():
            log.warning("handler.blocks_loop")

    def _begin_waiting(self) -> None:
        self._is_woken = False
        while self._waiting:
            self._waiting.popleft()()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    async def _end_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=LOOP_ENDS_WITHIN_SECONDS)
        self._loop.stop()


class InlineCalls:
    """Runs each handler where it is started, so that a step of the worker is deterministic and needs no waiting.

    An async handler gets an event loop of its own, in a thread that is waited for: the caller may run in a loop itself.
    """

    def start(self, entry: RegisteredJob, context: RunContext, signals: Signals, done: Done) -> Stop:
        if entry.is_async:
            thread = threading.Thread(
                target=lambda: done(asyncio.run(await_handler(entry, context, signals)))
            )
            thread.start()
            thread.join()
        else:
            done(call_handler(entry, context, signals))
        return stop_nothing

    def close(self) -> None:
        pass


def call_to_its_end(entry: RegisteredJob, context: RunContext, signals: Signals) -> AttemptEnd:
    """Runs a handler to its end in this thread; an async one in an event loop of its own, so not within another."""
    if entry.is_async:
        return asyncio.run(await_handler(entry, context, signals))
    return call_handler(entry, context, signals)


def call_handler(entry: RegisteredJob, context: RunContext, signals: Signals) -> AttemptEnd:
    """Runs a sync handler to its end, where its guard lets it."""
    try:
        moot = None if entry.guard is None else verdict_of(entry.guard(context))
        return end_of_result(entry.handler(context) if moot is None else moot)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
            # The person at the keyboard means the program, not the handler that runs in place.
            raise
        return _raised(error, context, signals)


async def await_handler(entry: RegisteredJob, context: RunContext, signals: Signals) -> AttemptEnd:
    """Runs an async handler to its end, where its guard lets it."""
    try:
        moot = None if entry.guard is None else verdict_of(await _awaited(entry.guard(context)))
        return end_of_result(await _awaited(entry.handler(context)) if moot is None else moot)
    except BaseException as error:  # noqa: BLE001 - the same: an asyncio task would take the loop with it
        return _raised(error, context, signals)


async def _awaited(result: object) -> object:
    return await result if inspect.isawaitable(result) else result


def _raised(error: BaseException, context: RunContext, signals: Signals) -> AttemptEnd:
    end = end_of_error(error, cancel_requested=signals.is_cancel_requested)
    if end.outcome is AttemptOutcome.FAILED and not signals.is_over:
        # As text: a renderer that nobody configured would show the handler's local variables too.
        log.warning(
            "handler.raise",
            run_id=context.run_id,
            attempt=context.attempt,
            job=context.job,
            exception="".join(traceback.format_exception(error)),
        )
    return end


def stop_nothing() -> None:
    """A sync handler has its context to ask."""
