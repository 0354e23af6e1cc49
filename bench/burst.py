"""The hour boundary: many schedules due at one instant, admitted by one dispatcher, by two, and by the limit.

Run it with `python -m bench.burst [--schedules 100000] [--database postgresql|sqlite] [--rounds 3]`. The schedules are
in forty zones, at a handful of rules, and all of them fall due at the same instant. Each measurement begins with a
fresh copy of the database; limit, one dispatcher and two take turns, so read the ratios: the machine may be busy.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import psycopg

from bench.burst_runs import prepare_limit
from bench.figures import median, print_table
from bench.machine import (
    SETTINGS,
    cpu_seconds_of_server,
    describe,
    drop_database,
    new_database,
    server,
    server_version,
)
from bench.seeding import Group, seed
from rota.domain.instants import to_millis
from rota.store.sql import open_sql_store
from rota.zones import Zones

DUE = datetime(2026, 6, 15, 9, tzinfo=UTC)
"""A Monday."""

CREATED = DUE - timedelta(minutes=50)
SCHEDULES = 100_000
ZONE_COUNT = 40
ROUNDS = 3
SETTLING_STEPS = 6
KINDS: Mapping[str, tuple[str, int]] = {"limit": ("limit", 1), "rota": ("rota", 1), "rota, two": ("rota", 2)}
RULES = (
    "{minute} {hour} * * *",
    "{minute} {hour} * * 1-5",
    "{minute} {hour} 15 * *",
    "{minute} * * * *",
    "{minute} {hour} * * 1",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """What one measurement saw; CPU and WAL of all its admissions."""

    admitted: int
    seconds: float
    client_cpu: float
    server_cpu: float
    wal: int

    @property
    def rate(self) -> float:
        return self.admitted / self.seconds


def burst_groups(count: int) -> list[Group]:
    """`count` schedules that all fall due at `DUE`."""
    zones = [name for name in sorted(Zones().names()) if "/" in name and not name.startswith(("Etc/", "US/"))]
    zones = zones[:: max(1, len(zones) // ZONE_COUNT)][:ZONE_COUNT]
    kinds = [(zone, rule) for rule in RULES for zone in zones]
    ids = [f"customer-{number:06d}-report" for number in range(count)]
    groups = []
    for place, (zone, rule) in enumerate(kinds):
        local = DUE.astimezone(ZoneInfo(zone))
        expression = rule.format(minute=local.minute, hour=local.hour)
        group = Group(
            ids=ids[place :: len(kinds)], recurrence={"cron": expression}, timezone=zone, created_at=CREATED
        )
        groups.append(group)
    return [group for group in groups if group.ids]


class _Copies:
    """Fresh copies of the seeded database."""

    def __init__(
        self,
        fresh: Callable[[str], str],
        drop: Callable[[str], None],
        usage: Callable[[str], tuple[float, int]],
    ) -> None:
        self.fresh, self.drop, self.usage = fresh, drop, usage


@contextmanager
def _postgresql(count: int, settings: Mapping[str, str]) -> Iterator[_Copies]:
    with server({**SETTINGS, "max_wal_size": "8GB", **settings}) as running:
        seed(new_database(running, "seeded"), burst_groups(count))
        prepare_limit(running.url("seeded"), DUE)

        def fresh(name: str) -> str:
            url = new_database(running, name, copy_of="seeded")
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("ANALYZE")
                connection.execute("CHECKPOINT")
                # What is read for the first time is not what is to be measured.
                connection.execute("SELECT count(*) FROM schedules WHERE labels <> ''")
            return url

        def usage(url: str) -> tuple[float, int]:
            with psycopg.connect(url) as connection:
                row = connection.execute(
                    "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"
                ).fetchone()
            assert row is not None
            return cpu_seconds_of_server(running), int(row[0])

        print(f"{server_version(running.url())}, {describe()}, {count:,} schedules")
        yield _Copies(fresh, lambda name: drop_database(running, name), usage)


@contextmanager
def _sqlite(count: int) -> Iterator[_Copies]:
    with tempfile.TemporaryDirectory(prefix="rota-bench-") as folder:
        seeded = Path(folder, "seeded.db")
        open_sql_store(f"sqlite:///{seeded}").close()
        seed(f"sqlite:///{seeded}", burst_groups(count))
        prepare_limit(f"sqlite:///{seeded}", DUE)
        open_sql_store(f"sqlite:///{seeded}").close()

        def fresh(name: str) -> str:
            return f"sqlite:///{shutil.copy(seeded, Path(folder, f'{name}.db'))}"

        def drop(name: str) -> None:
            for path in Path(folder).glob(f"{name}.db*"):
                path.unlink()

        print(f"{describe()}, {count:,} schedules")
        yield _Copies(fresh, drop, lambda _: (0.0, 0))


def _measure(copies: _Copies, name: str, kind: str, processes: int, batch: int) -> Burst:
    url = copies.fresh(name)
    started = [
        _Told("bench.burst_runs", kind, url, f"owner-{number}", str(batch)) for number in range(processes)
    ]
    try:
        for step in range(SETTLING_STEPS if processes > 1 else 1):
            for each in started:
                each.tell(f"at {to_millis(DUE - timedelta(seconds=60) + step * timedelta(seconds=3))}")
        cpu, wal = copies.usage(url)
        began = time.perf_counter()
        answers = _all_told(started, f"go {to_millis(DUE)}")
        seconds = time.perf_counter() - began
        cpu_after, wal_after = copies.usage(url)
    finally:
        for each in started:
            each.end()
        copies.drop(name)
    return Burst(
        admitted=sum(int(admitted) for admitted, _ in answers),
        seconds=seconds,
        client_cpu=sum(float(used) for _, used in answers),
        server_cpu=cpu_after - cpu,
        wal=wal_after - wal,
    )


class _Told:
    """A process that does what it is told by lines, and answers each by one."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.answer()

    def say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def answer(self) -> list[str]:
        assert self._process.stdout is not None
        while True:
            line = self._process.stdout.readline()
            if not line:
                raise RuntimeError("a process of the burst has ended too early")
            words = line.split()
            if words == ["ready"] or (len(words) == 2 and words[0].isdigit()):
                return words

    def tell(self, line: str) -> list[str]:
        self.say(line)
        return self.answer()

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)


