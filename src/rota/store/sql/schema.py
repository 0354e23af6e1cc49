"""The tables of a SQL store, for SQLite and PostgreSQL alike.

Rules. Instants are milliseconds since 1970 in UTC; JSON is canonical text; text compares by code point. There are no
foreign keys: what belongs together is written in one transaction, a check would cost an index probe for each run, and
a row that lost its other half must stop only itself (I12). `CHECK` constraints list the names of the enums; SQLite's
tables are STRICT, so that no column holds another type than its own.
"""

from typing import get_args

from sqlalchemy import (
    CheckConstraint,
    Column,
    ColumnElement,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    literal_column,
    text,
)

from rota.domain.admission import SkipReason
from rota.domain.json_text import INTEGER_MAX
from rota.domain.run import AttemptOutcome, Origin, RunState
from rota.domain.schedule import Boundary, ScheduleStatus
from rota.store.sql.columns import (
    Fraction,
    Instant,
    Long,
    Name,
    Truth,
    among,
    instant,
    instant_or_null,
    one_of,
    within_dates,
)

DUE_STATUSES = (ScheduleStatus.ACTIVE, ScheduleStatus.ENDED)
"""In these a schedule's cursor is owed: an ended one may still owe skips up to the end of its window."""

PARKED_STATES = (RunState.PLANNED, RunState.HELD)
"""Of runs that exist ahead of their admission."""

SUSPENSION_REASONS = ("paused", "error")

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

schedules = Table(
    "schedules",
    metadata,
    Column("id", Name, primary_key=True),
    Column("slot", Integer, nullable=False),
    Column("partition", Integer, nullable=False),
    Column("job", Name, nullable=False),
    Column("labels", Text, nullable=False),
    Column("status", Name, nullable=False),
    Column("status_reason", Text),
    Column("version", Integer, nullable=False),
    instant_or_null("next_scheduled_at"),
    instant_or_null("next_due"),
    Column("latest_version", Integer, nullable=False),
    Column("revision", Long, nullable=False),
    instant("created_at"),
    instant("updated_at"),
    instant("history_from"),
    instant_or_null("careful_until"),
    Column("open_runs", Integer, nullable=False, server_default=text("0")),
    Column("definition_digest", Text, nullable=False),
    CheckConstraint("revision >= 1", name="revision"),
    one_of("status", ScheduleStatus),
    within_dates("next_scheduled_at"),
    within_dates("next_due"),
    sqlite_strict=True,
)


def is_due_status() -> ColumnElement[bool]:
    """That a schedule's status is one of `DUE_STATUSES`."""
    return among(schedules.c.status, DUE_STATUSES)


# The id is in it because a burst shares one `next_due`: without it every batch would sort the whole burst.
_due = schedules.c.next_due.is_not(None) & is_due_status()
Index(
    "ix_schedules_due",
    schedules.c.partition,
    schedules.c.next_due,
    schedules.c.id,
    sqlite_where=_due,
    postgresql_where=_due,
)


def is_awaiting() -> ColumnElement[bool]:
    """That a version waits to take over."""
    return schedules.c.version != schedules.c.latest_version


Index("ix_schedules_awaiting", schedules.c.id, sqlite_where=is_awaiting(), postgresql_where=is_awaiting())

schedule_labels = Table(
    "schedule_labels",
    metadata,
    Column("key", Name, primary_key=True),
    Column("value", Name, primary_key=True),
    Column("schedule_id", Name, primary_key=True),
    sqlite_with_rowid=False,
    sqlite_strict=True,
)

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
    one_of("boundary", get_args(Boundary)),
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

suspensions = Table(
    "suspensions",
    metadata,
    Column("schedule_id", Name, primary_key=True),
    Column("from_at", Instant, primary_key=True),
    instant_or_null("until_at"),
    Column("reason", Name, nullable=False),
    Column("apply_overdue", Truth, nullable=False),
    one_of("reason", SUSPENSION_REASONS),
    sqlite_with_rowid=False,
    sqlite_strict=True,
)

