"""The SQL store: every rule of the port in statements that serve SQLite, and PostgreSQL in the same words."""

from datetime import timedelta
from pathlib import Path

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from rota.store.port import StoreUnavailable
from rota.store.sql.admissions import SqlAdmissions
from rota.store.sql.audit import SqlAudit
from rota.store.sql.changes import SqlChanges
from rota.store.sql.dispatch import SqlDispatch
from rota.store.sql.engine import BUSY_TIMEOUT, Database
from rota.store.sql.health import SqlHealth
from rota.store.sql.idempotency import SqlIdempotency
from rota.store.sql.jobs import SqlJobs
from rota.store.sql.key_uses import SqlKeyUses
from rota.store.sql.leases import SqlLeases
from rota.store.sql.migrations import bring_up_to_date
from rota.store.sql.outbox import SqlOutbox
from rota.store.sql.planned import SqlPlanned
from rota.store.sql.runs import SqlRuns
from rota.store.sql.schedules import SqlSchedules
from rota.store.sql.settlements import SqlSettlements
from rota.store.sql.versions import SqlVersions
from rota.store.sql.work import SqlWork
from rota.store.sql.zone_rules import SqlZoneRules


class SqlStore(
    SqlSchedules,
    SqlChanges,
    SqlVersions,
    SqlZoneRules,
    SqlKeyUses,
    SqlAudit,
    SqlIdempotency,
    SqlRuns,
    SqlJobs,
    SqlLeases,
    SqlDispatch,
    SqlAdmissions,
    SqlPlanned,
    SqlOutbox,
    SqlWork,
    SqlSettlements,
    SqlHealth,
):
    """A whole store in one database, shared with other threads and processes."""


def open_sql_store(url: str, *, busy_timeout: timedelta = BUSY_TIMEOUT) -> SqlStore:
    """The store at `sqlite:///<path>`, or at a path; its tables are made or brought up to date first.

    `busy_timeout` is how long a writer waits for others. Raises `StoreUnavailable` where it cannot be opened.
    """
    database = Database(_path_of(url), busy_timeout=busy_timeout)
    try:
        bring_up_to_date(database)
    except BaseException:
        database.close()
        raise
    return SqlStore(database)


def _path_of(url: str) -> Path:
    if "://" not in url:
        name = url
    else:
        try:
            parsed = make_url(url)
        except ArgumentError as error:
            raise StoreUnavailable(f"{url!r} is no database address; write sqlite:///rota.db.") from error
        if parsed.get_backend_name() != "sqlite":
            backend = parsed.get_backend_name()
            raise StoreUnavailable(
                f"This Rota keeps its data in SQLite, not in {backend}; give sqlite:///rota.db."
            )
        if parsed.query:
            raise StoreUnavailable(f"{url!r} has options behind the question mark; Rota sets them itself.")
        name = parsed.database or ""
    if name in {"", ":memory:"} or name.startswith("file:"):
        raise StoreUnavailable(
            f"{url!r} names no file. A database in memory would be lost with its connection, and cannot be shared: "
            "use the memory store, or give a path."
        )
    return Path(name)


__all__ = ["SqlStore", "open_sql_store"]
