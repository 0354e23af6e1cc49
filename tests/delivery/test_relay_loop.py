"""The relay's loop in a thread: woken by notices and by sends, stopped with a drain; and a store that goes away."""

import contextlib
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from queue import SimpleQueue

import pytest

from rota.delivery.outcome import Accepted, Completed, Failed, Outcome, Rejected
from rota.delivery.relay import GATHERED_SHARE, Relay
from rota.delivery.sends import Done, Send
from rota.domain.delivery import DeliveryEnd, DeliveryState
from rota.domain.job import Job, RetryPolicy
from rota.domain.run import RunState
from rota.domain.sink import DeliveryPolicy
from rota.store.memory import MemoryStore
from rota.store.port import Answer, StoreUnavailable
from tests.delivery.scene import DEADLINE_SECONDS, MINUTE, SECOND, Scene, ScriptedSenders, queue_sink


class WaitingClock:
    """A clock that stands still, and whose waits last until somebody wakes."""

    def __init__(self, scene: Scene) -> None:
        self._clock = scene.clock
        self.waits = threading.Semaphore(0)

    def now(self) -> datetime:
        return self._clock.now()

    def boot_seconds(self) -> float | None:
        return None

    def boot_id(self) -> str | None:
        return None

    def wait(self, wake: threading.Event, seconds: float) -> None:
        if seconds > 0:
            self.waits.release()
            wake.wait(DEADLINE_SECONDS)

    def wait_until_idle(self) -> None:
        assert self.waits.acquire(timeout=DEADLINE_SECONDS), "the relay does not rest"


