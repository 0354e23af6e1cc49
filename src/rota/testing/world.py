"""A small world: an application on a store in memory, with a clock that a test moves.

::

    from datetime import timedelta

    from reports import app
    from rota.testing import World

    world = World(registry=app.registry)
    world.app.create_schedule(
        job="sales_report", timezone="Europe/Paris", recurrence={"cron": "0 9 * * *"}, params={"report": "sales"}
    )
    world.pass_time(timedelta(days=2))
    assert [run["state"] for run in world.app.runs()] == ["succeeded", "succeeded"]

Time passes in steps from one due instant to the next. At each, the dispatcher, the worker and the relay take steps
until none has anything left to do; handlers run within the worker's steps, in this thread. Nothing sleeps, and the same
test does the same every time.
"""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from rota.application import Rota
from rota.config import Settings
from rota.domain.job import Job
from rota.domain.run import RunState
from rota.domain.sink import PushSink
from rota.store.memory import MemoryStore
from rota.store.port import Fence, Heartbeat, RunFilter, Store
from rota.testing.clock import ManualClock, as_utc
from rota.testing.quiet import only_from
from rota.testing.sent import Receive, RecordingSenders
from rota.worker.registry import Registry
from rota.zones import Zones

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
PARTITIONS = 4
STEPS_AT_ONE_INSTANT_MAX = 10_000
JOBS_PAGE = 500


class NeverRests(AssertionError):
    """At one instant there was always more to do: something is due again as soon as it is done."""


