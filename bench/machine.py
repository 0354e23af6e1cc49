"""The machine that is measured on: a PostgreSQL of one's own, processes, and what `/proc` tells of them."""

import os
import platform
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import psycopg
from psycopg import sql

from rota.store.sql import open_sql_store
from tests.postgresql import PostgresServer, running_server

SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "shared_buffers": "1GB",
        "max_wal_size": "1500MB",
        "checkpoint_timeout": "30min",
        "wal_buffers": "16MB",
        "track_commit_timestamp": "on",
    }
)
"""fsync and synchronous_commit stay on. The server tells when each transaction was committed: nobody has to look."""

TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
STOP_SECONDS = 60.0


def describe() -> str:
    """Cores, processor, and the versions of what is measured."""
    processor = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return (
        f"{os.cpu_count()} cores ({processor.group(1) if processor else platform.machine()}), "
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    )


@contextmanager
def server(settings: Mapping[str, str] = SETTINGS) -> Iterator[PostgresServer]:
    """A PostgreSQL that keeps its promises to the disk; it is gone afterwards, with its databases."""
    with running_server(settings=settings) as running:
        yield running


def new_database(running: PostgresServer, name: str, *, copy_of: str | None = None) -> str:
    """The address of a database with Rota's tables, or a copy of another one, which nobody may be using."""
    made = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY")
    with psycopg.connect(running.url(), autocommit=True) as connection:
        connection.execute(made.format(sql.Identifier(name), sql.Identifier(copy_of or "template1")))
    if copy_of is None:
        open_sql_store(running.url(name)).close()
    return running.url(name)


def drop_database(running: PostgresServer, name: str) -> None:
    with psycopg.connect(running.url(), autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def new_databases(kind: str) -> Iterator[str]:
    """The address of an empty database with Rota's tables: `sqlite` in a temporary folder, or `postgresql`."""
    if kind == "postgresql":
        with server() as running:
            yield new_database(running, "rota")
    else:
        with tempfile.TemporaryDirectory(prefix="rota-bench-") as folder:
            url = f"sqlite:///{folder}/rota.db"
            open_sql_store(url).close()
            yield url


def server_version(url: str) -> str:
    with psycopg.connect(url) as connection:
        return (
            f"PostgreSQL {connection.info.server_version // 10_000}.{connection.info.server_version % 10_000}"
        )


class Process:
    """A program of this project, in a process of its own."""

    def __init__(self, *arguments: str, environment: Mapping[str, str] = MappingProxyType({})) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            env={**os.environ, "ROTA_LOG_LEVEL": "error", **environment},
            stdin=subprocess.DEVNULL,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def wait(self, seconds: float) -> int:
        """Its exit status. Raises `subprocess.TimeoutExpired`."""
        return self._process.wait(timeout=seconds)

    def stop(self) -> None:
        """As a service manager does it; by force where it does not end."""
        if self.is_running:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(timeout=STOP_SECONDS)


@contextmanager
def running(*arguments: str, environment: Mapping[str, str] = MappingProxyType({})) -> Iterator[Process]:
    """A process that is stopped at the end."""
    process = Process(*arguments, environment=environment)
    try:
        yield process
    finally:
        process.stop()


@contextmanager
def running_dispatcher(url: str) -> Iterator[Process]:
    """`rota dispatch`, as it is used: it sleeps until the next due instant, or until it is told of a change."""
    with running("rota", "dispatch", "--database", url) as process:
        yield process


def memory_of(pid: int) -> tuple[int, int]:
    """Bytes that the process has in memory, and the most it had."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = dict(re.findall(r"^(VmRSS|VmHWM):\s+(\d+) kB$", status, re.MULTILINE))
    return int(found["VmRSS"]) * 1024, int(found["VmHWM"]) * 1024


def cpu_seconds_of(pid: int) -> float:
    """What the process has used, and those of its children that have ended."""
    # The name, in parentheses, may hold anything; what is counted stands behind it.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICKS_A_SECOND


def cpu_seconds_of_server(running_: PostgresServer) -> float:
    """What all processes of the server have used."""
    children = Path(f"/proc/{running_.pid}/task/{running_.pid}/children").read_text().split()
    total = cpu_seconds_of(running_.pid)
    for child in children:
        try:
            total += cpu_seconds_of(int(child))
        except FileNotFoundError:
            continue  # It has ended since, and is counted with its parent.
    return total
