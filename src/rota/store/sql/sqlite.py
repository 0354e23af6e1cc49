"""SQLite, shared by several processes.

A write-ahead log, so that readers and the one writer do not wait for each other; `synchronous=FULL`, so that a commit
survives a loss of power; writers begin IMMEDIATE, for a deferred transaction that reads before it writes fails at once
when another writer was faster, whatever the timeout. The writers of a process queue at a pool of one connection, which
is fairer than SQLite's polling for the lock.

The driver is the standard library's, though wheels of others bring a newer SQLite. Two SQLite libraries in one process
do not see each other's locks, and the first to close takes the write-ahead log away from the other, whose commits are
then lost: so it has to be the one with which handlers, tests and consoles look into the same file.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Protocol

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry

from rota.store.port import StoreUnavailable
from rota.store.sql.engine import BUSY_TIMEOUT, Database

VERSION_MIN = (3, 37, 0)
"""The first with STRICT tables, without which any cell could hold any type (I12)."""

READERS_MAX = 16
SWITCHES_MAX = 20
CACHE_KIBIBYTES = 32 * 1024
"""Of pages for the writer: with SQLite's own 2 MB it would read the indexes of a large store again in every commit."""


class SqliteDatabase(Database):
    """One SQLite file."""

    def __init__(self, path: Path, *, busy_timeout: timedelta = BUSY_TIMEOUT) -> None:
        """Raises `StoreUnavailable` where there is no such folder, or the file is no database."""
        if sqlite_driver().sqlite_version_info < VERSION_MIN:
            raise StoreUnavailable(
                f"Rota needs SQLite {'.'.join(map(str, VERSION_MIN))} or newer, and this Python has "
                f"{sqlite_driver().sqlite_version}; use a newer Python."
            )
        if not path.absolute().parent.is_dir():
            raise StoreUnavailable(
                f"There is no folder {path.absolute().parent}; make it, or give another path."
            )
        super().__init__(
            name=str(path),
            readers=_sqlite_engine(
                path, begin="BEGIN", pragmas=("query_only=ON",), size=READERS_MAX, busy_timeout=busy_timeout
            ),
            writers=_sqlite_engine(
                path,
                begin="BEGIN IMMEDIATE",
                pragmas=("synchronous=FULL", "temp_store=MEMORY", f"cache_size=-{CACHE_KIBIBYTES}"),
                size=1,
                busy_timeout=busy_timeout,
            ),
        )
        try:
            self._switch_to_write_ahead_log()
        except BaseException:
            self.close()
            raise

    def _switch_to_write_ahead_log(self) -> None:
        try:
            with closing(self._writers.raw_connection()) as connection:
                mode = switched_mode(connection.cursor())
        except sqlite_driver().Error as error:
            raise self._unavailable(error) from error
        if mode != "wal":
            raise self._unavailable("SQLite cannot keep a write-ahead log there; put it on a local disk")


class JournalCursor(Protocol):
    """What the switch needs of the driver's cursor."""

    def execute(self, statement: str, /) -> object: ...
    def fetchone(self) -> Sequence[object] | None: ...


def switched_mode(cursor: JournalCursor) -> object:
    """The journal mode after switching it to `wal`, which stays so in the file."""
    for _ in range(SWITCHES_MAX):
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
        except sqlite_driver().OperationalError:
            # Unlike a transaction, the switch does not wait for another process that is at it.
            cursor.execute("BEGIN IMMEDIATE")
            cursor.execute("ROLLBACK")
        else:
            answer = cursor.fetchone()
            return None if answer is None else answer[0]
    return None


def sqlite_driver() -> ModuleType:
    """The module through which Rota uses SQLite; the reason for it is at the top of this file."""
    return sqlite3


def _sqlite_engine(
    path: Path, *, begin: str, pragmas: tuple[str, ...], size: int, busy_timeout: timedelta
) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        module=sqlite_driver(),
        # The driver is not to begin transactions by its own rules: `begin` below is the only one who does.
        connect_args={"isolation_level": None, "timeout": busy_timeout.total_seconds()},
        pool_size=size,
        max_overflow=0,
        pool_timeout=busy_timeout.total_seconds(),
    )

    def set_pragmas(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        for pragma in pragmas:
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    def begin_transaction(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    event.listen(engine, "connect", set_pragmas)
    event.listen(engine, "begin", begin_transaction)
    return engine
