"""Edits against admission with real connections: threads on one database, each with a store of its own.

One clock stands for all, moved by the test. Two dispatchers take steps all the time, two people edit the zone, one
plans; what they meet is chance. In the end every day has exactly one run.
"""

import random
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from datetime import date, datetime, timedelta

import pytest

from rota.cadences import Cadences
from rota.dispatch.dispatcher import Dispatcher
from rota.domain.edit_form import parse_edit
from rota.domain.errors import Conflict, InvalidRequest, RotaError
from rota.domain.instants import format_instant
from rota.service.context import Context
from rota.service.creation import create_schedule
from rota.service.editing import edit_schedule
from rota.service.jobs import put_job
from rota.service.occurrences import list_ledger
from rota.service.planning import plan_occurrences
from rota.service.schedules import list_versions
from rota.store.sql import open_sql_store
from rota.testing import ManualClock
from rota.zones import pinned_zones
from tests.conftest import NewDatabase

ID = "report-7"
START = datetime.fromisoformat("2026-03-20T00:00:00+00:00")
DAYS = {"sqlite": 25, "postgresql": 8}
"""Round trips to a server take longer."""

ZONES = ("America/New_York", "Europe/London", "Asia/Tokyo", "Pacific/Auckland", "America/Los_Angeles")
PARTITIONS = 2
LEASE = timedelta(minutes=5)

pytestmark = pytest.mark.slow


class Crew:
    """Threads that act over and over until the days are over; the first error of each is kept."""

    def __init__(self, database: str, clock: ManualClock) -> None:
        self.database = database
        self.clock = clock
        self.over = threading.Event()
        self.errors: list[RotaError] = []
        self.threads: list[threading.Thread] = []
        self.acted: list[int] = []
        self.stores = ExitStack()

    def context(self) -> Context:
        store = open_sql_store(self.database)
        self.stores.callback(store.close)
        zones = pinned_zones()
        return Context(
            store=store,
            clock=self.clock,
            zones=zones,
            cadences=Cadences(zones),
            partition_count=store.ensure_partitions(PARTITIONS),
        )

    def add(self, act: Callable[[Context], object]) -> None:
        """One more thread, with connections of its own."""
        context, place = self.context(), len(self.acted)
        self.acted.append(0)

        def work() -> None:
            while not self.over.is_set():
                try:
                    with suppress(Conflict, InvalidRequest):  # a version waits, or nothing is left to plan
                        act(context)
                except RotaError as error:
                    self.errors.append(error)
                    return
                self.acted[place] += 1
                self.over.wait(0.001)

        self.threads.append(threading.Thread(target=work, daemon=True))

    def work_until(self, end: datetime, dice: random.Random) -> None:
        """The clock goes on when every thread has acted once more."""
        for thread in self.threads:
            thread.start()
        while self.clock.now() < end and not self.errors:
            seen = list(self.acted)
            self.clock.advance(timedelta(minutes=dice.randrange(20, 240)))
            while not self.errors and any(now == was for now, was in zip(self.acted, seen, strict=True)):
                self.over.wait(0.001)
        self.over.set()
        for thread in self.threads:
            thread.join()


@pytest.mark.parametrize(
    ("kind", "seed"), [*(("sqlite", n) for n in range(4)), *(("postgresql", n) for n in range(2))]
)
def test_two_dispatchers_and_two_editors_never_double_or_lose_a_day(
    new_database: NewDatabase, kind: str, seed: int
) -> None:
    clock, dice = ManualClock(START), random.Random(seed)
    crew = Crew(new_database(kind), clock)
    context = crew.context()
    put_job(context, "sales_report", {})
    body = {"job": "sales_report", "timezone": ZONES[seed], "recurrence": {"cron": "0 9 * * *"}}
    create_schedule(context, {"id": ID, **body, "overdue": {"policy": "catch_up_all"}})
    for name in ("a", "b"):
        crew.add(stepping(crew.context(), name))
    for _ in range(2):
        crew.add(lambda its: edit(its, dice.choice(ZONES)))
    crew.add(lambda its: plan(its, clock.now() + timedelta(days=2)))
    crew.work_until(START + timedelta(days=DAYS[kind]), dice)
    assert not crew.errors
    clock.advance(LEASE)
    step = stepping(context, "c")
    while step(context) <= clock.now():
        """Whatever is owed still."""
    days = days_of(context)
    assert len(days) >= DAYS[kind] - 1
    assert days == [days[0] + timedelta(days=number) for number in range(len(days))]
    assert int(str(list_versions(context, ID, before=None, limit=1)[0]["version"])) > DAYS[kind]
    crew.stores.close()


def stepping(context: Context, name: str) -> Callable[[Context], datetime]:
    """One step of a dispatcher of its own; when it wants the next."""
    dispatcher = Dispatcher(
        context.store,
        cadences=context.cadences,
        clock=context.clock,
        owner=name,
        lease=LEASE,
        poll=timedelta(seconds=1),
        page=10,
    )
    return lambda _: dispatcher.step(context.clock.now()).wake_at


def edit(context: Context, timezone: str) -> None:
    edit_schedule(context, ID, parse_edit({"timezone": timezone, "replaces_pending": True}))


def plan(context: Context, until: datetime) -> None:
    plan_occurrences(context, ID, until=format_instant(until.replace(microsecond=0)))


def days_of(context: Context) -> list[date]:
    entries = list_ledger(context, ID, before=None, limit=1_000)
    named = [str(entry["named_local"]) for _, entry in entries if entry["kind"] == "run"]
    return sorted(date.fromisoformat(local[:10]) for local in named)
