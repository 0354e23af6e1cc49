"""How soon a run on request begins on an idle machine, and what telling of it costs on PostgreSQL.

Run it with `python -m bench.pickup`. It starts a server of its own, with fsync and synchronous_commit on. With and
without notices take turns in the same run; read the ratio, as the machine may be busy.
"""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import timedelta
from functools import partial
from queue import Queue
from typing import LiteralString, NoReturn
from unittest.mock import patch

import psycopg

from bench.figures import median, middle_and_tail, print_table
from rota import Rota
from rota.clock import SystemClock
from rota.config import Settings
from rota.store.memory import MemoryStore
from rota.store.sql import open_sql_store
from rota.store.sql.listener import ListeningThread
from rota.telemetry import configure_logging
from tests.contract.builders import MADE_AT, new_schedule
from tests.postgresql import running_server
from tests.worker.served import running_server as running_api

REQUESTS = 300
REQUESTS_POLLING = 20
WARM_UP = 10
CONNECTIONS = 4
COMMITS = 1_000
BURST_COMMITS = 40
BURST_ROWS = 1_000
ROUNDS = 5
SOON, LATER = timedelta(seconds=5), timedelta(days=1)
TABLES = "CREATE TABLE burst (id bigint, at bigint, text text, PRIMARY KEY (at, id))"
NOTIFY = "SELECT pg_notify('rota_queued', '')"


def main() -> None:
    """Print two tables."""
    configure_logging(level="error", log_format="console")
    with running_server({}) as server:
        url = server.url()
        open_sql_store(url).close()
        print_table(
            ("run on request to handler, ms", "p50", "p99", "max", "of which the request, p50"),
            [
                ("woken", *_measure_pick_up(url, REQUESTS)),
                ("woken, over HTTP (long poll)", *_measure_over_http(url, REQUESTS)),
                ("looking each second (no LISTEN)", *_measure_without_listening(url)),
                ("in one process, memory", *_measure_in_process(REQUESTS)),
            ],
        )
        print()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(TABLES)
        print_table(
            ("commits a second", "without", "with notices", "ratio"),
            [
                ("1 connection, 1,000 rows each", *_take_turns(partial(_measure_burst, url))),
                ("4 connections, 1 row each, nothing but SQL", *_take_turns(partial(_measure_rows, url))),
                ("4 connections, 1 schedule each", *_take_turns(partial(_measure_creations, url))),
            ],
        )


def _measure_pick_up(url: str, requests: int) -> tuple[str, ...]:
    """From the call of a request in one store to the first line of the handler in a worker of another."""
    began: Queue[float] = Queue()
    with _working(url, began) as asking:
        return _ask(asking, began, requests, schedule_id="report-7")


def _measure_over_http(url: str, requests: int) -> tuple[str, ...]:
    """The same, where the worker has no database and is told by a server, which listens."""
    began: Queue[float] = Queue()
    stores = open_sql_store(url), open_sql_store(url)
    serving, asking = (Rota(settings=Settings(), store=store) for store in stores)
    try:
        with running_api(serving.context) as served:
            working = Rota(settings=Settings(server_url=served.url))
            with _worker_of(working, began), closing(working):
                return _ask(asking, began, requests, schedule_id="report-http")
    finally:
        for store in stores:
            store.close()


def _measure_in_process(requests: int) -> tuple[str, ...]:
    began: Queue[float] = Queue()
    rota = Rota(settings=Settings(), store=MemoryStore())
    with _worker_of(rota, began):
        return _ask(rota, began, requests, schedule_id="report-7")


@contextmanager
def _worker_of(rota: Rota, began: Queue[float]) -> Iterator[None]:
    rota.job("sales_report")(lambda _context: began.put(time.perf_counter()))
    stop, wake = threading.Event(), threading.Event()
    worker = rota.build_worker()
    thread = threading.Thread(target=worker.run, args=(stop, wake))
    worker.step(SystemClock().now())  # it makes its job known
    thread.start()
    try:
        yield
    finally:
        stop.set()
        wake.set()
        thread.join()


