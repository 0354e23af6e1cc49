"""Runs with their results, attempts and delivery intents."""

from typing import get_args

from sqlalchemy import (
    Column,
    ColumnElement,
    Index,
    Integer,
    Table,
    Text,
    case,
    false,
    literal_column,
    text,
    true,
)

from rota.domain.run import AttemptOutcome, Origin, RunState
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
from rota.store.sql.schema import storage
from rota.store.sql.schema.naming import metadata

PARKED_STATES = (RunState.PLANNED, RunState.HELD)
"""Of runs that exist ahead of their admission."""

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
    Column("turn", Integer, nullable=False, server_default=text("0")),
    Column("second_pass", Truth, nullable=False),
    Column("carried_by", Integer),
    one_of("origin", get_args(Origin)),
    one_of("state", RunState),
    within_dates("due_at"),
    postgresql_with=storage.RUNS,
    sqlite_strict=True,
)


def holds_its_key() -> ColumnElement[bool]:
    """That a run uses its period: an automatic skip frees it (I2)."""
    return (runs.c.state != literal_column("'skipped'")) | (runs.c.reason == literal_column("'on_request'"))


def is_planned() -> ColumnElement[bool]:
    return runs.c.state == literal_column("'planned'")


def is_waiting() -> ColumnElement[bool]:
    """That a run waits for another one of its schedule."""
    return runs.c.state == literal_column("'waiting'")


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
    "ix_runs_waiting",
    runs.c.partition,
    runs.c.run_id,
    sqlite_where=is_waiting(),
    postgresql_where=is_waiting(),
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

effects = Table(
    "effects",
    metadata,
    Column("run_id", Name, primary_key=True),
    Column("name", Name, primary_key=True),
    Column("begun_by", Integer, nullable=False),
    instant("begun_at"),
    instant_or_null("recorded_at"),
    Column("result", Text),
    within_dates("begun_at"),
    within_dates("recorded_at"),
    sqlite_with_rowid=False,
    sqlite_strict=True,
)

# Claimed in the order of its key, and it has no other index: each would cost a fifth of an admission.
outbox = Table(
    "outbox",
    metadata,
    Column("job", Name, primary_key=True),
    Column("turn", Integer, primary_key=True, autoincrement=False),
    Column("available_at", Instant, primary_key=True),
    Column("run_id", Name, primary_key=True),
    Column("attempt", Integer, nullable=False),
    within_dates("available_at"),
    sqlite_with_rowid=False,
    postgresql_with=storage.OUTBOX,
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
    postgresql_with=storage.ATTEMPTS,
    sqlite_strict=True,
)


def is_still_open() -> ColumnElement[bool]:
    """That an attempt has not ended, in words that match no partial index.

    PostgreSQL without statistics expects a handful of open attempts, and would look through all that there are for each
    row of a batch, where the key finds one.
    """
    return case((attempts.c.finished_at.is_(None), true()), else_=false())


_open = attempts.c.finished_at.is_(None)
Index(
    "ix_attempts_open",
    attempts.c.partition,
    attempts.c.lease_expires_at,
    attempts.c.run_id,
    sqlite_where=_open,
    postgresql_where=_open,
)
