"""Everything that a soak left in the database, read by statements of its own."""

import json
from collections import defaultdict
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import TypeVar, cast

import psycopg
from psycopg import sql
from psycopg.rows import class_row

from tests.soak.rules import Naming

LOCAL = {"kind": "local"}

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSchedule:
    id: str
    status: str
    status_reason: str | None
    version: int
    latest_version: int
    next_due: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredVersion:
    schedule_id: str
    number: int
    definition: str
    params: str
    fold: str
    period: str
    effective_from: datetime
    effective_until: datetime | None
    boundary: str
    series: int
    counts_from: datetime | None

    @property
    def asked(self) -> dict[str, object]:
        return cast("dict[str, object]", json.loads(self.definition))

    @property
    def edit(self) -> object:
        """The number that its edit gave it in the params."""
        return json.loads(self.params).get("edit")

    @property
    def naming(self) -> Naming:
        asked = self.asked
        return Naming(
            recurrence=cast("dict[str, str]", asked["recurrence"]),
            timezone=str(asked["timezone"]),
            fold=self.fold,
        )

    @property
    def has_governed(self) -> bool:
        return self.effective_from != self.effective_until


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    run_id: str
    schedule_id: str
    version: int
    scheduled_at: datetime
    due_at: datetime
    named_local: datetime = field(metadata=LOCAL)
    period_key: str
    origin: str
    state: str
    reason: str | None
    planned_at: datetime | None
    admitted_at: datetime | None
    started_at: datetime | None
    attempt: int
    carried_by: int | None

    @property
    def holds_its_key(self) -> bool:
        """An automatic skip frees the period; all else uses it."""
        return self.state != "skipped" or self.reason == "on_request"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSkip:
    schedule_id: str
    version: int
    from_at: datetime
    until_at: datetime
    count: int
    reason: str
    note: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAttempt:
    run_id: str
    number: int
    worker: str
    opened_at: datetime
    finished_at: datetime | None
    outcome: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredIntent:
    job: str
    run_id: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPartition:
    partition: int
    owner: str | None
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The tables, by what they belong to."""

    schedules: dict[str, StoredSchedule]
    versions: dict[str, dict[int, StoredVersion]]
    runs: dict[str, StoredRun]
    runs_of: dict[str, list[StoredRun]]
    skips_of: dict[str, list[StoredSkip]]
    attempts_of: dict[str, list[StoredAttempt]]
    intents: list[StoredIntent]
    partitions: list[StoredPartition]


def read_stored(connection: psycopg.Connection) -> Stored:
    """All of it, in the connection's transaction: also what a test did to it there."""
    connection.execute("SET TIME ZONE 'UTC'")
    runs = _rows(connection, "runs", StoredRun, order="scheduled_at, run_id")
    stored = Stored(
        schedules={row.id: row for row in _rows(connection, "schedules", StoredSchedule, order="id")},
        versions=defaultdict(dict),
        runs={run.run_id: run for run in runs},
        runs_of=defaultdict(list),
        skips_of=defaultdict(list),
        attempts_of=defaultdict(list),
        intents=_rows(connection, "outbox", StoredIntent, order="run_id"),
        partitions=_rows(connection, "partitions", StoredPartition, order="partition"),
    )
    for version in _rows(connection, "versions", StoredVersion, order="schedule_id, number"):
        stored.versions[version.schedule_id][version.number] = version
    for run in runs:
        stored.runs_of[run.schedule_id].append(run)
    for skip in _rows(connection, "skips", StoredSkip, order="schedule_id, from_at"):
        stored.skips_of[skip.schedule_id].append(skip)
    for attempt in _rows(connection, "attempts", StoredAttempt, order="run_id, number"):
        stored.attempts_of[attempt.run_id].append(attempt)
    return stored


def _rows(connection: psycopg.Connection, table: str, row: type[T], *, order: str) -> list[T]:
    columns = [
        _column(item.name, is_instant="datetime" in str(item.type), is_local=item.metadata == LOCAL)
        for item in fields(row)  # type: ignore[arg-type]  # every row here is a dataclass
    ]
    query = sql.SQL("SELECT {} FROM {} ORDER BY {}").format(
        sql.SQL(", ").join(columns),
        sql.Identifier(table),
        sql.SQL(", ").join(sql.Identifier(name) for name in order.split(", ")),
    )
    with connection.cursor(row_factory=class_row(row)) as cursor:
        return cursor.execute(query).fetchall()


def _column(name: str, *, is_instant: bool, is_local: bool) -> sql.Composed:
    column = sql.Identifier(name)
    if not is_instant:
        return sql.SQL("{}").format(column)
    kind = "timestamp" if is_local else "timestamptz"
    # By whole milliseconds: a float would lose some of them.
    epoch = sql.SQL(f"{kind} 'epoch'" if is_local else f"{kind} '1970-01-01Z'")
    return sql.SQL("{} + {} * interval '1 millisecond' AS {}").format(epoch, column, column)
