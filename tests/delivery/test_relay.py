"""The relay step by step on each store, with senders that do what a test says."""

from datetime import timedelta

from rota.delivery.outcome import Accepted, Completed, Failed, Rejected, Says
from rota.delivery.sends import Send
from rota.delivery.settling import Settling
from rota.domain.audit import AuditEvent
from rota.domain.delivery import DeliveryState
from rota.domain.json_text import encode_json
from rota.domain.run import AttemptOutcome, RunState
from rota.domain.settlement import AttemptEnd, settle_attempt
from rota.domain.sink import DeliveryPolicy, WorkerSink
from rota.store.port import AttemptKey, DeliveryFilter, Wanted
from tests.delivery.scene import MINUTE, SECOND, STEADY, Scene, ScriptedSenders, queue_sink

REFUSED = Failed(error="Connection refused.")


def test_a_due_run_is_sent_once_and_waits_to_be_opened(any_scene: Scene, senders: ScriptedSenders) -> None:
    any_scene.job("report", queue_sink("q"))
    run_id = any_scene.queue("report")
    relay = any_scene.relay(senders)
    any_scene.rest(relay)
    any_scene.rest(relay)
    assert senders.sent == [run_id]
    delivery = any_scene.delivery(run_id)
    assert (delivery.state, delivery.tries, delivery.attempt) == (DeliveryState.SENT, 1, 1)
    assert delivery.next_at == any_scene.now + STEADY.redeliver_after
    assert any_scene.run(run_id).state is RunState.QUEUED


def test_runs_of_jobs_that_workers_fetch_are_left_to_them(any_scene: Scene, senders: ScriptedSenders) -> None:
    any_scene.job("report", WorkerSink())
    run_id = any_scene.queue("report")
    any_scene.rest(any_scene.relay(senders))
    assert (senders.sent, any_scene.deliveries()) == ([], [])
    assert any_scene.open(run_id) is not None


def test_whoever_receives_a_message_opens_its_attempt_and_the_delivery_is_gone(
    any_scene: Scene, senders: ScriptedSenders
) -> None:
    any_scene.job("report", queue_sink("q"))
    run_id = any_scene.queue("report")
    relay = any_scene.relay(senders)
    any_scene.rest(relay)
    assert any_scene.open(run_id) is not None
    assert any_scene.open(run_id) is None
    any_scene.clock.advance(STEADY.redeliver_after)
    any_scene.rest(relay)
    assert (senders.sent, any_scene.deliveries()) == ([run_id], [])


def test_a_message_that_nobody_opened_is_sent_again_for_the_same_attempt(
    any_scene: Scene, senders: ScriptedSenders
) -> None:
    any_scene.job("report", queue_sink("q"))
    run_id = any_scene.queue("report")
    relay = any_scene.relay(senders)
    any_scene.rest(relay)
    any_scene.clock.advance(STEADY.redeliver_after - SECOND)
    any_scene.rest(relay)
    assert senders.sent == [run_id]
    any_scene.clock.advance(SECOND)
    any_scene.rest(relay)
    assert senders.sent == [run_id, run_id]
    assert (any_scene.delivery(run_id).tries, any_scene.delivery(run_id).attempt) == (2, 1)


def test_a_try_that_failed_is_followed_by_others_after_longer_and_longer_waits(
    any_scene: Scene, senders: ScriptedSenders
) -> None:
    any_scene.job("report", queue_sink("q"))
    run_id = any_scene.queue("report")
    relay = any_scene.relay(senders)
    senders.outcomes["celery:q"] = REFUSED
    for seconds in (10, 20, 40):
        any_scene.rest(relay)
        delivery = any_scene.delivery(run_id)
        assert (delivery.state, delivery.error) == (DeliveryState.RETRYING, REFUSED.error)
        assert delivery.next_at == any_scene.now + seconds * SECOND
        any_scene.clock.advance(seconds * SECOND)
    senders.outcomes["celery:q"] = Accepted()
    any_scene.rest(relay)
    assert any_scene.delivery(run_id).state is DeliveryState.SENT
    assert len(senders.sent) == 4
    run = any_scene.run(run_id)
    assert (run.state, run.attempt, run.error) == (RunState.QUEUED, 0, None)