class NotedSenders(ScriptedSenders):
    """Tells when something is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.noted = threading.Semaphore(0)

    def start(self, batch: Sequence[Send], done: Done) -> None:
        super().start(batch, done)
        self.noted.release()

    def wait(self) -> None:
        assert self.noted.acquire(timeout=DEADLINE_SECONDS), "nothing was sent in time"


@contextmanager
def looping(relay: Relay) -> Iterator[threading.Event]:
    """Its loop in a thread; the event stops it, and so does the end."""
    stop, wake = threading.Event(), threading.Event()
    thread = threading.Thread(target=relay.run, args=(stop, wake))
    thread.start()
    try:
        yield stop
    finally:
        stop.set()
        wake.set()
        thread.join(DEADLINE_SECONDS)
        assert not thread.is_alive(), "the relay does not stop"


def relay_of(scene: Scene, senders: ScriptedSenders, clock: WaitingClock, *, drain: float = 20) -> Relay:
    return Relay(
        scene.store,
        senders,
        clock=clock,
        name="relay",
        poll=timedelta(hours=1),
        drain=timedelta(seconds=drain),
    )


def test_a_run_that_falls_due_wakes_a_relay_that_waits(scene: Scene) -> None:
    senders, clock = NotedSenders(), WaitingClock(scene)
    scene.job("report", queue_sink("q"))
    with looping(relay_of(scene, senders, clock)):
        clock.wait_until_idle()
        run_id = scene.queue("report")
        senders.wait()
    assert senders.sent == [run_id]
    assert scene.delivery(run_id).state is DeliveryState.SENT


def test_a_send_that_ends_wakes_a_relay_that_waits(scene: Scene) -> None:
    senders, clock = NotedSenders(), WaitingClock(scene)
    scene.job("report", queue_sink("q"))
    senders.held.add("celery:q")
    run_id = scene.queue("report")
    with looping(relay_of(scene, senders, clock)):
        senders.wait()
        clock.wait_until_idle()
        senders.release("celery:q")
        clock.wait_until_idle()
        assert scene.delivery(run_id).state is DeliveryState.SENT


def test_a_relay_that_is_stopped_takes_nothing_more_and_waits_for_its_sends(scene: Scene) -> None:
    senders, clock = NotedSenders(), WaitingClock(scene)
    scene.job("report", queue_sink("q"))
    senders.held.add("celery:q")
    first = scene.queue("report")
    relay = relay_of(scene, senders, clock)
    with looping(relay) as stop:
        senders.wait()
        stop.set()
        scene.queue("report")
        relay.wake.set()
        clock.wait_until_idle()
        senders.release("celery:q")
    assert senders.sent == [first]
    assert scene.delivery(first).state is DeliveryState.SENT


def test_a_send_that_does_not_end_within_the_drain_is_left_to_its_lease(scene: Scene) -> None:
    senders, clock = NotedSenders(), WaitingClock(scene)
    scene.job("report", queue_sink("q"))
    senders.held.add("celery:q")
    run_id = scene.queue("report")
    with looping(relay_of(scene, senders, clock, drain=0)) as stop:
        senders.wait()
        stop.set()
    delivery = scene.delivery(run_id)
    assert delivery.state is DeliveryState.SENDING
    assert delivery.next_at is not None


class FailingStore(MemoryStore):
    """Cannot be reached for the calls that a test names; with `after` they are done, and only the answer is lost."""

    def __init__(self) -> None:
        super().__init__()
        self.failing: set[str] = set()
        self.after: set[str] = set()
        self.answers: list[int] = []
        """How many were told in each call."""

    def commit_answers(self, worker: str, answers: Sequence[Answer]) -> list[bool]:
        self._fail_if_asked("answers", self.failing)
        self.answers.append(len(answers))
        were_current = super().commit_answers(worker, answers)
        self._fail_if_asked("answers", self.after)
        return were_current

    def commit_delivery_ends(self, ends: Sequence[DeliveryEnd], *, now: datetime) -> list[bool]:
        self._fail_if_asked("ends", self.failing)
        return super().commit_delivery_ends(ends, now=now)

    def _fail_if_asked(self, call: str, calls: set[str]) -> None:
        if call in calls:
            raise StoreUnavailable("The database is restarting.")


def test_a_loop_outlives_a_store_that_goes_away() -> None:
    scene = Scene(FailingStore())
    store = scene.store
    assert isinstance(store, FailingStore)
    senders, clock = NotedSenders(), WaitingClock(scene)
    scene.job("report", queue_sink("q"))
    store.failing.add("ends")
    run_id = scene.queue("report")
    relay = relay_of(scene, senders, clock)
    with looping(relay):
        senders.wait()
        clock.wait_until_idle()
        assert scene.delivery(run_id).state is DeliveryState.SENDING
        store.failing.clear()
        relay.wake.set()
        clock.wait_until_idle()
        assert scene.delivery(run_id).state is DeliveryState.SENT


def step_that_fails(scene: Scene, senders: ScriptedSenders, store: FailingStore, calls: set[str]) -> Relay:
    """A relay whose sends have ended, and that could not tell the store, or does not know whether it could."""
    senders.held.add("celery:q")
    relay = scene.relay(senders)
    relay.step(scene.now)
    senders.release("celery:q")
    calls.add("answers")
    with pytest.raises(StoreUnavailable):
        relay.step(scene.now)
    store.failing.clear()
    store.after.clear()
    return relay


@pytest.mark.parametrize("when", ["failing", "after"])
def test_what_the_store_could_not_be_told_is_told_later(senders: ScriptedSenders, when: str) -> None:
    store = FailingStore()
    scene = Scene(store)
    scene.job("report", queue_sink("q"))
    senders.outcomes["celery:q"] = Completed()
    run_ids = [scene.queue("report") for _ in range(3)]
    relay = step_that_fails(scene, senders, store, getattr(store, when))
    scene.rest(relay)
    assert {scene.run(run_id).state for run_id in run_ids} == {RunState.SUCCEEDED}
    assert [len(scene.detail(run_id).attempts) for run_id in run_ids] == [1, 1, 1]
    assert senders.sent == run_ids


def test_an_answer_that_could_not_be_told_ends_no_attempt_that_the_receiver_opened_meanwhile(
    senders: ScriptedSenders,
) -> None:
    store = FailingStore()
    scene = Scene(store)
    scene.job("report", queue_sink("q"))
    senders.outcomes["celery:q"] = Rejected(error="410")
    run_id = scene.queue("report")
    relay = step_that_fails(scene, senders, store, store.failing)
    assert scene.open(run_id, worker="receiver") is not None
    scene.rest(relay)
    assert scene.run(run_id).state is RunState.RUNNING
    assert [attempt.worker for attempt in scene.detail(run_id).attempts] == ["receiver"]


class KilledHere(BaseException):
    """The process ends at this commit."""


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_relay_that_is_killed_at_any_commit_leaves_no_attempt_open(
    senders: ScriptedSenders, lost: int
) -> None:
    """With one attempt only, one that is left open would fail a run whose work is done."""
    store = FailingStore()
    scene = Scene(store)
    scene.store.commit_job(
        Job(name="report", sink=queue_sink("q"), retry=RetryPolicy(max_attempts=1)), now=scene.now
    )
    senders.outcomes["celery:q"] = Completed()
    run_id = scene.queue("report")
    commits = iter(range(10))

    def die(call: str, calls: set[str]) -> None:
        if next(commits) == lost:
            raise KilledHere

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(store, "_fail_if_asked", die)
        relay = scene.relay(senders)
        with contextlib.suppress(KilledHere):
            relay.step(scene.now)
    for _ in range(5):
        scene.clock.advance(MINUTE)
        scene.world.dispatcher.step(scene.now)
    scene.rest(scene.relay(senders, name="other"))
    assert scene.run(run_id).state is RunState.SUCCEEDED
    assert len(scene.detail(run_id).attempts) == 1


class TricklingAnswers(SimpleQueue[tuple[Send, Outcome]]):
    """One more comes whenever somebody waits for one."""

    def __init__(self, senders: ScriptedSenders) -> None:
        super().__init__()
        self._senders = senders

    def get(self, block: bool = True, timeout: float | None = None) -> tuple[Send, Outcome]:
        self._senders.release_one()
        return super().get(block, timeout)


def test_answers_that_come_soon_after_each_other_are_written_down_together() -> None:
    store = FailingStore()
    scene = Scene(store)
    senders = ScriptedSenders()
    scene.job("report", queue_sink("q"), DeliveryPolicy(concurrency=16))
    for _ in range(16):
        scene.queue("report")
    senders.held.add("celery:q")
    senders.outcomes["celery:q"] = Completed()
    relay = scene.relay(senders, inline=False)
    relay._ended = TricklingAnswers(senders)
    relay.step(scene.now)
    senders.release_one()
    relay._try_step()
    assert store.answers == [16 // GATHERED_SHARE]


def test_an_attempt_that_the_receiver_has_open_is_left_to_it(scene: Scene, senders: ScriptedSenders) -> None:
    scene.job("report", queue_sink("q"))
    senders.outcomes["celery:q"] = Completed()
    senders.held.add("celery:q")
    run_id = scene.queue("report")
    relay = scene.relay(senders)
    relay.step(scene.now)
    assert scene.open(run_id, worker="receiver") is not None
    senders.release("celery:q")
    scene.rest(relay)
    assert scene.run(run_id).state is RunState.RUNNING


def test_nothing_is_sent_again_while_the_store_is_away(senders: ScriptedSenders) -> None:
    store = FailingStore()
    scene = Scene(store)
    scene.job("report", queue_sink("q"))
    run_ids = [scene.queue("report") for _ in range(2)]
    store.failing.add("ends")
    relay = scene.relay(senders)
    for _ in range(5):
        with pytest.raises(StoreUnavailable):
            relay.step(scene.now)
        scene.clock.advance(SECOND)
    assert senders.sent == run_ids
    store.failing.clear()
    senders.outcomes["celery:q"] = Failed(error="not asked")
    scene.rest(relay)
    assert senders.sent == run_ids
    assert {scene.delivery(run_id).state for run_id in run_ids} == {DeliveryState.SENT}


def test_an_outcome_that_comes_while_a_relay_steps_is_not_forgotten(scene: Scene) -> None:
    senders = ScriptedSenders()
    scene.job("report", queue_sink("q"))
    senders.held.add("celery:q")
    run_id = scene.queue("report")
    relay = scene.relay(senders, inline=False)
    relay.step(scene.now)
    senders.outcomes["celery:q"] = Accepted()
    threading.Thread(target=senders.release, args=("celery:q",)).start()
    scene.step_until(relay, lambda: scene.delivery(run_id).state is DeliveryState.SENT)
