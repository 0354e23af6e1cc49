"""What a long backlog costs, and whether others wait for it: `python -m bench.backlog`.

In each row one `rota dispatch` begins on a database in which schedules were not served for long: one of every minute
for a year (525,600 instants) under each overdue policy, or 10,000 of every hour for a week. Beside them lie others that
fall due every minute, spread over its seconds, as many each second as `--due` says; the first row has only these.

Their lateness is that of the commit, as PostgreSQL tells it; on SQLite another process looks for new rows fifty times a
second. A row ends when the backlog is done, or after `--seconds`: then it says how far it got.
"""

import argparse
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import Engine, create_engine, make_url, text

from bench.figures import mebibytes, median, percentile, print_table
from bench.machine import Process, describe, memory_of, new_databases, running_dispatcher
from bench.seeding import Group, seed
from rota.clock import SystemClock
from rota.domain.instants import format_instant, from_millis, to_millis

YEAR, WEEK = timedelta(days=365), timedelta(days=7)
DOWN, DUE, SECONDS = 10_000, 100, 420
AT_LEAST = 30
LOOKS_AT_ROWS_SECONDS = 0.02
LOOKS_AT_BACKLOG_SECONDS = 0.5
RUNS_AT_ONCE = 20_000

POLICIES: Mapping[str, Mapping[str, object]] = {
    "latest_only": {"policy": "latest_only", "grace": "PT1M"},
    "expire": {"policy": "expire", "deadline": "PT5M"},
    "catch_up_all": {"policy": "catch_up_all"},
}

clock = SystemClock()


@dataclass(slots=True, kw_only=True)
class Backlog:
    """One row; `schedules` 0: there is none."""

    kind: str
    name: str
    schedules: int = 0
    every: str = "PT1M"
    down_for: timedelta = timedelta()
    policy: str = "latest_only"
    seconds: float = 0.0
    left: int = 0
    """Schedules that are not done."""
    reached: datetime | None = None
    memory: tuple[int, int] = (0, 0)
    """Bytes when it began to admit, and at most."""
    latenesses: list[float] = field(default_factory=list)
    runs: int = 0
    skips: int = 0
    skipped: int = 0


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each backlog on each database."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--due", type=int, default=DUE, help="other schedules that fall due each second")
    parser.add_argument("--down", type=int, default=DOWN, help="schedules that were down for a week")
    parser.add_argument(
        "--days", type=int, default=YEAR.days, help="days that the schedule of every minute was down"
    )
    parser.add_argument("--seconds", type=int, default=SECONDS, help="the longest that a row may take")
    parser.add_argument(
        "--at-least", type=int, default=AT_LEAST, help="the shortest that a row may take, for the others"
    )
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--databases", default="postgresql,sqlite")
    options = parser.parse_args(arguments)
    print(f"{options.due:,} others due each second; {describe()}")
    rows = []
    for kind in options.databases.split(","):
        for backlog in _backlogs(kind, options):
            if options.only in backlog.name or not backlog.schedules:
                _measure(backlog, options)
                rows.append(_row(backlog))
    print_table(
        (
            *("database: backlog", "seconds", "left", "runs", "skip rows", "skipped", "memory", "at most"),
            *("others seen", "p50 ms", "p99 ms", "largest"),
        ),
        rows,
    )


def _backlogs(kind: str, options: argparse.Namespace) -> Iterator[Backlog]:
    yield Backlog(kind=kind, name="none")
    for policy in POLICIES:
        yield Backlog(
            kind=kind,
            name=f"1 every minute, {options.days} days, {policy}",
            schedules=1,
            down_for=timedelta(days=options.days),
            policy=policy,
        )
    for policy in POLICIES:
        yield Backlog(
            kind=kind,
            name=f"{options.down:,} hourly, 7 days, {policy}",
            schedules=options.down,
            every="PT1H",
            down_for=WEEK,
            policy=policy,
        )


def _measure(backlog: Backlog, options: argparse.Namespace) -> None:
    with new_databases(backlog.kind) as url, _opened(url) as engine:
        begin = clock.now().replace(microsecond=0)
        groups = _due_each_second(options.due, begin=begin)
        if backlog.schedules:
            recurrence = {"every": backlog.every, "anchor": format_instant(begin - backlog.down_for)}
            down = Group(
                ids=[f"down-{number:06d}" for number in range(backlog.schedules)],
                recurrence=recurrence,
                created_at=begin - backlog.down_for - timedelta(seconds=1),
                overdue=POLICIES[backlog.policy],
            )
            groups.append(down)
        seed(url, groups)
        # What fell due while it was seeded is late for no fault of the dispatcher's.
        with running_dispatcher(url) as dispatcher:
            from_ = _wait_for_the_first(engine, dispatcher)
            backlog.memory = memory_of(dispatcher.pid)
            with _watching(backlog, engine, from_=from_):
                _wait_for_the_end(backlog, engine, options)
            backlog.memory = (backlog.memory[0], memory_of(dispatcher.pid)[1])
        if backlog.kind == "postgresql":
            backlog.latenesses = _commit_latenesses(engine, from_=from_)
        _count(backlog, engine)