def test_a_sink_may_ask_to_be_left_alone_for_longer(any_scene: Scene, senders: ScriptedSenders) -> None:
    any_scene.job("report", queue_sink("q"))
    run_id = any_scene.queue("report")
    senders.outcomes["celery:q"] = Failed(error="busy", retry_after=90 * SECOND)
    any_scene.rest(any_scene.relay(senders))
    assert any_scene.delivery(run_id).next_at == any_scene.now + 90 * SECOND


def test_what_could_not_be_sent_for_too_long_is_dead_until_it_is_redriven(
    any_scene: Scene, senders: ScriptedSenders
) -> None:
    any_scene.job(
        "report", queue_sink("q"), DeliveryPolicy(initial_delay=MINUTE, jitter=0, max_age=2 * MINUTE)
    )
    run_id = any_scene.queue("report")
    relay = any_scene.relay(senders)
    senders.outcomes["celery:q"] = REFUSED
    for _ in range(3):
        any_scene.rest(relay)
        any_scene.clock.advance(MINUTE)
    dead = any_scene.delivery(run_id)
    assert (dead.state, dead.tries, dead.error) == (DeliveryState.DEAD, 3, REFUSED.error)
    assert any_scene.store.list_deliveries(
        DeliveryFilter(state=DeliveryState.DEAD), after=None, limit=10
    ) == [dead]
    any_scene.clock.advance(timedelta(days=1))
    any_scene.rest(relay)
    assert len(senders.sent) == 3
    assert any_scene.run(run_id).state is RunState.QUEUED

    senders.outcomes["celery:q"] = Accepted()
    event = AuditEvent(
        schedule_id=dead.schedule_id, action="delivery.redrive", at=any_scene.now, actor="ops", reason=None
    )
    any_scene.store.commit_redrive(run_id, event=event, now=any_scene.now)
    any_scene.rest(relay)
    assert any_scene.delivery(run_id).state is DeliveryState.SENT


def test_a_poisoned_message_is_dead_at_once_and_stops_no_other(
    any_scene: Scene, senders: ScriptedSenders
) -> None:
    any_scene.job("poisoned", queue_sink("p"))
    any_scene.job("report", queue_sink("q"))
    senders.outcomes["celery:p"] = Failed(error="too long", is_final=True, says=Says.REACHED)
    poisoned = [any_scene.queue("poisoned") for _ in range(7)]
    well = any_scene.queue("report")
    any_scene.rest(any_scene.relay(senders))
    assert {any_scene.delivery(run_id).state for run_id in poisoned} == {DeliveryState.DEAD}
    assert any_scene.delivery(poisoned[0]).error == "too long"
    assert any_scene.delivery(well).state is DeliveryState.SENT
    assert len(senders.sent) == 8


def test_a_receiver_that_has_done_the_work_ends_the_run(any_scene: Scene, senders: ScriptedSenders) -> None:
    any_scene.job("report", queue_sink("q"))
    run_id = any_scene.queue("report")
    senders.outcomes["celery:q"] = Completed(result=encode_json({"rows": 3}))
    any_scene.rest(any_scene.relay(senders))
    detail = any_scene.detail(run_id)
    assert (detail.run.state, detail.result) == (RunState.SUCCEEDED, '{"rows":3}')
    [attempt] = detail.attempts
    assert (attempt.worker, attempt.outcome) == ("relay-1", AttemptOutcome.SUCCEEDED)
    assert any_scene.deliveries() == []


def test_its_attempt_was_open_since_the_request_began(any_scene: Scene, senders: ScriptedSenders) -> None:
    any_scene.job("report", queue_sink("q"))
    run_id = any_scene.queue("report")
    senders.held.add("celery:q")
    senders.outcomes["celery:q"] = Completed()
    relay = any_scene.relay(senders)
    began = any_scene.now
    relay.step(began)
    any_scene.clock.advance(3 * SECOND)
    senders.release("celery:q")
    relay.step(any_scene.now)
    [attempt] = any_scene.detail(run_id).attempts
    assert (attempt.opened_at, attempt.finished_at) == (began, any_scene.now)


