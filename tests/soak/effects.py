"""The application that the soak works: its handler notes each attempt outside of the database, as a mail server would.

`rota work tests.soak.effects:app` runs it; `SOAK_EFFECTS` names the file. A line is one write, so that a process that
is killed leaves a whole line or none.
"""

import json
import os
import threading
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from random import Random

from rota.application import Rota
from rota.domain.job import RetryPolicy
from rota.domain.overdue import CatchUpAll
from rota.worker.context import RunContext
from rota.worker.outcome import Moot
from rota.worker.registry import Registry

JOB = "soak"
LEASE = timedelta(seconds=5)
"""The shortest there is."""
RETRY = RetryPolicy(max_attempts=8, initial_delay=timedelta(seconds=1), max_delay=timedelta(seconds=2))
FAILS, IS_MOOT, IS_SLOW = 0.08, 0.02, 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """A handler was called for this attempt, with these params."""

    run_id: str
    attempt: int
    edit: object


def read_effects(path: Path) -> list[Effect]:
    if not path.exists():
        return []
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [Effect(run_id=line["run_id"], attempt=line["attempt"], edit=line["edit"]) for line in lines]


def add_soak(registry: Registry, path: Path) -> None:
    """The job of the soak, whose effects go to that file."""

    @registry.job(JOB, lease=LEASE, retry=RETRY, overdue=CatchUpAll())
    def soak(ctx: RunContext) -> object:
        """Notes the attempt; some are slow, some fail."""
        _note(ctx, path)
        # The same attempt ends alike in every life of the same seed.
        chance = Random(f"{ctx.run_id}/{ctx.attempt}")
        if chance.random() < IS_SLOW:
            threading.Event().wait(chance.uniform(0, 0.6))
        drawn = chance.random()
        if drawn < FAILS:
            raise RuntimeError("no paper")
        return Moot("nothing to print") if drawn < FAILS + IS_MOOT else {"attempt": ctx.attempt}


def _note(ctx: RunContext, path: Path) -> None:
    line = json.dumps({"run_id": ctx.run_id, "attempt": ctx.attempt, "edit": ctx.params.get("edit")})
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, f"{line}\n".encode())
    finally:
        os.close(file)


app = Rota()
if "SOAK_EFFECTS" in os.environ:
    add_soak(app.registry, Path(os.environ["SOAK_EFFECTS"]))
