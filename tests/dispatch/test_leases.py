"""How dispatchers share the partitions: exact shares, in seconds, without taking anything from anybody."""

import threading
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from structlog.testing import capture_logs

from rota.config import Settings
from rota.dispatch.leases import LOOK, LOOK_WHILE_SHORT, Leases, share_of
from rota.store.memory import MemoryStore
from rota.store.port import Fence, Store, StoreUnavailable
from rota.testing.clock import ManualClock
from rota.wiring import open_context
from tests.dispatch.conftest import LEASE, START, dispatcher_on

SECOND = timedelta(seconds=1)
COUNT = 10


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    store.ensure_partitions(COUNT)
    return store


def leases_of(store: Store, owner: str, *, ttl: timedelta = LEASE) -> Leases:
    return Leases(store, owner=owner, ttl=ttl)


def pass_seconds(first: int, until: int, *all_leases: Leases) -> None:
    """Every one steps in every second of `[first, until)` after the start."""
    for second in range(first, until):
        for leases in all_leases:
            step(leases, second)


def step(leases: Leases, second: float) -> None:
    """What a dispatcher's step does for its leases."""
    now = START + second * SECOND
    if leases.is_renewal_due(now):
        leases.renew(now)
    elif leases.is_look_due(now):
        leases.look(now)


def shares(store: Store) -> Counter[str | None]:
    return Counter(state.owner for state in store.list_partitions())


@pytest.mark.parametrize(
    ("count", "present", "expected"),
    [(10, "a", [10]), (10, "abc", [4, 3, 3]), (64, "abcde", [13, 13, 13, 13, 12]), (2, "abc", [1, 1, 0])],
)
def test_shares_are_even_and_exact(count: int, present: str, expected: list[int]) -> None:
    owners = list(present)
    assert [share_of(owner, owners[::-1], count=count) for owner in owners] == expected


def test_the_first_dispatcher_takes_all_at_once(store: MemoryStore) -> None:
    leases = leases_of(store, "a")
    step(leases, 0)
    assert len(leases.held(START)) == COUNT


def test_a_newcomer_has_its_share_within_seconds_and_takes_nothing_from_anybody(store: MemoryStore) -> None:
    a, b, c = (leases_of(store, owner) for owner in "abc")
    pass_seconds(0, 1, a)
    pass_seconds(1, 5, a, b)
    assert shares(store) == {"a": 5, "b": 5}
    pass_seconds(5, 9, a, b, c)
    assert shares(store) == {"a": 4, "b": 3, "c": 3}
    stayed = [state.epoch for state in store.list_partitions() if state.owner == "a"]
    assert stayed == [1, 1, 1, 1], "what one keeps is not taken anew"
    for leases in (a, b, c):
        assert len(leases.held(START + 9 * SECOND)) == shares(store)[leases.owner]


def test_the_share_of_one_that_stops_is_taken_within_seconds(store: MemoryStore) -> None:
    a, b = leases_of(store, "a"), leases_of(store, "b")
    pass_seconds(0, 5, a, b)
    b.release(START + 5 * SECOND)
    assert b.held(START + 5 * SECOND) == {}
    assert shares(store) == {"a": 5, None: 5}
    assert store.list_present(now=START + 5 * SECOND) == ["a"]
    pass_seconds(5, 8, a)
    assert shares(store) == {"a": COUNT}


def test_the_share_of_one_that_died_is_taken_when_its_lease_has_ended(store: MemoryStore) -> None:
    a, b = leases_of(store, "a"), leases_of(store, "b")
    pass_seconds(0, 6, a, b)
    renewed = max(
        state.expires_at for state in store.list_partitions() if state.owner == "b" and state.expires_at
    )
    ends = int((renewed - START) / SECOND)
    pass_seconds(6, ends, a)
    assert shares(store) == {"a": 5, "b": 5}
    pass_seconds(ends, ends + 3, a)
    assert shares(store) == {"a": COUNT}


def test_one_that_holds_its_share_takes_no_more_though_there_is_more(store: MemoryStore) -> None:
    a = leases_of(store, "a")
    store.commit_presence("silent", now=START, ttl=LEASE)
    pass_seconds(0, 5, a)
    assert shares(store) == {"a": 5, None: 5}


def test_where_there_are_fewer_partitions_than_dispatchers_some_wait(store: MemoryStore) -> None:
    everybody = [leases_of(store, f"d{number:02d}") for number in range(12)]
    pass_seconds(0, 8, *everybody)
    assert sorted(len(leases.held(START + 8 * SECOND)) for leases in everybody) == [0, 0, *[1] * 10]
    waiting = everybody[-1]
    assert waiting.wanted_at(START + 8 * SECOND) > START + 8 * SECOND
    everybody[0].release(START + 8 * SECOND)
    pass_seconds(8, 12, *everybody[1:])
    assert shares(store) == {leases.owner: 1 for leases in everybody[1:11]}


