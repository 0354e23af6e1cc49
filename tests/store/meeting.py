"""Two commits that meet on PostgreSQL: the second begins when the first has written everything and not committed yet.

The second goes as far as it can. Where it waits for a lock of the first, the first commits, and then the second goes
on: it has read some things before that commit and others after it, which one writer at a time never does.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import TypeVar

import psycopg
from sqlalchemy import Connection, event

from rota.store.sql import SqlStore, open_sql_store

LOOKS_MAX = 3_000
LOOK_SECONDS = 0.01
BLOCKED = """
SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE NOT granted AND datname = current_database()
"""

First = TypeVar("First")
Second = TypeVar("Second")


class Meeting:
    """Two stores on one database: each as in a process of its own."""

    def __init__(self, url: str) -> None:
        self.first, self.second = open_sql_store(url), open_sql_store(url)
        self.undone = 0
        """Transactions of the second store that were rolled back."""
        self._watch = psycopg.connect(url, autocommit=True)
        event.listen(self.second._database._writers, "rollback", self._count)

    def close(self) -> None:
        self.first.close()
        self.second.close()
        self._watch.close()

    def of(
        self, first: Callable[[SqlStore], First], second: Callable[[SqlStore], Second]
    ) -> tuple[First, Second]:
        """What each is answered."""
        begun: list[Future[Second]] = []
        with ThreadPoolExecutor(1) as pool:

            def let_second_begin(_: Connection) -> None:
                if not begun:
                    begun.append(pool.submit(second, self.second))
                    self._wait_until_blocked(begun[0])

            with _before_commits(self.first, let_second_begin):
                answer = first(self.first)
            assert begun, "the first has committed nothing"
            return answer, begun[0].result(timeout=30)

    def _wait_until_blocked(self, begun: "Future[Second]") -> None:
        for _ in range(LOOKS_MAX):
            if begun.done() or self._is_anybody_blocked():
                return
            Event().wait(LOOK_SECONDS)
        raise AssertionError("The second commit neither ended nor waits for the first.")

    def _is_anybody_blocked(self) -> bool:
        row = self._watch.execute(BLOCKED).fetchone()
        return row is not None and row[0] > 0

    def _count(self, _: Connection) -> None:
        self.undone += 1


@contextmanager
def _before_commits(store: SqlStore, act: Callable[[Connection], None]) -> Iterator[None]:
    writers = store._database._writers
    event.listen(writers, "commit", act)
    yield
    event.remove(writers, "commit", act)
