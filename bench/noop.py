"""A worker's application with one job that does nothing but note how late it was begun.

The latenesses, in milliseconds, are written to the file that `BENCH_LATENESS_FILE` names when the worker has ended.
"""

import atexit
import os
from pathlib import Path

from bench.seeding import JOB
from rota.application import Rota
from rota.clock import SystemClock
from rota.worker.context import RunContext
from rota.worker.registry import Registry

FILE_VARIABLE = "BENCH_LATENESS_FILE"

app = Rota(registry=Registry())
clock = SystemClock()
latenesses: list[tuple[int, int]] = []


@app.job(JOB)
def noop(context: RunContext) -> None:
    """Nothing."""
    lateness = clock.now() - context.scheduled_at
    latenesses.append((int(context.scheduled_at.timestamp()), int(lateness.total_seconds() * 1_000)))


def write_latenesses() -> None:
    path = os.environ.get(FILE_VARIABLE)
    if path is not None:
        Path(path).write_text("".join(f"{second} {lateness}\n" for second, lateness in latenesses))


atexit.register(write_latenesses)
