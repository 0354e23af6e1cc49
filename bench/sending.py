"""How many no-op runs a second get through a webhook, and through workers over HTTP: `python -m bench.sending [runs]`.

Each row takes the same queue of runs. The limit of webhooks posts bodies of the same size to the same receiver with as
many requests under way, and has no database; that of workers over HTTP is the worker with the database in its process.
Receiver, server and client share the machine's cores.
"""

import argparse
import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import aiohttp

from bench.figures import print_table
from bench.machine import describe, new_databases, running
from bench.queued_runs import JOBS, seed
from rota import Rota
from rota.config import Settings
from rota.domain.job import Job
from rota.domain.run import RunState
from rota.domain.sink import DeliveryPolicy, WebhookSink
from rota.store.port import RunFilter
from rota.telemetry import configure_logging
from rota.worker.context import RunContext
from rota.worker.registry import Registry

RUNS = 3_000
UNDER_WAY = 50
EVENT_BYTES = 900
"""About as large as an event with small params."""
LOOKS_EVERY_SECONDS = 0.02
START_SECONDS = 30.0


def main(count: int = RUNS) -> None:
    """Prints a table for each database."""
    configure_logging(level="error", log_format="json")
    print(describe())
    for kind in ("postgresql", "sqlite"):
        rows = [_measure_webhooks(kind, count), _measure_workers(kind, count)]
        print(f"\n{kind}")
        print_table(("no-op runs a second", "limit", "Rota", "ratio"), rows)


def _measure_webhooks(kind: str, count: int) -> tuple[str, str, str, str]:
    with new_databases(kind) as url, _listening("bench.receiver") as target:
        limit = count / asyncio.run(_post_all(target, count))
        seed(url, JOBS[0], count)
        settings = Settings(database_url=url, webhook_networks="127.0.0.0/8")
        job = Job(name=JOBS[0], sink=WebhookSink(url=target), delivery=DeliveryPolicy(concurrency=UNDER_WAY))
        with Rota(settings=settings) as app:
            app.context.store.commit_job(job, now=app.context.clock.now())
            rate = count / _time_until_done(app, app.build_relay().run)
    return _row("webhook, one relay", limit, rate)


def _measure_workers(kind: str, count: int) -> tuple[str, str, str, str]:
    rates = []
    for is_over_http in (False, True):
        with new_databases(kind) as url, _listening("rota", "serve", "--database", url, "--port") as server:
            seed(url, JOBS[0], count)
            settings = Settings(database_url=url, concurrency=UNDER_WAY)
            asked = settings.model_copy(update={"server_url": server}) if is_over_http else settings
            with Rota(settings=settings) as app, Rota(settings=asked, registry=_registry()) as working:
                rates.append(count / _time_until_done(app, working.build_worker().run))
    return _row("worker over HTTP", *rates)


def _row(name: str, limit: float, rate: float) -> tuple[str, str, str, str]:
    return name, f"{limit:,.0f}", f"{rate:,.0f}", f"{rate / limit:.2f}"


async def _post_all(target: str, count: int) -> float:
    """How long it takes to post so many bodies, without Rota."""
    left = iter(range(count))
    body = b" " * EVENT_BYTES
    connector = aiohttp.TCPConnector(limit=UNDER_WAY)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def post() -> None:
            for _ in left:
                async with session.post(target, data=body) as response:
                    await response.read()

        began = time.perf_counter()
        await asyncio.gather(*(post() for _ in range(UNDER_WAY)))
        return time.perf_counter() - began


def _registry() -> Registry:
    registry = Registry()

    @registry.job(JOBS[0])
    def noop(_: RunContext) -> None:
        """Nothing."""

    return registry


@contextmanager
def _listening(*arguments: str) -> Iterator[str]:
    """The address of a program that takes its port as its last argument, once it listens there."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with running(*arguments, str(port)) as process:
        until = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=START_SECONDS).close()
            except ConnectionRefusedError:
                assert process.is_running, "it has ended"
                assert time.monotonic() < until, "it does not listen"
                time.sleep(LOOKS_EVERY_SECONDS)
            else:
                break
        yield f"http://127.0.0.1:{port}/"


def _time_until_done(app: Rota, run: Callable[[threading.Event, threading.Event], None]) -> float:
    """How long it takes until no run is queued or running."""
    stop, wake = threading.Event(), threading.Event()
    loop = threading.Thread(target=run, args=(stop, wake))
    began = time.perf_counter()
    loop.start()
    store = app.context.store
    # Once more at the end: a run that ran may be queued again.
    for state in (RunState.QUEUED, RunState.RUNNING, RunState.QUEUED):
        while store.list_runs(RunFilter(state=state), before=None, limit=1):
            time.sleep(LOOKS_EVERY_SECONDS)
    seconds = time.perf_counter() - began
    stop.set()
    wake.set()
    loop.join()
    assert not store.list_runs(RunFilter(state=RunState.FAILED), before=None, limit=1), "a run has failed"
    return seconds


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("runs", type=int, nargs="?", default=RUNS, help="how many are queued for each row")
    main(options.parse_args().runs)
