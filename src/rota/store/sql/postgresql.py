"""PostgreSQL, shared by many machines: writers hold the rows that they decide by, and readers see one snapshot.

Writers run READ COMMITTED: what a decision rests on is read under row locks, in the order of its key, so that whoever
is second waits and then sees what the first has left. Readers run REPEATABLE READ and READ ONLY.

A process that is frozen in the middle of a transaction would keep its locks, and with them its partitions, for as long
as its connection lives: the server ends such a transaction after `IDLE_IN_TRANSACTION`, which is below the shortest
lease that can be set. So whoever takes over waits for the end of the lease, and for nothing else.

A server that is gone without a word, its machine off or the way to it cut, would be waited for as long as the kernel
does, which is for hours: every loop would hang in its call, and the thread that listens would hear nothing any more.
The kernel is told to give up a connection that is silent (`SILENCE`), within half a minute, and the caller is told
`StoreUnavailable`.
"""

import re
from datetime import timedelta

from psycopg import Connection as DriverConnection
from psycopg import ProgrammingError
from psycopg.conninfo import make_conninfo
from sqlalchemy import URL, create_engine, event

from rota.store.port import StoreUnavailable, UnknownAddress
from rota.store.sql.engine import BUSY_TIMEOUT, Database
from rota.store.sql.listener import Listener

CONNECTIONS_MAX = 16
CONNECT_TIMEOUT_SECONDS = 5
IDLE_IN_TRANSACTION = timedelta(seconds=5)
STATEMENT_TIMEOUT = timedelta(seconds=30)
SILENCE = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
"""Parameters of libpq, in seconds; the last in milliseconds. The first three find a server that is gone while its
answer is waited for, the last one also while something is sent. A statement that takes long is not silent: its
server's kernel answers. Unix sockets have none of them."""


LASTING = (
    "does not exist",
    "authentication failed",
    "no password supplied",
    "no pg_hba.conf entry",
    "is not permitted to log in",
    "permission denied",
    "failed to resolve",
    "could not translate host name",
    "unrecognized configuration parameter",
    "invalid value",
    "invalid sslmode",
    "bad value for",
    "invalid port number",
    "invalid integer value",
)
"""What a connection is refused with, in the driver's words, that waiting does not mend: it has no SQLSTATE then."""

ENCODING = "UTF8"

_MISSING_DATABASE = re.compile(r'database "([^"]+)" does not exist')
_DENIED_SCHEMA = re.compile(r"permission denied for schema (\S+)")


class PostgresDatabase(Database):
    """One PostgreSQL database. Nothing is connected before the first use."""

    def __init__(self, url: URL, *, busy_timeout: timedelta = BUSY_TIMEOUT) -> None:
        """Raises `UnknownAddress` where the address has an option that the driver does not know."""
        _check_options(url)
        engine = create_engine(
            url.set(drivername="postgresql+psycopg"),
            paramstyle="format",
            isolation_level="READ COMMITTED",
            pool_size=CONNECTIONS_MAX,
            max_overflow=0,
            pool_timeout=busy_timeout.total_seconds(),
            pool_pre_ping=True,
            connect_args=_connect_arguments(url, busy_timeout),
        )
        # Before SQLAlchemy's own first look at the server, which some encodings break.
        event.listen(engine, "connect", self._check_encoding, insert=True)
        self._user = url.username
        super().__init__(
            name=name_of(url),
            readers=engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True),
            writers=engine,
            audience=Listener(engine),
        )

    def is_lasting(self, problem: str, /) -> bool:
        return any(words in problem for words in LASTING)

    def remedy_for(self, problem: str, /) -> str | None:
        missing = _MISSING_DATABASE.search(problem)
        if missing is None:
            return None
        return f"; make it first: createdb --encoding UTF8 {missing[1]}"

    def rights_needed(self, problem: str, /) -> str:
        return rights_remedy(user=self._user, schema=_schema_in(problem))

    def _check_encoding(self, connection: DriverConnection[object], _: object) -> None:
        """Others cannot hold every text. The server says its encoding as it greets."""
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != ENCODING:
            connection.close()
            raise StoreUnavailable(
                f"The database {self.name} has the encoding {encoding}, which cannot hold every text; make one "
                "that can: createdb --encoding UTF8 --template template0 NAME."
            )


def rights_remedy(*, user: str | None, schema: str) -> str:
    """What gives a role the rights that Rota needs; `user` is None where the address names none."""
    role = user or "the role"
    return (
        f"GRANT CREATE, USAGE ON SCHEMA {schema} TO {role}; or, where another role owns the tables, "
        f"make {role} their owner"
    )


def _schema_in(problem: str) -> str:
    named = _DENIED_SCHEMA.search(problem)
    return "public" if named is None else named[1]


def name_of(url: URL) -> str:
    """The address as messages call it: without its password, and without the options among which one may stand."""
    hosts = {key: value for key, value in url.query.items() if key == "host"}
    return url.set(query=hosts).render_as_string(hide_password=True).replace("%2F", "/")


def _check_options(url: URL) -> None:
    try:
        make_conninfo(**dict.fromkeys(url.query, ""))
    except ProgrammingError as error:
        raise UnknownAddress(f"The database address {name_of(url)} has an {error}.") from None


def _connect_arguments(url: URL, busy_timeout: timedelta) -> dict[str, str | int]:
    """What the address says itself goes before what we would say."""
    ours: dict[str, str | int] = {
        "application_name": "rota",
        "connect_timeout": CONNECT_TIMEOUT_SECONDS,
        **SILENCE,
    }
    return {
        **{name: value for name, value in ours.items() if name not in url.query},
        "options": _options(url, busy_timeout),
    }


def _options(url: URL, busy_timeout: timedelta) -> str:
    """Settings of the session: the address's, then ours. `jit`: compiling a short statement takes a hundred times as
    long as it."""
    settings = {
        "idle_in_transaction_session_timeout": _millis(IDLE_IN_TRANSACTION),
        "lock_timeout": _millis(busy_timeout),
        "statement_timeout": _millis(STATEMENT_TIMEOUT),
        "jit": "off",
        # A prepared statement keeps the plan that was made while a table was small or empty; every statement of ours
        # has an index, and a scan of the table in its place costs each step the more the more runs there are.
        "enable_seqscan": "off",
    }
    given = url.query.get("options", ())
    own = [f"-c {name}={value}" for name, value in settings.items()]
    return " ".join([*((given,) if isinstance(given, str) else given), *own])


def _millis(duration: timedelta) -> int:
    return round(duration.total_seconds() * 1000)
