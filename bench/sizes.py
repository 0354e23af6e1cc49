"""What schedules and runs take on PostgreSQL's disk, and what an hour boundary writes: `python -m bench.sizes`.

Schedules are stored whose instants are spread over the half hours of a day, in six zones. Then the clock is moved by
hand from one half hour to the next, so that each time one in 48 of them is due, scattered over the whole table. Bytes
are those of `pg_relation_size`, the write-ahead log's those between two positions of it.
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import psycopg
from psycopg import sql

from bench.figures import print_table
from bench.machine import describe, new_database, server, server_version
from bench.seeding import far_ahead, seed
from rota.application import Rota
from rota.clock import SystemClock
from rota.config import Settings
from rota.telemetry import configure_logging
from rota.testing.clock import ManualClock

STORED, BOUNDARIES = 1_000_000, 6
HALF_HOUR = timedelta(minutes=30)
SCALED_TO = 10_000_000
MEBIBYTE = 2**20
TABLES_OF_SCHEDULES = ("schedules", "versions", "audit")
TABLES_OF_RUNS = ("runs", "outbox")

RELATIONS = """
SELECT coalesce(t.relname, c.relname), CASE WHEN c.relkind = 'i' THEN c.relname ELSE '' END,
  pg_relation_size(c.oid)
FROM pg_class c LEFT JOIN pg_index i ON i.indexrelid = c.oid LEFT JOIN pg_class t ON t.oid = i.indrelid
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'i')
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """What one half hour did."""

    admitted: int
    seconds: float
    log_bytes: int


def main(arguments: Sequence[str] | None = None) -> None:
    """Print bytes of every table and index of schedules and runs, and the log that each boundary wrote."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--stored", type=int, default=STORED, help="schedules that are stored")
    parser.add_argument("--boundaries", type=int, default=BOUNDARIES, help="half hours that pass")
    options = parser.parse_args(arguments)
    configure_logging(level="error", log_format="console")
    with server() as host:
        url = new_database(host, "rota")
        now = SystemClock().now()
        began = time.perf_counter()
        seed(url, far_ahead(options.stored, now=now))
        print(f"{describe()}, {server_version(url)}")
        print(f"{options.stored:,} schedules, seeded in {time.perf_counter() - began:.0f} s")
        _print_sizes(url, TABLES_OF_SCHEDULES, options.stored)
        boundaries = _pass_boundaries(url, options.boundaries, now=now)
        admitted = sum(boundary.admitted for boundary in boundaries)
        print(f"\n{admitted:,} runs, queued and not taken yet")
        _print_sizes(url, TABLES_OF_RUNS, admitted)
        _print_boundaries(boundaries)
        _print_vacuum(url)


def _print_sizes(url: str, tables: Sequence[str], count: int) -> None:
    with psycopg.connect(url) as connection:
        relations = connection.execute(RELATIONS).fetchall()
    found = sorted((tables.index(table), name, size) for table, name, size in relations if table in tables)
    rows = [
        (
            name or f"table {tables[place]}",
            f"{size / MEBIBYTE:,.1f}",
            f"{size / count:,.1f}",
            f"{size / count * SCALED_TO / 1024 / MEBIBYTE:,.2f}",
        )
        for place, name, size in found
    ]
    total = sum(size for _, _, size in found)
    rows.append(
        (
            "together",
            f"{total / MEBIBYTE:,.1f}",
            f"{total / count:,.1f}",
            f"{total / count * SCALED_TO / 1024 / MEBIBYTE:,.2f}",
        )
    )
    print_table(("relation", "MB", "bytes each", f"GB at {SCALED_TO / 1e6:.0f} M"), rows)


def _pass_boundaries(url: str, count: int, *, now: datetime) -> list[Boundary]:
    clock = ManualClock(now)
    passed = []
    with Rota(url, settings=Settings(), clock=clock) as app:
        dispatcher = app.build_dispatcher()
        day_after = now + timedelta(days=1)
        clock.set(day_after.replace(minute=day_after.minute // 30 * 30, second=0, microsecond=0))
        while dispatcher.step(clock.now()).wake_at <= clock.now():
            pass
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CHECKPOINT")
            for _ in range(count):
                clock.advance(HALF_HOUR)
                position = _log_position(connection)
                began, admitted = time.perf_counter(), 0
                while (report := dispatcher.step(clock.now())).wake_at <= clock.now():
                    admitted += report.admitted
                admitted += report.admitted
                passed.append(
                    Boundary(
                        admitted=admitted,
                        seconds=time.perf_counter() - began,
                        log_bytes=_log_position(connection) - position,
                    )
                )
    return passed


def _log_position(connection: "psycopg.Connection[tuple[object, ...]]") -> int:
    found = connection.execute(
        "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"
    ).fetchone()
    assert found is not None
    return int(str(found[0]))


def _print_boundaries(boundaries: Sequence[Boundary]) -> None:
    rows = [
        (
            f"{number}",
            f"{boundary.admitted:,}",
            f"{boundary.admitted / boundary.seconds:,.0f}",
            f"{boundary.log_bytes / MEBIBYTE:,.1f}",
            f"{boundary.log_bytes / max(1, boundary.admitted):,.0f}",
        )
        for number, boundary in enumerate(boundaries, start=1)
    ]
    print("\nhalf hours, the first one right after a checkpoint")
    print_table(("half hour", "admitted", "a second", "log MB", "log bytes each"), rows)


def _print_vacuum(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for table in ("schedules", "runs", "outbox"):
            began = time.perf_counter()
            connection.execute(sql.SQL("VACUUM (ANALYZE) {}").format(sql.Identifier(table)))
            print(f"vacuum of {table}: {time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