def test_each_attempt_was_open_since_its_own_request_began(any_scene: Scene) -> None:
    any_scene.job("report", queue_sink("q"))
    run_ids = [any_scene.queue("report") for _ in range(5)]
    settling = Settling(any_scene.store, name="relay-1")
    later = any_scene.now + SECOND
    for number in range(5):
        [taken] = any_scene.store.commit_takes(
            [Wanted(job="report")], now=any_scene.now, lease=MINUTE, limit=1
        )
        began = any_scene.now + number * timedelta(milliseconds=60)
        settling.add(Send(taken=taken, destination="celery:q", began=began), Completed(), now=later)
    settling.commit(now=later)
    attempts = [any_scene.detail(run_id).attempts[0] for run_id in run_ids]
    opened = [(attempt.opened_at - any_scene.now) / timedelta(milliseconds=1) for attempt in attempts]
    assert opened == [0, 60, 120, 180, 240]
    assert {attempt.finished_at for attempt in attempts} == {later}


def test_an_answer_that_comes_long_after_the_lease_of_an_attempt_ends_the_run_all_the_same(
    any_scene: Scene, senders: ScriptedSenders
) -> None:
    """Were it opened in a commit of its own, recovery could take it before it is settled."""
    any_scene.job("report", queue_sink("q"), lease=10 * SECOND)
    run_id = any_scene.queue("report")
    senders.held.add("celery:q")
    senders.outcomes["celery:q"] = Completed()
    relay = any_scene.relay(senders)
    began = any_scene.now
    relay.step(began)
    any_scene.clock.advance(50 * SECOND)
    senders.release("celery:q")
    any_scene.world.dispatcher.step(any_scene.now)
    relay.step(any_scene.now)
    any_scene.world.dispatcher.step(any_scene.now)
    [attempt] = any_scene.detail(run_id).attempts
    assert (attempt.opened_at, attempt.finished_at) == (began, any_scene.now)
    assert attempt.outcome is AttemptOutcome.SUCCEEDED
    assert any_scene.run(run_id).state is RunState.SUCCEEDED


def test_a_receiver_that_never_wants_it_again_fails_the_run_for_good(
    any_scene: Scene, senders: ScriptedSenders
) -> None:
    any_scene.job("report", queue_sink("q"))
    run_id = any_scene.queue("report")
    senders.outcomes["celery:q"] = Rejected(error="The receiver answered 410.")
    relay = any_scene.relay(senders)
    any_scene.rest(relay)
    any_scene.clock.advance(timedelta(hours=1))
    any_scene.rest(relay)
    run = any_scene.run(run_id)
    assert (run.state, run.attempt, run.error) == (RunState.FAILED, 1, "The receiver answered 410.")
    assert senders.sent == [run_id]


def test_where_the_receiver_settled_the_attempt_itself_its_word_counts(
    any_scene: Scene, senders: ScriptedSenders
) -> None:
    any_scene.job("report", queue_sink("q"))
    run_id = any_scene.queue("report")
    senders.held.add("celery:q")
    senders.outcomes["celery:q"] = Completed(result=encode_json("the relay's"))
    relay = any_scene.relay(senders)
    relay.step(any_scene.now)
    opened = any_scene.open(run_id, worker="receiver")
    assert opened is not None
    end = AttemptEnd(outcome=AttemptOutcome.SUCCEEDED, result=encode_json("the receiver's"))
    settlement = settle_attempt(
        run_id=run_id, attempt=1, end=end, retry=opened.job.retry, cancel_requested=False, now=any_scene.now
    )
    assert any_scene.store.commit_settlements([settlement]) == [True]
    senders.release("celery:q")
    relay.step(any_scene.now)
    detail = any_scene.detail(run_id)
    assert detail.result == '"the receiver\'s"'
    assert [attempt.worker for attempt in detail.attempts] == ["receiver"]


def test_a_run_that_is_cancelled_while_its_message_is_under_way_stays_cancelled(
    any_scene: Scene, senders: ScriptedSenders
) -> None:
    any_scene.job("report", queue_sink("q"))
    run_id = any_scene.queue("report")
    senders.held.add("celery:q")
    relay = any_scene.relay(senders)
    relay.step(any_scene.now)
    any_scene.app.cancel_run(run_id)
    senders.release("celery:q")
    any_scene.rest(relay)
    assert any_scene.run(run_id).state is RunState.CANCELLED
    assert (any_scene.deliveries(), any_scene.open(run_id)) == ([], None)


