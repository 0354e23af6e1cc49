"""A soak without harm: the driver, a dispatcher and a worker in one process, at the times of a manual clock."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import psycopg

from rota.store.sql import open_sql_store
from rota.testing import World
from rota.worker.registry import Registry
from tests.soak.driver import Driver
from tests.soak.effects import Effect, add_soak, read_effects
from tests.soak.evidence import Evidence, evidence_of
from tests.soak.journal import Entry, Journal
from tests.soak.stored import read_stored

HALF_A_SECOND = timedelta(milliseconds=500)


@dataclass(frozen=True, slots=True, kw_only=True)
class StillLife:
    """Where it was lived, and what was noted of it."""

    url: str
    entries: list[Entry]
    effects: list[Effect]

    def evidence(self, connection: psycopg.Connection) -> Evidence:
        """As things stand in the connection's transaction."""
        return evidence_of(read_stored(connection), self.entries, self.effects)


def live(
    url: str, folder: Path, *, seed: int, now: datetime, acts: int, schedules_max: int = 30
) -> StillLife:
    """So many requests, with time passing between them; then everything is resumed, ended and worked off."""
    registry = Registry()
    add_soak(registry, folder / f"effects-{seed}.jsonl")
    journal = Journal(folder / f"journal-{seed}.jsonl")
    with World(now=now, registry=registry, store=open_sql_store(url), log_level="error") as world:
        driver = Driver(world.app, journal, seed=seed, clock=world.clock, schedules_max=schedules_max)
        for _ in range(acts):
            driver.act()
            world.pass_time(driver.random.choice([0, 1, 1, 2, 5]) * HALF_A_SECOND)
        for id_ in driver.kinds:
            driver.resume_one(id_)
        world.pass_time(timedelta(seconds=20))
        for id_ in driver.kinds:
            driver.end_one(id_)
        world.pass_time(timedelta(seconds=30))
    return StillLife(url=url, entries=journal.read(), effects=read_effects(folder / f"effects-{seed}.jsonl"))
