"""What the databases can do at best: claim and settle in as few statements as there can be, with nothing around them.

It writes what Rota writes for a run that succeeds without a result: the delivery gone, the run started, an attempt
opened and closed, the run settled; in two transactions a batch. It reads nothing, decides nothing, and hands nobody
a run.
"""

import sqlite3
from collections.abc import Callable

import psycopg
from psycopg import sql
from sqlalchemy import make_url

from rota.clock import SystemClock
from rota.domain.instants import to_millis

LEASE_MILLIS = 60_000

CLAIM = """
WITH taken AS (
  DELETE FROM outbox WHERE (job, turn, available_at, run_id) IN (
    SELECT job, turn, available_at, run_id FROM outbox
    WHERE job = %(job)s AND turn = 0 AND available_at <= %(now)s
    ORDER BY available_at, run_id LIMIT %(size)s FOR UPDATE SKIP LOCKED
  ) RETURNING run_id, attempt
), started AS (
  UPDATE runs SET state = 'running', attempt = taken.attempt, started_at = %(now)s FROM taken
  WHERE runs.run_id = taken.run_id AND runs.state = 'queued' AND runs.attempt = taken.attempt - 1
  RETURNING runs.run_id, runs.attempt, runs.partition
)
INSERT INTO attempts (run_id, number, worker, partition, opened_at, lease_expires_at)
SELECT run_id, attempt, 'client', partition, %(now)s, %(lease)s FROM started RETURNING run_id, number
"""
SETTLE = """
WITH closed AS (
  UPDATE attempts SET finished_at = %(now)s, outcome = 'succeeded'
  FROM unnest((SELECT %(ids)s::text[]), (SELECT %(numbers)s::int[])) AS given(run_id, number)
  WHERE attempts.run_id = given.run_id AND attempts.number = given.number AND outcome IS NULL
)
UPDATE runs SET state = 'succeeded', finished_at = %(now)s
FROM unnest((SELECT %(ids)s::text[]), (SELECT %(numbers)s::int[])) AS given(run_id, number)
WHERE runs.run_id = given.run_id AND runs.state = 'running' AND runs.attempt = given.number
"""
SQLITE_TAKE = (
    "CREATE TEMP TABLE taken (job TEXT, available_at INTEGER, run_id TEXT PRIMARY KEY, attempt INTEGER)"
)
SQLITE_CLAIM = """
INSERT INTO taken SELECT job, available_at, run_id, attempt FROM outbox
WHERE job = :job AND turn = 0 AND available_at <= :now
ORDER BY available_at, run_id LIMIT :size;
DELETE FROM outbox WHERE (job, turn, available_at, run_id) IN (SELECT job, 0, available_at, run_id FROM taken);
UPDATE runs SET state = 'running', attempt = attempt + 1, started_at = :now
WHERE run_id IN (SELECT run_id FROM taken) AND state = 'queued';
INSERT INTO attempts (run_id, number, worker, partition, opened_at, lease_expires_at)
SELECT run_id, attempt, 'client', partition, :now, :lease FROM runs WHERE run_id IN (SELECT run_id FROM taken)
"""
SQLITE_SETTLE = """
UPDATE attempts SET finished_at = :now, outcome = 'succeeded'
WHERE (run_id, number) IN (SELECT run_id, attempt FROM taken) AND finished_at IS NULL;
UPDATE runs SET state = 'succeeded', finished_at = :now
WHERE run_id IN (SELECT run_id FROM taken) AND state = 'running';
DELETE FROM taken
"""


def postgresql_limit(url: str, job: str, size: int) -> Callable[[], int]:
    connection = psycopg.connect(url, autocommit=True)
    # Its plans must be the good ones at any size: it is the limit.
    for kind in ("seqscan", "bitmapscan", "hashjoin", "mergejoin", "material"):
        connection.execute(sql.SQL("SET {} = off").format(sql.Identifier(f"enable_{kind}")))

    def work() -> int:
        count = 0
        while True:
            now = _now()
            claim = {"job": job, "now": now, "size": size, "lease": now + LEASE_MILLIS}
            opened = connection.execute(CLAIM, claim).fetchall()
            if not opened:
                return count
            ids, numbers = zip(*opened, strict=True)
            settled = {"ids": list(ids), "numbers": list(numbers), "now": _now()}
            count += connection.execute(SETTLE, settled).rowcount

    return work


def sqlite_limit(url: str, job: str, size: int) -> Callable[[], int]:
    connection = sqlite3.connect(make_url(url).database or "", isolation_level=None)
    for statement in ("PRAGMA synchronous=FULL", "PRAGMA cache_size=-32768", SQLITE_TAKE):
        connection.execute(statement)

    def commit(script: str, values: dict[str, object]) -> int:
        connection.execute("BEGIN IMMEDIATE")
        counts = [connection.execute(statement, values).rowcount for statement in script.split(";")]
        connection.execute("COMMIT")
        return counts[0]

    def work() -> int:
        count = 0
        while True:
            now = _now()
            claim = {"job": job, "now": now, "size": size, "lease": now + LEASE_MILLIS}
            if not commit(SQLITE_CLAIM, claim):
                return count
            count += commit(SQLITE_SETTLE, {"now": _now()})

    return work


def _now() -> int:
    return to_millis(_CLOCK.now())


_CLOCK = SystemClock()
