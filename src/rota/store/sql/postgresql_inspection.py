"""What a PostgreSQL database is, found out without changing it: its server, its settings, its clock, its tables."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, text

from rota.store.port import StoreUnavailable
from rota.store.sql.databases import open_database
from rota.store.sql.inspection import TablesReport
from rota.store.sql.migrations import HEAD
from rota.store.sql.migrations.state import read_state

TIME_QUESTIONS = 3
"""The fastest answer tells the server's time best."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresReport(TablesReport):
    name: str
    """The address as messages call it: without a password."""
    version: str
    version_number: int
    """As `server_version_num`: 160004 is 16.4."""
    encoding: str
    fsync: str
    full_page_writes: str
    synchronous_commit: str
    schema_name: str | None
    """Where the tables are, or would be made; None where the role may use none of its search path."""
    user: str
    may_create: bool
    """Whether the role may make tables there."""
    is_read_only: bool
    """A standby, or a database that takes no writes."""
    clock_ahead: timedelta
    """How far the server's clock is ahead of the given one."""
    clock_known_within: timedelta
    """Half of the time that the question took."""


def inspect_postgresql(url: str, *, now: Callable[[], datetime]) -> PostgresReport:
    """Compares its clock with `now`. Raises `StoreUnavailable`."""
    database = open_database(url)
    try:
        with database.reading() as connection:
            ahead, within = _compare_clocks(connection, now)
            state = read_state(connection)
            row = connection.execute(_READ_SERVER).mappings().one()
            return PostgresReport(
                name=database.name,
                clock_ahead=ahead,
                clock_known_within=within,
                revision=state.revision,
                newest_revision=HEAD,
                works_from=state.works_from,
                **row,
            )
    finally:
        database.close()


def _compare_clocks(connection: Connection, now: Callable[[], datetime]) -> tuple[timedelta, timedelta]:
    answers = []
    for _ in range(TIME_QUESTIONS):
        asked_at = now()
        told: datetime = connection.execute(_READ_TIME).scalar_one()
        within = (now() - asked_at) / 2
        answers.append((within, told.astimezone(UTC) - asked_at - within))
    within, ahead = min(answers)
    if within < timedelta(0):
        raise StoreUnavailable(
            "The clock of this machine was set back while it was compared; run this again."
        )
    return ahead, within


_READ_TIME = text("SELECT clock_timestamp()")
# The session itself is read only: what counts is what it would be by default.
_READ_SERVER = text(
    "SELECT current_setting('server_version') AS version,"
    " current_setting('server_version_num')::integer AS version_number,"
    " pg_encoding_to_char(encoding) AS encoding,"
    " current_schema()::text AS schema_name,"
    " current_user::text AS user,"
    " coalesce(has_schema_privilege(current_user, current_schema()::text, 'CREATE'), false) AS may_create,"
    " current_setting('fsync') AS fsync,"
    " current_setting('full_page_writes') AS full_page_writes,"
    " current_setting('synchronous_commit') AS synchronous_commit,"
    " pg_is_in_recovery() OR current_setting('default_transaction_read_only')::boolean AS is_read_only"
    " FROM pg_database WHERE datname = current_database()"
)
