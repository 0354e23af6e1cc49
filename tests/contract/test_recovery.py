"""The dispatch and work protocols: finding attempts whose lease ran out, and settling them under the epoch."""

from dataclasses import replace
from datetime import timedelta

import pytest

from rota.domain.identity import RunId
from rota.domain.job import Job, RetryPolicy
from rota.domain.run import AttemptOutcome, RunState
from rota.store.port import ATTEMPT_LEASE_MAX, Fence, Heartbeat, LostAttempt, Store
from tests.contract.builders import (
    DAY,
    HOUR,
    MADE_AT,
    MILLISECOND,
    MINUTE,
    NINE,
    SECOND,
    audit_event,
    failure,
    loss,
    success,
)
from tests.contract.steps import (
    attempts_of,
    fence_of,
    heartbeat,
    hold,
    open_attempt,
    queue_run,
    run_of,
    settle,
)

ID = RunId("report-7.1.20260110T090000Z")
EXPIRY = NINE + Job(name="sales_report").lease


def lost_ids(store: Store, partitions: list[int], *, minutes: int = 60, limit: int = 100) -> list[str]:
    lost = store.read_lost(partitions, now=NINE + minutes * MINUTE, limit=limit)
    return [entry.attempt.run_id for entry in lost]


def extend(store: Store, run_id: str, seconds: int) -> None:
    beat = Heartbeat(run_id=RunId(run_id), attempt=1, lease_expires_at=NINE + seconds * SECOND, progress=None)
    heartbeat(store, [beat])


def test_an_attempt_is_lost_from_the_end_of_its_lease_on(store: Store) -> None:
    open_attempt(store, queue_run(store))
    assert store.read_lost([0], now=EXPIRY - MILLISECOND, limit=10) == []
    [lost] = store.read_lost([0], now=EXPIRY, limit=10)
    assert lost == LostAttempt(
        attempt=attempts_of(store, ID)[0], job=Job(name="sales_report"), cancel_requested=False
    )


def test_a_lease_that_a_clock_ahead_has_written_does_not_hold_its_run_for_ever(store: Store) -> None:
    """I13: no lease is that long, so nothing is heard of the worker."""
    open_attempt(store, queue_run(store), now=NINE + DAY)
    ahead = NINE + DAY + Job(name="sales_report").lease - ATTEMPT_LEASE_MAX
    fences = [fence_of(store, 0)]
    assert store.read_lost([0], now=ahead, limit=10) == []
    assert settle(store, loss(ID, at=ahead, retry_at=ahead), fences=fences) == [False]
    earlier = ahead - MILLISECOND
    [lost] = store.read_lost([0], now=earlier, limit=10)
    assert lost.attempt == attempts_of(store, ID)[0]
    assert settle(store, loss(ID, at=earlier, retry_at=earlier), fences=fences) == [True]


def test_leases_that_ran_out_are_told_before_those_of_a_clock_ahead(store: Store) -> None:
    for id_, hours in (("a", 48), ("b", 0), ("c", 24), ("d", 1)):
        open_attempt(store, queue_run(store, id_), now=NINE + hours * HOUR)
    in_order = [f"{id_}.1.20260110T090000Z" for id_ in ("b", "d", "c", "a")]
    assert lost_ids(store, [0], minutes=61) == in_order
    for limit in (1, 2, 3):
        assert lost_ids(store, [0], minutes=61, limit=limit) == in_order[:limit]


def test_a_lost_attempt_is_told_with_its_job_and_the_request_to_stop(store: Store) -> None:
    job = Job(name="sales_report", retry=RetryPolicy(max_attempts=2), lease=timedelta(seconds=5))
    store.commit_job(job, now=MADE_AT)
    open_attempt(store, queue_run(store))
    store.commit_cancel(ID, event=audit_event(at=NINE), now=NINE)
    [lost] = store.read_lost([0], now=NINE + 5 * SECOND, limit=10)
    assert (lost.job, lost.cancel_requested) == (job, True)


def test_lost_attempts_are_read_by_expiry_then_run_id(store: Store) -> None:
    for id_, seconds in (("d", 31), ("b", 40), ("c", 35), ("a", 40)):
        open_attempt(store, queue_run(store, id_))
        extend(store, f"{id_}.1.20260110T090000Z", seconds)
    in_order = [f"{id_}.1.20260110T090000Z" for id_ in ("d", "c", "a", "b")]
    assert lost_ids(store, [0]) == in_order
    assert lost_ids(store, [0], limit=2) == in_order[:2]