runs = Table(
    "runs",
    metadata,
    Column("run_id", Name, primary_key=True),
    Column("schedule_id", Name, nullable=False),
    Column("version", Integer, nullable=False),
    instant("scheduled_at"),
    instant("due_at"),
    Column("named_local", Long, nullable=False),
    Column("offset_seconds", Integer, nullable=False),
    Column("period_key", Name, nullable=False),
    Column("origin", Name, nullable=False),
    Column("job", Name, nullable=False),
    Column("partition", Integer, nullable=False),
    Column("state", Name, nullable=False),
    Column("reason", Text),
    instant_or_null("planned_at"),
    instant_or_null("admitted_at"),
    instant_or_null("started_at"),
    instant_or_null("finished_at"),
    Column("attempt", Integer, nullable=False, server_default=text("0")),
    instant_or_null("available_at"),
    Column("progress_fraction", Fraction),
    Column("progress_message", Text),
    Column("error", Text),
    instant_or_null("cancel_requested_at"),
    Column("second_pass", Truth, nullable=False),
    Column("carried_by", Integer),
    one_of("origin", get_args(Origin)),
    one_of("state", RunState),
    within_dates("due_at"),
    sqlite_strict=True,
)


def holds_its_key() -> ColumnElement[bool]:
    """That a run uses its period: an automatic skip frees it (I2)."""
    return (runs.c.state != literal_column("'skipped'")) | (runs.c.reason == literal_column("'on_request'"))


def is_planned() -> ColumnElement[bool]:
    return runs.c.state == literal_column("'planned'")


def is_parked() -> ColumnElement[bool]:
    """That a run's state is one of `PARKED_STATES`."""
    return among(runs.c.state, PARKED_STATES)


Index(
    "uq_runs_schedule_id_period_key",
    runs.c.schedule_id,
    runs.c.period_key,
    unique=True,
    sqlite_where=holds_its_key(),
    postgresql_where=holds_its_key(),
)
Index(
    "ix_runs_planned",
    runs.c.partition,
    runs.c.due_at,
    runs.c.run_id,
    sqlite_where=is_planned(),
    postgresql_where=is_planned(),
)
Index(
    "ix_runs_parked",
    runs.c.schedule_id,
    runs.c.due_at,
    runs.c.run_id,
    sqlite_where=is_parked(),
    postgresql_where=is_parked(),
)
Index(None, runs.c.scheduled_at, runs.c.run_id)
Index(None, runs.c.schedule_id, runs.c.scheduled_at, runs.c.run_id)

results = Table(
    "results",
    metadata,
    Column("run_id", Name, primary_key=True),
    Column("result", Text, nullable=False),
    sqlite_strict=True,
)

# Claimed in the order of its key, and it has no other index: each would cost a fifth of an admission.
outbox = Table(
    "outbox",
    metadata,
    Column("job", Name, primary_key=True),
    Column("available_at", Instant, primary_key=True),
    Column("run_id", Name, primary_key=True),
    Column("attempt", Integer, nullable=False),
    within_dates("available_at"),
    sqlite_with_rowid=False,
    sqlite_strict=True,
)

attempts = Table(
    "attempts",
    metadata,
    Column("run_id", Name, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("worker", Text, nullable=False),
    Column("partition", Integer, nullable=False),
    instant("opened_at"),
    instant("lease_expires_at"),
    instant_or_null("finished_at"),
    Column("outcome", Name),
    Column("error", Text),
    one_of("outcome", AttemptOutcome),
    within_dates("lease_expires_at"),
    sqlite_with_rowid=False,
    sqlite_strict=True,
)
_open = attempts.c.finished_at.is_(None)
Index(
    "ix_attempts_open",
    attempts.c.partition,
    attempts.c.lease_expires_at,
    attempts.c.run_id,
    sqlite_where=_open,
    postgresql_where=_open,
)

skips = Table(
    "skips",
    metadata,
    Column("schedule_id", Name, primary_key=True),
    Column("from_at", Instant, primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("reason", Name, primary_key=True),
    instant("until_at"),
    Column("count", Integer, nullable=False),
    Column("note", Text),
    one_of("reason", get_args(SkipReason)),
    within_dates("from_at"),
    within_dates("until_at"),
    sqlite_with_rowid=False,
    sqlite_strict=True,
)
# The note is in it because only ranges of the same note are one; without it SQLite would read all skips of a schedule.
Index(None, skips.c.schedule_id, skips.c.version, skips.c.reason, skips.c.until_at, skips.c.note)

jobs = Table(
    "jobs",
    metadata,
    Column("name", Name, primary_key=True),
    Column("spec", Text, nullable=False),
    instant("created_at"),
    instant("updated_at"),
    sqlite_strict=True,
)

idempotency = Table(
    "idempotency",
    metadata,
    Column("key", Name, primary_key=True),
    Column("request_digest", Text, nullable=False),
    Column("answer", Text, nullable=False),
    instant("expires_at"),
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
