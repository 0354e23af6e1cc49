"""PostgreSQL, shared by many machines: writers hold the rows that they decide by, and readers see one snapshot.

Writers run READ COMMITTED: what a decision rests on is read under row locks, in the order of its key, so that whoever
is second waits and then sees what the first has left. Readers run REPEATABLE READ and READ ONLY.

A process that is frozen in the middle of a transaction would keep its locks, and with them its partitions, for as long
as its connection lives: the server ends such a transaction after `IDLE_IN_TRANSACTION`, which is well below a lease.
"""

from datetime import timedelta

from sqlalchemy import URL, create_engine

from rota.store.sql.engine import BUSY_TIMEOUT, Database

CONNECTIONS_MAX = 16
CONNECT_TIMEOUT_SECONDS = 5
IDLE_IN_TRANSACTION = timedelta(seconds=5)
STATEMENT_TIMEOUT = timedelta(seconds=30)


class PostgresDatabase(Database):
    """One PostgreSQL database. Nothing is connected before the first use."""

    def __init__(self, url: URL, *, busy_timeout: timedelta = BUSY_TIMEOUT) -> None:
        engine = create_engine(
            url.set(drivername="postgresql+psycopg"),
            paramstyle="format",
            isolation_level="READ COMMITTED",
            pool_size=CONNECTIONS_MAX,
            max_overflow=0,
            pool_timeout=busy_timeout.total_seconds(),
            pool_pre_ping=True,
            connect_args={
                "application_name": "rota",
                "connect_timeout": CONNECT_TIMEOUT_SECONDS,
                "options": _options(busy_timeout),
            },
        )
        super().__init__(
            name=url.render_as_string(hide_password=True),
            readers=engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True),
            writers=engine,
        )


def _options(busy_timeout: timedelta) -> str:
    """Settings of the session. `jit`: compiling a statement of a few milliseconds takes a hundred."""
    settings = {
        "idle_in_transaction_session_timeout": _millis(IDLE_IN_TRANSACTION),
        "lock_timeout": _millis(busy_timeout),
        "statement_timeout": _millis(STATEMENT_TIMEOUT),
        "jit": "off",
    }
    return " ".join(f"-c {name}={value}" for name, value in settings.items())


def _millis(duration: timedelta) -> int:
    return round(duration.total_seconds() * 1000)
