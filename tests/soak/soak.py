"""The soak: real processes on a real PostgreSQL, killed at random; then all is let run dry, and the checker judges."""

import json
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain
from pathlib import Path
from random import Random

import psycopg

from rota.application import Rota
from rota.clock import SystemClock
from rota.config import Settings
from rota.store.sql import open_sql_store
from tests.postgresql import FAST, running_server
from tests.soak.chaos import Chaos
from tests.soak.checker import judge
from tests.soak.driver import Driver
from tests.soak.effects import add_soak, read_effects
from tests.soak.evidence import Evidence, evidence_of
from tests.soak.journal import Journal
from tests.soak.partitions import PartitionWatch
from tests.soak.processes import Cast, cast_of, wait
from tests.soak.stored import read_stored

LIMIT_SECONDS = 240
PARTITIONS = 16

NOBODYS_FAULT = "no paper"
"""What the handler itself raises."""

OWED = """
SELECT 'due ' || id FROM schedules
WHERE status = 'active' AND next_due < (extract(epoch FROM now()) - 3) * 1000
UNION ALL
SELECT 'waits ' || s.id FROM schedules s JOIN versions v ON v.schedule_id = s.id AND v.number = s.latest_version
WHERE s.status = 'active' AND s.version <> s.latest_version
  AND v.effective_from < (extract(epoch FROM now()) - 3) * 1000
"""
OPEN = """
SELECT 'schedule ' || id FROM schedules WHERE status <> 'ended' OR next_due IS NOT NULL
UNION ALL
SELECT 'run ' || run_id FROM runs WHERE state IN ('planned', 'held', 'queued', 'running')
UNION ALL SELECT 'intent ' || run_id FROM outbox
UNION ALL SELECT 'attempt ' || run_id FROM attempts WHERE finished_at IS NULL
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What happened, and what the checker found."""

    faults: list[str]
    counts: dict[str, int]
    lateness: dict[str, timedelta]

    def lines(self) -> list[str]:
        counts = [f"{count:>8}  {name}" for name, count in self.counts.items()]
        late = [f"{value.total_seconds():>8.2f}  s late, {name}" for name, value in self.lateness.items()]
        return [*counts, *late, f"{len(self.faults)} faults", *self.faults[:60]]


def soak(
    folder: Path, *, seconds: float, seed: int, lease_seconds: float = 6.0, settings: Mapping[str, str] = FAST
) -> Report:
    """Kills for so long; logs, journal and effects are left in the folder.

    To be called in the main thread: processes die with the thread that started them.
    """
    with running_server(settings) as server:
        url = server.url()
        open_sql_store(url).close()
        journal = Journal(folder / "journal.jsonl")
        with Rota(url, settings=Settings(partitions=PARTITIONS)) as rota:
            add_soak(rota.registry, folder / "effects.jsonl")
            rota.register_jobs()
            cast = cast_of(url=url, folder=folder, seed=seed, lease_seconds=lease_seconds)
            watch = PartitionWatch(url)
            chaos = Chaos(
                server=server, cast=cast, watch=watch, random=Random(seed), lease_seconds=lease_seconds
            )
            try:
                chaos.start_all()
                chaos.rage(seconds)
                chaos.heal()
                faults = [*_run_dry(rota, journal, cast, watch, url)]
            finally:
                for process in cast.all:
                    if process.is_running:
                        process.kill()
                watch.close()
        with psycopg.connect(url) as connection:
            evidence = evidence_of(
                read_stored(connection), journal.read(), read_effects(folder / "effects.jsonl")
            )
        faults += chain(chaos.faults, watch.faults, _tracebacks(folder), judge(evidence))
        return report_of(evidence, chaos.counts, watch, faults=faults)