def _ask(asking: Rota, began: Queue[float], requests: int, *, schedule_id: str) -> tuple[str, ...]:
    asking.create_schedule(
        id=schedule_id, job="sales_report", timezone="UTC", recurrence={"cron": "0 0 1 1 *"}
    )
    taken, asked = [], []
    for number in range(WARM_UP + requests):
        start = time.perf_counter()
        asking.run_now(schedule_id)
        answered = time.perf_counter()
        begin = began.get(timeout=10)
        if number >= WARM_UP:
            taken.append(1000 * (begin - start))
            asked.append(1000 * (answered - start))
    return (*middle_and_tail(taken), f"{median(asked):,.1f}")


def _measure_without_listening(url: str) -> tuple[str, ...]:
    def fail(_thread: ListeningThread) -> NoReturn:
        raise OSError("a pooler that lends a connection for one transaction")

    with patch.object(ListeningThread, "_listening", fail):
        return _measure_pick_up(url, REQUESTS_POLLING)


@contextmanager
def _working(url: str, began: Queue[float]) -> Iterator[Rota]:
    """An application that works in its own thread; answers with another one, on a store of its own."""
    stores = open_sql_store(url), open_sql_store(url)
    working, asking = (Rota(settings=Settings(), store=store) for store in stores)
    working.job("sales_report")(lambda _context: began.put(time.perf_counter()))
    working.register_jobs()
    stop = threading.Event()
    thread = threading.Thread(target=working.run, args=(stop,))
    thread.start()
    try:
        yield asking
    finally:
        stop.set()
        thread.join()
        for store in stores:
            store.close()


def _take_turns(measure: Callable[[LiteralString | None, int], float]) -> tuple[str, ...]:
    """Medians of a few rounds, without and with."""
    without, told = [], []
    for number in range(ROUNDS):
        without.append(measure(None, 2 * number))
        told.append(measure(NOTIFY, 2 * number + 1))
    return f"{median(without):,.0f}", f"{median(told):,.0f}", f"{median(told) / median(without):.2f}"


def _measure_burst(url: str, notify: LiteralString | None, turn: int) -> float:
    with psycopg.connect(url) as connection:
        start = time.perf_counter()
        for number in range(BURST_COMMITS):
            first = (turn * BURST_COMMITS + number) * BURST_ROWS
            connection.execute(
                "INSERT INTO burst SELECT i, 1, 'as wide as a row of the outbox' "
                "FROM generate_series(%s::bigint, %s::bigint) i",
                (first, first + BURST_ROWS - 1),
            )
            if notify is not None:
                connection.execute(notify)
            connection.commit()
        return BURST_COMMITS / (time.perf_counter() - start)


def _measure_rows(url: str, notify: LiteralString | None, turn: int) -> float:
    def commit(connection: psycopg.Connection[object], number: int) -> None:
        connection.execute("INSERT INTO burst VALUES (%s, %s, 'a row')", (number, turn + 2))
        if notify is not None:
            connection.execute(notify)
        connection.commit()

    def write(place: int) -> None:
        with psycopg.connect(url) as connection:
            for number in range(place, COMMITS, CONNECTIONS):
                commit(connection, number)

    return _measure_side_by_side(write)


def _measure_creations(url: str, notify: LiteralString | None, turn: int) -> float:
    store = open_sql_store(url)

    def create(place: int) -> None:
        for number in range(place, COMMITS, CONNECTIONS):
            due = MADE_AT + (LATER if notify is None else SOON)
            store.commit_creation(new_schedule(f"s-{turn}-{number}", due=due), now=MADE_AT)

    try:
        return _measure_side_by_side(create)
    finally:
        store.close()


def _measure_side_by_side(write: Callable[[int], None]) -> float:
    start = time.perf_counter()
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        list(pool.map(write, range(CONNECTIONS)))
    return COMMITS / (time.perf_counter() - start)


if __name__ == "__main__":
    main()
