"""Versions of schedules, the cadences that they share, and the rules of the zones that they were computed by."""

from typing import get_args

from sqlalchemy import Column, Index, Integer, Table, Text

from rota.domain.schedule import Boundary, Overlap
from rota.store.sql.columns import Long, Name, instant, instant_or_null, one_of
from rota.store.sql.schema.naming import metadata

cadences = Table(
    "cadences",
    metadata,
    Column("id", Name, primary_key=True),
    Column("recurrence", Text, nullable=False),
    Column("timezone", Text, nullable=False),
    Column("gap", Text, nullable=False),
    Column("fold", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    sqlite_strict=True,
)

zone_rules = Table(
    "zone_rules",
    metadata,
    Column("timezone", Name, primary_key=True),
    Column("fingerprint", Name, primary_key=True),
    Column("tzdata", Text, nullable=False),
    Column("offsets", Text, nullable=False),
    sqlite_strict=True,
)

versions = Table(
    "versions",
    metadata,
    Column("schedule_id", Name, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("cadence_id", Name, nullable=False),
    Column("definition", Text, nullable=False),
    Column("params", Text, nullable=False),
    Column("fold", Text, nullable=False),
    Column("period", Text, nullable=False),
    Column("tzdata", Text, nullable=False),
    Column("timezone", Name, nullable=False),
    Column("fingerprint", Name, nullable=False),
    instant("effective_from"),
    instant_or_null("effective_until"),
    instant_or_null("last_scheduled_at"),
    instant("created_at"),
    Column("actor", Text),
    Column("reason", Text),
    Column("boundary", Name, nullable=False),
    Column("series", Integer, nullable=False),
    instant_or_null("counts_from"),
    Column("named_before", Integer, nullable=False),
    # Told by the definition and the bounds, for statements that cannot read those.
    instant_or_null("named_until"),
    Column("lateness_max", Long),
    Column("overlap", Name, nullable=False),
    one_of("boundary", get_args(Boundary)),
    one_of("overlap", get_args(Overlap)),
    sqlite_strict=True,
)
# The latest version of a schedule that has not ended is of these: its window has no end yet.
_lasting = versions.c.effective_until.is_(None)
Index(
    "ix_versions_lasting",
    versions.c.timezone,
    versions.c.fingerprint,
    versions.c.schedule_id,
    sqlite_where=_lasting,
    postgresql_where=_lasting,
)