@pytest.mark.parametrize("ttl", [LEASE, 600 * SECOND, 1 * SECOND])
def test_looks_come_soon_while_something_is_missing_and_seldom_else(
    store: MemoryStore, ttl: timedelta
) -> None:
    b = leases_of(store, "b", ttl=ttl)
    store.commit_acquisitions("silent", held=[], now=START, ttl=timedelta(minutes=5), limit=1)
    step(b, 0)
    assert b.wanted_at(START) == START + min(LOOK_WHILE_SHORT, ttl / 3)
    store.commit_presence("a", now=START, ttl=timedelta(minutes=5))
    later = b.wanted_at(START)
    b.look(later)
    assert shares(store)["b"] == 5
    assert b.wanted_at(later) == min(later + min(LOOK, ttl / 3), START + ttl / 3)


def test_a_look_that_finds_nothing_new_writes_nothing(store: MemoryStore) -> None:
    leases = leases_of(store, "a")
    step(leases, 0)
    before = store.list_partitions()
    store._presence["a"] -= timedelta(milliseconds=1)
    pass_seconds(1, 5, leases)
    assert store.list_partitions() == before
    assert store._presence["a"] == START + LEASE - timedelta(milliseconds=1)


def test_one_that_was_forgotten_under_a_clock_ahead_announces_itself_again(store: MemoryStore) -> None:
    a, b = leases_of(store, "a"), leases_of(store, "b")
    pass_seconds(0, 5, a, b)
    # Another machine's clock is so far ahead that it takes them for dead.
    store.commit_presence("ahead", now=START + 25 * SECOND, ttl=LEASE)
    store.commit_absence("ahead")
    assert store.list_present(now=START + 5 * SECOND) == []
    pass_seconds(5, 8, a, b)
    assert store.list_present(now=START + 8 * SECOND) == ["a", "b"]
    assert shares(store) == {"a": 5, "b": 5}
    assert {state.epoch for state in store.list_partitions()} <= {1, 2}


def test_clocks_that_differ_a_little_leave_the_shares_alone(store: MemoryStore) -> None:
    a, b = leases_of(store, "a"), leases_of(store, "b")
    for second in range(60):
        step(a, second)
        step(b, second - 4)
        if second == 10:
            before = store.list_partitions()
    assert shares(store) == {"a": 5, "b": 5}
    assert [state.epoch for state in store.list_partitions()] == [state.epoch for state in before]


class Breaking(MemoryStore):
    """A store that fails when partitions are to be taken, once: before it takes them, or before it tells of it."""

    def __init__(self, *, takes_first: bool) -> None:
        super().__init__()
        self._takes_first = takes_first
        self._failures = 1

    def commit_acquisitions(
        self, owner: str, *, held: Sequence[Fence], now: datetime, ttl: timedelta, limit: int
    ) -> list[Fence]:
        fails, self._failures = self._failures > 0, 0
        if fails and not self._takes_first:
            raise StoreUnavailable("The connection is lost.")
        taken = super().commit_acquisitions(owner, held=held, now=now, ttl=ttl, limit=limit)
        if fails:
            raise StoreUnavailable("The connection is lost.")
        return taken


@pytest.mark.parametrize("takes_first", [False, True])
def test_a_rebalance_that_broke_off_is_begun_again_in_the_next_step(*, takes_first: bool) -> None:
    """Also where the partitions were taken, and only the answer was lost."""
    store = Breaking(takes_first=takes_first)
    store.ensure_partitions(COUNT)
    leases = leases_of(store, "a")
    with pytest.raises(StoreUnavailable):
        step(leases, 0)
    assert leases.is_look_due(START)
    step(leases, 0)
    assert len(leases.held(START)) == COUNT


def test_a_dispatcher_wakes_for_its_leases_however_seldom_it_polls() -> None:
    clock = ManualClock(START)
    context = open_context(Settings(partitions=4), store=MemoryStore(), clock=clock)
    dispatcher = dispatcher_on(context, poll=timedelta(seconds=60))
    for _ in range(40):
        report = dispatcher.step(clock.now())
        assert clock.now() < report.wake_at <= clock.now() + LOOK
        assert len(dispatcher._leases.held(clock.now())) == 4
        clock.set(report.wake_at)


def test_one_that_stops_says_what_it_gave_back_and_that_it_ended(store: MemoryStore) -> None:
    context = open_context(Settings(partitions=COUNT), store=store, clock=ManualClock(START))
    dispatcher = dispatcher_on(context)
    dispatcher.step(START)
    stop = threading.Event()
    stop.set()
    with capture_logs() as lines:
        dispatcher.run(stop, threading.Event())
    told = [{name: line.get(name) for name in ("event", "partitions", "owner")} for line in lines]
    assert told == [
        {"event": "lease.release", "partitions": COUNT, "owner": "a"},
        {"event": "dispatch.stop", "partitions": None, "owner": "a"},
    ]


def test_one_that_holds_nothing_gives_nothing_back(store: MemoryStore) -> None:
    with capture_logs() as lines:
        leases_of(store, "a").release(START)
    assert lines == []
