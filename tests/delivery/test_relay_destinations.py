"""Destinations beside each other: slots, breakers, order, and what becomes of jobs that change meanwhile."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from rota.delivery.destinations import FAILURES_MAX
from rota.delivery.outcome import Accepted, Failed, Says
from rota.delivery.taking import CALLS_MAX, JOBS_ARE_READ_AFTER
from rota.domain.delivery import DeliveryState
from rota.domain.sink import WorkerSink
from rota.store.memory import MemoryStore
from rota.store.port import StoreUnavailable, TakenDelivery, Wanted
from tests.delivery.scene import MINUTE, SECOND, STEADY, Scene, ScriptedSenders, queue_sink

TWO_AT_ONCE = replace(STEADY, concurrency=2)
DOWN = Failed(error="Connection refused.", says=Says.AWAY)


def test_a_destination_that_hangs_holds_up_no_other(scene: Scene, senders: ScriptedSenders) -> None:
    scene.job("slow", queue_sink("slow"), TWO_AT_ONCE)
    scene.job("fast", queue_sink("fast"), TWO_AT_ONCE)
    slow = [scene.queue("slow") for _ in range(10)]
    fast = [scene.queue("fast") for _ in range(10)]
    senders.held.add("celery:slow")
    relay = scene.relay(senders)
    scene.rest(relay)
    assert senders.sent_to("celery:slow") == slow[:2]
    assert senders.sent_to("celery:fast") == fast


def test_a_destination_that_hangs_goes_on_where_it_stood(scene: Scene, senders: ScriptedSenders) -> None:
    scene.job("slow", queue_sink("slow"), TWO_AT_ONCE)
    slow = [scene.queue("slow") for _ in range(5)]
    senders.held.add("celery:slow")
    relay = scene.relay(senders)
    scene.rest(relay)
    senders.release("celery:slow")
    scene.rest(relay)
    assert senders.sent == slow


def test_a_dead_destination_is_left_alone_and_holds_up_no_other(
    scene: Scene, senders: ScriptedSenders
) -> None:
    scene.job("dead", queue_sink("dead"), replace(STEADY, concurrency=1))
    scene.job("fast", queue_sink("fast"), replace(STEADY, concurrency=1))
    dead = [scene.queue("dead") for _ in range(FAILURES_MAX + 3)]
    fast = [scene.queue("fast") for _ in range(FAILURES_MAX + 3)]
    senders.outcomes["celery:dead"] = DOWN
    relay = scene.relay(senders)
    scene.rest(relay)
    assert senders.sent_to("celery:dead") == dead[:FAILURES_MAX]
    assert senders.sent_to("celery:fast") == fast


def test_a_breaker_lets_one_through_and_then_all_where_that_gets_there(
    scene: Scene, senders: ScriptedSenders
) -> None:
    scene.job("dead", queue_sink("dead"), replace(STEADY, initial_delay=timedelta(hours=1)))
    run_ids = [scene.queue("dead") for _ in range(FAILURES_MAX + 5)]
    senders.outcomes["celery:dead"] = DOWN
    relay = scene.relay(senders)
    scene.job("dead", queue_sink("dead"), replace(STEADY, initial_delay=timedelta(hours=1), concurrency=5))
    scene.rest(relay)
    assert len(senders.sent) == FAILURES_MAX
    report = relay.step(scene.now)
    assert report.wake_at == scene.now + SECOND
    scene.clock.advance(SECOND)
    scene.rest(relay)
    assert len(senders.sent) == FAILURES_MAX + 1
    scene.clock.advance(SECOND)
    scene.rest(relay)
    assert len(senders.sent) == FAILURES_MAX + 1
    senders.outcomes["celery:dead"] = Accepted()
    scene.clock.advance(SECOND)
    scene.rest(relay)
    assert senders.sent == run_ids


def test_messages_that_are_wrong_do_not_open_the_breaker(scene: Scene, senders: ScriptedSenders) -> None:
    scene.job("wrong", queue_sink("q"), replace(STEADY, concurrency=1))
    run_ids = [scene.queue("wrong") for _ in range(FAILURES_MAX * 2)]
    senders.outcomes["celery:q"] = Failed(error="404", says=Says.REACHED)
    scene.rest(scene.relay(senders))
    assert senders.sent == run_ids


def test_a_try_that_was_never_made_does_not_close_a_breaker(scene: Scene, senders: ScriptedSenders) -> None:
    scene.job("dead", queue_sink("q"), replace(STEADY, initial_delay=timedelta(hours=1)))
    for _ in range(FAILURES_MAX + 5):
        scene.queue("dead")
    senders.outcomes["celery:q"] = DOWN
    relay = scene.relay(senders)
    scene.job("dead", queue_sink("q"), replace(STEADY, initial_delay=timedelta(hours=1), concurrency=5))
    scene.rest(relay)
    senders.outcomes["celery:q"] = Failed(error="its secret is missing", says=Says.NOTHING)
    scene.clock.advance(SECOND)
    relay.step(scene.now)
    senders.held.add("celery:q")
    senders.outcomes["celery:q"] = DOWN
    relay.step(scene.now)
    relay.step(scene.now)
    assert len(senders.sent) == FAILURES_MAX + 2


def test_many_destinations_that_hang_at_once_hold_up_no_other(scene: Scene, senders: ScriptedSenders) -> None:
    """Of ten slots each, though there are more of them than the relay has slots."""
    for number in range(15):
        scene.job(f"slow{number}", queue_sink(f"slow{number}"), STEADY)
        senders.held.add(f"celery:slow{number}")
        for _ in range(10):
            scene.queue(f"slow{number}")
    relay = scene.relay(senders, under_way_max=100)
    scene.rest(relay)
    scene.job("fast", queue_sink("fast"), STEADY)
    fast = [scene.queue("fast") for _ in range(5)]
    scene.clock.advance(JOBS_ARE_READ_AFTER)
    scene.rest(relay)
    assert senders.sent_to("celery:fast") == fast


def test_jobs_that_share_a_destination_share_its_slots(any_scene: Scene, senders: ScriptedSenders) -> None:
    for name in ("one", "other"):
        any_scene.job(name, queue_sink("q"), replace(STEADY, concurrency=3))
    run_ids = [any_scene.queue(name) for name in ("one", "other", "one", "other", "one", "other")]
    senders.held.add("celery:q")
    relay = any_scene.relay(senders)
    any_scene.rest(relay)
    assert senders.sent == run_ids[:3]
    senders.release("celery:q")
    any_scene.rest(relay)
    assert senders.sent == run_ids


def test_messages_go_in_the_order_in_which_they_are_due(any_scene: Scene, senders: ScriptedSenders) -> None:
    any_scene.job("report", queue_sink("q"), replace(STEADY, concurrency=1))
    run_ids = [any_scene.queue("report") for _ in range(5)]
    any_scene.rest(any_scene.relay(senders))
    assert senders.sent == run_ids


def test_a_sink_that_takes_batches_gets_them(scene: Scene) -> None:
    senders = ScriptedSenders(batch_max=3)
    scene.job("report", queue_sink("q"), replace(STEADY, concurrency=8))
    scene.job("other", queue_sink("other"), replace(STEADY, concurrency=8))
    for _ in range(8):
        scene.queue("report")
    scene.queue("other")
    scene.rest(scene.relay(senders))
    assert sorted(len(batch) for batch in senders.batches) == [1, 2, 3, 3]
    assert all(len({send.destination for send in batch}) == 1 for batch in senders.batches)


@pytest.mark.parametrize("count", [CALLS_MAX, 2 * CALLS_MAX + 3])
def test_every_shared_destination_has_its_turn_however_many_there_are(
    scene: Scene, senders: ScriptedSenders, count: int
) -> None:
    for number in range(count):
        for name in ("a", "b"):
            scene.job(f"{name}{number:02}", queue_sink(f"q{number}"), replace(STEADY, concurrency=1))
    scene.job("alone", queue_sink("alone"))
    run_ids = {scene.queue(f"b{number:02}") for number in range(count)}
    scene.rest(scene.relay(senders))
    assert set(senders.sent) == run_ids


def test_a_job_that_is_given_to_workers_gets_its_messages_back(
    any_scene: Scene, senders: ScriptedSenders
) -> None:
    any_scene.job("report", queue_sink("q"))
    run_id = any_scene.queue("report")
    senders.outcomes["celery:q"] = DOWN
    relay = any_scene.relay(senders)
    any_scene.rest(relay)
    assert any_scene.delivery(run_id).state is DeliveryState.RETRYING
    any_scene.job("report", WorkerSink())
    any_scene.clock.advance(MINUTE)
    any_scene.rest(relay)
    assert any_scene.deliveries() == []
    [intent] = any_scene.store.read_intents(["report"], now=any_scene.now, limit=10)
    assert (intent.run_id, intent.attempt) == (run_id, 1)
    assert len(senders.sent) == 1


def test_a_relay_that_starts_later_gives_back_what_is_left_over_too(
    any_scene: Scene, senders: ScriptedSenders
) -> None:
    any_scene.job("report", queue_sink("q"))
    run_ids = [any_scene.queue("report") for _ in range(5)]
    senders.outcomes["celery:q"] = DOWN
    any_scene.rest(any_scene.relay(senders, name="before"))
    any_scene.job("report", WorkerSink())
    any_scene.clock.advance(timedelta(hours=1))
    any_scene.rest(any_scene.relay(senders, name="after"))
    intents = any_scene.store.read_intents(["report"], now=any_scene.now, limit=10)
    assert [intent.run_id for intent in intents] == run_ids


def test_a_job_whose_sink_is_changed_is_sent_to_the_new_one_at_the_next_try(
    any_scene: Scene, senders: ScriptedSenders
) -> None:
    any_scene.job("report", queue_sink("old"))
    run_id = any_scene.queue("report")
    senders.outcomes["celery:old"] = DOWN
    relay = any_scene.relay(senders)
    any_scene.rest(relay)
    any_scene.job("report", queue_sink("new"))
    any_scene.clock.advance(10 * SECOND)
    any_scene.rest(relay)
    assert (senders.sent_to("celery:old"), senders.sent_to("celery:new")) == ([run_id], [run_id])
    assert any_scene.delivery(run_id).state is DeliveryState.SENT


def test_a_job_that_is_new_is_known_in_time(scene: Scene, senders: ScriptedSenders) -> None:
    relay = scene.relay(senders)
    scene.rest(relay)
    scene.job("report", queue_sink("q"))
    run_id = scene.queue("report")
    scene.clock.advance(JOBS_ARE_READ_AFTER)
    scene.rest(relay)
    assert senders.sent == [run_id]


class CountingStore(MemoryStore):
    """Counts what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def __getattribute__(self, name: str) -> object:
        if name.startswith(("commit_", "read_", "list_")):
            self.calls.append(name)
        return super().__getattribute__(name)


