"""The tables of a SQL store, for SQLite and PostgreSQL alike.

Rules. Instants are milliseconds since 1970 in UTC; JSON is canonical text; text compares by code point. There are no
foreign keys: what belongs together is written in one transaction, a check would cost an index probe for each run, and
a row that lost its other half must stop only itself (I12). `CHECK` constraints list the names of the enums; SQLite's
tables are STRICT, so that no column holds another type than its own.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import get_args

from sqlalchemy import (
    REAL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ColumnElement,
    Dialect,
    Double,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    literal_column,
    text,
)
from sqlalchemy.types import TypeEngine

from rota.domain.admission import SkipReason
from rota.domain.instants import to_millis
from rota.domain.json_text import INTEGER_MAX
from rota.domain.run import AttemptOutcome, Origin, RunState
from rota.domain.schedule import ScheduleStatus

DUE_STATUSES = (ScheduleStatus.ACTIVE, ScheduleStatus.ENDED)
"""In these a schedule's cursor is owed: an ended one may still owe skips up to the end of its window."""

SUSPENSION_REASONS = ("paused", "error")
DATES = (-62_135_596_800_000, 253_402_300_799_999)
"""The years 1 to 9999, all that a Python datetime can say: a cursor outside them could not even be reported."""


Long = BigInteger().with_variant(Integer(), "sqlite")
"""Of 64 bits, as SQLite's INTEGER is: its STRICT tables know no other name."""


class Instant(TypeDecorator[int]):
    """Milliseconds since 1970 in UTC; a condition may name them by an aware datetime.

    They come back as a number: `rows` reads it where a value out of range concerns a single row.
    """

    impl = BigInteger
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[int]:
        return dialect.type_descriptor(Long)

    def process_bind_param(self, value: object, dialect: Dialect) -> int | None:  # noqa: ARG002  its signature
        if isinstance(value, datetime):
            return to_millis(value)
        if value is None or isinstance(value, int):
            return value
        raise TypeError(f"{value!r} is not an instant")


Name = Text().with_variant(Text(collation="C"), "postgresql")
"""Ids, keys and names: ordered by code point, as SQLite's BINARY and Python's `<` do."""

Truth = Boolean().with_variant(Integer(), "sqlite")
Fraction: TypeEngine[float] = Double().with_variant(REAL(), "sqlite")

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)


def one_of(column: str, names: Iterable[str]) -> CheckConstraint:
    """The constraint that `column` holds one of `names`, or nothing where it may be null.

    Not as `IN (...)`: SQLite would make a temporary table of the list for each row, a third of the cost of a run.
    """
    return CheckConstraint(" OR ".join(f"{column} = '{name}'" for name in names), name=column)


def _instant_or_null(name: str) -> Column[int]:
    return Column(name, Instant)


def _instant(name: str) -> Column[int]:
    return Column(name, Instant, nullable=False)


def _within_dates(column: str) -> CheckConstraint:
    return CheckConstraint(f"{column} BETWEEN {DATES[0]} AND {DATES[1]}", name=column)


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
    _instant_or_null("next_scheduled_at"),
    _instant_or_null("next_due"),
    Column("latest_version", Integer, nullable=False),
    _instant("created_at"),
    _instant("updated_at"),
    _instant("history_from"),
    _instant_or_null("careful_until"),
    Column("open_runs", Integer, nullable=False, server_default=text("0")),
    Column("definition_digest", Text, nullable=False),
    one_of("status", ScheduleStatus),
    _within_dates("next_scheduled_at"),
    _within_dates("next_due"),
    sqlite_strict=True,
)


def is_due_status() -> ColumnElement[bool]:
    """That a schedule's status is one of `DUE_STATUSES`.

    In literals: SQLite uses a partial index only for a query that repeats its condition word for word.
    """
    return schedules.c.status.in_([literal_column(f"'{status}'") for status in DUE_STATUSES])


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
    Column("timezone", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    _instant("effective_from"),
    _instant_or_null("effective_until"),
    _instant_or_null("last_scheduled_at"),
    _instant("created_at"),
    Column("actor", Text),
    Column("reason", Text),
    sqlite_strict=True,
)

suspensions = Table(
    "suspensions",
    metadata,
    Column("schedule_id", Name, primary_key=True),
    Column("from_at", Instant, primary_key=True),
    _instant_or_null("until_at"),
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
    _instant("scheduled_at"),
    _instant("due_at"),
    Column("named_local", Long, nullable=False),
    Column("offset_seconds", Integer, nullable=False),
    Column("period_key", Name, nullable=False),
    Column("origin", Name, nullable=False),
    Column("job", Name, nullable=False),
    Column("partition", Integer, nullable=False),
    Column("state", Name, nullable=False),
    Column("reason", Text),
    _instant_or_null("planned_at"),
    _instant_or_null("admitted_at"),
    _instant_or_null("started_at"),
    _instant_or_null("finished_at"),
    Column("attempt", Integer, nullable=False, server_default=text("0")),
    _instant_or_null("available_at"),
    Column("progress_fraction", Fraction),
    Column("progress_message", Text),
    Column("error", Text),
    _instant_or_null("cancel_requested_at"),
    one_of("origin", get_args(Origin)),
    one_of("state", RunState),
    UniqueConstraint("schedule_id", "period_key", name="uq_runs_schedule_id_period_key"),
    sqlite_strict=True,
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
    _within_dates("available_at"),
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
    _instant("opened_at"),
    _instant("lease_expires_at"),
    _instant_or_null("finished_at"),
    Column("outcome", Name),
    Column("error", Text),
    one_of("outcome", AttemptOutcome),
    _within_dates("lease_expires_at"),
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
    _instant("until_at"),
    Column("count", Integer, nullable=False),
    Column("note", Text),
    one_of("reason", get_args(SkipReason)),
    _within_dates("from_at"),
    _within_dates("until_at"),
    sqlite_with_rowid=False,
    sqlite_strict=True,
)
Index(None, skips.c.schedule_id, skips.c.version, skips.c.reason, skips.c.until_at)

jobs = Table(
    "jobs",
    metadata,
    Column("name", Name, primary_key=True),
    Column("spec", Text, nullable=False),
    _instant("created_at"),
    _instant("updated_at"),
    sqlite_strict=True,
)

idempotency = Table(
    "idempotency",
    metadata,
    Column("key", Name, primary_key=True),
    Column("request_digest", Text, nullable=False),
    Column("answer", Text, nullable=False),
    _instant("expires_at"),
    sqlite_strict=True,
)
Index(None, idempotency.c.expires_at)

partitions = Table(
    "partitions",
    metadata,
    Column("partition", Integer, primary_key=True, autoincrement=False),
    Column("owner", Text),
    Column("epoch", Long, nullable=False),
    _instant_or_null("expires_at"),
    _instant_or_null("checkpoint"),
    CheckConstraint(f"epoch BETWEEN 0 AND {INTEGER_MAX}", name="epoch"),
    _within_dates("expires_at"),
    _within_dates("checkpoint"),
    sqlite_strict=True,
)

audit = Table(
    "audit",
    metadata,
    Column("id", Long, primary_key=True),
    Column("schedule_id", Name, nullable=False),
    Column("action", Text, nullable=False),
    _instant("at"),
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
