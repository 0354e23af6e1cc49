"""Sinks that block, in threads: what hangs, exits or breaks keeps neither its slot nor its thread."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from rota.delivery.outcome import Accepted, Outcome
from rota.delivery.relay import WRITTEN_OFF
from rota.delivery.sends import LOST_MAX, Call, Send, Sender, ThreadedSender, Threads
from rota.domain.delivery import DeliveryState
from rota.domain.sink import PushSink
from tests.delivery.scene import DEADLINE_SECONDS, MINUTE, SECOND, Scene, queue_sink


class Client:
    """A sink whose client does what a test says, in the sender's thread."""

    batch_max = 10

    def __init__(self, behave: Callable[[], None]) -> None:
        self.behave = behave
        self.calls = 0
        self.outcomes_missing = 0
        self._sender = ThreadedSender(self)

    def send(self, batch: Sequence[Send]) -> Sequence[Outcome]:
        self.calls += 1
        self.behave()
        return [Accepted() for _ in batch[self.outcomes_missing :]]

    def of(self, sink: PushSink) -> Sender:
        return self._sender

    def close(self) -> None:
        """As the sink, and as the senders."""


def works() -> None:
    """As it should."""


@contextmanager
def hanging() -> Iterator[Callable[[], None]]:
    """A client that hangs until the test is over."""
    is_over = threading.Event()

    def hang() -> None:
        is_over.wait(DEADLINE_SECONDS)

    yield hang
    is_over.set()


@pytest.mark.parametrize(
    "error", [SystemExit("no settings"), KeyboardInterrupt(), GeneratorExit(), ValueError("?")]
)
def test_a_client_that_raises_whatever_fails_the_try(scene: Scene, error: BaseException) -> None:
    def exits() -> None:
        raise error

    client = Client(exits)
    scene.job("report", queue_sink("q"))
    run_ids = [scene.queue("report") for _ in range(3)]
    relay = scene.relay(client, inline=False)
    scene.step_until(relay, lambda: relay.step(scene.now).under_way == 0 and client.calls == 1)
    assert {scene.delivery(run_id).state for run_id in run_ids} == {DeliveryState.RETRYING}
    assert type(error).__name__ in str(scene.delivery(run_ids[0]).error)
    client.behave = works
    scene.clock.advance(MINUTE)
    scene.step_until(relay, lambda: {each.state for each in scene.deliveries()} == {DeliveryState.SENT})


def test_a_client_that_does_not_speak_of_each_message_fails_them_all(scene: Scene) -> None:
    client = Client(works)
    client.outcomes_missing = 1
    scene.job("report", queue_sink("q"))
    run_ids = [scene.queue("report") for _ in range(3)]
    relay = scene.relay(client, inline=False)
    scene.step_until(
        relay, lambda: {scene.delivery(run_id).state for run_id in run_ids} == {DeliveryState.RETRYING}
    )


def test_a_send_that_outlives_its_lease_is_written_off_and_its_slot_is_free(any_scene: Scene) -> None:
    with hanging() as hangs:
        client = Client(hangs)
        any_scene.job("report", queue_sink("q"))
        run_ids = [any_scene.queue("report") for _ in range(10)]
        relay = any_scene.relay(client, inline=False)
        any_scene.step_until(relay, lambda: relay.step(any_scene.now).under_way == 10)
        lease_end = any_scene.delivery(run_ids[0]).next_at
        assert lease_end is not None
        any_scene.clock.set(lease_end - SECOND)
        assert relay.step(any_scene.now).under_way == 10
        any_scene.clock.set(lease_end)
        assert relay.step(any_scene.now).under_way == 0
        delivery = any_scene.delivery(run_ids[0])
        assert (delivery.state, delivery.error) == (DeliveryState.RETRYING, WRITTEN_OFF)
        client.behave = works
        any_scene.clock.advance(MINUTE)
        any_scene.step_until(
            relay, lambda: {any_scene.delivery(run_id).state for run_id in run_ids} == {DeliveryState.SENT}
        )


def test_what_becomes_of_a_send_that_was_written_off_frees_no_slot_twice(scene: Scene) -> None:
    with hanging() as hangs:
        client = Client(hangs)
        scene.job("report", queue_sink("q"))
        scene.queue("report")
        relay = scene.relay(client, inline=False)
        relay.step(scene.now)
        scene.clock.advance(2 * MINUTE)
        assert relay.step(scene.now).under_way == 0
        relay.wake.clear()
    assert relay.wake.wait(DEADLINE_SECONDS), "it never ended"
    scene.clock.advance(SECOND)
    assert relay.step(scene.now).ended == 1
    assert relay.step(scene.now).under_way == 0


def test_a_thread_that_hangs_is_replaced() -> None:
    threads = Threads("test", size=1)
    is_over, is_done = threading.Event(), threading.Event()
    has_begun = threading.Event()

    def hang() -> None:
        has_begun.set()
        is_over.wait(DEADLINE_SECONDS)

    stuck = Call(hang)
    threads.start(stuck)
    assert has_begun.wait(DEADLINE_SECONDS)
    threads.start(Call(is_done.set))
    assert not is_done.is_set()
    for _ in range(3):
        threads.replace(stuck)
    assert is_done.wait(DEADLINE_SECONDS), "what waits behind it has no thread"
    is_over.set()
    threads.close()


def test_a_call_that_was_given_up_before_it_began_is_not_made() -> None:
    threads = Threads("test", size=1)
    is_done, was_made = threading.Event(), threading.Event()
    with hanging() as hangs:
        threads.start(Call(hangs))
        given_up = Call(was_made.set)
        threads.start(given_up)
        threads.start(Call(is_done.set))
        threads.replace(given_up)
    assert is_done.wait(DEADLINE_SECONDS)
    assert not was_made.is_set()
    threads.close()


def test_threads_that_hang_are_replaced_so_often_and_no_more() -> None:
    threads = Threads("hanging", size=1)
    is_over = threading.Event()
    begun = threading.Semaphore(0)

    def hang() -> None:
        begun.release()
        is_over.wait(DEADLINE_SECONDS)

    for _ in range(LOST_MAX + 1):
        call = Call(hang)
        threads.start(call)
        assert begun.acquire(timeout=DEADLINE_SECONDS)
        threads.replace(call)
    threads.start(Call(hang))
    assert not begun.acquire(blocking=False)
    assert sum(thread.name.startswith("hanging-") for thread in threading.enumerate()) == LOST_MAX + 1
    is_over.set()
    threads.close()


def test_a_thread_outlives_whatever_its_calls_raise() -> None:
    threads = Threads("test", size=1)
    is_done = threading.Event()

    def fail() -> None:
        raise SystemExit

    threads.start(Call(fail))
    threads.start(Call(is_done.set))
    assert is_done.wait(DEADLINE_SECONDS)
    threads.close()
