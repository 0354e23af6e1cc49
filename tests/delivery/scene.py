"""Due runs of jobs that have a sink, and senders that do what a test says, or the real ones."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from rota.delivery.outcome import Accepted, Outcome
from rota.delivery.relay import UNDER_WAY_MAX, Relay
from rota.delivery.sends import Done, Send, Sender
from rota.delivery.sinks import Senders
from rota.domain.delivery import Delivery
from rota.domain.identity import RunId
from rota.domain.job import Job
from rota.domain.run import Run, RunDetail
from rota.domain.sink import CelerySink, DeliveryPolicy, PushSink, Sink
from rota.store.memory import MemoryStore
from rota.store.port import AttemptKey, DeliveryFilter, OpenedAttempt, Store
from rota.testing import World
from rota.zones import Zones

START = datetime(2026, 1, 10, 9, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
DEADLINE_SECONDS = 20.0
"""A test that waits this long for a thread has failed."""

ZONES = Zones()
"""Loaded once for all scenes."""

STEADY = DeliveryPolicy(initial_delay=10 * SECOND, factor=2, jitter=0, redeliver_after=5 * MINUTE)


class Scene:
    """A store and a clock that stands still; its dispatcher steps only where a test says so."""

    def __init__(self, store: Store | None = None, *, now: datetime = START) -> None:
        self.world = World(now=now, store=store or MemoryStore(), zones=ZONES)
        self.app = self.world.app
        self.store = self.world.store
        self.clock = self.world.clock
        self._queued = 0
        self._relays: list[Relay] = []

    @property
    def now(self) -> datetime:
        return self.clock.now()

    def job(
        self,
        name: str,
        sink: Sink,
        delivery: DeliveryPolicy = STEADY,
        *,
        max_running: int | None = None,
        lease: timedelta = timedelta(seconds=30),
    ) -> None:
        """Declares it, or changes it."""
        job = Job(name=name, sink=sink, delivery=delivery, max_running=max_running, lease=lease)
        self.store.commit_job(job, now=self.now)

    def queue(self, job: str, *, zone: str = "UTC", **params: object) -> RunId:
        """One run of that job, due now."""
        self._queued += 1
        schedule_id = f"{job}-{self._queued:03}"
        due = self.now.replace(microsecond=0) + SECOND
        at = due.isoformat().replace("+00:00", "Z")
        self.app.create_schedule(id=schedule_id, job=job, timezone=zone, recurrence={"at": at}, params=params)
        self.clock.set(due)
        self.world.dispatcher.step(self.now)
        [run] = self.app.runs(schedule=schedule_id)
        return RunId(str(run["run_id"]))

    def relay(
        self,
        senders: Senders,
        *,
        name: str = "relay-1",
        inline: bool = True,
        under_way_max: int = UNDER_WAY_MAX,
    ) -> Relay:
        relay = Relay(
            self.store,
            senders,
            clock=self.clock,
            name=name,
            poll=SECOND,
            drain=timedelta(seconds=DEADLINE_SECONDS),
            inline=inline,
            under_way_max=under_way_max,
        )
        self._relays.append(relay)
        return relay

    def open(self, run_id: RunId, attempt: int = 1, *, worker: str = "consumer") -> OpenedAttempt | None:
        """As who receives the message does."""
        key = AttemptKey(run_id=run_id, attempt=attempt)
        [opened] = self.store.commit_openings(worker, [key], now=self.now)
        return opened

    def detail(self, run_id: RunId) -> RunDetail:
        detail = self.store.get_run(run_id)
        assert detail is not None
        return detail

    def run(self, run_id: RunId) -> Run:
        return self.detail(run_id).run

    def delivery(self, run_id: RunId) -> Delivery:
        delivery = self.detail(run_id).delivery
        assert delivery is not None, f"{run_id} has no delivery"
        return delivery

    def deliveries(self) -> list[Delivery]:
        return self.store.list_deliveries(DeliveryFilter(), after=None, limit=1_000)

    def rest(self, relay: Relay) -> None:
        """Steps until nothing is left to do at this instant."""
        for _ in range(100):
            report = relay.step(self.now)
            if not report.taken and not report.ended and report.wake_at > self.now:
                return
        raise AssertionError("the relay never rests")

    def step_until(self, relay: Relay, is_reached: Callable[[], bool]) -> None:
        """Steps as the relay's loop does, at the time that the clock shows, whenever the relay is woken."""
        while True:
            relay.wake.clear()
            report = relay.step(self.now)
            if is_reached():
                return
            if report.wake_at > self.now:
                assert relay.wake.wait(DEADLINE_SECONDS), "the relay was not woken in time"

    def close(self) -> None:
        """Ends the relays' senders; the store is its opener's to close."""
        for relay in self._relays:
            relay.close()


class ScriptedSenders:
    """Stands for every sink: takes each message, unless a test says what becomes of those to a destination."""

    def __init__(self, *, batch_max: int = 1) -> None:
        self.batch_max = batch_max
        self.outcomes: defaultdict[str, Outcome] = defaultdict(Accepted)
        self.held: set[str] = set()
        """Destinations that give no answer until `release`."""
        self.batches: list[Sequence[Send]] = []
        self._waiting: list[tuple[Send, Done]] = []

    @property
    def sent(self) -> list[RunId]:
        """The runs whose messages were sent, in order."""
        return [send.taken.run.run_id for batch in self.batches for send in batch]

    def sent_to(self, destination: str) -> list[RunId]:
        return [
            send.taken.run.run_id
            for batch in self.batches
            for send in batch
            if send.destination == destination
        ]

    def of(self, sink: PushSink) -> Sender:
        return self

    def start(self, batch: Sequence[Send], done: Done) -> None:
        self.batches.append(batch)
        for send in batch:
            if send.destination in self.held:
                self._waiting.append((send, done))
            else:
                done(send, self.outcomes[send.destination])

    def release(self, destination: str) -> None:
        """Answers whatever waits there, and from now on."""
        self.held.discard(destination)
        waiting, self._waiting = self._waiting, []
        for send, done in waiting:
            if send.destination == destination:
                done(send, self.outcomes[destination])
            else:
                self._waiting.append((send, done))

    def release_one(self) -> None:
        """Answers the one that has waited longest."""
        send, done = self._waiting.pop(0)
        done(send, self.outcomes[send.destination])

    def write_off(self, send: Send) -> None:
        """Nothing is held but the test's own list."""

    def close(self) -> None:
        pass


def queue_sink(name: str) -> CelerySink:
    """A sink whose destination is `celery:<name>`."""
    return CelerySink(task="jobs.do", queue=name)
