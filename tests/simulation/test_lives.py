"""Seeded lives: dispatchers that oversleep, die and come back, clocks that leap, workers that vanish, people who pause.

After the storm everything heals, time goes on, and the ledger is judged by a checker of its own: every minute that a
schedule named while it lived has one outcome, every run is settled, and no delivery intent is left.
"""

import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from rota.config import Settings
from rota.dispatch.dispatcher import Dispatcher
from rota.domain.admission import Skip
from rota.domain.errors import Conflict
from rota.domain.identity import ScheduleId
from rota.domain.run import SETTLED, Run
from rota.service.context import Context
from rota.service.creation import create_schedule
from rota.service.health import confirm_clock
from rota.service.jobs import put_job
from rota.service.runs import cancel_run
from rota.service.schedules import end_schedule, pause_schedule, resume_schedule
from rota.store.memory import MemoryStore
from rota.store.port import RunFilter
from rota.testing.clock import ManualClock
from rota.wiring import open_context
from rota.worker.context import RunContext
from rota.worker.registry import Registry
from rota.worker.worker import Worker
from tests.contract.conftest import OpenStore, folder, migrated, open_store  # noqa: F401 - fixtures used here

START = datetime(2026, 3, 8, 5, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
LEASE = timedelta(seconds=15)
EVENTS = 250
POLICIES: list[dict[str, object]] = [
    {"policy": "catch_up_all"},
    {"policy": "catch_up_all", "max_age": "PT10M"},
    {"policy": "latest_only"},
    {"policy": "expire", "deadline": "PT3M"},
]


class Life:
    """One world of a store, a clock, a few schedules, and whoever works on them."""

    def __init__(self, context: Context, clock: ManualClock, seed: int) -> None:
        self.random = random.Random(seed)
        self.context, self.clock = context, clock
        self.ended_at: dict[str, datetime] = {}
        self.dispatchers: dict[str, Dispatcher] = {}
        self.workers: dict[str, Worker] = {}
        self.names = 0
        self.is_healed = False
        self.happened: Counter[str] = Counter()
        self.possible: set[str] = set()
        put_job(context, "report", {"lease": "PT15S"})
        self.schedules = [f"report-{number}" for number in range(4)]
        for id_, overdue in zip(self.schedules, POLICIES, strict=True):
            body = {"id": id_, "job": "report", "timezone": "America/New_York", "overdue": overdue}
            create_schedule(context, {**body, "recurrence": {"cron": "* * * * *"}})

    def live(self) -> None:
        actions = {
            self.pass_time: 6,
            self.dispatch: 8,
            self.work: 6,
            self.start_dispatcher: 2,
            self.kill_dispatcher: 1,
            self.start_worker: 1,
            self.kill_worker: 1,
            self.freeze_and_wake: 2,
            self.leap: 1,
            self.pause: 1,
            self.resume: 2,
            self.end: 0.2,
            self.cancel: 1,
        }
        self.possible = {action.__name__ for action in actions}
        for action in self.random.choices(list(actions), list(actions.values()), k=EVENTS):
            action()
            self.happened[action.__name__] += 1

    def heal(self) -> None:
        """All clocks right, everybody awake: what is owed is worked off."""
        self.is_healed = True
        self.clock.leap(self.true_now - self.clock.now())
        # Whoever saw the first time of his life on a clock that was behind takes the right one for a leap.
        confirm_clock(self.context)
        for id_ in self.schedules:
            if id_ not in self.ended_at:
                resume_schedule(self.context, id_)
        self.dispatchers.clear()
        self.workers.clear()
        self.start_dispatcher()
        self.start_worker()
        # A retry that was stamped under a clock two hours ahead waits for its time.
        for duration in [timedelta(minutes=10)] * 20 + [timedelta(seconds=7)] * 60:
            self.advance(duration)
            self.work_off()

    def work_off(self) -> None:
        """Until nobody has anything to do at this instant."""
        busy = True
        while busy:
            now = self.clock.now()
            busy = any(dispatcher.step(now).wake_at <= now for dispatcher in self.dispatchers.values())
            busy = any(worker.step(now).opened > 0 for worker in self.workers.values()) or busy

    @property
    def true_now(self) -> datetime:
        """What the clock would show had nobody set it."""
        boot = self.clock.boot_seconds()
        assert boot is not None
        return START + timedelta(seconds=boot)

    def advance(self, duration: timedelta) -> None:
        self.clock.advance(duration)

    def pass_time(self) -> None:
        self.advance(self.random.choice([1, 5, 20, 45, 90, 400]) * timedelta(seconds=1))

    def name(self, role: str) -> str:
        self.names += 1
        return f"{role}-{self.names}"

    def start_dispatcher(self) -> None:
        owner = self.name("dispatch")
        self.dispatchers[owner] = Dispatcher(
            self.context.store,
            cadences=self.context.cadences,
            clock=self.clock,
            owner=owner,
            lease=LEASE,
            poll=timedelta(seconds=1),
            page=self.random.choice([1, 3, 100]),
        )

    def kill_dispatcher(self) -> None:
        if self.dispatchers:
            del self.dispatchers[self.random.choice(list(self.dispatchers))]

    def dispatch(self) -> None:
        for dispatcher in self.random.sample(list(self.dispatchers.values()), len(self.dispatchers)):
            now = self.clock.now()
            for _ in range(self.random.choice([1, 2, 60])):
                if dispatcher.step(now).wake_at > now:
                    break

    def freeze_and_wake(self) -> None:
        """A dispatcher that goes on with what it believed before it was frozen, leases included."""
        if self.dispatchers:
            leases = self.random.choice(list(self.dispatchers.values()))._leases
            self.advance(self.random.choice([5, 30, 100]) * timedelta(seconds=1))
            leases._trusted_until = leases._renew_at = self.clock.now() + timedelta(seconds=1)

    def start_worker(self) -> None:
        registry = Registry()

        @registry.job("report", lease=timedelta(seconds=15))
        def report(ctx: RunContext) -> dict[str, object]:
            if not self.is_healed and self.random.random() < 0.2:
                raise RuntimeError("no paper")
            return {"attempt": ctx.attempt}

        name = self.name("worker")
        self.workers[name] = Worker(
            self.context.store,
            registry,
            clock=self.clock,
            name=name,
            concurrency=5,
            poll=timedelta(seconds=1),
            drain=timedelta(0),
            inline=True,
        )

    def kill_worker(self) -> None:
        """It opened its attempts and was never heard of again."""
        store = self.context.store
        deliveries = store.read_deliveries(["report"], now=self.clock.now(), limit=3)
        store.commit_openings(self.name("vanished"), deliveries, now=self.clock.now())
        if self.workers:
            del self.workers[self.random.choice(list(self.workers))]

    def work(self) -> None:
        for worker in self.workers.values():
            for _ in range(30):
                if worker.step(self.clock.now()).opened == 0:
                    break

    def leap(self) -> None:
        """Small steps either way, or far ahead and, the next time, right again."""
        error = self.clock.now() - self.true_now
        step = self.random.choice([-1200, -30, 20, 50, 7200]) * timedelta(seconds=1)
        self.clock.leap(-error if error > timedelta(hours=1) else step)

    def pause(self) -> None:
        self._try(pause_schedule)

    def resume(self) -> None:
        id_ = self.random.choice(self.schedules)
        try:
            resume_schedule(self.context, id_, apply_overdue=self.random.random() < 0.3)
        except Conflict:
            assert id_ in self.ended_at

    def end(self) -> None:
        id_ = self.random.choice(self.schedules)
        if id_ not in self.ended_at:
            self.ended_at[id_] = self.clock.now()
            end_schedule(self.context, id_)

    def cancel(self) -> None:
        runs = self.context.store.list_runs(RunFilter(), before=None, limit=20)
        open_runs = [run for run in runs if run.state not in SETTLED]
        if open_runs:
            cancel_run(self.context, self.random.choice(open_runs).run_id)

    def _try(self, change: Callable[[Context, str], object]) -> None:
        id_ = self.random.choice(self.schedules)
        try:
            change(self.context, id_)
        except Conflict:
            assert id_ in self.ended_at


def outcomes_of(life: Life, id_: str) -> Counter[datetime]:
    """How many outcomes each instant has, by the stored rows alone."""
    entries: list[Run | Skip] = life.context.store.list_ledger(ScheduleId(id_), before=None, limit=100_000)
    outcomes: Counter[datetime] = Counter()
    for entry in entries:
        if isinstance(entry, Run):
            outcomes[entry.scheduled_at] += 1
            continue
        inside = minutes_between(entry.from_, entry.until - timedelta(seconds=1))
        assert len(inside) == entry.count
        outcomes.update(inside)
    return outcomes


def minutes_between(first: datetime, last: datetime) -> list[datetime]:
    """Whole minutes from `first` to `last`: what `* * * * *` names in any zone with whole-minute offsets."""
    minute = first.replace(second=0, microsecond=0)
    minute += MINUTE if minute < first else timedelta(0)
    return [minute + n * MINUTE for n in range(int((last - minute) / MINUTE) + 1)] if minute <= last else []


@pytest.mark.parametrize(
    ("kind", "seed"), [*(("memory", n) for n in range(8)), *(("sqlite", n) for n in range(3))]
)
def test_after_the_storm_every_minute_has_one_outcome(
    open_store: OpenStore,  # noqa: F811 - the fixture
    kind: str,
    seed: int,
) -> None:
    clock = ManualClock(START)
    context = open_context(Settings(partitions=3), store=open_store(kind), clock=clock)
    life = Life(context, clock, seed)
    life.live()
    life.heal()

    for id_ in life.schedules:
        record = context.store.get_schedule(ScheduleId(id_))
        assert record is not None
        cursor = record.schedule.cursor.scheduled_at
        ended_at = life.ended_at.get(id_)
        if ended_at is None:
            assert cursor is not None
            last = cursor - timedelta(seconds=1)
            assert cursor > life.true_now, "nothing is owed"
        else:
            assert cursor is None
            assert record.version.effective_until is not None
            last = record.version.effective_until - timedelta(seconds=1)
        expected = Counter(minutes_between(START + timedelta(seconds=1), last))
        assert outcomes_of(life, id_) == expected, id_

    runs = context.store.list_runs(RunFilter(), before=None, limit=100_000)
    later = max(life.clock.now(), life.true_now) + timedelta(days=1)
    assert [run.run_id for run in runs if run.state not in SETTLED] == []
    assert context.store.read_deliveries(["report"], now=later, limit=10) == []
    keys = Counter((run.schedule_id, run.period_key) for run in runs)
    assert max(keys.values(), default=1) == 1


def test_every_kind_of_event_happened() -> None:
    happened: set[str] = set()
    for seed in range(8):
        clock = ManualClock(START)
        life = Life(open_context(Settings(partitions=3), store=MemoryStore(), clock=clock), clock, seed)
        life.live()
        happened |= set(life.happened)
    assert happened == life.possible
