"""The SQL store: every rule of the port in statements that serve SQLite, and PostgreSQL in the same words."""

from collections.abc import Callable
from datetime import timedelta

from rota.store.sql.admissions import SqlAdmissions
from rota.store.sql.answers import SqlAnswers
from rota.store.sql.audit import SqlAudit
from rota.store.sql.beats import SqlBeats
from rota.store.sql.changes import SqlChanges
from rota.store.sql.databases import open_database
from rota.store.sql.deliveries import SqlDeliveries
from rota.store.sql.delivery_lists import SqlDeliveryLists
from rota.store.sql.dispatch import SqlDispatch
from rota.store.sql.due_counts import SqlDueCounts
from rota.store.sql.effects import SqlEffects
from rota.store.sql.engine import BUSY_TIMEOUT, Database
from rota.store.sql.freed import SqlFreed
from rota.store.sql.health import SqlHealth
from rota.store.sql.idempotency import SqlIdempotency
from rota.store.sql.jobs import SqlJobs
from rota.store.sql.key_uses import SqlKeyUses
from rota.store.sql.leases import SqlLeases
from rota.store.sql.migrations import bring_up_to_date, check_up_to_date
from rota.store.sql.openings import SqlOpenings
from rota.store.sql.outbox import SqlOutbox
from rota.store.sql.planned import SqlPlanned
from rota.store.sql.retention import SqlRetention
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
    SqlDueCounts,
    SqlBeats,
    SqlAdmissions,
    SqlPlanned,
    SqlFreed,
    SqlOutbox,
    SqlOpenings,
    SqlAnswers,
    SqlWork,
    SqlSettlements,
    SqlDeliveries,
    SqlDeliveryLists,
    SqlEffects,
    SqlHealth,
    SqlRetention,
):
    """A whole store in one database, shared with other threads and processes."""


def open_sql_store(url: str, *, busy_timeout: timedelta = BUSY_TIMEOUT) -> SqlStore:
    """The store at `sqlite:///<path>`, at a path, or at `postgresql://...`; its tables are made or brought up to date.

    `busy_timeout` is how long a writer waits for others. Raises `StoreUnavailable` where it cannot be opened.
    """
    return _opened(open_database(url, busy_timeout=busy_timeout), bring_up_to_date)


def open_existing_sql_store(url: str) -> SqlStore:
    """The same for who makes no tables on a PostgreSQL server and changes none. Raises `StoreUnavailable`."""
    return _opened(open_database(url), check_up_to_date)


def _opened(database: Database, prepare: Callable[[Database], None]) -> SqlStore:
    try:
        prepare(database)
    except BaseException:
        database.close()
        raise
    return SqlStore(database)


__all__ = ["SqlStore", "open_existing_sql_store", "open_sql_store"]
