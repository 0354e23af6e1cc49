"""The tables of a SQL store, for SQLite and PostgreSQL alike.

Rules. Instants are milliseconds since 1970 in UTC; JSON is canonical text; text compares by code point. There are no
foreign keys: what belongs together is written in one transaction, a check would cost an index probe for each run, and
a row that lost its other half must stop only itself (I12). `CHECK` constraints list the names of the enums; SQLite's
tables are STRICT, so that no column holds another type than its own.
"""

from rota.store.sql.schema.delivery_tables import deliveries, permits
from rota.store.sql.schema.naming import metadata
from rota.store.sql.schema.run_tables import (
    PARKED_STATES,
    attempts,
    effects,
    holds_its_key,
    is_parked,
    is_planned,
    is_still_open,
    is_waiting,
    outbox,
    results,
    runs,
)
from rota.store.sql.schema.schedule_tables import (
    DUE_STATUSES,
    SUSPENSION_REASONS,
    is_awaiting,
    is_due_status,
    places,
    schedule_labels,
    schedules,
    skips,
    suspensions,
)
from rota.store.sql.schema.service_tables import audit, dispatchers, idempotency, jobs, partitions, settings
from rota.store.sql.schema.version_tables import cadences, versions, zone_rules

__all__ = [
    "DUE_STATUSES",
    "PARKED_STATES",
    "SUSPENSION_REASONS",
    "attempts",
    "audit",
    "cadences",
    "deliveries",
    "dispatchers",
    "effects",
    "holds_its_key",
    "idempotency",
    "is_awaiting",
    "is_due_status",
    "is_parked",
    "is_planned",
    "is_still_open",
    "is_waiting",
    "jobs",
    "metadata",
    "outbox",
    "partitions",
    "permits",
    "places",
    "results",
    "runs",
    "schedule_labels",
    "schedules",
    "settings",
    "skips",
    "suspensions",
    "versions",
    "zone_rules",
]
