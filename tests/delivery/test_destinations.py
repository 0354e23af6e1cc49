"""Slots and breakers of destinations, by counts and told instants alone."""

from datetime import timedelta

import pytest

from rota.delivery.destinations import FAILURES_MAX, OPEN_MAX, OPEN_MIN, Destinations
from tests.delivery.scene import SECOND, START


def free(destinations: Destinations, name: str = "a", *, after: timedelta = timedelta(0)) -> int:
    return destinations.free(name, concurrency=3, now=START + after)


def fail(
    destinations: Destinations, name: str = "a", *, times: int = 1, after: timedelta = timedelta(0)
) -> bool:
    """Whether its breaker opened by the last one."""
    opened = False
    for _ in range(times):
        destinations.start(name)
        opened = destinations.end(name, has_failed=True, now=START + after)
    return opened


@pytest.fixture
def destinations() -> Destinations:
    return Destinations(under_way_max=100)


def test_a_destination_has_as_many_slots_as_its_concurrency(destinations: Destinations) -> None:
    assert free(destinations) == 3
    destinations.start("a")
    destinations.start("a")
    assert (free(destinations), free(destinations, "b")) == (1, 3)
    destinations.end("a", has_failed=False, now=START)
    assert free(destinations) == 2


def test_a_breaker_opens_after_failures_in_a_row(destinations: Destinations) -> None:
    assert not fail(destinations, times=FAILURES_MAX - 1)
    assert free(destinations) == 3
    assert fail(destinations)
    assert (free(destinations), free(destinations, "b")) == (0, 3)
    assert destinations.reopens_at(START) == START + OPEN_MIN


def test_a_success_between_failures_begins_the_count_anew(destinations: Destinations) -> None:
    fail(destinations, times=FAILURES_MAX - 1)
    destinations.start("a")
    destinations.end("a", has_failed=False, now=START)
    assert not fail(destinations, times=FAILURES_MAX - 1)


def test_an_open_breaker_lets_one_through_when_its_time_is_over(destinations: Destinations) -> None:
    fail(destinations, times=FAILURES_MAX)
    assert free(destinations, after=OPEN_MIN - timedelta(milliseconds=1)) == 0
    assert free(destinations, after=OPEN_MIN) == 1
    destinations.start("a")
    assert free(destinations, after=OPEN_MIN) == 0


def test_one_that_gets_through_closes_the_breaker(destinations: Destinations) -> None:
    fail(destinations, times=FAILURES_MAX)
    destinations.start("a")
    destinations.end("a", has_failed=False, now=START + OPEN_MIN)
    assert free(destinations, after=OPEN_MIN) == 3
    assert destinations.reopens_at(START) is None


def test_each_one_that_fails_then_doubles_the_time_up_to_its_longest(destinations: Destinations) -> None:
    fail(destinations, times=FAILURES_MAX)
    at, lengths = timedelta(0), []
    for _ in range(9):
        reopens = destinations.reopens_at(START + at)
        assert reopens is not None
        lengths.append(reopens - START - at)
        at = reopens - START
        assert fail(destinations, after=at)
    assert lengths == [SECOND * seconds for seconds in (1, 2, 4, 8, 16, 32, 60, 60, 60)]
    assert lengths[-1] == OPEN_MAX


def test_a_breaker_that_closed_opens_for_a_short_time_again(destinations: Destinations) -> None:
    fail(destinations, times=FAILURES_MAX)
    fail(destinations, after=OPEN_MIN)
    destinations.start("a")
    destinations.end("a", has_failed=False, now=START + 10 * SECOND)
    fail(destinations, times=FAILURES_MAX, after=20 * SECOND)
    assert destinations.reopens_at(START + 20 * SECOND) == START + 20 * SECOND + OPEN_MIN


def test_failures_of_what_was_under_way_when_it_opened_do_not_lengthen_its_time(
    destinations: Destinations,
) -> None:
    for _ in range(FAILURES_MAX + 3):
        destinations.start("a")
    opened = [destinations.end("a", has_failed=True, now=START) for _ in range(FAILURES_MAX + 3)]
    assert opened.count(True) == 1
    assert destinations.reopens_at(START) == START + OPEN_MIN


def test_a_clock_that_goes_back_does_not_keep_a_breaker_open(destinations: Destinations) -> None:
    fail(destinations, times=FAILURES_MAX)
    assert free(destinations, after=timedelta(hours=-1)) == 1


def test_no_destination_takes_more_than_half_of_what_is_left() -> None:
    destinations = Destinations(under_way_max=8)
    taken = []
    for name in "abcde":
        slots = destinations.free(name, concurrency=1_000, now=START)
        taken.append(slots)
        for _ in range(slots):
            destinations.start(name)
    assert taken == [4, 2, 1, 1, 0]
    assert destinations.room == 0


def test_nothing_is_remembered_of_a_destination_where_all_went_well(destinations: Destinations) -> None:
    for number in range(1_000):
        destinations.start(f"host-{number}")
        destinations.end(f"host-{number}", has_failed=False, now=START)
    assert destinations._destinations == {}
    assert destinations.under_way == 0
