"""Seeded lives of dispatchers that join, leave, freeze and die, on any store, with clocks that differ a little.

At no moment do two hold the same epoch. Whenever nobody came, left or failed for as long as a lease and a few seconds,
every partition is held; and once all is quiet everybody has its exact share, and nothing changes hands any more.
"""

import random
from collections import Counter
from datetime import datetime, timedelta

import pytest

from rota.dispatch.leases import LOOK, LOOK_WHILE_SHORT, Leases, share_of
from rota.store.port import Store
from rota.testing.quiet import only_from
from tests.conftest import OpenStore
from tests.dispatch.conftest import LEASE, START

SECOND = timedelta(seconds=1)
COUNT = 7
DISPATCHERS_MAX = 5
SECONDS = {"memory": 300, "sqlite": 150, "postgresql": 150}
"""How long a life is: a step of a real database takes longer."""
ERROR_MAX = timedelta(seconds=1)
"""By so much each clock is wrong."""
SETTLES_WITHIN = LOOK + LOOK_WHILE_SHORT + 2 * ERROR_MAX + 2 * SECOND
"""One look of those who hold too much, one of those who hold too little, and what the clocks and the seconds of the
test add."""


class Life:
    """Dispatchers, as far as their leases go, on one store."""

    def __init__(self, store: Store, seed: int, *, seconds: int) -> None:
        store.ensure_partitions(COUNT)
        self.random = random.Random(seed)
        self.store = store
        self.seconds = seconds
        self.now = START
        self.errors: dict[str, timedelta] = {}
        self.awake: dict[str, Leases] = {}
        self.frozen: dict[str, tuple[Leases, timedelta]] = {}
        """With the instant at which each wakes, since the start."""
        self.disturbed_at = START
        self.holders: dict[tuple[int, int], str] = {}
        """Who has ever held a partition under an epoch."""
        self.held_at = dict.fromkeys(range(COUNT), START)
        self.happened: Counter[str] = Counter()

    def live(self) -> None:
        """A second is a step of everybody who is awake; in some of them something happens."""
        for _ in range(self.seconds):
            if self.random.random() < 0.12:
                happens = self.random.choice([self.join, self.join, self.leave, self.freeze, self.die])
                if happens():
                    self.happened[happens.__name__] += 1
                    self.disturbed_at = self.now
            self.pass_second()

    def join(self) -> bool:
        if len(self.awake) + len(self.frozen) >= DISPATCHERS_MAX:
            return False
        # Names are no order of coming.
        owner = f"{self.random.randrange(10**6):06d}"
        self.errors[owner] = ERROR_MAX * self.random.uniform(-1, 1)
        self.awake[owner] = Leases(self.store, owner=owner, ttl=LEASE)
        return True

    def leave(self) -> bool:
        if not self.awake:
            return False
        owner, leases = self.awake.popitem()
        leases.release(self.time_of(owner))
        assert leases.held(self.time_of(owner)) == {}
        return True

    def freeze(self) -> bool:
        """With what it believes; when it wakes it goes on as if nothing had been."""
        if not self.awake:
            return False
        owner = self.random.choice(list(self.awake))
        wakes_at = self.now - START + self.random.choice([2, 8, 20, 60]) * SECOND
        self.frozen[owner] = (self.awake.pop(owner), wakes_at)
        return True

    def die(self) -> bool:
        if not self.awake:
            return False
        del self.awake[self.random.choice(list(self.awake))]
        return True

    def wake_up(self) -> None:
        for owner, (leases, wakes_at) in list(self.frozen.items()):
            if self.now - START >= wakes_at:
                del self.frozen[owner]
                self.awake[owner] = leases
                self.disturbed_at = self.now

    def pass_second(self) -> None:
        self.now += SECOND
        self.wake_up()
        for owner, leases in self.random.sample(list(self.awake.items()), len(self.awake)):
            now = self.time_of(owner)
            if leases.is_renewal_due(now):
                leases.renew(now)
            elif leases.is_look_due(now):
                leases.look(now)
            for fence in leases.held(now).values():
                holder = self.holders.setdefault((fence.partition, fence.epoch), owner)
                assert holder == owner, f"{holder} and {owner} hold {fence}"
        self.look_for_partitions_left_alone()

    def look_for_partitions_left_alone(self) -> None:
        served = {
            partition
            for owner, leases in self.awake.items()
            for partition in leases.held(self.time_of(owner))
        }
        self.held_at |= dict.fromkeys(served, self.now)
        if self.awake:
            for partition, held_at in self.held_at.items():
                alone_for = self.now - max(held_at, self.disturbed_at)
                assert alone_for <= LEASE + SETTLES_WITHIN, f"{partition} was left alone for {alone_for}"
        else:
            self.disturbed_at = self.now

    def come_to_rest(self) -> None:
        """Nothing happens any more; those who were frozen are awake again."""
        self.frozen = {owner: (leases, timedelta(0)) for owner, (leases, _) in self.frozen.items()}
        if not self.awake and not self.frozen:
            self.join()
        for _ in range((LEASE + SETTLES_WITHIN) // SECOND):
            self.pass_second()

    def time_of(self, owner: str) -> datetime:
        return self.now + self.errors[owner]

    def check_rest(self) -> None:
        present = sorted(self.awake)
        assert self.store.list_present(now=self.now) == present
        states = self.store.list_partitions()
        shares = {owner: share_of(owner, present, count=COUNT) for owner in present}
        assert Counter(state.owner for state in states) == Counter(shares)
        for owner, leases in self.awake.items():
            held = leases.held(self.time_of(owner))
            assert {(state.partition, state.epoch) for state in states if state.owner == owner} == {
                (fence.partition, fence.epoch) for fence in held.values()
            }
        for _ in range(2 * LEASE // SECOND):
            self.pass_second()
        after = self.store.list_partitions()
        assert [(state.owner, state.epoch) for state in after] == [
            (state.owner, state.epoch) for state in states
        ]


LIVES = [
    *(("memory", seed) for seed in range(30)),
    *(("sqlite", seed) for seed in range(2)),
    *(pytest.param("postgresql", seed, marks=pytest.mark.slow) for seed in range(2)),
]


@pytest.mark.parametrize(("kind", "seed"), LIVES)
def test_whoever_comes_and_goes_partitions_are_held_and_shared_exactly(
    open_store: OpenStore, kind: str, seed: int
) -> None:
    life = Life(open_store(kind), seed, seconds=SECONDS[kind])
    with only_from("error"):
        life.join()
        life.live()
        life.come_to_rest()
        life.check_rest()


def test_everything_happens_in_these_lives(open_store: OpenStore) -> None:
    happened: Counter[str] = Counter()
    with only_from("error"):
        for seed in range(5):
            life = Life(open_store("memory"), seed, seconds=SECONDS["memory"])
            life.live()
            happened += life.happened
    assert set(happened) == {"join", "leave", "freeze", "die"}
