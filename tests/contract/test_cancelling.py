"""The run protocol: cancelling a run that waits, one that runs, and one that has settled."""

import pytest

from rota.domain.audit import AuditEvent
from rota.domain.identity import RunId
from rota.domain.run import AttemptOutcome, RunEvent, RunState
from rota.domain.settlement import AttemptEnd, Settlement
from rota.store.port import AdmissionOutcome, Heartbeat, HeartbeatOutcome, Store
from tests.contract.builders import (
    HOUR,
    MINUTE,
    NINE,
    SECOND,
    admission,
    audit_event,
    failure,
    settlement,
    success,
)
from tests.contract.steps import (
    admit,
    create,
    delivery_of,
    fence_of,
    heartbeat,
    open_all,
    open_attempt,
    queue_run,
    run_of,
    settle,
)

ID = RunId("report-7.1.20260110T090000Z")
JOBS = ["sales_report"]


def cancellations(store: Store) -> list[AuditEvent]:
    history = store.list_audit(audit_event(at=NINE).schedule_id, limit=100)
    return [event for event in history if event.action == "run.cancel"]


def test_a_queued_run_is_cancelled_with_its_delivery(store: Store) -> None:
    run = queue_run(store)
    event = audit_event(at=NINE + MINUTE)
    cancelled = store.commit_cancel(ID, event=event, now=NINE + MINUTE)
    assert cancelled is not None
    assert (cancelled.state, cancelled.finished_at) == (RunState.CANCELLED, NINE + MINUTE)
    assert run_of(store, ID) == cancelled
    assert store.read_intents(JOBS, now=NINE + HOUR, limit=10) == []
    assert open_all(store, [delivery_of(run)], now=NINE + HOUR) == [None]
    assert cancellations(store) == [event]


def test_a_cancelled_occurrence_is_not_admitted_again(store: Store) -> None:
    schedule = create(store)
    due = admission(schedule)
    fence = fence_of(store, 0)
    admit(store, fence, [due])
    store.commit_cancel(ID, event=audit_event(at=NINE), now=NINE)
    assert admit(store, fence, [due]) == [AdmissionOutcome.STALE]
    assert run_of(store, ID).state is RunState.CANCELLED


def test_a_running_run_is_asked_to_stop_and_goes_on(store: Store) -> None:
    opened = open_attempt(store, queue_run(store))
    event = audit_event(at=NINE + MINUTE)
    asked = store.commit_cancel(ID, event=event, now=NINE + MINUTE)
    assert asked is not None
    assert (asked.state, asked.cancel_requested_at, asked.finished_at) == (
        RunState.RUNNING,
        NINE + MINUTE,
        None,
    )
    assert run_of(store, ID) == asked
    assert cancellations(store) == [event]
    alive = Heartbeat(run_id=ID, attempt=opened.run.attempt, lease_expires_at=NINE + HOUR, progress=None)
    assert heartbeat(store, [alive]) == [HeartbeatOutcome.CANCEL_REQUESTED]


def test_a_second_request_to_stop_keeps_the_first(store: Store) -> None:
    open_attempt(store, queue_run(store))
    asked = store.commit_cancel(ID, event=audit_event(at=NINE + MINUTE), now=NINE + MINUTE)
    assert store.commit_cancel(ID, event=audit_event(at=NINE + HOUR), now=NINE + HOUR) == asked
    assert cancellations(store) == [audit_event(at=NINE + MINUTE)]


@pytest.mark.parametrize(
    "end",
    [
        success(ID, at=NINE + MINUTE),
        failure(ID, at=NINE + MINUTE),
        settlement(ID, AttemptEnd(outcome=AttemptOutcome.MOOT), RunEvent.FOUND_MOOT, at=NINE + MINUTE),
        settlement(ID, AttemptEnd(outcome=AttemptOutcome.CANCELLED), RunEvent.CANCELLED, at=NINE + MINUTE),
    ],
    ids=lambda end: end.event,
)
def test_a_settled_run_stays_as_it_is(store: Store, end: Settlement) -> None:
    open_attempt(store, queue_run(store))
    assert settle(store, end) == [True]
    before = run_of(store, ID)
    assert store.commit_cancel(ID, event=audit_event(at=NINE + HOUR), now=NINE + HOUR) == before
    assert run_of(store, ID) == before
    assert cancellations(store) == []


def test_a_cancelled_run_is_not_cancelled_again(store: Store) -> None:
    queue_run(store)
    first = store.commit_cancel(ID, event=audit_event(at=NINE), now=NINE)
    assert store.commit_cancel(ID, event=audit_event(at=NINE + HOUR), now=NINE + HOUR) == first
    assert cancellations(store) == [audit_event(at=NINE)]


def test_cancelling_an_unknown_run_writes_nothing(store: Store) -> None:
    queue_run(store)
    assert store.commit_cancel(RunId("unknown"), event=audit_event(at=NINE), now=NINE) is None
    assert cancellations(store) == []


def test_a_run_that_waits_for_its_next_attempt_is_cancelled(store: Store) -> None:
    open_attempt(store, queue_run(store))
    assert settle(store, failure(ID, at=NINE + SECOND, retry_at=NINE + MINUTE)) == [True]
    cancelled = store.commit_cancel(ID, event=audit_event(at=NINE + SECOND), now=NINE + SECOND)
    assert cancelled is not None
    assert cancelled.state is RunState.CANCELLED
    assert store.read_next_intent_time(JOBS) is None


def test_a_run_that_was_asked_to_stop_does_not_wait_for_another_attempt(store: Store) -> None:
    open_attempt(store, queue_run(store))
    store.commit_cancel(ID, event=audit_event(at=NINE), now=NINE)
    # A worker that had not heard of the request reports a failure that it wants retried.
    assert settle(store, failure(ID, at=NINE + SECOND, retry_at=NINE + MINUTE)) == [True]
    assert run_of(store, ID).state is RunState.CANCELLED
    assert store.read_next_intent_time(JOBS) is None
    assert len(cancellations(store)) == 1


def test_a_stopped_run_settles_as_cancelled(store: Store) -> None:
    open_attempt(store, queue_run(store))
    store.commit_cancel(ID, event=audit_event(at=NINE), now=NINE)
    end = AttemptEnd(outcome=AttemptOutcome.CANCELLED)
    assert settle(store, settlement(ID, end, RunEvent.CANCELLED, at=NINE + MINUTE)) == [True]
    run = run_of(store, ID)
    assert (run.state, run.finished_at, run.cancel_requested_at) == (
        RunState.CANCELLED,
        NINE + MINUTE,
        NINE,
    )
