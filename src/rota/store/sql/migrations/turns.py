"""Migrations on PostgreSQL: one process at a time, and never in the way of those that work.

The turn is an advisory lock of the session in which everything is done: whoever loses its connection loses the turn,
and the server undoes what it had not committed. Others ask again and again, each time in a statement of its own: one
that waited for the lock would hold a snapshot, and an index that is made concurrently waits for every snapshot.

Changing a table takes a lock that waits for all transactions on it, and whoever comes later waits behind that lock. So
a step gives up after `LOCK_TIMEOUT`; nothing of it is left then, and the next start tries again.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Event

from sqlalchemy import Connection, func, select
from sqlalchemy.exc import OperationalError

from rota.store.port import StoreUnavailable
from rota.store.sql.engine import LOCK_NOT_AVAILABLE, Database, sqlstate_of

LOCK_TIMEOUT = timedelta(seconds=3)
"""Of a step in a transaction: so long may others wait behind it."""

PATIENT_LOCK_TIMEOUT = timedelta(minutes=5)
"""Of a step outside of transactions: nobody waits behind it."""

PATIENCE = timedelta(minutes=10)
"""For the process whose turn it is: an index of a large table takes some minutes."""

PAUSE_SECONDS = 0.1
TURN = 7_225_146_081_194_340
"""The advisory lock's number: any that other programs are not likely to use on the same database."""


@contextmanager
def turn(database: Database, *, patience: timedelta = PATIENCE) -> Iterator[Connection]:
    """The session that may migrate. Raises `StoreUnavailable` where another one takes longer than `patience`."""
    with database.outside_transactions() as connection:
        for _ in range(max(1, round(patience.total_seconds() / PAUSE_SECONDS))):
            with connection.begin():
                has_turn = connection.execute(select(func.pg_try_advisory_lock(TURN))).scalar_one()
            if has_turn:
                try:
                    yield connection
                finally:
                    # The lock and the settings of the session end with it, whatever has happened.
                    connection.invalidate()
                return
            Event().wait(PAUSE_SECONDS)
    raise StoreUnavailable(
        f"Another process has been migrating the database for more than {patience.total_seconds():g} seconds; "
        "look into its log, and start again."
    )


@contextmanager
def in_transaction(connection: Connection) -> Iterator[None]:
    """A step that is done whole or not at all."""
    connection.execution_options(isolation_level="READ COMMITTED")
    with _step(connection, lock_timeout=LOCK_TIMEOUT):
        yield


@contextmanager
def outside_transactions(connection: Connection) -> Iterator[None]:
    """A step each of whose statements commits by itself; it may have been interrupted anywhere, and begins again."""
    connection.execution_options(isolation_level="AUTOCOMMIT")
    with _step(connection, lock_timeout=PATIENT_LOCK_TIMEOUT):
        yield


@contextmanager
def _step(connection: Connection, *, lock_timeout: timedelta) -> Iterator[None]:
    try:
        with connection.begin():
            connection.exec_driver_sql(f"SET lock_timeout = {round(lock_timeout.total_seconds() * 1000)}")
            # As long as a large table takes.
            connection.exec_driver_sql("SET statement_timeout = 0")
            connection.exec_driver_sql("SET idle_in_transaction_session_timeout = '1min'")
            yield
    except OperationalError as error:
        if sqlstate_of(error) != LOCK_NOT_AVAILABLE:
            raise
        raise StoreUnavailable(
            f"The tables cannot be brought up to date: other transactions have used them for more than "
            f"{lock_timeout.total_seconds():g} seconds. Nothing was changed; the next start tries again."
        ) from error
