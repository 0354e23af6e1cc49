"""How late a steady stream is admitted and begun, beside very many stored schedules: `python -m bench.steady`.

1,000 schedules are due at each second: 60,000 of them, each every minute, with 60 anchors. Beside them lie 1,000,000
that are due later. Three ways, each on its own copy of the database on the same server, one after the other:

- the limit (`steady_limit.py`): one statement a second, and nothing else of a dispatcher;
- `rota dispatch` alone;
- `rota dispatch` and `rota work` with a handler that does nothing.

Lateness is counted from the occurrence's instant: to the commit of its admission, as the server tells it; to
`admitted_at`, which is when the step began; to `opened_at` of its attempt; and to the beginning of its handler.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import psycopg

from bench import steady_limit
from bench.figures import mebibytes, middle_and_tail, percentile, print_table
from bench.lateness import CommitLateness
from bench.machine import (
    Process,
    cpu_seconds_of,
    cpu_seconds_of_server,
    describe,
    drop_database,
    memory_of,
    new_database,
    running,
    running_dispatcher,
    server,
    server_version,
)
from bench.noop import FILE_VARIABLE
from bench.seeding import Group, far_ahead, seed
from rota.clock import SystemClock
from rota.domain.instants import format_instant, to_millis
from tests.postgresql import PostgresServer

DUE, SECONDS, STORED, WARM_UP = 1_000, 120, 1_000_000, 10
STARTING_SECONDS = 8
SETTLING = 2
CONCURRENCY = 500
TIMES_LIMIT = 3

clock = SystemClock()


@dataclass(slots=True, kw_only=True)
class Way:
    """One of the three, and what it did."""

    name: str
    is_limit: bool = False
    has_worker: bool = False
    latenesses: dict[str, list[float]] = field(default_factory=dict)
    used: dict[str, float] = field(default_factory=dict)
    """CPU seconds by process."""
    memory: str = ""
    missing: int = 0


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the latenesses of each way, and the ratio of each p99 to the limit's."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--due", type=int, default=DUE, help="schedules due at each second")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="seconds that are measured")
    parser.add_argument("--stored", type=int, default=STORED, help="schedules that are due later")
    parser.add_argument("--warm-up", type=int, default=WARM_UP, help="seconds before, that are not measured")
    parser.add_argument("--concurrency", type=int, default=CONCURRENCY, help="the worker's slots")
    options = parser.parse_args(arguments)
    ways = [
        Way(name="limit", is_limit=True),
        Way(name="dispatcher"),
        Way(name="dispatcher and worker", has_worker=True),
    ]
    with server() as host:
        url = new_database(host, "stored")
        began = time.perf_counter()
        seed(url, far_ahead(options.stored, now=clock.now()))
        rate = options.stored / (time.perf_counter() - began)
        print(
            f"{options.due:,} due each second for {options.seconds} s beside {options.stored:,} stored; "
            f"{describe()}, {server_version(url)}"
        )
        # Generous, for a busy machine: the seconds must not begin before everything is ready.
        seconds_ahead = STARTING_SECONDS + 3 * 60 * options.due / rate
        for way in ways:
            _run(host, way, options, ahead=timedelta(seconds=seconds_ahead))
    _report(ways, admitted=options.due * options.seconds)


def _run(host: PostgresServer, way: Way, options: argparse.Namespace, *, ahead: timedelta) -> None:
    url = new_database(host, "way", copy_of="stored")
    begin = (clock.now() + ahead).replace(microsecond=0)
    seed(url, _due_each_second(options.due, begin=begin))
    lasting = options.warm_up + options.seconds
    from_, until = begin + timedelta(seconds=options.warm_up), begin + timedelta(seconds=lasting)
    if way.is_limit:
        steady_limit.prepare(url, from_=begin, seconds=lasting + 60)
    commits = CommitLateness(url, from_=from_, until=until)
    with tempfile.TemporaryDirectory() as folder, commits.watching():
        file = Path(folder, "latenesses")
        with _processes(url, way, options, file, lasting=lasting) as processes:
            if clock.now() >= begin:
                raise RuntimeError("the machine was too slow to be ready in time")
            _wait_until(from_)
            before = _used(host, processes)
            _wait_until(until + timedelta(seconds=SETTLING))
            way.used = {name: used - before[name] for name, used in _used(host, processes).items()}
            way.memory = ", ".join(
                f"{name} {mebibytes(memory_of(process.pid)[0])}, at most {mebibytes(memory_of(process.pid)[1])}"
                for name, process in processes.items()
            )
        begun = file.read_text().splitlines() if way.has_worker else []
    way.latenesses = {
        "commit": commits.values,
        **_read_stamps(url, from_=from_, until=until, has_worker=way.has_worker),
    }
    if way.has_worker:
        seconds = range(int(from_.timestamp()), int(until.timestamp()))
        told = [tuple(map(int, line.split())) for line in begun]
        way.latenesses["handler begun"] = [float(lateness) for second, lateness in told if second in seconds]
    way.missing = options.due * options.seconds - len(way.latenesses["commit"])
    drop_database(host, "way")


def _due_each_second(count: int, *, begin: datetime) -> list[Group]:
    """`count` schedules for each second from `begin` on, each due every minute."""
    return [
        Group(
            ids=[f"steady-{second:02d}-{number:05d}" for number in range(count)],
            recurrence={"every": "PT1M", "anchor": format_instant(begin + timedelta(seconds=second))},
            created_at=begin - timedelta(seconds=1),
        )
        for second in range(60)
    ]


@contextmanager
def _processes(
    url: str, way: Way, options: argparse.Namespace, file: Path, *, lasting: int
) -> Iterator[dict[str, Process]]:
    with ExitStack() as stack:
        if way.is_limit:
            seconds = str(lasting + 600)  # It is stopped in time.
            yield {"limit": stack.enter_context(running("bench.steady_limit", url, seconds))}
            return
        processes = {"dispatcher": stack.enter_context(running_dispatcher(url))}
        if way.has_worker:
            processes["worker"] = stack.enter_context(
                running(
                    *("rota", "work", "bench.noop:app", "--database", url),
                    *("--concurrency", str(options.concurrency)),
                    environment={FILE_VARIABLE: str(file)},
                )
            )
        yield processes


def _wait_until(instant: datetime) -> None:
    time.sleep(max(0.0, (instant - clock.now()).total_seconds()))


def _used(host: PostgresServer, processes: dict[str, Process]) -> dict[str, float]:
    used = {name: cpu_seconds_of(process.pid) for name, process in processes.items()}
    return {**used, "server": cpu_seconds_of_server(host)}


def _read_stamps(url: str, *, from_: datetime, until: datetime, has_worker: bool) -> dict[str, list[float]]:
    within = (to_millis(from_), to_millis(until))
    statements = {
        "admitted_at": "SELECT admitted_at - scheduled_at FROM runs WHERE scheduled_at >= %s AND scheduled_at < %s"
    }
    if has_worker:
        statements["opened_at"] = (
            "SELECT opened_at - scheduled_at FROM runs JOIN attempts USING (run_id) "
            "WHERE scheduled_at >= %s AND scheduled_at < %s AND number = 1"
        )
    with psycopg.connect(url) as connection:
        return {
            name: [float(lateness) for (lateness,) in connection.execute(statement, within)]
            for name, statement in statements.items()
        }


def _report(ways: Sequence[Way], *, admitted: int) -> None:
    limit = percentile(ways[0].latenesses["commit"], 0.99)
    table = [
        (
            f"{way.name}: {name}",
            f"{len(values):,}",
            *middle_and_tail(values),
            f"{percentile(values, 0.99) / limit:.1f}" if values else "-",
        )
        for way in ways
        for name, values in way.latenesses.items()
    ]
    heading = ("lateness, ms", "runs", "p50", "p99", "largest", f"p99 to limit's (aim {TIMES_LIMIT})")
    print_table(heading, table)
    for way in ways:
        used = ", ".join(f"{name} {seconds / admitted * 1e6:.0f}" for name, seconds in way.used.items())
        print(f"{way.name}: CPU microseconds a run: {used}. Memory: {way.memory}")
        if way.missing:
            print(f"{way.name}: {way.missing:,} runs were not admitted in time to be seen")


if __name__ == "__main__":
    main()
