"""A life on any store: dispatchers that oversleep, die and come back, clocks that leap, workers that vanish.

What happens is drawn from a seed, so that a life that shows something shows it again. A life ends with everything
healed: clocks right, everybody awake, and what is owed worked off.
"""

import random
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta

from rota.dispatch.dispatcher import Dispatcher
from rota.domain.errors import Conflict
from rota.domain.json_text import load_json
from rota.domain.run import SETTLED
from rota.service.context import Context
from rota.service.creation import create_schedule
from rota.service.health import confirm_clock
from rota.service.jobs import put_job
from rota.service.runs import cancel_run
from rota.service.schedules import end_schedule, pause_schedule, resume_schedule
from rota.store.port import Intent, RunFilter
from rota.testing.clock import ManualClock
from rota.worker.context import RunContext
from rota.worker.registry import Registry
from rota.worker.store_gateway import StoreGateway
from rota.worker.worker import Worker

JOB = "report"
LEASE = timedelta(seconds=15)
SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)

Action = Callable[[], object]
"""Something that happens. It answers False where it was refused, or there was nothing to do it to."""


class Life:
    """One world of a store, a clock, a few schedules, and whoever works on them."""

    events = 250
    passes: tuple[timedelta, ...] = tuple(seconds * SECOND for seconds in (1, 5, 20, 45, 90, 400))
    leaps: tuple[timedelta, ...] = tuple(seconds * SECOND for seconds in (-1200, -30, 20, 50, 7200))
    """Small steps either way, and one so far ahead that nothing is admitted under it."""

    # A retry that was stamped under a clock two hours ahead waits for its time.
    healing: tuple[timedelta, ...] = (timedelta(minutes=10),) * 20 + (timedelta(seconds=7),) * 60

    def __init__(self, context: Context, clock: ManualClock, seed: int) -> None:
        self.random = random.Random(seed)
        self.context, self.clock = context, clock
        self.began_at = clock.now()
        self.ended_at: dict[str, datetime] = {}
        self.dispatchers: dict[str, Dispatcher] = {}
        self.workers: dict[str, Worker] = {}
        self.old_messages: list[Intent] = []
        self.attempts: list[tuple[str, dict[str, object]]] = []
        """The runs that handlers were called for, and the params that they were given."""
        self.names = 0
        self.is_healed = False
        self.happened: Counter[str] = Counter()
        self.possible: set[str] = set()
        put_job(context, JOB, {"lease": "PT15S"})
        self.bodies = {str(body["id"]): body for body in self.schedules_to_be()}
        self.schedules = list(self.bodies)
        for body in self.bodies.values():
            create_schedule(context, {"job": JOB, **body})

    def schedules_to_be(self) -> list[dict[str, object]]:
        """The bodies of the schedules that are created at the beginning."""
        raise NotImplementedError

    def actions(self) -> dict[Action, float]:
        """What may happen, and how often in comparison."""
        return {
            self.pass_time: 6,
            self.dispatch: 8,
            self.work: 6,
            self.start_dispatcher: 2,
            self.kill_dispatcher: 1,
            self.start_worker: 1,
            self.kill_worker: 1,
            self.keep_messages: 1,
            self.freeze_and_wake: 2,
            self.leap: 1,
            self.pause: 1,
            self.resume: 2,
            self.end: 0.2,
            self.cancel: 1,
        }

    def live(self) -> None:
        actions = self.actions()
        self.possible = {name_of(action) for action in actions}
        for action in self.random.choices(list(actions), list(actions.values()), k=self.events):
            if action() is not False:
                self.happened[name_of(action)] += 1
            self.look(name_of(action))

    def look(self, event: str) -> None:
        """Called after each event: for those who judge a life while it lasts."""

    def heal(self) -> None:
        """All clocks right, everybody awake: what is owed is worked off."""
        self.is_healed = True
        self.clock.leap(self.true_now - self.clock.now())
        # Whoever saw the first time of his life on a clock that was behind takes the right one for a leap.
        confirm_clock(self.context)
        for id_ in self.schedules:
            if id_ not in self.ended_at:
                self.resume_one(id_)
        self.look("heal")
        self.dispatchers.clear()
        self.workers.clear()
        self.start_dispatcher()
        self.start_worker()
        for duration in self.healing:
            self.clock.advance(duration)
            self.work_off()
            self.look("work_off")

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
        return self.began_at + timedelta(seconds=boot)

    def pass_time(self) -> None:
        self.clock.advance(self.random.choice(self.passes))

    def pass_time_to_due(self) -> bool:
        """To the very instant at which something falls due next."""
        due_times = self.context.store.read_due_times(range(self.context.partition_count))
        now = self.clock.now()
        coming = [
            due_at
            for due_at in (due.earliest for due in due_times.values())
            if now < due_at < now + 30 * HOUR
        ]
        if not coming:
            return False
        self.clock.set(min(coming))
        return True

    def fall_due(self) -> bool:
        """Whatever falls due next is seen at its very instant, and so on, a few times."""
        if not self.dispatchers:
            return False
        for _ in range(self.random.choice([1, 3, 8])):
            self.pass_time_to_due()
            for dispatcher in self.dispatchers.values():
                dispatcher.step(self.clock.now())
        return True

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
            poll=SECOND,
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
            self.clock.advance(self.random.choice([5, 30, 100]) * SECOND)
            leases._trusted_until = leases._renew_at = leases._look_at = self.clock.now() + SECOND

    def start_worker(self) -> None:
        registry = Registry()

        @registry.job(JOB, lease=timedelta(seconds=15))
        def report(ctx: RunContext) -> dict[str, object]:
            self.attempts.append((ctx.run_id, ctx.params))
            if not self.is_healed and self.random.random() < 0.2:
                raise RuntimeError("no paper")
            return {"attempt": ctx.attempt}

        name = self.name("worker")
        self.workers[name] = Worker(
            StoreGateway(self.context.store),
            registry,
            clock=self.clock,
            name=name,
            concurrency=5,
            poll=SECOND,
            drain=timedelta(0),
            inline=True,
        )

    def keep_messages(self) -> None:
        """A worker that is slow to open what it was handed."""
        self.old_messages += self.context.store.read_intents([JOB], now=self.clock.now(), limit=3)

    def kill_worker(self) -> None:
        """It opened its attempts, some by messages of long ago, and was never heard of again."""
        store, now = self.context.store, self.clock.now()
        messages = self.old_messages + store.read_intents([JOB], now=now, limit=3)
        opened = store.commit_openings(self.name("vanished"), messages, now=now)
        self.attempts += [
            (attempt.run.run_id, load_json(attempt.version.definition.params))
            for attempt in opened
            if attempt is not None
        ]
        self.old_messages.clear()
        if self.workers:
            del self.workers[self.random.choice(list(self.workers))]

    def work(self) -> None:
        for worker in self.workers.values():
            for _ in range(30):
                if worker.step(self.clock.now()).opened == 0:
                    break

    def leap(self) -> None:
        """A step either way, or, where the clock is far ahead, right again."""
        error = self.clock.now() - self.true_now
        self.clock.leap(-error if error > HOUR else self.random.choice(self.leaps))

    def some_schedule(self) -> str:
        return self.random.choice(self.schedules)

    def pause(self) -> bool:
        return self.try_to(pause_schedule, self.some_schedule())

    def resume(self) -> bool:
        return self.try_to(
            lambda context, id_: resume_schedule(context, id_, apply_overdue=self.random.random() < 0.3),
            self.some_schedule(),
        )

    def resume_one(self, id_: str) -> None:
        resume_schedule(self.context, id_)

    @property
    def mortals(self) -> list[str]:
        """The schedules that somebody may end."""
        return self.schedules

    def end(self) -> bool:
        id_ = self.random.choice(self.mortals)
        if id_ in self.ended_at:
            return False
        self.ended_at[id_] = self.clock.now()
        end_schedule(self.context, id_)
        return True

    def cancel(self) -> None:
        runs = self.context.store.list_runs(RunFilter(), before=None, limit=500)
        open_runs = [run for run in runs if run.state not in SETTLED]
        if open_runs:
            cancel_run(self.context, self.random.choice(open_runs).run_id)

    def try_to(self, change: Callable[[Context, str], object], id_: str) -> bool:
        """Whether it was done: only what has ended refuses."""
        try:
            change(self.context, id_)
        except Conflict:
            assert id_ in self.ended_at
            return False
        return True


def name_of(action: Action) -> str:
    name = getattr(action, "__name__", None)
    assert isinstance(name, str)
    return name
