"""The dispatch protocol: partitions, who holds them, and under which epoch (I6)."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from rota.store.port import LEASE_MAX, AdmissionOutcome, Fence, PartitionState, Store
from tests.contract.builders import HOUR, MILLISECOND, MINUTE, NINE, SECOND, admission, new_schedule
from tests.contract.racing import CALLERS, all_at_once
from tests.contract.steps import admit, create

TTL = timedelta(seconds=15)


def acquire(
    store: Store, owner: str, *, held: Sequence[Fence] = (), now: datetime = NINE, limit: int = 100
) -> list[Fence]:
    return store.commit_acquisitions(owner, held=held, now=now, ttl=TTL, limit=limit)


def only_partition(store: Store) -> PartitionState:
    [state] = store.list_partitions()
    return state


def test_new_partitions_are_free_and_have_no_checkpoint(store: Store) -> None:
    assert store.list_partitions() == []
    assert store.ensure_partitions(3) == 3
    assert store.list_partitions() == [
        PartitionState(partition=partition, owner=None, epoch=0, expires_at=None, checkpoint=None)
        for partition in range(3)
    ]


@pytest.mark.parametrize("count", [1, 3, 8])
def test_the_count_of_partitions_is_fixed_once_made(store: Store, count: int) -> None:
    store.ensure_partitions(3)
    acquire(store, "node-a")
    before = store.list_partitions()
    assert store.ensure_partitions(count) == 3
    assert store.list_partitions() == before


def test_an_acquisition_takes_free_partitions_up_to_its_limit(store: Store) -> None:
    store.ensure_partitions(4)
    fences = acquire(store, "node-a", limit=3)
    assert len({fence.partition for fence in fences}) == 3
    assert {fence.epoch for fence in fences} == {1}
    held = {state.partition: state for state in store.list_partitions() if state.owner == "node-a"}
    assert set(held) == {fence.partition for fence in fences}
    assert {(state.epoch, state.expires_at) for state in held.values()} == {(1, NINE + TTL)}


def test_two_owners_never_hold_the_same_partition(store: Store) -> None:
    store.ensure_partitions(4)
    first, second = acquire(store, "node-a", limit=3), acquire(store, "node-b", limit=3)
    assert len(second) == 1
    assert {fence.partition for fence in first}.isdisjoint(fence.partition for fence in second)
    assert acquire(store, "node-c") == []


def test_there_is_nothing_to_acquire_where_there_are_no_partitions(store: Store) -> None:
    assert acquire(store, "node-a") == []


def test_a_lease_that_has_not_run_out_is_not_taken(store: Store) -> None:
    store.ensure_partitions(1)
    acquire(store, "node-a")
    assert acquire(store, "node-b", now=NINE + TTL - MILLISECOND) == []
    assert only_partition(store).owner == "node-a"


def test_a_lease_that_has_run_out_is_taken_at_the_next_epoch(store: Store) -> None:
    store.ensure_partitions(1)
    acquire(store, "node-a")
    assert acquire(store, "node-b", now=NINE + TTL) == [Fence(partition=0, epoch=2)]
    assert only_partition(store) == PartitionState(
        partition=0, owner="node-b", epoch=2, expires_at=NINE + 2 * TTL, checkpoint=None
    )


def test_a_lease_that_a_clock_ahead_has_written_is_taken_at_the_next_epoch(store: Store) -> None:
    """I13: no lease is longer than `LEASE_MAX`, and the epoch makes it safe to take one that only seems so."""
    store.ensure_partitions(1)
    [ahead] = acquire(store, "node-a", now=NINE + HOUR, limit=1)
    last = NINE + HOUR + TTL - LEASE_MAX
    assert acquire(store, "node-b", now=last) == []
    taken = acquire(store, "node-b", now=last - MILLISECOND)
    assert taken == [replace(ahead, epoch=ahead.epoch + 1)]
    assert only_partition(store).expires_at == last - MILLISECOND + TTL
    assert store.commit_renewals("node-a", [ahead], now=NINE + HOUR, ttl=TTL) == []


def test_an_owner_that_takes_its_own_lapsed_lease_gets_a_new_epoch(store: Store) -> None:
    store.ensure_partitions(1)
    acquire(store, "node-a")
    assert acquire(store, "node-a", now=NINE + MINUTE) == [Fence(partition=0, epoch=2)]


def test_an_owner_does_not_take_again_what_it_holds(store: Store) -> None:
    store.ensure_partitions(1)
    fences = acquire(store, "node-a")
    assert acquire(store, "node-a", held=fences, now=NINE + MILLISECOND) == []
    assert only_partition(store).epoch == 1


def test_an_owner_takes_again_what_it_does_not_know_that_it_holds(store: Store) -> None:
    """The answer to its acquisition was lost: nobody else would use what it took before the lease has ended."""
    store.ensure_partitions(4)
    known, unknown = acquire(store, "node-a", limit=2)
    [others] = acquire(store, "node-b", limit=1)
    later = NINE + MILLISECOND
    assert acquire(store, "node-a", held=[known], now=later, limit=1) == [replace(unknown, epoch=2)]
    assert store.list_partitions()[unknown.partition].expires_at == later + TTL
    assert acquire(store, "node-a", held=[known, replace(unknown, epoch=2)], limit=9) == [
        Fence(partition=3, epoch=1)
    ]
    # By owner and epoch: neither another's partition nor an epoch that has passed is what it holds.
    assert acquire(store, "node-a", held=[replace(known, epoch=0)], limit=1) == [replace(known, epoch=2)]
    assert store.list_partitions()[others.partition].owner == "node-b"


def test_a_renewal_lasts_from_now_and_keeps_the_epoch(store: Store) -> None:
    store.ensure_partitions(2)
    fences = acquire(store, "node-a")
    assert store.commit_renewals("node-a", fences[:1], now=NINE + HOUR, ttl=MINUTE) == fences[:1]
    renewed, other = (store.list_partitions()[fence.partition] for fence in fences)
    assert (renewed.owner, renewed.epoch, renewed.expires_at) == ("node-a", 1, NINE + HOUR + MINUTE)
    assert other.expires_at == NINE + TTL


@pytest.mark.parametrize(
    ("owner", "fence"),
    [
        ("node-b", Fence(partition=0, epoch=2)),
        ("node-a", Fence(partition=0, epoch=1)),
        ("node-a", Fence(partition=0, epoch=3)),
        ("node-a", Fence(partition=7, epoch=2)),
    ],
    ids=["another owner", "an older epoch", "a later epoch", "no such partition"],
)
def test_a_renewal_or_release_that_does_not_match_changes_nothing(
    store: Store, owner: str, fence: Fence
) -> None:
    store.ensure_partitions(1)
    acquire(store, "node-a", now=NINE - HOUR)
    acquire(store, "node-a")
    before = only_partition(store)
    assert store.commit_renewals(owner, [fence], now=NINE, ttl=HOUR) == []
    store.commit_releases(owner, [fence], now=NINE)
    assert only_partition(store) == before


def test_of_several_renewals_those_that_still_match_are_answered(store: Store) -> None:
    store.ensure_partitions(3)
    fences = acquire(store, "node-a")
    store.commit_releases("node-a", fences[1:2], now=NINE)
    taken = acquire(store, "node-b")
    renewed = store.commit_renewals("node-a", fences, now=NINE + HOUR, ttl=TTL)
    assert renewed == [fences[0], fences[2]]
    assert store.list_partitions()[taken[0].partition].expires_at == NINE + TTL


def test_a_lapsed_lease_that_nobody_took_can_be_renewed(store: Store) -> None:
    store.ensure_partitions(1)
    fences = acquire(store, "node-a")
    assert store.commit_renewals("node-a", fences, now=NINE + HOUR, ttl=TTL) == fences
    assert acquire(store, "node-b", now=NINE + HOUR) == []


def test_a_released_partition_is_free_at_once_and_keeps_its_epoch(store: Store) -> None:
    store.ensure_partitions(2)
    fences = acquire(store, "node-a")
    store.commit_releases("node-a", fences[:1], now=NINE)
    released, kept = (store.list_partitions()[fence.partition] for fence in fences)
    assert (released.owner, released.epoch) == (None, 1)
    assert kept.owner == "node-a"
    assert store.commit_renewals("node-a", fences[:1], now=NINE, ttl=TTL) == []
    assert acquire(store, "node-b") == [replace(fences[0], epoch=2)]


def test_a_stale_holder_neither_renews_nor_admits(store: Store) -> None:
    """Operations case B40: frozen for longer than the lease, awake after another node has taken over."""
    store.ensure_partitions(1)
    schedule = create(store, new_schedule())
    for hours in range(8, 1, -1):
        acquire(store, "node-a", now=NINE - hours * HOUR)
    frozen = Fence(partition=0, epoch=7)
    assert only_partition(store).epoch == 7
    [current] = acquire(store, "node-b")
    assert current.epoch == 8
    before = only_partition(store)
    assert store.commit_renewals("node-a", [frozen], now=NINE, ttl=TTL) == []
    assert only_partition(store) == before
    # The new holder has not made this run yet: the epoch alone refuses it.
    assert admit(store, frozen, [admission(schedule)]) == [AdmissionOutcome.FENCED]
    assert store.list_ledger(schedule.schedule_id, before=None, limit=10) == []
    assert admit(store, current, [admission(schedule)]) == [AdmissionOutcome.ADMITTED]
    assert len(store.list_ledger(schedule.schedule_id, before=None, limit=10)) == 1


def test_a_checkpoint_rises_under_its_epoch_and_never_falls(store: Store) -> None:
    store.ensure_partitions(2)
    fences = acquire(store, "node-a")
    seen = []
    for minutes in (0, 5, 3, 5, 6):
        store.commit_checkpoints([(fences[1], NINE + minutes * MINUTE)])
        seen.append(store.list_partitions()[fences[1].partition].checkpoint)
    assert seen == [NINE + minutes * MINUTE for minutes in (0, 5, 5, 5, 6)]
    assert store.list_partitions()[fences[0].partition].checkpoint is None


def test_several_checkpoints_are_each_under_their_own_epoch(store: Store) -> None:
    store.ensure_partitions(3)
    fences = sorted(acquire(store, "node-a"), key=lambda fence: fence.partition)
    store.commit_checkpoints(
        [
            (fences[0], NINE),
            (replace(fences[1], epoch=0), NINE),
            (fences[2], NINE + MINUTE),
            (Fence(partition=9, epoch=1), NINE),
        ]
    )
    assert [state.checkpoint for state in store.list_partitions()] == [NINE, None, NINE + MINUTE]


def test_a_checkpoint_outlives_its_holder_and_is_closed_to_it(store: Store) -> None:
    store.ensure_partitions(1)
    [stale] = acquire(store, "node-a")
    store.commit_checkpoints([(stale, NINE)])
    acquire(store, "node-b", now=NINE + HOUR)
    assert only_partition(store).checkpoint == NINE
    store.commit_checkpoints([(stale, NINE + HOUR)])
    assert only_partition(store).checkpoint == NINE


def present(store: Store, owner: str, *, now: datetime = NINE) -> list[str]:
    return store.commit_presence(owner, now=now, ttl=TTL)


def test_a_dispatcher_that_says_so_is_there_with_the_others(store: Store) -> None:
    assert store.list_present(now=NINE) == []
    assert present(store, "node-b") == ["node-b"]
    assert present(store, "node-a") == ["node-a", "node-b"]
    assert present(store, "Node-c", now=NINE + SECOND) == ["Node-c", "node-a", "node-b"]
    assert store.list_present(now=NINE) == ["Node-c", "node-a", "node-b"]


def test_a_presence_lasts_as_long_as_it_was_told_last(store: Store) -> None:
    present(store, "node-a")
    present(store, "node-b")
    present(store, "node-b", now=NINE + SECOND)
    assert store.list_present(now=NINE + TTL - MILLISECOND) == ["node-a", "node-b"]
    assert store.list_present(now=NINE + TTL) == ["node-b"]
    assert present(store, "node-c", now=NINE + TTL) == ["node-b", "node-c"]
    # It was forgotten, and not merely passed over.
    assert store.list_present(now=NINE) == ["node-b", "node-c"]


def test_a_presence_that_a_clock_ahead_has_written_is_none(store: Store) -> None:
    ahead = NINE + LEASE_MAX - TTL
    present(store, "node-a", now=ahead)
    present(store, "node-b", now=ahead + MILLISECOND)
    assert store.list_present(now=NINE) == ["node-a"]
    assert present(store, "node-c") == ["node-a", "node-c"]
    assert store.list_present(now=ahead) == ["node-a"]


def test_a_dispatcher_that_leaves_is_there_no_more(store: Store) -> None:
    present(store, "node-a")
    present(store, "node-b")
    store.commit_absence("node-a")
    store.commit_absence("node-c")
    assert store.list_present(now=NINE) == ["node-b"]
    assert present(store, "node-a") == ["node-a", "node-b"]


def test_dispatchers_that_come_at_once_are_all_there(store: Store) -> None:
    present(store, "ended", now=NINE - HOUR)
    answers = all_at_once(lambda number: present(store, f"node-{number}"))
    assert store.list_present(now=NINE) == [f"node-{number}" for number in range(CALLERS)]
    for number, answer in enumerate(answers):
        assert f"node-{number}" in answer