def test_what_a_dead_relay_had_in_hand_is_sent_again_and_opened_once(any_scene: Scene) -> None:
    """Killed between sending and settling: the message is out, and nobody knows."""
    any_scene.job("report", queue_sink("q"))
    run_id = any_scene.queue("report")
    dead, other = ScriptedSenders(), ScriptedSenders()
    dead.held.add("celery:q")
    any_scene.relay(dead, name="dead").step(any_scene.now)
    relay = any_scene.relay(other, name="other")
    any_scene.rest(relay)
    assert other.sent == []
    lease_end = any_scene.delivery(run_id).next_at
    assert lease_end is not None
    any_scene.clock.set(lease_end)
    any_scene.rest(relay)
    [[first]], [[second]] = dead.batches, other.batches
    assert first.taken.delivery.attempt == second.taken.delivery.attempt == 1
    assert second.taken.delivery.tries == 2
    openings = [any_scene.open(send.taken.run.run_id) for send in (first, second)]
    assert [opened is not None for opened in openings] == [True, False]


def test_a_relay_that_comes_too_late_changes_nothing(any_scene: Scene) -> None:
    any_scene.job("report", queue_sink("q"))
    run_id = any_scene.queue("report")
    late, other = ScriptedSenders(), ScriptedSenders()
    late.held.add("celery:q")
    late.outcomes["celery:q"] = Failed(error="of the late one", is_final=True)
    frozen = any_scene.relay(late, name="frozen")
    frozen.step(any_scene.now)
    any_scene.clock.advance(5 * MINUTE)
    any_scene.rest(any_scene.relay(other, name="other"))
    late.release("celery:q")
    frozen.step(any_scene.now)
    delivery = any_scene.delivery(run_id)
    assert (delivery.state, delivery.tries, delivery.error) == (DeliveryState.SENT, 2, None)


def test_two_relays_send_nothing_twice(any_scene: Scene) -> None:
    any_scene.job("report", queue_sink("q"))
    run_ids = [any_scene.queue("report") for _ in range(6)]
    both = ScriptedSenders()
    relays = [any_scene.relay(both, name=name) for name in ("one", "other")]
    for _ in range(10):
        for relay in relays:
            relay.step(any_scene.now)
    assert sorted(both.sent) == run_ids


def test_a_further_attempt_is_sent_as_a_message_of_its_own(
    any_scene: Scene, senders: ScriptedSenders
) -> None:
    any_scene.job("report", queue_sink("q"))
    run_id = any_scene.queue("report")
    relay = any_scene.relay(senders)
    any_scene.rest(relay)
    opened = any_scene.open(run_id)
    assert opened is not None
    end = AttemptEnd(outcome=AttemptOutcome.FAILED, error="no paper")
    any_scene.store.commit_settlements(
        [
            settle_attempt(
                run_id=run_id,
                attempt=1,
                end=end,
                retry=opened.job.retry,
                cancel_requested=False,
                now=any_scene.now,
            )
        ]
    )
    any_scene.clock.advance(MINUTE)
    any_scene.rest(relay)
    assert [send.taken.delivery.attempt for [send] in senders.batches] == [1, 2]
    [stale] = any_scene.store.commit_openings(
        "late", [AttemptKey(run_id=run_id, attempt=1)], now=any_scene.now
    )
    assert stale is None
    assert any_scene.open(run_id, 2) is not None


def test_a_job_has_no_more_in_hand_than_its_max_running(any_scene: Scene, senders: ScriptedSenders) -> None:
    any_scene.job("report", queue_sink("q"), max_running=2)
    run_ids = [any_scene.queue("report") for _ in range(4)]
    relay = any_scene.relay(senders)
    any_scene.rest(relay)
    assert senders.sent == run_ids[:2]
    opened = any_scene.open(run_ids[0])
    assert opened is not None
    any_scene.rest(relay)
    assert senders.sent == run_ids[:2]
    end = AttemptEnd(outcome=AttemptOutcome.SUCCEEDED)
    any_scene.store.commit_settlements(
        [
            settle_attempt(
                run_id=run_ids[0],
                attempt=1,
                end=end,
                retry=opened.job.retry,
                cancel_requested=False,
                now=any_scene.now,
            )
        ]
    )
    any_scene.rest(relay)
    assert senders.sent == run_ids[:3]