def _all_told(processes: Sequence[_Told], line: str) -> list[list[str]]:
    for each in processes:
        each.say(line)
    return [each.answer() for each in processes]


def _report(found: Mapping[str, Sequence[Burst]]) -> None:
    limit = median([burst.rate for burst in found["limit"]])
    lines = []
    for kind, bursts in found.items():
        rate = median([burst.rate for burst in bursts])
        total = sum(burst.admitted for burst in bursts)
        lines.append(
            (
                kind,
                f"{bursts[0].admitted:,}",
                f"{rate:,.0f}",
                f"{rate / limit:.2f}",
                f"{sum(burst.client_cpu for burst in bursts) / total * 1e6:.1f}",
                f"{sum(burst.server_cpu for burst in bursts) / total * 1e6:.1f}",
                f"{sum(burst.wal for burst in bursts) / total:,.0f}",
                ", ".join(f"{burst.rate:,.0f}" for burst in bursts),
            )
        )
    print_table(
        ("", "admitted", "a second", "of limit", "client us", "server us", "WAL bytes", "each round"), lines
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print one line for the limit, for one dispatcher, and for two."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=SCHEDULES)
    parser.add_argument("--database", choices=("postgresql", "sqlite"), default="postgresql")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--batch", type=int, default=2_000)
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--set", nargs="*", default=[], help="further settings of PostgreSQL, as name=value")
    chosen = parser.parse_args(arguments)
    settings = dict(setting.split("=", 1) for setting in chosen.set)
    made = (
        _sqlite(chosen.schedules) if chosen.database == "sqlite" else _postgresql(chosen.schedules, settings)
    )
    found: dict[str, list[Burst]] = {kind: [] for kind in chosen.kinds}
    with made as copies:
        for round_ in range(chosen.rounds):
            for place, kind in enumerate(chosen.kinds):
                program, processes = KINDS[kind]
                burst = _measure(copies, f"round_{round_}_{place}", program, processes, chosen.batch)
                found[kind].append(burst)
    _report(found)


if __name__ == "__main__":
    main()
