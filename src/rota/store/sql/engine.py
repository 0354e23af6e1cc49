"""Connections to a database: transactions that read and transactions that write, whichever database it is.

What one database does otherwise than another stands in `sqlite.py` and `postgresql.py`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import wraps
from typing import ParamSpec, TypeVar, cast

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import (
    DatabaseError,
    DataError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    NotSupportedError,
    ProgrammingError,
)
from sqlalchemy.exc import TimeoutError as NoConnectionInTime

from rota.store.port import Audience, StoreUnavailable
from rota.store.sql.notices import forget_notices, send_notices

BUSY_TIMEOUT = timedelta(seconds=10)
"""How long a caller waits for a connection, or for others' locks."""

UNIQUE_VIOLATION = "23505"
"""PostgreSQL's SQLSTATE of it."""

GIVEN_UP = frozenset({"40001", "40P01"})
"""PostgreSQL's of a transaction that it undid for the sake of others: serialization failures and deadlocks."""

LOCK_NOT_AVAILABLE = "55P03"
"""PostgreSQL's of a wait for a lock that was too long."""

NO_RIGHTS = frozenset({"42501", "3F000"})
"""PostgreSQL's of a role that may not do what it asks for, and of one that may use no schema of its search path."""

TRIES_MAX = 5
"""Of one commit that is given up again and again; more would only keep others waiting."""

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


class GivenUp(StoreUnavailable):
    """The database undid the transaction for the sake of others; the same may be tried again at once."""


class Database:
    """One database. Threads may share it."""

    def __init__(
        self, *, name: str, readers: Engine, writers: Engine, audience: Audience | None = None
    ) -> None:
        """`name` is how messages call it; `audience` who is told of its notices, if not those of this process alone."""
        self.audience = audience or Audience()
        self.name = name
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
        with self._reporting_failures():
            with self._writers.begin() as connection:
                forget_notices(connection)
                yield connection
                unsent = send_notices(connection)
            self.audience.tell(unsent)

    @contextmanager
    def outside_transactions(self) -> Iterator[Connection]:
        """Each statement commits by itself, unless the caller says otherwise. Raises `StoreUnavailable`."""
        with self._reporting_failures(), self._writers.connect() as connection:
            yield connection.execution_options(isolation_level="AUTOCOMMIT")

    def close(self) -> None:
        self.audience.close()
        self._readers.dispose()
        self._writers.dispose()

    @contextmanager
    def _reporting_failures(self) -> Iterator[None]:
        try:
            yield
        except (IntegrityError, ProgrammingError, NotSupportedError, DataError) as error:
            if sqlstate_of(error) in NO_RIGHTS:
                raise self._without_rights(error) from error
            if error.statement is None and isinstance(error, ProgrammingError):
                raise self._unavailable(error.orig) from error  # Of the driver, which could not even connect.
            raise  # A statement or value of ours is wrong, or the caller judges it.
        except (DatabaseError, InterfaceError) as error:
            unavailable = self._unavailable(error.orig)
            if sqlstate_of(error) in GIVEN_UP:
                raise GivenUp(str(unavailable)) from error
            raise unavailable from error
        except NoConnectionInTime as error:
            raise self._unavailable(
                "its users in this process have waited too long for each other"
            ) from error

    def _unavailable(self, problem: object) -> StoreUnavailable:
        told = "; ".join(" ".join(line.split()) for line in str(problem).splitlines() if line.strip())
        when = "" if self.is_lasting(told) else " at the moment"
        end = self.remedy_for(told) or ("" if told.endswith("?") else ".")
        return StoreUnavailable(f"The database {self.name} cannot be used{when}: {told.rstrip('.')}{end}")

    def is_lasting(self, _problem: str, /) -> bool:
        """Whether waiting does not mend it."""
        return False

    def remedy_for(self, _problem: str, /) -> str | None:
        """How the line about the problem ends, where it is known what helps."""
        return None

    def rights_needed(self, _problem: str, /) -> str:
        """What gives the rights that the problem says are missing."""
        return "give its user the rights to it"

    def _without_rights(self, error: DBAPIError) -> StoreUnavailable:
        problem = str(error.orig).partition("\n")[0].rstrip(".")
        return StoreUnavailable(
            f"The database {self.name} cannot be used: {problem}; {self.rights_needed(problem)}."
        )


def tried_again(commit: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """The commit, done anew where the database gives it up: it is conditional, and left nothing behind.

    Raises `StoreUnavailable` where that happens `TRIES_MAX` times in a row.
    """

    @wraps(commit)
    def commit_again(*given: Arguments.args, **named: Arguments.kwargs) -> Answer:
        # What can be walked through but once is kept, or a second try would find it empty.
        arguments = [_kept(argument) for argument in given]
        options = {name: _kept(argument) for name, argument in named.items()}
        commit_kept = cast("Callable[..., Answer]", commit)
        for _ in range(TRIES_MAX - 1):
            try:
                return commit_kept(*arguments, **options)
            except GivenUp:
                continue
        try:
            return commit_kept(*arguments, **options)
        except GivenUp as error:
            # No longer told as given up: a commit that is part of another is not tried as often as both together.
            raise StoreUnavailable(str(error)) from error

    return commit_again


def _kept(argument: object) -> object:
    return tuple(argument) if isinstance(argument, Iterator) else argument


def is_unique_violation(error: IntegrityError) -> bool:
    """That a key exists already; other violations are mistakes of ours."""
    return sqlstate_of(error) == UNIQUE_VIOLATION or "UNIQUE constraint failed" in str(error.orig)


def sqlstate_of(error: DBAPIError) -> str | None:
    """PostgreSQL's code of the error; None where another database raised it, or the driver itself."""
    return cast("str | None", getattr(error.orig, "sqlstate", None))