def _due_each_second(count: int, *, begin: datetime) -> list[Group]:
    """Each every minute; they are on time, as their first instants lie behind the seeding."""
    created_at = begin + timedelta(seconds=10)
    return [
        Group(
            ids=[f"other-{second:02d}-{number:05d}" for number in range(count)],
            recurrence={"every": "PT1M", "anchor": format_instant(begin + timedelta(seconds=second))},
            created_at=created_at,
        )
        for second in range(60)
    ]


def _wait_for_the_first(engine: Engine, dispatcher: Process) -> datetime:
    """Until one of the others was admitted in time; what is scheduled from then on counts."""
    while dispatcher.is_running:
        time.sleep(LOOKS_AT_ROWS_SECONDS)
        with engine.connect() as connection:
            if connection.execute(text("SELECT 1 FROM runs LIMIT 1")).first() is not None:
                return clock.now().replace(microsecond=0) + timedelta(seconds=2)
    raise RuntimeError("the dispatcher has ended")


@contextmanager
def _watching(backlog: Backlog, engine: Engine, *, from_: datetime) -> Iterator[None]:
    if backlog.kind == "postgresql":
        yield  # The server tells it afterwards.
        return
    ended = threading.Event()
    thread = threading.Thread(target=_look, args=(backlog, engine, ended, to_millis(from_)))
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _look(backlog: Backlog, engine: Engine, ended: threading.Event, from_: int) -> None:
    new = text(
        "SELECT rowid, scheduled_at, schedule_id FROM runs WHERE rowid > :last ORDER BY rowid LIMIT :limit"
    )
    last = 0
    with engine.connect() as connection:
        while not ended.wait(LOOKS_AT_ROWS_SECONDS):
            found = connection.execute(new, {"last": last, "limit": RUNS_AT_ONCE}).all()
            connection.rollback()
            seen = to_millis(clock.now())
            backlog.latenesses += [
                float(seen - at) for _, at, id_ in found if at >= from_ and id_.startswith("other")
            ]
            last = found[-1][0] if found else last


def _wait_for_the_end(backlog: Backlog, engine: Engine, options: argparse.Namespace) -> None:
    began = time.monotonic()
    standing = text(
        "SELECT count(*), min(next_scheduled_at) FROM schedules "
        "WHERE id >= 'down-' AND id < 'down.' AND next_due IS NOT NULL AND next_due <= :now"
    )
    is_done = False
    while (elapsed := time.monotonic() - began) < options.seconds:
        if is_done and elapsed >= options.at_least:
            break
        time.sleep(LOOKS_AT_BACKLOG_SECONDS)
        if is_done:
            continue
        with engine.connect() as connection:
            # An instant that fell due just now is no backlog.
            border = clock.now() - timedelta(seconds=30)
            left, earliest = connection.execute(standing, {"now": to_millis(border)}).one()
        is_done = left == 0
        backlog.left, backlog.seconds = left, time.monotonic() - began
        backlog.reached = None if earliest is None else from_millis(earliest)


def _commit_latenesses(engine: Engine, *, from_: datetime) -> list[float]:
    read = text(
        "SELECT extract(epoch FROM pg_xact_commit_timestamp(xmin))::float8 * 1000 - scheduled_at FROM runs "
        "WHERE scheduled_at >= :from_ AND schedule_id LIKE 'other-%'"
    )
    with engine.connect() as connection:
        return [float(lateness) for (lateness,) in connection.execute(read, {"from_": to_millis(from_)})]


def _count(backlog: Backlog, engine: Engine) -> None:
    runs = text("SELECT count(*) FROM runs WHERE schedule_id LIKE 'down-%'")
    skips = text("SELECT count(*), coalesce(sum(count), 0) FROM skips WHERE schedule_id LIKE 'down-%'")
    with engine.connect() as connection:
        backlog.runs = connection.execute(runs).scalar_one()
        backlog.skips, backlog.skipped = map(int, connection.execute(skips).one())


@contextmanager
def _opened(url: str) -> Iterator[Engine]:
    engine = create_engine(make_url(url.replace("postgresql:", "postgresql+psycopg:")))
    try:
        yield engine
    finally:
        engine.dispose()


def _row(backlog: Backlog) -> tuple[str, ...]:
    late = backlog.latenesses
    return (
        f"{backlog.kind}: {backlog.name}",
        f"{backlog.seconds:,.1f}",
        f"{backlog.left:,}",
        f"{backlog.runs:,}",
        f"{backlog.skips:,}",
        f"{backlog.skipped:,}",
        *map(mebibytes, backlog.memory),
        f"{len(late):,}",
        *((f"{median(late):,.0f}", f"{percentile(late, 0.99):,.0f}", f"{max(late):,.0f}") if late else "---"),
    )


if __name__ == "__main__":
    main()
