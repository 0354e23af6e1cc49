"""Schedules, and what of their history belongs to no run."""

from typing import get_args

from sqlalchemy import CheckConstraint, Column, ColumnElement, Index, Integer, Table, Text, text

from rota.domain.admission import SkipReason
from rota.domain.schedule import ScheduleStatus
from rota.store.sql.columns import (
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

DUE_STATUSES = (ScheduleStatus.ACTIVE, ScheduleStatus.ENDED)
"""In these a schedule's cursor is owed: an ended one may still owe skips up to the end of its window."""

SUSPENSION_REASONS = ("paused", "error")

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
    Column("turn", Integer, nullable=False, server_default=text("0")),
    Column("definition_digest", Text, nullable=False),
    # What an ordinary admission needs of the cursor's version, so that no version is read for it.
    Column("cadence_id", Name),
    Column("period", Text),
    Column("series", Integer),
    instant_or_null("named_until"),
    Column("lateness_max", Long),
    CheckConstraint("revision >= 1", name="revision"),
    one_of("status", ScheduleStatus),
    within_dates("next_scheduled_at"),
    within_dates("next_due"),
    postgresql_with=storage.SCHEDULES,
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

# Open runs of schedules whose runs may not overlap: the first, and the one that waits for it.
places = Table(
    "places",
    metadata,
    Column("schedule_id", Name, primary_key=True),
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("run_id", Name, nullable=False),
    CheckConstraint("place BETWEEN 0 AND 1", name="place"),
    sqlite_with_rowid=False,
    sqlite_strict=True,
)
Index("uq_places_run_id", places.c.run_id, unique=True)

schedule_labels = Table(
    "schedule_labels",
    metadata,
    Column("key", Name, primary_key=True),
    Column("value", Name, primary_key=True),
    Column("schedule_id", Name, primary_key=True),
    sqlite_with_rowid=False,
    sqlite_strict=True,
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
