"""A process of Rota that works on a database, at a time that a test decides, and is killed on the way."""

import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from rota.config import Settings
from rota.dispatch.dispatcher import Dispatcher
from rota.domain.edit_form import parse_edit
from rota.service.creation import create_schedule
from rota.service.editing import edit_schedule
from rota.service.jobs import put_job
from rota.testing.clock import ManualClock
from rota.wiring import open_context
from rota.zones import Zones
from tests.crash.kill import Ending, Work, run_and_kill
from tests.simulation.ledger import Ledger, ZoneOf, check_intents, judge, pinned_zone, read_ledger

JOB = "sales_report"
LEASE = timedelta(seconds=15)
BOOTED = datetime.fromisoformat("2026-01-12T07:00:00+00:00")
"""Every process reads the clocks of the same machine, which was started then."""

POINTS_MAX = 600


class Process:
    """The API and a dispatcher in one process, on one database."""

    def __init__(self, database: Path | str, now: str, *, owner: str, zones: Path | None = None) -> None:
        self.clock = ManualClock(BOOTED)
        self.context = open_context(
            Settings(database_url=str(database), partitions=1),
            clock=self.clock,
            zones=None if zones is None else Zones(zones),
        )
        self.store = self.context.store
        self.dispatcher = Dispatcher(
            self.store,
            cadences=self.context.cadences,
            clock=self.clock,
            owner=owner,
            lease=LEASE,
            poll=timedelta(seconds=1),
            page=100,
        )
        self.at(now)

    def at(self, now: str) -> None:
        self.clock.set(datetime.fromisoformat(now))

    def create(self, id_: str, cron: str, timezone: str) -> None:
        put_job(self.context, JOB, {"lease": "PT15S"})
        body = {"id": id_, "job": JOB, "timezone": timezone, "recurrence": {"cron": cron}}
        create_schedule(self.context, {**body, "overdue": {"policy": "catch_up_all"}})

    def edit(self, id_: str, **patch: object) -> None:
        edit_schedule(self.context, id_, parse_edit(patch))

    def dispatch(self, *moments: str) -> None:
        """Everything that is to be done at each of the moments; now, where none is given."""
        for moment in moments or (self.clock.now().isoformat(),):
            self.at(moment)
            now = self.clock.now()
            while self.dispatcher.step(now).wake_at <= now:
                pass

    def ledger(self, id_: str, *, zone_of: ZoneOf = pinned_zone) -> Ledger:
        """Judged: whatever was killed, nothing half done is to be seen at any moment."""
        check_intents(self.store, [JOB])
        ledger = read_ledger(self.store, id_, zone_of=zone_of)
        judge(ledger)
        return ledger

    def close(self) -> None:
        self.store.close()


Step = Callable[[Process], None]


def kill_at_every_point(
    prepared: Path, work: Step, check: Step, *, at: str, restart: str, zones: Path | None = None
) -> int:
    """The number of points at which `work` was killed, each on a copy of the database.

    It begins at `at` in a process that holds its leases already. `check` is given a fresh process at `restart`, after
    they have run out. Where a killed process left behind what another one had left, nothing else can follow, and it is
    not checked again.
    """
    checked: set[str] = set()
    for point in range(1, POINTS_MAX):
        database = prepared.with_name(f"killed-at-{point}.db")
        shutil.copy(prepared, database)
        begin = partial(begin_work, database, work, at=at, zones=zones)
        ending = run_and_kill(begin, at=point, only_writers=True)
        left = _content(database)
        if left not in checked:
            checked.add(left)
            check_after(database, check, restart=restart, zones=zones, what=f"{ending} at point {point}")
        for file in database.parent.glob(f"{database.name}*"):
            file.unlink()
        if ending is Ending.FINISHED:
            return point - 1
    raise AssertionError("the work never came to its end")


def begin_work(database: Path | str, work: Step, *, at: str, zones: Path | None = None) -> Work:
    process = Process(database, at, owner="killed", zones=zones)
    process.dispatcher._leases.renew(process.clock.now())
    return partial(work, process)


def check_after(
    database: Path | str, check: Step, *, restart: str, what: str, zones: Path | None = None
) -> None:
    process = Process(database, restart, owner="restarted", zones=zones)
    try:
        check(process)
    except BaseException as error:
        error.add_note(f"The work was {what}.")
        raise
    finally:
        process.close()


def _content(database: Path) -> str:
    """Every row that a process will find there, told by a copy: the first to open the files changes them."""
    copy = database.with_suffix(".copy")
    for suffix in ("", "-wal"):
        file = database.with_name(database.name + suffix)
        if file.exists():
            shutil.copy(file, copy.with_name(copy.name + suffix))
    with closing(sqlite3.connect(copy)) as connection:
        content = "\n".join(connection.iterdump())
    for file in copy.parent.glob(f"{copy.name}*"):
        file.unlink()
    return content


def prepared_at(folder: Path, steps: Sequence[tuple[str, Step]]) -> Path:
    """A database after these steps, each at its moment."""
    database = folder / "prepared.db"
    process = Process(database, steps[0][0], owner="prepared")
    for moment, step in steps:
        process.at(moment)
        step(process)
    process.close()
    return database
