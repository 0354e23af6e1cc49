"""The limit of steady admission: what is due each second in one statement, and nothing else of a dispatcher.

`python -m bench.steady_limit ADDRESS SECONDS` sleeps to the next second, as a dispatcher does that knows the next due
instant, and admits what fell due by one transaction: the fences are held, each due schedule is advanced by a ready
table of next instants, and its run and delivery intent are inserted, into the tables and indexes of Rota.
"""

import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import psycopg

from rota.clock import SystemClock
from rota.domain.instants import format_instant, stamp, to_millis

TABLE = """
CREATE TABLE following (
  cadence_id text COLLATE "C", at bigint, following bigint, stamp text, period_key text COLLATE "C",
  PRIMARY KEY (cadence_id, at))
"""

ADMIT = """
WITH held AS MATERIALIZED (
  SELECT partition FROM partitions WHERE epoch = 0 FOR SHARE
), due AS MATERIALIZED (
  SELECT s.id, s.next_due, s.cadence_id FROM held CROSS JOIN LATERAL (
    SELECT id, next_due, cadence_id FROM schedules
    WHERE schedules.partition = held.partition AND next_due <= %(now)s AND status IN ('active', 'ended')
    ORDER BY next_due, id LIMIT 1000) s
), moved AS (
  UPDATE schedules s SET next_due = f.following, next_scheduled_at = f.following, updated_at = %(now)s
  FROM due JOIN following f ON f.cadence_id = due.cadence_id AND f.at = due.next_due
  WHERE s.id = due.id AND s.next_due = due.next_due AND s.status = 'active'
  RETURNING s.id, s.version, s.job, s.partition, f.at, f.stamp, f.period_key
), made AS (
  INSERT INTO runs (run_id, schedule_id, version, scheduled_at, due_at, named_local, offset_seconds, period_key,
    origin, job, partition, state, admitted_at, available_at, second_pass)
  SELECT id || '.' || version || '.' || stamp, id, version, at, at, at, 0, period_key, 'schedule', job, partition,
    'queued', %(now)s, %(now)s, false FROM moved
  RETURNING job, available_at, run_id
)
INSERT INTO outbox (job, turn, available_at, run_id, attempt) SELECT job, 0, available_at, run_id, 1 FROM made
"""


def prepare(url: str, *, from_: datetime, seconds: int) -> None:
    """Makes the ready table for every cadence that has a schedule due in these seconds; each repeats after a minute."""
    instants = [from_ + timedelta(seconds=second) for second in range(seconds)]
    with psycopg.connect(url) as connection:
        connection.execute(TABLE)
        found = connection.execute(
            "SELECT DISTINCT cadence_id, next_due FROM schedules WHERE next_due >= %s AND next_due < %s",
            (to_millis(from_), to_millis(from_ + timedelta(minutes=1))),
        ).fetchall()
        by_second = {due // 1_000 % 60: cadence_id for cadence_id, due in found}
        with connection.cursor().copy("COPY following FROM STDIN") as copy:
            for at in instants:
                copy.write_row(
                    (
                        by_second[at.second],
                        to_millis(at),
                        to_millis(at + timedelta(minutes=1)),
                        stamp(at),
                        f"instant:{format_instant(at)}",
                    )
                )
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ANALYZE following")


def main(arguments: Sequence[str]) -> None:
    """Admit until the seconds are over."""
    url, seconds = arguments
    clock = SystemClock()
    until = clock.now() + timedelta(seconds=int(seconds))
    with psycopg.connect(url, autocommit=True, options="-c jit=off") as connection:
        while (now := datetime.fromtimestamp(to_millis(clock.now()) / 1_000, UTC)) < until:
            connection.execute(ADMIT, {"now": to_millis(now)}, prepare=True)
            # What fell due meanwhile is admitted at once.
            after = clock.now()
            if after.replace(microsecond=0) <= now:
                time.sleep(1 - after.microsecond / 1_000_000)


if __name__ == "__main__":
    main(sys.argv[1:])
