"""Kills a forked process with SIGKILL at its n-th step in the database: before and after each statement and commit."""

import os
import signal
from collections.abc import Callable
from enum import StrEnum

from sqlalchemy import Connection, event
from sqlalchemy.engine import Engine
from sqlalchemy.pool import Pool

Work = Callable[[], None]


class Ending(StrEnum):
    KILLED = "killed"
    FINISHED = "finished"


def run_and_kill(prepare: Callable[[], Work], *, at: int, only_writers: bool = False) -> Ending:
    """Does in a forked process what `prepare` answers with; it is killed at the `at`-th point, if it comes so far.

    The points: before and after each statement, before each commit, and after each (the connection goes back). What
    `prepare` itself does is not counted. With `only_writers` a transaction that only reads has one point, its
    beginning, and on PostgreSQL none: whatever follows in it leaves the same behind. And of one that writes "after" is
    left out, which is the next "before".
    """
    child = os.fork()
    if child == 0:
        try:
            work = prepare()
            _kill_at(at, only_writers=only_writers)
            work()
        except BaseException:  # noqa: BLE001 - the child would go on as a second test runner
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return Ending.KILLED
    assert os.WEXITSTATUS(status) == 0, "the work failed by itself"
    return Ending.FINISHED


def _kill_at(at: int, *, only_writers: bool) -> None:
    passed = 0
    is_reading = False

    def point() -> None:
        nonlocal passed
        passed += 1
        if passed == at:
            os.kill(os.getpid(), signal.SIGKILL)

    def before(connection: Connection, statement: str) -> None:
        nonlocal is_reading
        if connection.dialect.name == "postgresql":
            # Its transactions begin without a statement of their own, and say by themselves that they only read.
            is_reading = bool(connection.get_execution_options().get("postgresql_readonly"))
            between()
        elif statement.startswith("BEGIN"):
            point()
            is_reading = statement == "BEGIN"
        else:
            between()

    def between() -> None:
        if not is_reading or not only_writers:
            point()

    event.listen(Engine, "before_cursor_execute", lambda *arguments: before(arguments[0], str(arguments[2])))
    event.listen(Engine, "commit", lambda _: between())
    event.listen(Pool, "checkin", lambda *_: between())
    if not only_writers:
        event.listen(Engine, "after_cursor_execute", lambda *_: point())
