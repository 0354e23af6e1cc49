"""Messages that can never be taken, at a destination that takes all others."""

from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest

from rota.delivery.outcome import Accepted, Failed, Outcome, Says
from rota.delivery.relay import Relay
from rota.delivery.sends import Done, Send
from rota.domain.identity import RunId
from rota.domain.sink import DeliveryPolicy
from tests.delivery.scene import MINUTE, SECOND, Scene, ScriptedSenders, queue_sink

ANSWERED_500 = Failed(error="The receiver answered 500.")
NO_ANSWER = Failed(error="There was no whole answer within 15 seconds.")


class Poisoned(ScriptedSenders):
    """Takes all but poisoned messages, which fail after `slow`."""

    def __init__(self, scene: Scene, *, outcome: Outcome, slow: timedelta = timedelta(0)) -> None:
        super().__init__()
        self._scene = scene
        self._outcome = outcome
        self._slow = slow
        self._hanging: list[tuple[Send, Done]] = []
        self.poisoned: set[RunId] = set()
        self.good: list[RunId] = []

    def start(self, batch: Sequence[Send], done: Done) -> None:
        for send in batch:
            if send.taken.run.run_id not in self.poisoned:
                self.good.append(send.taken.run.run_id)
                done(send, Accepted())
            else:
                self._hanging.append((send, done))
        self.tell()

    @property
    def hanging(self) -> int:
        return len(self._hanging)

    def tell(self) -> None:
        """What became of those that have failed by now."""
        waiting, self._hanging = self._hanging, []
        for send, done in waiting:
            if send.began + self._slow <= self._scene.now:
                done(send, self._outcome)
            else:
                self._hanging.append((send, done))


def wait_to_be_sent(scene: Scene, relay: Relay, senders: Poisoned, run_id: RunId) -> timedelta:
    return wait_for(scene, relay, senders, lambda: run_id in senders.good)


def wait_for(scene: Scene, relay: Relay, senders: Poisoned, is_reached: Callable[[], bool]) -> timedelta:
    """How long it takes, second by second."""
    began = scene.now
    while not is_reached():
        assert scene.now < began + timedelta(hours=1), "it never comes to that"
        scene.clock.advance(SECOND)
        senders.tell()
        for _ in range(3):
            relay.step(scene.now)
    return scene.now - began


def poison(scene: Scene, senders: Poisoned, count: int) -> None:
    scene.job("report", queue_sink("q"), DeliveryPolicy())
    senders.poisoned.update(scene.queue("report") for _ in range(count))


def run_for(scene: Scene, relay: Relay, senders: Poisoned, time: timedelta) -> None:
    until = scene.now + time
    wait_for(scene, relay, senders, lambda: scene.now >= until)


def test_messages_that_can_never_be_taken_do_not_keep_others_waiting(any_scene: Scene) -> None:
    senders = Poisoned(any_scene, outcome=ANSWERED_500)
    poison(any_scene, senders, 30)
    relay = any_scene.relay(senders, inline=False)
    run_for(any_scene, relay, senders, 2 * MINUTE)
    for _ in range(5):
        good = any_scene.queue("report")
        assert wait_to_be_sent(any_scene, relay, senders, good) <= 5 * SECOND
        run_for(any_scene, relay, senders, 30 * SECOND)


def test_a_good_message_that_failed_once_gets_its_turn_among_poisoned_ones(scene: Scene) -> None:
    senders = Poisoned(scene, outcome=ANSWERED_500)
    poison(scene, senders, 30)
    relay = scene.relay(senders, inline=False)
    good = next(iter(sorted(senders.poisoned)))
    run_for(scene, relay, senders, MINUTE)
    senders.poisoned.discard(good)
    assert wait_to_be_sent(scene, relay, senders, good) <= 10 * MINUTE


@pytest.mark.parametrize("count", [20, 200])
def test_messages_that_are_slow_to_fail_leave_half_of_the_slots_to_new_ones(scene: Scene, count: int) -> None:
    """Each has to be sent again as soon as another has failed."""
    says_reached = Failed(error=NO_ANSWER.error, says=Says.REACHED)
    senders = Poisoned(scene, outcome=says_reached, slow=15 * SECOND)
    poison(scene, senders, count)
    scene.job("report", queue_sink("q"), DeliveryPolicy(max_delay=15 * SECOND))
    relay = scene.relay(senders, inline=False)
    run_for(scene, relay, senders, timedelta(seconds=count * 4) + 2 * MINUTE)
    for _ in range(5):
        assert 0 < senders.hanging <= 5
        good = scene.queue("report")
        assert wait_to_be_sent(scene, relay, senders, good) <= SECOND
        run_for(scene, relay, senders, 7 * SECOND)
