"""What a dispatcher's step costs in which nothing is due, beside few and beside very many stored schedules.

Run it with `python -m bench.idle`. The dispatcher holds all 64 partitions. It steps once a second of a clock that is
moved by hand, as it does when it has nothing to do; so every fifth step renews its leases, and others look who else is
there. Two dispatchers, one beside few schedules and one beside many, take their steps in turn. The ratio of their
medians is what is to be read: it says whether an idle step costs more where there is more.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
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
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--few", type=int, default=FEW, help="schedules stored in the small database")
    parser.add_argument("--many", type=int, default=MANY, help="schedules stored in the large one")
    parser.add_argument("--steps", type=int, default=STEPS, help="steps measured in each")
    options = parser.parse_args(arguments)
    configure_logging(level="error", log_format="console")
    print(f"An idle step, {options.steps:,} each; {describe()}")
    table = []
    for kind in ("postgresql", "sqlite"):
        counts = (options.few, options.many)
        few, many = _measure(kind, counts, steps=options.steps)
        ratio = f"{median(many) / median(few):.2f}"
        for count, spent, shown in zip(counts, (few, many), ("", ratio), strict=True):
            table.append(
                (kind, f"{count:,}", f"{median(spent):.2f}", f"{percentile(spent, 0.99):.2f}", shown)
            )
    print_table(("database", "stored", "median ms", "p99 ms", f"ratio (at most {RATIO_MAX})"), table)


def _measure(kind: str, counts: Sequence[int], *, steps: int) -> list[list[float]]:
    """Milliseconds that each step took beside so many schedules. They take turns: the machine may be busy."""
    with ExitStack() as stack:
        idle = [stack.enter_context(_idle_dispatcher(kind, count, steps=steps)) for count in counts]
        spent: list[list[float]] = [[] for _ in idle]
        for _ in range(WARM_UP):
            for step in idle:
                step()
        for _ in range(steps):
            for step, kept in zip(idle, spent, strict=True):
                kept.append(step())
    return spent


@contextmanager
def _idle_dispatcher(kind: str, count: int, *, steps: int) -> Iterator[Callable[[], float]]:
    """Takes the next step of a dispatcher of its own, a second later, and tells how many milliseconds it took."""
    with new_databases(kind) as url:
        now = SystemClock().now()
        seed(url, far_ahead(count, now=now))
        clock = ManualClock(now)
        with Rota(url, settings=Settings(), clock=clock) as app:
            dispatcher = app.build_dispatcher()
            if now + timedelta(seconds=WARM_UP + steps) >= _earliest(app):
                raise ValueError("so many steps would reach the first due instant")

            def step() -> float:
                clock.advance(timedelta(seconds=1))
                began = time.perf_counter()
                report = dispatcher.step(clock.now())
                elapsed = time.perf_counter() - began
                if report.admitted or report.leap:
                    raise RuntimeError(f"a step was not idle: {report}")
                return elapsed * 1_000

            yield step


def _earliest(app: Rota) -> datetime:
    context = app.context
    return min(due.earliest for due in context.store.read_due_times(range(context.partition_count)).values())


if __name__ == "__main__":
    main()