class World:
    """An application whose time passes when a test says so.

    Give the registry of your own application to test its handlers, or register handlers with `world.app.job`. The
    `dispatcher`, the `worker` (which runs handlers inline), the `relay`, the `store` and the `clock` may be used
    directly. It begins on 1 January 2026 where no `now` is given. Of Rota's own log, lines from `log_level` on are
    shown.

    `zones` are other rules than those of the pinned tz data: a directory of compiled zones, or a `Zones`. A world on
    the `store` of another one goes on where that one stood, as a process that was started anew: with the same rules,
    or with others, as after an update of the tz data.

    Runs of jobs with a sink are put down in `sent`, and `receive` may say what becomes of each.
    """

    def __init__(
        self,
        *,
        now: datetime = BEGINNING,
        registry: Registry | None = None,
        store: Store | None = None,
        zones: Zones | str | os.PathLike[str] | None = None,
        settings: Settings | None = None,
        receive: Receive | None = None,
        log_level: str = "warning",
    ) -> None:
        self._log_level = log_level
        self.clock = ManualClock(now)
        self.store: Store = MemoryStore() if store is None else store
        self.app = Rota(
            settings=settings or Settings(partitions=PARTITIONS),
            store=self.store,
            clock=self.clock,
            zones=zones if zones is None or isinstance(zones, Zones) else Zones(Path(zones)),
            registry=registry,
        )
        self.app.register_jobs()
        self._take_over()
        with only_from(log_level):
            self.dispatcher = self.app.build_dispatcher()
        self.worker = self.app.build_worker(inline=True)
        senders = RecordingSenders(receive)
        self.sent = senders.sent
        """What the relay has sent, in order; nothing leaves this world."""
        self.relay = self.app.build_relay(inline=True, senders=senders)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def now(self) -> datetime:
        return self.clock.now()

    def pass_time(self, until: datetime | timedelta) -> None:
        """Lets time pass, until an instant or for a duration, and does on the way whatever falls due.

        What is due at the very end is done too. Raises `ValueError` for what lies in the past.
        """
        end = self.now + until if isinstance(until, timedelta) else as_utc(until)
        if end < self.now:
            raise ValueError(
                f"{end.isoformat()} lies in the past; it is {self.now.isoformat()} in this world."
            )
        self._settle(end)
        while (instant := self._next_instant(end)) is not None:
            self.clock.set(instant)
            self._settle(end)
        # A handler may have moved the clock further, to stand for the time that its work takes.
        if self.now <= end:
            self.clock.set(end)
            self._settle(end)

    def settle(self) -> None:
        """Does whatever is to be done now: dispatcher, worker and relay take steps until none has more to do."""
        self._settle(datetime.max.replace(tzinfo=UTC))

    def _settle(self, end: datetime) -> None:
        """The same; but what handlers leave to be done past `end` is left: they may take longer than their interval."""
        with only_from(self._log_level):
            for _ in range(STEPS_AT_ONE_INSTANT_MAX):
                now = self.now
                admitted = self.dispatcher.step(now)
                worked = self.worker.step(now)
                relayed = self.relay.step(now)
                is_busy = admitted.admitted or admitted.recovered or worked.opened or worked.settled
                is_busy = is_busy or relayed.taken or relayed.ended
                if not is_busy and min(admitted.wake_at, worked.wake_at, relayed.wake_at) > now:
                    return
                if self.now > end:
                    return
        raise NeverRests(f"There is always more to do at {self.now.isoformat()}.")

    def work_for(self, duration: timedelta) -> None:
        """Called by a handler: its work takes so long. What falls due meanwhile is admitted, while its run is open.

        Nothing else is begun until the handler returns: one handler runs at a time in this world.
        """
        end = self.now + duration
        while (instant := self._next_instant(end)) is not None:
            self.clock.set(instant)
            self._admit()
        self.clock.set(end)
        self._admit()

    def _admit(self) -> None:
        """What the dispatcher does, and the signs of life of whoever works."""
        store, now = self.store, self.now
        running = store.list_runs(RunFilter(state=RunState.RUNNING), before=None, limit=store.elements_max)
        signs = [
            Heartbeat(
                run_id=run.run_id,
                attempt=run.attempt,
                lease_expires_at=now + (store.get_job(run.job) or Job(name=run.job)).lease,
                progress=None,
            )
            for run in running
        ]
        if signs:
            store.commit_heartbeats(signs, now=now)
        for _ in range(STEPS_AT_ONE_INSTANT_MAX):
            if self.dispatcher.step(now).wake_at > now:
                return
        raise NeverRests(f"There is always more to admit at {now.isoformat()}.")

    def close(self) -> None:
        """Closes the store."""
        self.app.close()
        self.store.close()

    def _take_over(self) -> None:
        """Ends the leases of a world before, which would else be waited for while things fall due."""
        for state in self.store.list_partitions():
            if state.owner is not None:
                fence = Fence(partition=state.partition, epoch=state.epoch)
                self.store.commit_releases(state.owner, [fence], now=self.now)
                self.store.commit_absence(state.owner)

    def _next_instant(self, end: datetime) -> datetime | None:
        """When something falls due next, after now and by `end`: an occurrence, a retry, or the loss of an attempt."""
        partitions = range(self.app.context.partition_count)
        # What is due by now and still there waits for the rules of its zone to be taken up.
        due_times = self.store.read_due_times(partitions, after=self.now)
        instants = [due.earliest for due in due_times.values()]
        lost = self.store.read_lost(partitions, now=end, limit=1)
        instants += [attempt.attempt.lease_expires_at for attempt in lost]
        delivery = self.store.read_next_intent_time([job.name for job in self.app.registry.jobs()])
        if delivery is not None:
            instants.append(delivery)
        to_send = self.store.read_next_delivery_time(self._pushed_jobs())
        if to_send is not None:
            instants.append(to_send)
        return min((instant for instant in instants if self.now < instant <= end), default=None)

    def _pushed_jobs(self) -> list[str]:
        """The jobs whose runs are sent to a sink."""
        names: list[str] = []
        after: str | None = None
        while page := self.store.list_jobs(after=after, limit=JOBS_PAGE):
            names += [job.name for job in page if isinstance(job.sink, PushSink)]
            after = page[-1].name
        return names
