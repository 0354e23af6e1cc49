"""A delivery's states, from its first try to its end."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from rota.domain.delivery import DeliveryState, failed, first_taken, redriven, sent, taken
from rota.domain.identity import RunId, ScheduleId
from rota.domain.sink import DeliveryPolicy

NINE = datetime(2026, 1, 10, 9, tzinfo=UTC)
SECOND = timedelta(seconds=1)
POLICY = DeliveryPolicy(
    initial_delay=10 * SECOND, factor=2, jitter=0, max_age=100 * SECOND, redeliver_after=60 * SECOND
)
FIRST = first_taken(
    run_id=RunId("a.1.20260110T090000Z"),
    attempt=1,
    schedule_id=ScheduleId("a"),
    job="report",
    until=NINE + 30 * SECOND,
    now=NINE,
)


def test_a_delivery_begins_in_the_hands_of_the_relay_that_took_the_intent() -> None:
    assert (FIRST.state, FIRST.tries, FIRST.first_at) == (DeliveryState.SENDING, 1, NINE)
    assert FIRST.next_at == NINE + 30 * SECOND


def test_a_message_that_was_sent_waits_to_be_opened() -> None:
    after = sent(replace(FIRST, error="refused"), POLICY, now=NINE + SECOND)
    assert (after.state, after.error) == (DeliveryState.SENT, None)
    assert (after.sent_at, after.next_at) == (NINE + SECOND, NINE + 61 * SECOND)


def test_each_take_is_another_try_of_the_same_message() -> None:
    again = taken(sent(FIRST, POLICY, now=NINE), until=NINE + 90 * SECOND)
    assert (again.state, again.tries, again.first_at) == (DeliveryState.SENDING, 2, NINE)
    assert again.next_at == NINE + 90 * SECOND


def test_a_try_that_failed_is_followed_by_another() -> None:
    after = failed(FIRST, POLICY, error="refused", now=NINE)
    assert (after.state, after.error, after.next_at) == (
        DeliveryState.RETRYING,
        "refused",
        NINE + 10 * SECOND,
    )


def test_a_sink_may_ask_for_a_longer_wait_and_not_for_a_shorter_one() -> None:
    longer = failed(FIRST, POLICY, error="busy", now=NINE, retry_after=40 * SECOND)
    shorter = failed(FIRST, POLICY, error="busy", now=NINE, retry_after=SECOND)
    assert (longer.next_at, shorter.next_at) == (NINE + 40 * SECOND, NINE + 10 * SECOND)


def test_a_message_whose_next_try_would_come_past_its_age_is_dead() -> None:
    within = failed(FIRST, POLICY, error="refused", now=NINE + 90 * SECOND)
    past = failed(FIRST, POLICY, error="refused", now=NINE + 91 * SECOND)
    assert (within.state, within.next_at) == (DeliveryState.RETRYING, NINE + 100 * SECOND)
    assert (past.state, past.next_at, past.error) == (DeliveryState.DEAD, None, "refused")


def test_a_message_that_can_never_be_sent_is_dead_at_once() -> None:
    assert failed(FIRST, POLICY, error="too large", now=NINE, is_final=True).state is DeliveryState.DEAD


def test_a_dead_message_that_is_redriven_begins_its_age_anew_and_keeps_its_tries() -> None:
    dead = failed(FIRST, POLICY, error="too large", now=NINE, is_final=True)
    later = NINE + timedelta(days=3)
    again = redriven(dead, now=later)
    assert (again.state, again.next_at, again.first_at) == (DeliveryState.RETRYING, later, later)
    assert again.tries == dead.tries
