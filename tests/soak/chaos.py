"""Misfortunes, drawn from a seed: processes are killed and frozen, connections are cut, the server crashes once."""

import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from random import Random

import psycopg
from structlog.typing import FilteringBoundLogger

from rota.telemetry import get_logger
from tests.postgresql import PostgresServer
from tests.soak.partitions import PartitionWatch
from tests.soak.processes import Cast, Process, wait, wait_until

LOOK_SECONDS = 0.1
BETWEEN_SECONDS = (0.4, 2.2)
AWAY_SECONDS = (0.0, 2.5)
"""How long a killed process stays away."""
SERVER_AWAY_SECONDS = (0.5, 2.0)
WORKERS_LEASE_SECONDS = 5.0
CUT = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE application_name = 'rota' ORDER BY random() LIMIT %s
"""

AWAKE_MIN = 3
"""With fewer at work nobody is harmed."""


@dataclass(slots=True, kw_only=True)
class Chaos:
    """Does harm for a time, and then makes everything right again. To be used in the main thread."""

    server: PostgresServer
    cast: Cast
    watch: PartitionWatch
    random: Random
    lease_seconds: float
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    _due: list[tuple[float, Process, str]] = field(default_factory=list)
    _log: FilteringBoundLogger = field(default_factory=lambda: get_logger("chaos"))

    def rage(self, seconds: float) -> None:
        """For so long."""
        wait_until(lambda: all(process.has_begun for process in self.cast.all))
        began = time.monotonic()
        crash_at = began + seconds * self.random.uniform(0.4, 0.6)
        has_crashed = False
        next_at = began
        while (now := time.monotonic()) < began + seconds:
            self._look_after(now)
            self.watch.look()
            if now >= crash_at and not has_crashed:
                has_crashed = True
                self._crash_server()
            if now >= next_at:
                self._harm(now)
                next_at = now + self.random.uniform(*BETWEEN_SECONDS)
            wait(LOOK_SECONDS)

    def heal(self) -> None:
        """Everybody is awake again."""
        self._due.clear()
        for process in self.cast.mortals:
            if process.is_running:
                process.thaw()
            else:
                process.start()

    def start_all(self) -> None:
        for process in self.cast.all:
            self._start(process)

    def _harm(self, now: float) -> None:
        # Whoever is only being loaded has nothing to lose, and without the others nothing would ever be done.
        awake = [process for process in self.cast.mortals if process.has_begun and not process.is_frozen]
        kind = self.random.choices(["kill", "freeze", "cut"], [5, 3, 1.5])[0]
        if kind == "cut":
            self._cut(self.random.randint(1, 6))
        elif len(awake) >= AWAKE_MIN:
            process = self.random.choice(awake)
            if kind == "kill":
                self._kill(process, now)
            else:
                self._freeze(process, now)

    def _kill(self, process: Process, now: float) -> None:
        process.kill()
        self._log.info("process.kill", process=process.name)
        self.counts[f"kills of {process.name[:-2]}s"] += 1
        self._due.append((now + self.random.uniform(*AWAY_SECONDS), process, "start"))

    def _freeze(self, process: Process, now: float) -> None:
        """Longer than its leases, mostly; sometimes it never wakes up again."""
        process.freeze()
        self._log.info("process.freeze", process=process.name)
        self.counts[f"freezes of {process.name[:-2]}s"] += 1
        lease = self.lease_seconds if process in self.cast.dispatchers else WORKERS_LEASE_SECONDS
        until = now + lease * self.random.uniform(0.8, 2.5)
        self._due.append((until, process, self.random.choices(["thaw", "kill"], [4, 1])[0]))

    def _cut(self, number: int) -> None:
        with psycopg.connect(self.server.url(), autocommit=True) as connection:
            self.counts["connections cut"] += connection.execute(CUT, (number,)).rowcount

    def _crash_server(self) -> None:
        self.counts["crashes of the server"] += 1
        self._log.info("server.crash")
        self.server.stop(signal.SIGQUIT)
        wait(self.random.uniform(*SERVER_AWAY_SECONDS))
        self.server.start()

    def _look_after(self, now: float) -> None:
        """Whoever is due to be started or woken is, and whoever ended by himself is noted and started again."""
        due = [item for item in self._due if item[0] <= now]
        self._due = [item for item in self._due if item[0] > now]
        for _, process, what in due:
            match what:
                case "start":
                    self._start(process)
                case "thaw":
                    process.thaw()
                    self._log.info("process.thaw", process=process.name)
                case _:
                    self._kill(process, now)
        away = {process.name for _, process, what in self._due if what == "start"}
        for process in self.cast.all:
            if not process.is_running and process.name not in away:
                self.counts["ended by themselves"] += 1
                # One that is only starting may end where it cannot reach its database.
                if process.has_worked:
                    code, log = process.exit_code(), process.log.read_text()[-1500:]
                    self.faults.append(f"{process.name} ended by itself with {code}: {log}")
                self._start(process)

    def _start(self, process: Process) -> None:
        process.start()
        self._log.info("process.start", process=process.name, number=process.starts)