def _run_dry(rota: Rota, journal: Journal, cast: Cast, watch: PartitionWatch, url: str) -> list[str]:
    """The driver stops, everything is resumed and worked off, then ended and worked off; what did not come to pass."""
    faults = [f"the driver ended with {code}" for code in [cast.driver.stop()] if code != 0]
    closing = Driver(rota, journal, seed=0, clock=SystemClock())
    for schedule in rota.iterate_schedules():
        closing.kinds[str(schedule["id"])] = ""
        if schedule["status"] == "paused":
            closing.resume_one(str(schedule["id"]))
    faults += _wait_for_none(url, OWED, watch, what="what was owed")
    for schedule in rota.iterate_schedules():
        if schedule["status"] != "ended":
            closing.end_one(str(schedule["id"]))
    faults += _wait_for_none(url, OPEN, watch, what="what was open")
    for process in cast.mortals:
        if (code := process.stop()) != 0:
            faults.append(f"{process.name} ended with {code}")
    return faults


def _wait_for_none(url: str, query: str, watch: PartitionWatch, *, what: str) -> list[str]:
    until = time.monotonic() + LIMIT_SECONDS
    with psycopg.connect(url, autocommit=True) as connection:
        while rows := connection.execute(query).fetchall():
            watch.look()
            if time.monotonic() > until:
                return [f"{what} was not worked off in {LIMIT_SECONDS} s: {len(rows)}, such as {rows[:5]}"]
            wait(0.2)
    return []


def _tracebacks(folder: Path) -> list[str]:
    faults = []
    for log in sorted(folder.glob("*.log")):
        tracebacks = log.read_text(errors="replace").split("Traceback")[1:]
        faults += [
            f"{log.name} has a traceback: {traceback[:2500]}"
            for traceback in tracebacks
            if NOBODYS_FAULT not in traceback.split("\n\n")[0]
        ]
    return faults


def report_of(
    evidence: Evidence, misfortunes: Counter[str], watch: PartitionWatch, *, faults: list[str]
) -> Report:
    stored = evidence.stored
    attempts = list(chain.from_iterable(stored.attempts_of.values()))
    counts = Counter(misfortunes)
    counts["take-overs seen"] = watch.take_overs
    counts["epochs, all partitions"] = watch.epochs
    counts["schedules"] = len(stored.schedules)
    counts["versions"] = sum(len(versions) for versions in stored.versions.values())
    counts["runs"] = len(stored.runs)
    counts.update(f"runs of origin {run.origin}" for run in stored.runs.values())
    counts.update(f"runs {run.state}" for run in stored.runs.values())
    for skip in chain.from_iterable(stored.skips_of.values()):
        counts[f"skips {skip.reason}"] += skip.count
    counts["attempts"] = len(attempts)
    counts["retries"] = sum(attempt.number > 1 for attempt in attempts)
    counts["attempts lost"] = sum(attempt.outcome == "lost" for attempt in attempts)
    counts["effects"] = len(evidence.effects)
    for entry in chain.from_iterable(evidence.entries_of.values()):
        counts[f"requests {entry.outcome.value}"] += 1
        counts[f"{entry.operation} {entry.outcome.value}"] += 1
    return Report(faults=faults, counts=dict(counts), lateness=_lateness(evidence))


def _lateness(evidence: Evidence) -> dict[str, timedelta]:
    """Of admission, without what a pause held back."""
    late = []
    for run in evidence.stored.runs.values():
        if run.origin != "schedule" or run.admitted_at is None:
            continue
        pauses = evidence.perhaps_paused(run.schedule_id)
        if not any(pause.from_ <= run.admitted_at and run.due_at <= pause.until for pause in pauses):
            late.append((run.admitted_at - run.due_at, run.run_id))
    late.sort()
    if not late:
        return {}
    return {
        "half of all runs at most": late[len(late) // 2][0],
        "99 of 100 at most": late[len(late) * 99 // 100][0],
        f"the longest, {late[-1][1]}": late[-1][0],
    }


def to_json(report: Report) -> str:
    late = {name: value.total_seconds() for name, value in report.lateness.items()}
    return json.dumps({"faults": report.faults, "counts": report.counts, "late": late}, indent=2)
