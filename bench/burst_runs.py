"""One process of a burst: `python -m bench.burst_runs KIND ADDRESS OWNER BATCH`, told by lines what to do.

`at INSTANT` (milliseconds) lets a dispatcher take one step then, before anything is due. `go INSTANT` admits all that
is due. Each line is answered by one: the runs admitted, and the CPU seconds that this process spent on them.

KIND is `rota`, a dispatcher as it is; or `limit`, the same writes as pure SQL: in batches of up to a thousand of one
partition, the fence held and read, then one statement (PostgreSQL) or five (SQLite) that choose what is due by the same
index, advance it by a ready table, and insert run and delivery intent.
"""

import resource
import sqlite3
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from typing import Protocol

import psycopg
from sqlalchemy import make_url

from bench.seeding import PARTITIONS
from rota.cadences import Cadences
from rota.dispatch.dispatcher import Dispatcher
from rota.domain.beat import BeatKey, beat_of
from rota.domain.instants import from_millis
from rota.store.port import Store
from rota.store.sql import open_sql_store
from rota.store.sql.beats.writes import given_values
from rota.testing.clock import ManualClock
from rota.zones import Zones

LIMIT_BATCH = 1_000
LEASE = timedelta(seconds=60)
PAGE = 200
READY = (
    "cadence_id text PRIMARY KEY, following bigint, stamp text, named_local bigint, offset_seconds integer, "
    "period_key text"
)
RUN_COLUMNS = (
    "run_id, schedule_id, version, scheduled_at, due_at, named_local, offset_seconds, period_key, origin, job, "
    "partition, state, admitted_at, attempt, available_at, second_pass"
)


class Admitting(Protocol):
    def step(self, now: datetime) -> None: ...
    def admit(self, now: datetime) -> int: ...


class Rota:
    """The dispatcher, at a clock that stands still: an hour begins once."""

    def __init__(self, url: str, owner: str, batch: int) -> None:
        self._store: Store = open_sql_store(url)
        self._clock = ManualClock(from_millis(0))
        cadences = Cadences(Zones())
        # As a dispatcher has them that did not start this minute: a zone takes some tens of milliseconds.
        for row in self._store.read_cadences(ready_ids(url)):
            cadences.of_row(row)
        self._dispatcher = Dispatcher(
            self._store,
            cadences=cadences,
            clock=self._clock,
            owner=owner,
            lease=LEASE,
            poll=timedelta(seconds=1),
            page=PAGE,
            batch=batch,
        )

    def step(self, now: datetime) -> None:
        self._clock.set(now)
        self._dispatcher.step(now)

    def admit(self, now: datetime) -> int:
        self._clock.set(now)
        admitted = 0
        while (report := self._dispatcher.step(now)).wake_at <= now or report.admitted:
            admitted += report.admitted
        return admitted


