"""How many runs a second go through claim, attempt and settlement: `python -m bench.end_to_end [runs]`.

Each row takes the same queue of no-op runs from its copy of one database, on a server of its own with fsync and
synchronous_commit on, and on SQLite with synchronous=FULL. The limit program (`work_limit.py`) writes the same rows in
two statements a batch; ratios are to the limit at the same batch, number of processes, and database.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psycopg

from bench.machine import (
    cpu_seconds_of_server,
    describe,
    drop_database,
    new_database,
    server,
    server_version,
)
from bench.queued_runs import JOBS, seed
from rota.store.sql import SqlStore, open_sql_store

RUNS = 50_000
LOOKS_EVERY_SECONDS = 0.02
MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """`how` is a way of `work_client`, `size` its batch or its slots."""

    how: str
    size: int
    processes: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    rate: float
    client_micros: float
    server_micros: float
    rss_before: int
    rss_after: int


POSTGRESQL = [
    Way(how=how, size=size, processes=processes)
    for processes in (1, 2)
    for size in (100, 1_000)
    for how in ("limit", "store", "worker", "worker-async")
]
SQLITE = [way for way in POSTGRESQL if way.processes == 1]


def main(count: int = RUNS) -> None:
    """Prints a table for each database."""
    print(describe())
    with server() as running, tempfile.TemporaryDirectory(prefix="rota-bench-") as folder:
        print(server_version(running.url()))
        copies = iter(range(1_000))

        def lend_postgresql(job: str) -> tuple[str, Callable[[], None]]:
            name = f"copy_{next(copies)}"
            url = new_database(running, name, copy_of=f"seeded_{job}")
            with psycopg.connect(running.url(), autocommit=True) as connection:
                connection.execute("CHECKPOINT")
            return url, lambda: drop_database(running, name)

        def lend_sqlite(job: str) -> tuple[str, Callable[[], None]]:
            path = Path(folder, f"copy-{next(copies)}.db")
            shutil.copy(Path(folder, f"{job}.db"), path)
            return f"sqlite:///{path}", path.unlink

        for job in JOBS:
            seed(new_database(running, f"seeded_{job}"), job, count)
            seed(f"sqlite:///{folder}/{job}.db", job, count)
        print_table("PostgreSQL", POSTGRESQL, lend_postgresql, lambda: cpu_seconds_of_server(running))
        print_table("SQLite", SQLITE, lend_sqlite, lambda: 0.0)


def print_table(
    title: str,
    ways: list[Way],
    lend: Callable[[str], tuple[str, Callable[[], None]]],
    server_cpu: Callable[[], float],
) -> None:
    print(
        f"\n{title:<14}{'size':>6}{'processes':>11}{'runs/s':>10}{'of limit':>10}"
        f"{'client us/run':>15}{'server us/run':>15}{'MB before':>11}{'after':>7}"
    )
    limits: dict[tuple[int, int], float] = {}
    for way in ways:
        job = JOBS[1] if way.how == "worker-async" else JOBS[0]
        url, give_back = lend(job)
        figures = measure(url, way, server_cpu)
        give_back()
        if way.how == "limit":
            limits[way.size, way.processes] = figures.rate
        ratio = figures.rate / limits[way.size, way.processes]
        print(
            f"{way.how:<14}{way.size:>6}{way.processes:>11}{figures.rate:>10,.0f}{ratio:>10.2f}"
            f"{figures.client_micros:>15.0f}{figures.server_micros:>15.0f}"
            f"{figures.rss_before / MEBIBYTE:>11.0f}{figures.rss_after / MEBIBYTE:>7.0f}",
            flush=True,
        )


def measure(url: str, way: Way, server_cpu: Callable[[], float]) -> Figures:
    """Takes the whole queue; every run has to have been taken once."""
    clients = [
        subprocess.Popen(
            [sys.executable, "-m", "bench.work_client", way.how, url, str(way.size)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(way.processes)
    ]
    for client in clients:
        assert _output_of(client) == "ready"
    cpu_before, began = server_cpu(), time.perf_counter()
    for client in clients:
        _tell(client, "go")
    if way.how.startswith("worker"):
        _wait_until_settled(url)
        seconds = time.perf_counter() - began
        for client in clients:
            _tell(client, "stop")
    done = [json.loads(_output_of(client)) for client in clients]
    if not way.how.startswith("worker"):
        seconds = time.perf_counter() - began
    cpu = server_cpu() - cpu_before
    for client in clients:
        client.communicate()
    count = sum(each["count"] for each in done)
    _check(url, count)
    return Figures(
        rate=count / seconds,
        client_micros=1e6 * sum(each["cpu_seconds"] for each in done) / count,
        server_micros=1e6 * cpu / count,
        rss_before=max(each["rss_before"] for each in done),
        rss_after=max(each["rss_after"] for each in done),
    )


def _wait_until_settled(url: str) -> None:
    with closing(open_sql_store(url)) as store:
        while store.read_next_intent_time(JOBS) is not None or _count(store, "finished_at IS NULL"):
            time.sleep(LOOKS_EVERY_SECONDS)


def _check(url: str, count: int) -> None:
    with closing(open_sql_store(url)) as store:
        settled = _count(store, "outcome = 'succeeded'")
    assert settled == count, f"{count} runs were taken and {settled} attempts have succeeded"


def _count(store: SqlStore, condition: str) -> int:
    with store._database.reading() as connection:  # noqa: SLF001 - the tables and not the port
        words = f"SELECT count(*) FROM attempts WHERE {condition}"
        return int(connection.exec_driver_sql(words).scalar_one())


def _tell(client: "subprocess.Popen[str]", word: str) -> None:
    assert client.stdin is not None
    client.stdin.write(f"{word}\n")
    client.stdin.flush()


def _output_of(client: "subprocess.Popen[str]") -> str:
    assert client.stdout is not None
    line = client.stdout.readline().strip()
    assert line, "a client has ended without an answer"
    return line


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("runs", type=int, nargs="?", default=RUNS, help="how many are queued for each row")
    main(options.parse_args().runs)