def test_a_relay_that_is_busy_takes_without_a_look_before(senders: ScriptedSenders) -> None:
    store = CountingStore()
    scene = Scene(store)
    scene.job("report", queue_sink("q"), replace(STEADY, concurrency=3))
    for _ in range(30):
        scene.queue("report")
    relay = scene.relay(senders)
    relay.step(scene.now)
    store.calls.clear()
    for _ in range(5):
        relay.step(scene.now)
    assert (store.calls.count("commit_takes"), store.calls.count("read_next_delivery_time")) == (5, 0)


@pytest.mark.parametrize("jobs", [1, 50])
def test_a_relay_with_nothing_to_do_costs_one_look(jobs: int, senders: ScriptedSenders) -> None:
    store = CountingStore()
    scene = Scene(store)
    for number in range(jobs):
        scene.job(f"job{number}", queue_sink(f"q{number % 7}"))
    relay = scene.relay(senders)
    relay.step(scene.now)
    store.calls.clear()
    report = relay.step(scene.now)
    assert store.calls == ["read_next_delivery_time"]
    assert report.wake_at == scene.now + SECOND


def test_where_no_job_has_a_sink_the_store_is_left_alone(senders: ScriptedSenders) -> None:
    store = CountingStore()
    scene = Scene(store)
    relay = scene.relay(senders)
    relay.step(scene.now)
    store.calls.clear()
    relay.step(scene.now)
    assert store.calls == []


