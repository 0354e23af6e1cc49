"""A holder frozen at every point of its step, between two calls of the store: others take over and work, it goes on.

For every point: the ledger is complete, nothing is double, and the partitions are shared as they should be.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import cast
from uuid import uuid4

import pytest

from rota.config import Settings
from rota.dispatch.dispatcher import Dispatcher
from rota.domain.durations import format_duration
from rota.domain.edit_form import parse_edit
from rota.domain.identity import ScheduleId
from rota.domain.run import AttemptOutcome, RunState
from rota.service.editing import edit_schedule
from rota.service.jobs import put_job
from rota.service.planning import plan_occurrences
from rota.store.memory import MemoryStore
from rota.store.port import RunFilter, Store
from rota.store.sql import open_sql_store
from rota.testing.clock import ManualClock
from rota.wiring import open_context
from tests.dispatch.conftest import LEASE, START, run_instants, save, work_off
from tests.simulation.ledger import check_intents, judge, read_ledger

JOB = "sales_report"
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
FROZEN_AT = START + 2 * MINUTE
FROZEN_FOR = LEASE + 50 * SECOND
"""A minute falls due meanwhile, which whoever takes over admits."""
POINTS_MAX = 500
STEPS_MAX = 100
PARTITIONS = 2
JOB_LEASE = 30 * SECOND
SCHEDULES = ("minutely-0", "minutely-1", "minutely-2", "planned", "edited", "lost")


class FreezingStore:
    """A store whose caller is frozen before one of its calls: `sleep` is what happens meanwhile."""

    def __init__(self, store: Store, sleep: Callable[[], None]) -> None:
        self._store = store
        self._sleep = sleep
        self._calls = 0
        self.freeze_at: int | None = None
        self.was_frozen_before: str | None = None

    def __getattr__(self, name: str) -> object:
        found = getattr(self._store, name)
        if not callable(found):
            return found

        def call(*arguments: object, **named: object) -> object:
            if self.freeze_at is not None:
                self._calls += 1
                if self._calls == self.freeze_at:
                    self.was_frozen_before = name
                    self._sleep()
            return found(*arguments, **named)

        return call


class Scene:
    """One store with schedules of every sort, and a dispatcher that holds all partitions."""

    def __init__(self, store: Store) -> None:
        self.clock = ManualClock(START)
        self.context = open_context(Settings(partitions=PARTITIONS), store=store, clock=self.clock)
        self.freezing = FreezingStore(store, self.take_over)
        self.holder = self.dispatcher("holder", cast("Store", self.freezing))
        self.others: list[Dispatcher] = []
        put_job(
            self.context, JOB, {"lease": format_duration(JOB_LEASE), "overdue": {"policy": "catch_up_all"}}
        )
        for id_ in SCHEDULES:
            save(self.context, id_, "* * * * *")
        plan_occurrences(self.context, "planned", until="2025-06-10T08:03")
        edit = {"recurrence": {"cron": "*/2 * * * *"}, "effective_from": "2025-06-10T08:02:00Z"}
        edit_schedule(self.context, "edited", parse_edit(edit))

    def dispatcher(self, owner: str, store: Store) -> Dispatcher:
        return Dispatcher(
            store,
            cadences=self.context.cadences,
            clock=self.clock,
            owner=owner,
            lease=LEASE,
            poll=SECOND,
            page=100,
        )

    def come_to_the_point(self) -> None:
        """The last step before the one in which the holder is frozen; then an attempt's lease runs out."""
        for minute in range(2):
            work_off(self.holder, START + minute * MINUTE)
        self.clock.set(FROZEN_AT - JOB_LEASE - 2 * SECOND)
        self.open_one()
        work_off(self.holder, FROZEN_AT - LEASE / 3)
        self.clock.set(FROZEN_AT)

    def open_one(self) -> None:
        """By a worker of which nothing is heard again."""
        store, now = self.context.store, self.clock.now()
        deliveries = store.read_intents([JOB], now=now, limit=100)
        first = next(each for each in deliveries if each.run_id.startswith("lost."))
        [opened] = store.commit_openings("vanished", [first], now=now)
        assert opened is not None

    def take_over(self) -> None:
        """What happens while the holder is frozen."""
        self.clock.advance(FROZEN_FOR)
        other = self.dispatcher("other", self.context.store)
        self.others.append(other)
        work_off(other, self.clock.now())
        assert len(other._leases.held(self.clock.now())) == PARTITIONS

    def step_frozen(self, point: int) -> str | None:
        """The step at `FROZEN_AT`, frozen before that call of the store; None where it makes fewer."""
        self.freezing.freeze_at = point
        for _ in range(STEPS_MAX):
            if self.holder.step(FROZEN_AT).wake_at <= FROZEN_AT:
                continue
            self.freezing.freeze_at = None
            return self.freezing.was_frozen_before
        raise AssertionError("It never came to an end.")

    def go_on(self) -> None:
        """Both work, until they share as they should and nothing is left to do."""
        everybody = [self.holder, *self.others]
        for _ in range(6):
            self.clock.advance(10 * SECOND)
            for dispatcher in everybody:
                work_off(dispatcher, self.clock.now())

    def check(self) -> None:
        store, now = self.context.store, self.clock.now()
        check_intents(store, [JOB])
        for id_ in SCHEDULES:
            judge(read_ledger(store, id_))
        minutes = [START + n * MINUTE for n in range(1, (now - START) // MINUTE + 1)]
        for id_ in SCHEDULES:
            if id_ != "edited":
                assert run_instants(self.context, id_) == minutes, id_
        assert run_instants(self.context, "edited") == [
            minute for minute in minutes if minute < FROZEN_AT or minute.minute % 2 == 0
        ]
        queued = store.list_runs(RunFilter(state=RunState.QUEUED), before=None, limit=10_000)
        assert len(queued) == len(store.list_runs(RunFilter(), before=None, limit=10_000))
        [again] = [run for run in queued if run.attempt]
        detail = store.get_run(again.run_id)
        assert detail is not None
        assert [attempt.outcome for attempt in detail.attempts] == [AttemptOutcome.LOST]
        assert again.schedule_id == ScheduleId("lost")
        shares = {dispatcher._leases.owner: len(dispatcher._leases.held(now)) for dispatcher in self.others}
        assert shares == dict.fromkeys(shares, PARTITIONS // 2)
        assert len(self.holder._leases.held(now)) == PARTITIONS // 2


@contextmanager
def scene_on(kind: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[Scene]:
    """On an empty store of its own."""
    if kind == "memory":
        yield Scene(MemoryStore())
        return
    if kind == "sqlite":
        url = str(shutil.copy(request.getfixturevalue("migrated"), folder / f"{uuid4().hex}.db"))
    else:
        url = request.getfixturevalue("postgresql").lend()
    store = open_sql_store(url)
    try:
        yield Scene(store)
    finally:
        store.close()
        if kind == "postgresql":
            request.getfixturevalue("postgresql").give_back(url)


@pytest.mark.parametrize(
    "kind",
    [
        "memory",
        pytest.param("sqlite", marks=pytest.mark.slow),
        pytest.param("postgresql", marks=pytest.mark.slow),
    ],
)
def test_a_holder_frozen_at_any_point_of_its_step_leaves_a_complete_ledger_and_nothing_double(
    request: pytest.FixtureRequest, folder: Path, kind: str
) -> None:
    frozen_before: list[str] = []
    for point in range(1, POINTS_MAX):
        with scene_on(kind, request, folder) as scene:
            scene.come_to_the_point()
            call = scene.step_frozen(point)
            if call is None:
                break
            frozen_before.append(call)
            try:
                scene.go_on()
                scene.check()
            except BaseException as error:
                error.add_note(f"It was frozen before call {point}, which was {call}.")
                raise
    assert {
        "commit_presence",
        "commit_renewals",
        "commit_checkpoints",
        "commit_clock_reading",
        "read_due_times",
        "commit_planned",
        "commit_admissions",
        "commit_beats",
        "commit_settlements",
    } <= set(frozen_before)
