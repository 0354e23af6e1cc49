"""The work protocol: heartbeats of the current attempt, and the refusal of any other's."""

from dataclasses import replace

import pytest

from rota.domain.identity import RunId
from rota.domain.run import Progress
from rota.store.port import Heartbeat, HeartbeatOutcome, Store, TooManyElements
from tests.contract.builders import HOUR, MILLISECOND, MINUTE, NINE, SECOND, audit_event, failure, success
from tests.contract.steps import attempts_of, heartbeat, open_attempt, queue_run, run_of, settle

ID = RunId("report-7.1.20260110T090000Z")
CURRENT, STALE = HeartbeatOutcome.CURRENT, HeartbeatOutcome.STALE
ALIVE = Heartbeat(
    run_id=ID,
    attempt=1,
    lease_expires_at=NINE + MINUTE + MILLISECOND,
    progress=Progress(fraction=0.1, message="Blatt 1 – ök"),  # noqa: RUF001  text as people write it
)


def assert_stale(store: Store, beat: Heartbeat) -> None:
    before = store.get_run(beat.run_id)
    assert heartbeat(store, [beat], now=NINE + SECOND) == [STALE]
    assert store.get_run(beat.run_id) == before


def test_a_heartbeat_lengthens_the_lease_and_tells_progress(store: Store) -> None:
    open_attempt(store, queue_run(store))
    before = run_of(store, ID)
    assert heartbeat(store, [ALIVE], now=NINE + SECOND) == [CURRENT]
    [attempt] = attempts_of(store, ID)
    assert attempt.lease_expires_at == ALIVE.lease_expires_at
    assert run_of(store, ID) == replace(before, progress=ALIVE.progress)


def test_a_heartbeat_without_progress_keeps_the_last(store: Store) -> None:
    open_attempt(store, queue_run(store))
    heartbeat(store, [ALIVE])
    assert heartbeat(store, [replace(ALIVE, progress=None, lease_expires_at=NINE + HOUR)]) == [CURRENT]
    assert run_of(store, ID).progress == ALIVE.progress
    assert attempts_of(store, ID)[0].lease_expires_at == NINE + HOUR


def test_progress_is_replaced_whole(store: Store) -> None:
    open_attempt(store, queue_run(store))
    later = replace(ALIVE, progress=Progress(fraction=1.0, message=None))
    heartbeat(store, [ALIVE])
    heartbeat(store, [later])
    assert run_of(store, ID).progress == later.progress


def test_a_lapsed_lease_that_nobody_settled_can_be_lengthened(store: Store) -> None:
    open_attempt(store, queue_run(store))
    late = replace(ALIVE, lease_expires_at=NINE + 2 * HOUR)
    assert heartbeat(store, [late], now=NINE + HOUR) == [CURRENT]


def test_a_heartbeat_of_a_run_that_is_not_running_is_stale(store: Store) -> None:
    queue_run(store)
    assert_stale(store, ALIVE)
    assert_stale(store, replace(ALIVE, attempt=0))


@pytest.mark.parametrize("attempt", [0, 2])
def test_a_heartbeat_of_another_attempt_is_stale(store: Store, attempt: int) -> None:
    open_attempt(store, queue_run(store))
    assert_stale(store, replace(ALIVE, attempt=attempt))


def test_a_heartbeat_of_an_unknown_run_is_stale(store: Store) -> None:
    queue_run(store)
    assert_stale(store, replace(ALIVE, run_id=RunId("unknown")))


def test_a_heartbeat_after_the_attempt_is_settled_is_stale(store: Store) -> None:
    open_attempt(store, queue_run(store))
    assert settle(store, success(ID, at=NINE + SECOND)) == [True]
    assert_stale(store, ALIVE)


def test_a_heartbeat_of_an_attempt_whose_run_waits_again_is_stale(store: Store) -> None:
    open_attempt(store, queue_run(store))
    assert settle(store, failure(ID, at=NINE + SECOND, retry_at=NINE + MINUTE)) == [True]
    assert_stale(store, ALIVE)


def test_a_heartbeat_of_an_attempt_that_was_overtaken_is_stale(store: Store) -> None:
    open_attempt(store, queue_run(store))
    assert settle(store, failure(ID, at=NINE + SECOND, retry_at=NINE + MINUTE)) == [True]
    open_attempt(store, run_of(store, ID), now=NINE + MINUTE, worker="worker-2")
    assert_stale(store, ALIVE)
    assert heartbeat(store, [replace(ALIVE, attempt=2)], now=NINE + MINUTE) == [CURRENT]


def test_each_place_of_a_batch_tells_of_its_heartbeat(store: Store) -> None:
    for id_ in ("a", "b", "c"):
        open_attempt(store, queue_run(store, id_))
    beats = [replace(ALIVE, run_id=RunId(f"{id_}.1.20260110T090000Z")) for id_ in ("c", "b", "a")]
    assert settle(store, success(beats[1].run_id, at=NINE)) == [True]
    store.commit_cancel(beats[2].run_id, event=audit_event("a", at=NINE), now=NINE)
    outcomes = heartbeat(store, beats)
    assert outcomes == [CURRENT, STALE, HeartbeatOutcome.CANCEL_REQUESTED]
    # Who is asked to stop still holds its lease while it does.
    assert attempts_of(store, beats[2].run_id)[0].lease_expires_at == ALIVE.lease_expires_at


def test_two_heartbeats_of_one_attempt_apply_in_order(store: Store) -> None:
    open_attempt(store, queue_run(store))
    later = replace(ALIVE, lease_expires_at=NINE + HOUR, progress=Progress(fraction=0.2))
    assert heartbeat(store, [ALIVE, later]) == [CURRENT, CURRENT]
    assert run_of(store, ID).progress == later.progress
    assert attempts_of(store, ID)[0].lease_expires_at == NINE + HOUR


def test_more_heartbeats_than_the_store_takes_are_refused_whole(store: Store) -> None:
    open_attempt(store, queue_run(store))
    with pytest.raises(TooManyElements):
        store.commit_heartbeats([ALIVE] * (store.elements_max + 1), now=NINE)
    assert run_of(store, ID).progress is None
