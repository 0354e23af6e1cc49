"""A process that takes runs from a queue until there are no more, in one of several ways; started by `end_to_end`.

It says "ready" once it is connected, begins when it is told "go", and says what it did as a line of JSON.
"""

import json
import os
import sys
import threading
from collections.abc import Callable
from datetime import timedelta

from bench.machine import cpu_seconds_of, memory_of
from bench.queued_runs import JOBS
from bench.work_limit import postgresql_limit, sqlite_limit
from rota.clock import SystemClock
from rota.domain.run import AttemptOutcome, RunEvent
from rota.domain.settlement import AttemptEnd, Settlement
from rota.store.port import OpenedAttempt, Wanted
from rota.store.sql import open_sql_store
from rota.telemetry import configure_logging
from rota.worker.context import RunContext
from rota.worker.registry import Registry
from rota.worker.store_gateway import StoreGateway
from rota.worker.worker import Worker

POLL = timedelta(seconds=1)
Work = Callable[[], int]
"""Does it all, and tells how many runs it was."""


def main(how: str, url: str, size: str) -> None:
    """Prepares `how` ("limit", "store", "worker", "worker-async"), in batches or with slots of this size."""
    configure_logging(level="error", log_format="json")
    work = prepare(how, url, int(size))
    before, cpu_before = memory_of(os.getpid())[0], cpu_seconds_of(os.getpid())
    print("ready", flush=True)
    sys.stdin.readline()
    count = work()
    done = {"count": count, "cpu_seconds": cpu_seconds_of(os.getpid()) - cpu_before}
    print(json.dumps({**done, "rss_before": before, "rss_after": memory_of(os.getpid())[0]}), flush=True)


def prepare(how: str, url: str, size: int) -> Work:
    match how, url.partition(":")[0]:
        case "limit", "postgresql":
            return postgresql_limit(url, JOBS[0], size)
        case "limit", _:
            return sqlite_limit(url, JOBS[0], size)
        case "store", _:
            return claim_and_settle(url, size)
        case _:
            return run_worker(url, size, is_async=how == "worker-async")


def claim_and_settle(url: str, size: int) -> Work:
    """The two calls of the store, one after the other, and nothing of the worker."""
    store, clock = open_sql_store(url), SystemClock()
    wanted = [Wanted(job=name) for name in JOBS]
    store.commit_claims("client", [Wanted(job="unknown")], now=clock.now(), limit=1)

    def work() -> int:
        count = 0
        while opened := store.commit_claims("client", wanted, now=clock.now(), limit=size):
            answers = store.commit_settlements([_succeeded(attempt, clock) for attempt in opened])
            count += sum(answers)
        return count

    return work


def _succeeded(opened: OpenedAttempt, clock: SystemClock) -> Settlement:
    return Settlement(
        run_id=opened.run.run_id,
        attempt=opened.run.attempt,
        end=AttemptEnd(outcome=AttemptOutcome.SUCCEEDED),
        event=RunEvent.SUCCEEDED,
        settled_at=clock.now(),
        retry_at=None,
    )


def run_worker(url: str, size: int, *, is_async: bool) -> Work:
    """The worker's own loop, with handlers that do nothing; told to stop by a second line."""
    store, registry = open_sql_store(url), Registry()
    handled = [0]

    def noop(_: RunContext) -> None:
        handled[0] += 1

    async def noop_async(_: RunContext) -> None:
        handled[0] += 1

    if is_async:
        registry.job(JOBS[1])(noop_async)
    else:
        registry.job(JOBS[0])(noop)
    worker = Worker(
        StoreGateway(store),
        registry,
        clock=SystemClock(),
        name="client",
        concurrency=size,
        poll=POLL,
        drain=POLL,
    )
    stop, wake = threading.Event(), threading.Event()
    loop = threading.Thread(target=worker.run, args=(stop, wake))

    def work() -> int:
        loop.start()
        sys.stdin.readline()
        stop.set()
        wake.set()
        loop.join()
        worker.close()
        return handled[0]

    return work


if __name__ == "__main__":
    main(*sys.argv[1:])
