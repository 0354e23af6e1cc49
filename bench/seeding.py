"""Stored schedules by the million: rows that equal what the service writes, copied into the tables.

Of each group the first schedule is planned and written as the service does it. The others have its rows, but for what
follows from their ids: slot, partition, and the digest of the request. A test compares both ways.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta

import psycopg
from psycopg import sql
from sqlalchemy import make_url

from rota.cadences import Cadences
from rota.clock import SystemClock
from rota.domain.identity import ScheduleId, digest_of, partition_of, slot_of
from rota.domain.job import Job
from rota.domain.json_text import encode_json
from rota.service.context import NOBODY, Context
from rota.service.creation import plan_creation
from rota.store.port import NewSchedule
from rota.store.sql import open_sql_store, rows
from rota.store.sql.bounds import followed_values
from rota.zones import Zones

PARTITIONS = 64
JOB = "noop"
LINES_AT_ONCE = 2_000
PLACE = "<id>"
"""Stands for the id in texts that hold it; no id has it."""

ZONES = ("America/New_York", "Europe/London", "Asia/Kolkata", "Australia/Sydney", "Africa/Casablanca", "UTC")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Schedules that differ in nothing but their ids; each first falls due at the first instant after `created_at`."""

    ids: Sequence[str]
    recurrence: Mapping[str, str]
    created_at: datetime
    timezone: str = "UTC"
    overdue: Mapping[str, object] | None = None

    def body(self, schedule_id: str) -> dict[str, object]:
        """The request that would make one of them."""
        body: dict[str, object] = {
            "id": schedule_id,
            "job": JOB,
            "timezone": self.timezone,
            "recurrence": dict(self.recurrence),
        }
        return body if self.overdue is None else {**body, "overdue": dict(self.overdue)}


def seed(url: str, groups: Iterable[Group], *, partitions: int = PARTITIONS) -> int:
    """Writes them; how many there are. The partitions and the job are made where they are missing."""
    store = open_sql_store(url)
    try:
        zones = Zones()
        context = Context(
            store=store,
            clock=SystemClock(),
            zones=zones,
            cadences=Cadences(zones),
            partition_count=store.ensure_partitions(partitions),
        )
        if store.get_job(JOB) is None:
            store.commit_job(Job(name=JOB), now=context.clock.now())
        count = 0
        waiting: list[_Rows] = []
        for group in groups:
            body = group.body(group.ids[0])
            _, first = plan_creation(context, body, actor=NOBODY, now=group.created_at)
            store.commit_creation(first, now=group.created_at)
            waiting.append(_Rows(group, first, context.partition_count))
            count += len(group.ids)
    finally:
        store.close()
    _write_all(url, waiting)
    return count


def far_ahead(count: int, *, now: datetime) -> list[Group]:
    """`count` schedules that fall due once a day, from a day after `now` on, at 48 times of day in six zones."""
    kinds = [(zone, half_hour) for half_hour in range(48) for zone in ZONES]
    ids = [f"far-{number:08d}" for number in range(count)]
    return [
        Group(
            ids=ids[place :: len(kinds)],
            recurrence={"cron": f"{half_hour % 2 * 30} {half_hour // 2} * * *"},
            timezone=zone,
            created_at=now + timedelta(days=1),
        )
        for place, (zone, half_hour) in enumerate(kinds)
        if place < count
    ]


class _Rows:
    """The rows of a group, beside those of its first schedule, which are there already."""

    def __init__(self, group: Group, first: NewSchedule, partitions: int) -> None:
        self._ids = group.ids[1:]
        self._partitions = partitions
        self._before, self._after = encode_json(group.body(PLACE)).split(encode_json(PLACE))
        version = first.first.version
        self._schedule = {**rows.schedule_values(first.schedule), **followed_values(version)}
        self._version = dict(rows.version_values(version))
        self._audit = dict(rows.audit_values(first.event))

    def columns(self) -> dict[str, list[str]]:
        return {
            "schedules": list(self._schedule),
            "versions": list(self._version),
            "audit": list(self._audit),
        }

    def values(self, table: str) -> Iterator[list[object]]:
        match table:
            case "schedules":
                return self._schedules()
            case "versions":
                return self._named_by_id(self._version)
            case _:
                return self._named_by_id(self._audit)

    def _schedules(self) -> Iterator[list[object]]:
        values = list(self._schedule.values())
        names = list(self._schedule)
        places = [names.index(name) for name in ("id", "slot", "partition", "definition_digest")]
        id_place, slot_place, partition_place, digest_place = places
        for schedule_id in map(ScheduleId, self._ids):
            row = values.copy()
            row[id_place] = schedule_id
            row[slot_place] = slot = slot_of(schedule_id)
            row[partition_place] = partition_of(slot, self._partitions)
            row[digest_place] = digest_of(f'{self._before}"{schedule_id}"{self._after}')
            yield row

    def _named_by_id(self, named: Mapping[str, object]) -> Iterator[list[object]]:
        values = list(named.values())
        place = list(named).index("schedule_id")
        for schedule_id in self._ids:
            row = values.copy()
            row[place] = schedule_id
            yield row


def _write_all(url: str, waiting: Sequence[_Rows]) -> None:
    if not waiting:
        return
    if url.startswith("sqlite"):
        _write_to_sqlite(make_url(url).database or "", waiting)
    else:
        _copy_to_postgresql(url, waiting)


def _write_to_sqlite(path: str, waiting: Sequence[_Rows]) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for table, names in waiting[0].columns().items():
            marks = ", ".join("?" for _ in names)
            statement = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})"
            for each in waiting:
                connection.executemany(statement, each.values(table))
        connection.commit()
        connection.execute("ANALYZE")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _copy_to_postgresql(url: str, waiting: Sequence[_Rows]) -> None:
    with psycopg.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        for table, names in waiting[0].columns().items():
            statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
                sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, names))
            )
            with cursor.copy(statement) as copy:
                for lines in _lines(waiting, table):
                    copy.write(lines)
        cursor.execute("VACUUM ANALYZE")
        cursor.execute("CHECKPOINT")


def _lines(waiting: Sequence[_Rows], table: str) -> Iterator[str]:
    kept: list[str] = []
    for each in waiting:
        for row in each.values(table):
            kept.append("\t".join([_cell(value) for value in row]) + "\n")
            if len(kept) == LINES_AT_ONCE:
                yield "".join(kept)
                kept.clear()
    yield "".join(kept)


def _cell(value: object) -> str:
    """In the text form of COPY."""
    if value is None:
        return "\\N"
    if isinstance(value, str):
        return value.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")
    return str(value)
