"""What the service itself keeps: jobs, partitions, dispatchers, answers for repeated requests, the audit, settings."""

from sqlalchemy import CheckConstraint, Column, Index, Integer, Table, Text

from rota.domain.json_text import INTEGER_MAX
from rota.store.sql.columns import Long, Name, Truth, instant, instant_or_null, within_dates
from rota.store.sql.schema import storage
from rota.store.sql.schema.naming import metadata

jobs = Table(
    "jobs",
    metadata,
    Column("name", Name, primary_key=True),
    Column("spec", Text, nullable=False),
    instant("created_at"),
    instant("updated_at"),
    # Told by the spec, for statements that cannot read it.
    Column("lateness_max", Long, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("max_running", Integer),
    Column("is_fetched", Truth, nullable=False),
    sqlite_strict=True,
)

idempotency = Table(
    "idempotency",
    metadata,
    Column("key", Name, primary_key=True),
    Column("request_digest", Text, nullable=False),
    Column("answer", Text, nullable=False),
    instant("expires_at"),
    postgresql_with=storage.IDEMPOTENCY,
    sqlite_strict=True,
)
Index(None, idempotency.c.expires_at)

partitions = Table(
    "partitions",
    metadata,
    Column("partition", Integer, primary_key=True, autoincrement=False),
    Column("owner", Text),
    Column("epoch", Long, nullable=False),
    instant_or_null("expires_at"),
    instant_or_null("checkpoint"),
    CheckConstraint(f"epoch BETWEEN 0 AND {INTEGER_MAX}", name="epoch"),
    within_dates("expires_at"),
    within_dates("checkpoint"),
    postgresql_with=storage.PARTITIONS,
    sqlite_strict=True,
)

dispatchers = Table(
    "dispatchers",
    metadata,
    Column("owner", Name, primary_key=True),
    instant("expires_at"),
    within_dates("expires_at"),
    sqlite_strict=True,
)

audit = Table(
    "audit",
    metadata,
    Column("id", Long, primary_key=True),
    Column("schedule_id", Name, nullable=False),
    Column("action", Text, nullable=False),
    instant("at"),
    Column("actor", Text),
    Column("reason", Text),
    Column("details", Text, nullable=False),
    sqlite_strict=True,
)
Index(None, audit.c.schedule_id, audit.c.at, audit.c.id)

settings = Table(
    "settings",
    metadata,
    Column("name", Name, primary_key=True),
    Column("value", Text, nullable=False),
    sqlite_strict=True,
)
