"""Which database an address names. No message repeats the address of a server: it may hold a password."""

from datetime import timedelta
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from rota.store.port import StoreUnavailable, UnknownAddress
from rota.store.sql.engine import BUSY_TIMEOUT, Database

POSTGRESQL_NAMES = ("postgresql", "postgres", "postgresql+psycopg")
IN_MEMORY = {"", ":memory:"}
EXAMPLES = "sqlite:///rota.db or postgresql://user@host/database"


def open_database(url: str, *, busy_timeout: timedelta = BUSY_TIMEOUT) -> Database:
    """The database at `postgresql://...`, at `sqlite:///<path>`, or at a path. Raises `StoreUnavailable`."""
    if "://" not in url:
        return _open_sqlite(url, url, busy_timeout)
    parsed = parse_address(url)
    if parsed.drivername in POSTGRESQL_NAMES:
        return _open_postgresql(parsed, busy_timeout)
    if parsed.get_backend_name() != "sqlite":
        raise UnknownAddress(
            f"Rota keeps its data in SQLite or PostgreSQL, not in {parsed.drivername}; give {EXAMPLES}."
        )
    if parsed.query:
        raise UnknownAddress(
            f"The database address {parsed.set(query={})} has options behind the question mark; Rota sets them "
            "itself."
        )
    return _open_sqlite(url, parsed.database or "", busy_timeout)


def parse_address(url: str) -> URL:
    """The parts of an address. Raises `UnknownAddress` where it has none."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # Without its cause, which would tell parts of the address.
        raise UnknownAddress(
            f"What is given is no database address; write a path, {EXAMPLES}. In a password, write special "
            "characters as percent and two digits."
        ) from None
    if parsed.host is not None and "@" in parsed.host:
        raise UnknownAddress("The database address has more than one @; in a password, write %40 for it.")
    return parsed


def is_postgresql(url: str) -> bool:
    """Whether the address names a PostgreSQL server. Raises `UnknownAddress` where it makes no sense."""
    return "://" in url and parse_address(url).drivername in POSTGRESQL_NAMES


def _open_sqlite(url: str, name: str, busy_timeout: timedelta) -> Database:
    if name in IN_MEMORY or name.startswith("file:"):
        raise UnknownAddress(
            f"{url!r} names no file. A database in memory would be lost with its connection, and cannot be shared: "
            "use the memory store, or give a path."
        )
    from rota.store.sql.sqlite import SqliteDatabase  # noqa: PLC0415 - a process uses one of the two

    return SqliteDatabase(Path(name), busy_timeout=busy_timeout)


def _open_postgresql(url: URL, busy_timeout: timedelta) -> Database:
    try:
        from rota.store.sql.postgresql import PostgresDatabase  # noqa: PLC0415 - the driver is an extra

        return PostgresDatabase(url, busy_timeout=busy_timeout)
    except ModuleNotFoundError as error:
        raise StoreUnavailable(
            "The driver for PostgreSQL is not installed; install rota[postgresql]."
        ) from error
