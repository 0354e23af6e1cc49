"""Slots and breakers of destinations, by counts and told instants alone."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from rota.delivery.destinations import FAILURES_MAX, OPEN_MAX, OPEN_MIN, Destinations
from rota.delivery.outcome import Says
from rota.domain.identity import RunId
from rota.store.port import TakenDelivery, Wanted
from tests.delivery.scene import MINUTE, SECOND, START, STEADY, Scene, queue_sink


@pytest.fixture(scope="module")
def message() -> TakenDelivery:
    """Any one, at its first try."""
    scene = Scene()
    scene.job("report", queue_sink("q"), STEADY)
    scene.queue("report")
    [taken] = scene.store.commit_takes([Wanted(job="report")], now=scene.now, lease=MINUTE, limit=1)
    return taken


class Told:
    """Destinations, and what they are told in a few words."""

    def __init__(self, message: TakenDelivery, under_way_max: int = 100) -> None:
        self.destinations = Destinations(under_way_max)
        self._message = message
        self._runs = 0

    def of_run(self, number: int | None = None, *, tries: int = 1) -> TakenDelivery:
        """A message of that run, or of a further one."""
        self._runs += 1
        run_id = RunId(f"run-{self._runs if number is None else number}")
        delivery = replace(self._message.delivery, run_id=run_id, tries=tries)
        return replace(self._message, delivery=delivery)

    def start(self, name: str = "a", *, count: int = 1, tries: int = 1) -> Sequence[TakenDelivery]:
        taken = [self.of_run(tries=tries) for _ in range(count)]
        self.destinations.start(name, taken)
        return taken

    def end(
        self,
        says: Says,
        name: str = "a",
        *,
        times: int = 1,
        after: timedelta = timedelta(0),
        run: int | None = None,
    ) -> bool:
        """So many messages, one after the other; whether its breaker opened by the last one."""
        opened = False
        for _ in range(times):
            taken = self.of_run(run)
            self.destinations.start(name, [taken])
            opened = self.destinations.end(name, taken, says, now=START + after)
        return opened

    def slots(self, name: str = "a", *, concurrency: int = 3, after: timedelta = timedelta(0)) -> int:
        return self.destinations.room(name, concurrency=concurrency, now=START + after).slots


@pytest.fixture
def told(message: TakenDelivery) -> Told:
    return Told(message)


def test_a_destination_has_as_many_slots_as_its_concurrency(told: Told) -> None:
    assert told.slots() == 3
    [first, _] = told.start(count=2)
    assert (told.slots(), told.slots("b")) == (1, 3)
    told.destinations.end("a", first, Says.REACHED, now=START)
    assert told.slots() == 2


@pytest.mark.parametrize("says", [Says.FAILED, Says.AWAY])
def test_a_breaker_opens_after_failures_in_a_row(told: Told, says: Says) -> None:
    assert not told.end(says, times=FAILURES_MAX - 1)
    assert told.slots() == 3
    assert told.end(says)
    assert (told.slots(), told.slots("b")) == (0, 3)
    assert told.destinations.reopens_at(START) == START + OPEN_MIN


def test_a_success_between_failures_begins_the_count_anew(told: Told) -> None:
    told.end(Says.FAILED, times=FAILURES_MAX - 1)
    told.end(Says.REACHED)
    assert not told.end(Says.FAILED, times=FAILURES_MAX - 1)


def test_one_message_that_fails_again_and_again_opens_nothing(told: Told) -> None:
    assert not told.end(Says.FAILED, times=FAILURES_MAX * 3, run=7)
    assert told.slots() == 3


def test_a_try_that_says_nothing_neither_opens_a_breaker_nor_closes_one(told: Told) -> None:
    told.end(Says.NOTHING, times=FAILURES_MAX * 2)
    assert told.slots() == 3
    told.end(Says.FAILED, times=FAILURES_MAX - 1)
    told.end(Says.NOTHING)
    assert told.end(Says.FAILED)
    told.end(Says.NOTHING)
    assert (told.slots(), told.slots(after=OPEN_MIN)) == (0, 1)
    told.end(Says.NOTHING, after=OPEN_MIN)
    assert told.slots(after=OPEN_MIN) == 1


def test_an_open_breaker_lets_one_through_when_its_time_is_over(told: Told) -> None:
    told.end(Says.FAILED, times=FAILURES_MAX)
    assert told.slots(after=OPEN_MIN - timedelta(milliseconds=1)) == 0
    room = told.destinations.room("a", concurrency=3, now=START + OPEN_MIN)
    assert (room.slots, room.is_probe) == (1, True)
    told.start()
    assert told.slots(after=OPEN_MIN) == 0


def test_one_that_gets_through_closes_the_breaker(told: Told) -> None:
    told.end(Says.FAILED, times=FAILURES_MAX)
    told.end(Says.REACHED, after=OPEN_MIN)
    assert told.slots(after=OPEN_MIN) == 3
    assert told.destinations.reopens_at(START) is None


def lengths(told: Told, says: Says, *, count: int) -> list[timedelta]:
    """How long it is open each time, as each probe says the same."""
    at, found = timedelta(0), []
    for _ in range(count):
        reopens = told.destinations.reopens_at(START + at)
        assert reopens is not None
        found.append(reopens - START - at)
        at = reopens - START
        assert told.end(says, after=at)
    return found


def test_of_one_that_is_away_each_failure_doubles_the_time_up_to_its_longest(told: Told) -> None:
    told.end(Says.AWAY, times=FAILURES_MAX)
    found = lengths(told, Says.AWAY, count=9)
    assert found == [SECOND * seconds for seconds in (1, 2, 4, 8, 16, 32, 60, 60, 60)]
    assert found[-1] == OPEN_MAX


def test_one_that_is_there_and_fails_is_asked_every_second(told: Told) -> None:
    """It may be the messages: whatever is behind them is not to wait for minutes."""
    told.end(Says.FAILED, times=FAILURES_MAX)
    assert lengths(told, Says.FAILED, count=5) == [OPEN_MIN] * 5


def test_one_that_comes_back_and_fails_is_asked_every_second_again(told: Told) -> None:
    told.end(Says.AWAY, times=FAILURES_MAX)
    told.end(Says.AWAY, after=SECOND)
    told.end(Says.FAILED, after=3 * SECOND)
    assert told.destinations.reopens_at(START + 3 * SECOND) == START + 3 * SECOND + OPEN_MIN


def test_a_breaker_that_closed_opens_for_a_short_time_again(told: Told) -> None:
    told.end(Says.AWAY, times=FAILURES_MAX)
    told.end(Says.AWAY, after=OPEN_MIN)
    told.end(Says.REACHED, after=10 * SECOND)
    told.end(Says.AWAY, times=FAILURES_MAX, after=20 * SECOND)
    assert told.destinations.reopens_at(START + 20 * SECOND) == START + 20 * SECOND + OPEN_MIN


def test_failures_of_what_was_under_way_when_it_opened_do_not_lengthen_its_time(told: Told) -> None:
    taken = told.start(count=FAILURES_MAX + 3)
    opened = [told.destinations.end("a", each, Says.AWAY, now=START) for each in taken]
    assert opened.count(True) == 1
    assert told.destinations.reopens_at(START) == START + OPEN_MIN


def test_a_clock_that_goes_back_does_not_keep_a_breaker_open(told: Told) -> None:
    told.end(Says.AWAY, times=FAILURES_MAX)
    assert told.slots(after=timedelta(hours=-1)) == 1


def test_one_destination_leaves_the_reserve_to_others_however_often_it_takes(message: TakenDelivery) -> None:
    told = Told(message, under_way_max=100)
    takes = []
    while slots := told.slots("slow", concurrency=1_000):
        takes.append(slots)
        told.start("slow", count=slots)
    assert takes[0] == 45
    assert told.destinations.under_way == 90
    assert told.slots("other", concurrency=10) == 1


def test_of_the_reserve_each_destination_that_has_nothing_under_way_gets_one(message: TakenDelivery) -> None:
    told = Told(message, under_way_max=100)
    told.start("slow", count=90)
    for number in range(10):
        assert told.slots(f"q{number}") == 1
        told.start(f"q{number}")
        assert told.slots(f"q{number}") == 0
    assert (told.slots("late"), told.destinations.under_way) == (0, 100)


def test_a_take_is_bounded_by_half_of_the_room_that_is_left(message: TakenDelivery) -> None:
    destinations = Told(message, under_way_max=100).destinations
    assert [destinations.bound(taken) for taken in (0, 45, 68, 89, 90, 95, 99, 100)] == [
        45,
        23,
        11,
        1,
        5,
        3,
        1,
        0,
    ]


def test_what_is_sent_again_has_half_of_the_slots(told: Told) -> None:
    assert not told.destinations.room("a", concurrency=10, now=START).is_mixed
    [first, *_] = told.start(count=3, tries=2)
    room = told.destinations.room("a", concurrency=10, now=START)
    assert (room.slots, room.retries, room.is_mixed) == (7, 2, True)
    told.start(count=4)
    told.destinations.end("a", first, Says.FAILED, now=START)
    room = told.destinations.room("a", concurrency=10, now=START)
    assert (room.slots, room.retries) == (4, 3)


def test_nothing_is_remembered_of_a_destination_where_all_went_well(told: Told) -> None:
    for number in range(1_000):
        told.end(Says.REACHED, f"host-{number}")
    assert told.destinations._destinations == {}
    assert told.destinations.under_way == 0