class HoldingStore(MemoryStore):
    """What is due is in the hands of another relay at the moment."""

    def commit_takes(
        self,
        wanted: Sequence[Wanted],
        *,
        now: datetime,
        lease: timedelta,
        limit: int,
        intents_first: bool = False,
        backlog_first: bool = False,
    ) -> list[TakenDelivery]:
        return []


def test_what_others_hold_is_asked_for_less_and_less(senders: ScriptedSenders) -> None:
    scene = Scene(HoldingStore())
    scene.job("report", queue_sink("q"))
    scene.queue("report")
    relay = scene.relay(senders)
    waits = [(relay.step(scene.now).wake_at - scene.now) / timedelta(milliseconds=1) for _ in range(8)]
    assert waits == [20, 40, 80, 160, 320, 640, 1000, 1000]


def test_where_there_are_many_all_are_asked_for_before_the_relay_waits(senders: ScriptedSenders) -> None:
    scene = Scene(HoldingStore())
    for number in range(2 * CALLS_MAX + 3):
        for name in ("a", "b"):
            scene.job(f"{name}{number:02}", queue_sink(f"q{number}"))
    scene.queue("a00")
    relay = scene.relay(senders)
    waits = [(relay.step(scene.now).wake_at - scene.now) / timedelta(milliseconds=1) for _ in range(5)]
    assert waits == [0, 0, 20, 40, 80]


class BreakingStore(MemoryStore):
    """Cannot be reached for the second take."""

    def __init__(self) -> None:
        super().__init__()
        self.takes = 0

    def commit_takes(
        self,
        wanted: Sequence[Wanted],
        *,
        now: datetime,
        lease: timedelta,
        limit: int,
        intents_first: bool = False,
        backlog_first: bool = False,
    ) -> list[TakenDelivery]:
        self.takes += 1
        if self.takes == 2:
            raise StoreUnavailable("The database is restarting.")
        return super().commit_takes(
            wanted,
            now=now,
            lease=lease,
            limit=limit,
            intents_first=intents_first,
            backlog_first=backlog_first,
        )


def test_what_was_taken_before_the_store_went_away_is_sent_all_the_same(senders: ScriptedSenders) -> None:
    scene = Scene(BreakingStore())
    for name in ("a1", "a2"):
        scene.job(name, queue_sink("a"))
    for name in ("b1", "b2"):
        scene.job(name, queue_sink("b"))
    run_ids = [scene.queue("a1"), scene.queue("b1")]
    relay = scene.relay(senders)
    relay.step(scene.now)
    assert senders.sent == run_ids[:1]
    scene.rest(relay)
    assert senders.sent == run_ids