class PostgresLimit:
    """On one connection; it takes all partitions."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True, options="-c jit=off")

    def step(self, now: datetime) -> None:  # noqa: ARG002 - it only warms what it will execute
        for partition in range(PARTITIONS):
            self._connection.execute(_PG_FENCE, (partition,), prepare=True)

    def admit(self, now: datetime) -> int:
        millis, admitted = int(now.timestamp() * 1_000), 0
        for partition in range(PARTITIONS):
            made = LIMIT_BATCH
            while made == LIMIT_BATCH:
                with self._connection.transaction():
                    self._connection.execute(_PG_FENCE, (partition,), prepare=True).fetchone()
                    values = {"partition": partition, "now": millis, "limit": LIMIT_BATCH}
                    made = self._connection.execute(_PG_ADMIT, values, prepare=True).rowcount
                admitted += made
        return admitted


class SqliteLimit:
    def __init__(self, url: str) -> None:
        self._connection = sqlite3.connect(make_url(url).database or "", isolation_level=None)
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "temp_store=MEMORY", "cache_size=-32768"):
            self._connection.execute(f"PRAGMA {pragma}")
        self._connection.execute(
            "CREATE TEMP TABLE due (place integer PRIMARY KEY, id, version, job, partition, at, cadence_id)"
        )

    def step(self, now: datetime) -> None:
        """It has nothing to prepare."""

    def admit(self, now: datetime) -> int:
        execute, admitted = self._connection.execute, 0
        for partition in range(PARTITIONS):
            made = LIMIT_BATCH
            values = {"partition": partition, "now": int(now.timestamp() * 1_000), "limit": LIMIT_BATCH}
            while made == LIMIT_BATCH:
                execute("BEGIN IMMEDIATE")
                execute("SELECT epoch FROM partitions WHERE partition = ?", (partition,)).fetchone()
                made = execute(_LITE_DUE, values).rowcount
                for statement in (_LITE_RUNS, _LITE_OUTBOX, _LITE_ADVANCE):
                    execute(statement, values)
                execute("DELETE FROM due")
                execute("COMMIT")
                admitted += made
        return admitted


def ready_ids(url: str) -> list[str]:
    """The cadences of the ready table."""
    statement = "SELECT cadence_id FROM ready"
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(make_url(url).database or "")) as connection:
            return [cadence_id for (cadence_id,) in connection.execute(statement)]
    with psycopg.connect(url) as made:
        return [cadence_id for (cadence_id,) in made.execute(statement)]


def ready_rows(url: str, now: datetime) -> list[Sequence[object]]:
    """What the ready table of the limit holds: of each cadence that is due at `now`, what its beat says."""
    store = open_sql_store(url)
    try:
        keys: Sequence[BeatKey] = store.read_beats(
            range(PARTITIONS), after=now - timedelta(seconds=1), now=now, each=1_000_000
        )
        cadences = Cadences(Zones())
        compiled = {
            row.cadence_id: cadences.of_row(row)
            for row in store.read_cadences({key.cadence_id for key in keys})
        }
        beats = [beat_of(key, compiled[key.cadence_id], now=now) for key in keys]
        made = [given_values(beat) for beat in beats if beat is not None]
    finally:
        store.close()
    names = ("cadence_id", "following", "stamp", "named_local", "offset_seconds", "period_key")
    return [[values[name] for name in names] for values in made]


def prepare_limit(url: str, now: datetime) -> None:
    """Makes the ready table."""
    rows = ready_rows(url, now)
    if url.startswith("sqlite"):
        connection = sqlite3.connect(make_url(url).database or "")
        connection.execute(f"CREATE TABLE ready ({READY}) WITHOUT ROWID")
        connection.executemany("INSERT INTO ready VALUES (?, ?, ?, ?, ?, ?)", rows)
        connection.commit()
        connection.close()
        return
    with psycopg.connect(url, autocommit=True) as made:
        made.execute(f"CREATE TABLE ready ({READY})".encode())
        with made.cursor() as cursor:
            cursor.executemany("INSERT INTO ready VALUES (%s, %s, %s, %s, %s, %s)", rows)
        made.execute("ANALYZE ready")


def main(arguments: Sequence[str]) -> None:
    kind, url, owner, batch = arguments
    makers: Mapping[str, Callable[[], Admitting]] = {
        "rota": lambda: Rota(url, owner, int(batch)),
        "limit": lambda: SqliteLimit(url) if url.startswith("sqlite") else PostgresLimit(url),
    }
    process = makers[kind]()
    print("ready", flush=True)
    for line in sys.stdin:
        word, millis = line.split()
        now, before, admitted = from_millis(int(millis)), _cpu_seconds(), 0
        if word == "go":
            admitted = process.admit(now)
        else:
            process.step(now)
        print(admitted, _cpu_seconds() - before, flush=True)


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


_PG_FENCE = "SELECT epoch FROM partitions WHERE partition = %s FOR SHARE"
_PG_ADMIT = f"""
WITH due AS MATERIALIZED (
  SELECT id, next_due, cadence_id, version, job, partition FROM schedules
  WHERE partition = %(partition)s AND next_due <= %(now)s AND status IN ('active', 'ended')
  ORDER BY next_due, id LIMIT %(limit)s
), moved AS (
  UPDATE schedules s SET next_due = r.following, next_scheduled_at = r.following, updated_at = %(now)s
  FROM due JOIN ready r ON r.cadence_id = due.cadence_id
  WHERE s.id = due.id AND s.next_due = due.next_due AND s.status = 'active'
  RETURNING s.id, s.version, s.job, s.partition, due.next_due AS at, r.stamp, r.named_local, r.offset_seconds,
    r.period_key
), made AS (
  INSERT INTO runs ({RUN_COLUMNS})
  SELECT id || '.' || version || '.' || stamp, id, version, at, at, named_local, offset_seconds, period_key, 'schedule',
    job, partition, 'queued', %(now)s, 0, at, false FROM moved
)
INSERT INTO outbox (job, turn, available_at, run_id, attempt)
SELECT job, 0, at, id || '.' || version || '.' || stamp, 1 FROM moved
"""
_LITE_DUE = """
INSERT INTO due SELECT rowid, id, version, job, partition, next_due, cadence_id FROM schedules
WHERE partition = :partition AND next_due <= :now AND next_due IS NOT NULL AND status IN ('active', 'ended')
ORDER BY next_due, id LIMIT :limit
"""
_LITE_RUNS = f"""
INSERT INTO runs ({RUN_COLUMNS})
SELECT id || '.' || version || '.' || stamp, id, version, at, at, named_local, offset_seconds, period_key, 'schedule',
  job, partition, 'queued', :now, 0, at, 0 FROM due CROSS JOIN ready USING (cadence_id)
"""
_LITE_OUTBOX = """
INSERT INTO outbox (job, turn, available_at, run_id, attempt)
SELECT job, 0, at, id || '.' || version || '.' || stamp, 1 FROM due CROSS JOIN ready USING (cadence_id)
"""
_LITE_ADVANCE = """
UPDATE schedules SET updated_at = :now, (next_due, next_scheduled_at) =
  (SELECT following, following FROM due CROSS JOIN ready USING (cadence_id) WHERE due.place = schedules.rowid)
WHERE rowid IN (SELECT place FROM due)
"""


if __name__ == "__main__":
    main(sys.argv[1:])
