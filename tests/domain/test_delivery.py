"""A delivery's states, from its first try to its end."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rota.domain.delivery import DeliveryState, failed, first_taken, redriven, sent, taken
from rota.domain.identity import RunId, ScheduleId
from rota.domain.sink import DeliveryPolicy

NINE = datetime(2026, 1, 10, 9, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
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
    after = sent(replace(FIRST, error="refused", failures=3), POLICY, now=NINE + SECOND)
    assert (after.state, after.error, after.failures, after.sends) == (DeliveryState.SENT, None, 0, 1)
    assert (after.sent_at, after.next_at) == (NINE + SECOND, NINE + 61 * SECOND)


def test_a_message_that_nobody_opens_is_sent_again_after_twice_as_long_each_time_up_to_an_hour() -> None:
    delivery, waits = FIRST, []
    for _ in range(9):
        delivery = sent(delivery, POLICY, now=NINE)
        assert delivery.next_at is not None
        waits.append((delivery.next_at - NINE) / timedelta(minutes=1))
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert delivery.sends == 9


@pytest.mark.parametrize("longer", [timedelta(hours=2), timedelta(days=30)])
def test_a_wait_that_begins_longer_than_an_hour_stays_as_it_is(longer: timedelta) -> None:
    delivery = replace(FIRST, sends=1000)
    assert sent(delivery, replace(POLICY, redeliver_after=longer), now=NINE).next_at == NINE + longer


def test_each_take_is_another_try_of_the_same_message() -> None:
    again = taken(FIRST, until=NINE + 90 * SECOND, now=NINE + 60 * SECOND)
    assert (again.state, again.tries, again.first_at) == (DeliveryState.SENDING, 2, NINE)
    assert again.next_at == NINE + 90 * SECOND


def test_a_message_that_was_sent_begins_its_age_anew_when_it_is_sent_again() -> None:
    later = NINE + timedelta(days=2)
    again = taken(sent(FIRST, POLICY, now=NINE), until=later + MINUTE, now=later)
    assert (again.first_at, again.tries) == (later, 2)
    refused = failed(again, POLICY, error="refused", now=later)
    assert (refused.state, refused.next_at) == (DeliveryState.RETRYING, later + 10 * SECOND)
    assert taken(refused, until=later + MINUTE, now=later + SECOND).first_at == later


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


def test_waits_grow_with_failures_in_a_row_and_not_with_tries() -> None:
    delivery = replace(FIRST, tries=50)
    waits = []
    for _ in range(3):
        delivery = failed(delivery, POLICY, error="refused", now=NINE)
        assert delivery.next_at is not None
        waits.append(delivery.next_at - NINE)
    assert waits == [10 * SECOND, 20 * SECOND, 40 * SECOND]
    assert delivery.failures == 3
    redelivered = failed(sent(delivery, POLICY, now=NINE), POLICY, error="refused", now=NINE)
    assert (redelivered.failures, redelivered.next_at) == (1, NINE + 10 * SECOND)


@pytest.mark.parametrize("retry_after", [None, timedelta(seconds=60), timedelta(days=365)])
def test_a_message_whose_next_try_would_come_past_its_age_is_tried_once_more_then(
    retry_after: timedelta | None,
) -> None:
    last_at = NINE + 100 * SECOND
    late = failed(FIRST, POLICY, error="busy", now=NINE + 95 * SECOND, retry_after=retry_after)
    assert (late.state, late.next_at, late.error) == (DeliveryState.RETRYING, last_at, "busy")
    last = taken(late, until=last_at + MINUTE, now=last_at)
    dead = failed(last, POLICY, error="refused", now=last_at, retry_after=retry_after)
    assert (dead.state, dead.next_at, dead.error) == (DeliveryState.DEAD, None, "refused")


def test_a_message_lives_until_a_try_fails_at_its_age() -> None:
    just_before, at_its_age = NINE + 100 * SECOND - timedelta(milliseconds=1), NINE + 100 * SECOND
    assert failed(FIRST, POLICY, error="refused", now=just_before).next_at == at_its_age
    assert failed(FIRST, POLICY, error="refused", now=at_its_age).state is DeliveryState.DEAD


def test_a_message_that_can_never_be_sent_is_dead_at_once() -> None:
    assert failed(FIRST, POLICY, error="too large", now=NINE, is_final=True).state is DeliveryState.DEAD


def test_a_dead_message_that_is_redriven_begins_anew_and_keeps_its_tries() -> None:
    tried = replace(FIRST, tries=9, failures=8, sends=4)
    dead = failed(tried, POLICY, error="too large", now=NINE, is_final=True)
    assert (dead.state, dead.failures) == (DeliveryState.DEAD, 9)
    later = NINE + timedelta(days=3)
    again = redriven(dead, now=later)
    assert (again.state, again.next_at, again.first_at) == (DeliveryState.RETRYING, later, later)
    assert (again.tries, again.failures, again.sends) == (9, 0, 0)
