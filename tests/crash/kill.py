"""Kills a forked process with SIGKILL at its n-th step in the database: before and after each statement and commit."""

import os
import signal
from collections.abc import Callable
from enum import StrEnum

from sqlalchemy import event
from sqlalchemy.engine import Engine
from sqlalchemy.pool import Pool


class Ending(StrEnum):
    KILLED = "killed"
    FINISHED = "finished"


def run_and_kill(work: Callable[[], None], *, at: int) -> Ending:
    """Runs `work` in a forked process that is killed at its `at`-th point, if it comes so far.

    The points: before and after each statement, before each commit, and after each (the connection goes back).
    """
    child = os.fork()
    if child == 0:
        _kill_at(at)
        try:
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


def _kill_at(at: int) -> None:
    passed = 0

    def point(*_: object) -> None:
        nonlocal passed
        passed += 1
        if passed == at:
            os.kill(os.getpid(), signal.SIGKILL)

    event.listen(Engine, "before_cursor_execute", lambda *_: point())
    event.listen(Engine, "after_cursor_execute", lambda *_: point())
    event.listen(Engine, "commit", point)
    event.listen(Pool, "checkin", lambda *_: point())
