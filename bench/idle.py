"""What a dispatcher's step costs in which nothing is due, beside few and beside very many stored schedules.

Run it with `python -m bench.idle`. The dispatcher holds all 64 partitions. It steps once a second of a clock that is
moved by hand, as it does when it has nothing to do; so every fifth step renews its leases, and others look who else is
there. The ratio of the two medians is what is to be read: it says whether an idle step costs more where there is more.
"""

import argparse
import time
from collections.abc import Sequence
from datetime import datetime, timedelta

from bench.figures import median, percentile, print_table
from bench.machine import describe, new_databases
from bench.seeding import far_ahead, seed
from rota.application import Rota
from rota.clock import SystemClock
from rota.config import Settings
from rota.telemetry import configure_logging
from rota.testing.clock import ManualClock

FEW, MANY, STEPS = 1_000, 1_000_000, 3_000
WARM_UP = 50
RATIO_MAX = 1.5


def main(arguments: Sequence[str] | None = None) -> None:
    """Print for each database the step's median and p99 at both sizes, and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--few", type=int, default=FEW, help="schedules stored in the small database")
    parser.add_argument("--many", type=int, default=MANY, help="schedules stored in the large one")
    parser.add_argument("--steps", type=int, default=STEPS, help="steps measured in each")
    options = parser.parse_args(arguments)
    configure_logging(level="error", log_format="console")
    print(f"An idle step, {options.steps:,} each; {describe()}")
    table = []
    for kind in ("postgresql", "sqlite"):
        medians = []
        for count in (options.few, options.many):
            spent = _measure(kind, count, steps=options.steps)
            medians.append(median(spent))
            ratio = "" if len(medians) == 1 else f"{medians[1] / medians[0]:.2f}"
            table.append((kind, f"{count:,}", f"{medians[-1]:.2f}", f"{percentile(spent, 0.99):.2f}", ratio))
    print_table(("database", "stored", "median ms", "p99 ms", f"ratio (at most {RATIO_MAX})"), table)


def _measure(kind: str, count: int, *, steps: int) -> list[float]:
    """Milliseconds that each step took."""
    with new_databases(kind) as url:
        now = SystemClock().now()
        seed(url, far_ahead(count, now=now))
        clock = ManualClock(now)
        with Rota(url, settings=Settings(), clock=clock) as app:
            dispatcher = app.build_dispatcher()
            until = now + timedelta(seconds=WARM_UP + steps)
            if until >= _earliest(app):
                raise ValueError("so many steps would reach the first due instant")
            spent = []
            for number in range(WARM_UP + steps):
                clock.advance(timedelta(seconds=1))
                began = time.perf_counter()
                report = dispatcher.step(clock.now())
                elapsed = time.perf_counter() - began
                if report.admitted or report.leap:
                    raise RuntimeError(f"a step was not idle: {report}")
                if number >= WARM_UP:
                    spent.append(elapsed * 1_000)
            return spent


def _earliest(app: Rota) -> datetime:
    context = app.context
    return min(due.earliest for due in context.store.read_due_times(range(context.partition_count)).values())


if __name__ == "__main__":
    main()