def test_only_the_asked_partitions_are_read(store: Store) -> None:
    for id_, partition in (("a", 0), ("b", 1), ("c", 2)):
        open_attempt(store, queue_run(store, id_, partition=partition))
    assert lost_ids(store, [2, 0]) == ["a.1.20260110T090000Z", "c.1.20260110T090000Z"]
    assert lost_ids(store, []) == []


def test_a_closed_attempt_is_not_lost(store: Store) -> None:
    for id_ in ("a", "b"):
        open_attempt(store, queue_run(store, id_))
    ends = [
        success("a.1.20260110T090000Z", at=NINE + SECOND),
        failure("b.1.20260110T090000Z", at=NINE + SECOND, retry_at=NINE + SECOND),
    ]
    assert settle(store, *ends) == [True, True]
    assert lost_ids(store, [0]) == []
    open_attempt(store, run_of(store, "b.1.20260110T090000Z"), now=NINE + MINUTE)
    [lost] = store.read_lost([0], now=NINE + HOUR, limit=10)
    assert (lost.attempt.run_id, lost.attempt.number) == ("b.1.20260110T090000Z", 2)


def test_a_lost_attempt_gives_way_to_the_next(store: Store) -> None:
    open_attempt(store, queue_run(store))
    settled = loss(ID, at=EXPIRY, retry_at=EXPIRY + MINUTE)
    assert settle(store, settled, fences=[fence_of(store, 0)]) == [True]
    assert run_of(store, ID).state is RunState.QUEUED
    assert [attempt.outcome for attempt in attempts_of(store, ID)] == [AttemptOutcome.LOST]
    assert store.read_next_intent_time(["sales_report"]) == EXPIRY + MINUTE
    assert lost_ids(store, [0]) == []


def test_an_attempt_that_was_heard_of_meanwhile_is_not_lost(store: Store) -> None:
    open_attempt(store, queue_run(store))
    extend(store, ID, 60)
    before = store.get_run(ID)
    fences = [fence_of(store, 0)]
    for at in (EXPIRY, NINE + 60 * SECOND - MILLISECOND):
        assert settle(store, loss(ID, at=at, retry_at=at), fences=fences) == [False]
    assert store.get_run(ID) == before
    assert settle(store, loss(ID, at=NINE + 60 * SECOND, retry_at=NINE + HOUR), fences=fences) == [True]


def test_a_worker_may_settle_after_its_lease_while_it_is_still_current(store: Store) -> None:
    open_attempt(store, queue_run(store))
    assert settle(store, success(ID, at=NINE + HOUR)) == [True]


@pytest.mark.parametrize("epochs", [-1, 1])
def test_recovery_under_another_epoch_changes_nothing(store: Store, epochs: int) -> None:
    open_attempt(store, queue_run(store))
    [stale] = [fence_of(store, 0)]
    store.commit_releases("node-a", [stale], now=NINE)
    [current] = hold(store, "node-b")
    before = store.get_run(ID)
    other = replace(current, epoch=current.epoch + epochs)
    settled = loss(ID, at=EXPIRY, retry_at=EXPIRY)
    assert settle(store, settled, fences=[other]) == [False]
    assert store.get_run(ID) == before
    assert store.read_next_intent_time(["sales_report"]) is None
    assert settle(store, settled, fences=[current]) == [True]


def test_recovery_of_a_run_in_another_partition_changes_nothing(store: Store) -> None:
    open_attempt(store, queue_run(store, partition=1))
    before = store.get_run(ID)
    settled = loss(ID, at=EXPIRY, retry_at=EXPIRY)
    others = [fence_of(store, 0), fence_of(store, 2), Fence(partition=77, epoch=1)]
    assert settle(store, settled, fences=others) == [False]
    assert store.get_run(ID) == before
    assert settle(store, settled, fences=[*others, fence_of(store, 1)]) == [True]


def test_one_stale_fence_refuses_only_its_own_partition(store: Store) -> None:
    for id_, partition in (("a", 0), ("b", 1)):
        open_attempt(store, queue_run(store, id_, partition=partition))
    fences = [replace(fence_of(store, 0), epoch=0), fence_of(store, 1)]
    losses = [loss(f"{id_}.1.20260110T090000Z", at=EXPIRY, retry_at=EXPIRY) for id_ in ("a", "b")]
    assert settle(store, *losses, fences=fences) == [False, True]


def test_a_worker_that_comes_back_after_recovery_changes_nothing(store: Store) -> None:
    open_attempt(store, queue_run(store))
    assert settle(store, loss(ID, at=EXPIRY, retry_at=EXPIRY), fences=[fence_of(store, 0)]) == [True]
    before = store.get_run(ID)
    assert settle(store, success(ID, at=EXPIRY + SECOND)) == [False]
    assert store.get_run(ID) == before
