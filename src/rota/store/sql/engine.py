"""Connections to a database: transactions that read and transactions that write, whichever database it is.

What one database does otherwise than another stands in `sqlite.py` and `postgresql.py`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DatabaseError, IntegrityError, NotSupportedError, ProgrammingError
from sqlalchemy.exc import TimeoutError as NoConnectionInTime

from rota.store.port import StoreUnavailable

BUSY_TIMEOUT = timedelta(seconds=10)
"""How long a caller waits for a connection, or for others' locks."""

UNIQUE_VIOLATION = "23505"
"""PostgreSQL's SQLSTATE of it."""


class Database:
    """One database. Threads may share it."""

    def __init__(self, *, name: str, readers: Engine, writers: Engine) -> None:
        """`name` is how messages call it."""
        self._name = name
        self._readers = readers
        self._writers = writers

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One snapshot for all its statements. Raises `StoreUnavailable`."""
        with self._reporting_failures(), self._readers.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Commits at the end of the block; any error rolls back. Raises `StoreUnavailable`."""
        with self._reporting_failures(), self._writers.begin() as connection:
            yield connection

    def close(self) -> None:
        self._readers.dispose()
        self._writers.dispose()

    @contextmanager
    def _reporting_failures(self) -> Iterator[None]:
        try:
            yield
        except (IntegrityError, ProgrammingError, NotSupportedError):
            raise  # A statement of ours is wrong, or the caller judges it.
        except DatabaseError as error:
            raise self._unavailable(error.orig) from error
        except NoConnectionInTime as error:
            raise self._unavailable(
                "its users in this process have waited too long for each other"
            ) from error

    def _unavailable(self, problem: object) -> StoreUnavailable:
        told = " ".join(str(problem).split()).rstrip(".")
        return StoreUnavailable(f"The database {self._name} cannot be used at the moment: {told}.")


def is_unique_violation(error: IntegrityError) -> bool:
    """That a key exists already; other violations are mistakes of ours."""
    cause = error.orig
    return getattr(cause, "sqlstate", None) == UNIQUE_VIOLATION or "UNIQUE constraint failed" in str(cause)
