"""How late runs were admitted, told by the server: the time of the commit that advanced each schedule's cursor.

Whoever admits a schedule that is due each minute changes its row, and nobody else does within that minute. So its row
tells the commit of its last admission, for a minute, whoever it was and whatever has become of the run.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import psycopg

from rota.clock import SystemClock
from rota.domain.instants import to_millis

LOOKED_AT_AFTER = timedelta(seconds=20.7)
"""Behind the instant, and before the next one; not at a full second, at which others are at work."""

READ = """
SELECT extract(epoch FROM pg_xact_commit_timestamp(s.xmin))::float8 * 1000 - %(at)s
FROM partitions p CROSS JOIN LATERAL (
  SELECT xmin FROM schedules
  WHERE schedules.partition = p.partition AND next_due = %(following)s AND status IN ('active', 'ended')) s
"""


class CommitLateness:
    """Of schedules that are due once a minute: milliseconds from each instant to the commit of its admission."""

    def __init__(self, url: str, *, from_: datetime, until: datetime) -> None:
        self._url = url
        self._instants = [
            from_ + timedelta(seconds=second) for second in range(int((until - from_).total_seconds()))
        ]
        self._ended = threading.Event()
        self.by_instant: dict[datetime, list[float]] = {}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Looks meanwhile. Whoever admits has to have ended when the block ends: what is left is read then."""
        thread = threading.Thread(target=self._watch)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    @property
    def values(self) -> list[float]:
        return [value for values in self.by_instant.values() for value in values]

    def _watch(self) -> None:
        clock = SystemClock()
        with psycopg.connect(self._url, autocommit=True, options="-c jit=off") as connection:
            for instant in self._instants:
                seconds = (instant + LOOKED_AT_AFTER - clock.now()).total_seconds()
                self._ended.wait(max(0.0, seconds))
                following = to_millis(instant + timedelta(minutes=1))
                parameters = {"at": to_millis(instant), "following": following}
                found = connection.execute(READ, parameters, prepare=True).fetchall()
                self.by_instant[instant] = [lateness for (lateness,) in found]
