"""Dead deliveries and places: a message that nobody can send keeps no schedule from running (I5, I12)."""

from dataclasses import replace
from datetime import datetime

import pytest

from rota.domain.delivery import Delivery, DeliveryEnd, DeliveryState, failed
from rota.domain.identity import RunId
from rota.domain.job import Job
from rota.domain.run import Run, RunState
from rota.domain.schedule import Overlap, Schedule
from rota.domain.sink import CelerySink, DeliveryPolicy
from rota.store.port import AdmissionOutcome, Store, TakenDelivery
from tests.contract.builders import (
    HOUR,
    MADE_AT,
    MINUTE,
    NINE,
    admission,
    audit_event,
    definition,
    new_schedule,
    run_at,
    success,
)
from tests.contract.steps import admit, create, fence_of, open_all, record_of, run_of, settle, wanted

JOBS = ["sales_report"]
TEN, ELEVEN = NINE + HOUR, NINE + 2 * HOUR
POLICY = DeliveryPolicy()


@pytest.fixture(autouse=True)
def sending(store: Store) -> None:
    store.commit_job(Job(name=JOBS[0], sink=CelerySink(task="tasks.report")), now=MADE_AT)


def admit_at(
    store: Store, schedule: Schedule, instant: datetime, *, state: RunState = RunState.QUEUED
) -> Run:
    """A run that takes a place behind those that there are."""
    schedule = record_of(store, schedule).schedule
    expected = store.read_places(schedule.schedule_id)
    run = replace(run_at(schedule, instant), state=state)
    if state is RunState.WAITING:
        run = replace(run, available_at=None)
    planned = replace(
        admission(schedule, runs=[run]), expected_places=expected, places=(*expected, run.run_id)
    )
    assert admit(store, fence_of(store, 0), [planned], now=instant) == [AdmissionOutcome.ADMITTED]
    return run


def overlapping(store: Store, overlap: Overlap) -> Schedule:
    return create(store, new_schedule(of=definition(overlap=overlap)))


def take(store: Store, *, at: datetime = TEN) -> list[TakenDelivery]:
    return store.commit_takes(wanted(*JOBS), now=at, lease=MINUTE, limit=2)


def end(store: Store, delivery: Delivery, *, at: datetime = TEN, is_final: bool = True) -> Delivery:
    becomes = failed(delivery, POLICY, error="no such queue", now=at, is_final=is_final)
    told = DeliveryEnd(
        run_id=delivery.run_id, attempt=delivery.attempt, tries=delivery.tries, becomes=becomes
    )
    assert store.commit_delivery_ends([told], now=at) == [True]
    return becomes


def die(store: Store) -> RunId:
    """Of the one run that is queued the message dies."""
    [taken] = take(store)
    assert end(store, taken.delivery).state is DeliveryState.DEAD
    return taken.delivery.run_id


def test_a_dead_delivery_frees_the_place_of_its_run(store: Store) -> None:
    schedule = overlapping(store, "skip")
    run = admit_at(store, schedule, NINE)
    assert die(store) == run.run_id
    assert store.read_places(schedule.schedule_id) == ()
    assert run_of(store, run.run_id) == run
    second = admit_at(store, schedule, TEN)
    assert store.read_places(schedule.schedule_id) == (second.run_id,)


def test_the_run_that_waits_behind_a_dead_delivery_is_queued_when_that_dies(store: Store) -> None:
    schedule = overlapping(store, "queue")
    first = admit_at(store, schedule, NINE)
    second = admit_at(store, schedule, TEN, state=RunState.WAITING)
    assert die(store) == first.run_id
    assert store.read_places(schedule.schedule_id) == (second.run_id,)
    assert run_of(store, second.run_id) == replace(second, state=RunState.QUEUED, available_at=TEN)
    assert [taken.run.run_id for taken in take(store)] == [second.run_id]


def test_a_delivery_that_is_tried_again_keeps_its_runs_place(store: Store) -> None:
    schedule = overlapping(store, "queue")
    first = admit_at(store, schedule, NINE)
    second = admit_at(store, schedule, TEN, state=RunState.WAITING)
    [taken] = take(store)
    assert end(store, taken.delivery, is_final=False).state is DeliveryState.RETRYING
    assert store.read_places(schedule.schedule_id) == (first.run_id, second.run_id)
    assert run_of(store, second.run_id) == second


def test_a_redriven_message_runs_without_a_place(store: Store) -> None:
    schedule = overlapping(store, "queue")
    first = admit_at(store, schedule, NINE)
    second = admit_at(store, schedule, TEN, state=RunState.WAITING)
    die(store)
    third = admit_at(store, schedule, ELEVEN, state=RunState.WAITING)
    places = (second.run_id, third.run_id)
    event = audit_event(first.schedule_id, "run.cancel", at=ELEVEN)
    assert store.commit_redrive(first.run_id, event=event, now=ELEVEN) is not None
    messages = [taken.delivery for taken in take(store, at=ELEVEN)]
    assert {message.run_id for message in messages} == {first.run_id, second.run_id}
    assert store.read_places(schedule.schedule_id) == places
    assert None not in open_all(store, messages, now=ELEVEN)
    assert settle(store, success(first.run_id, at=ELEVEN)) == [True]
    assert store.read_places(schedule.schedule_id) == places
    assert run_of(store, third.run_id).state is RunState.WAITING
    assert settle(store, success(second.run_id, at=ELEVEN)) == [True]
    assert store.read_places(schedule.schedule_id) == (third.run_id,)
    assert run_of(store, third.run_id).state is RunState.QUEUED


def test_a_run_on_request_whose_delivery_dies_takes_nobodys_place(store: Store) -> None:
    schedule = overlapping(store, "queue")
    first = admit_at(store, schedule, NINE)
    beside = run_at(record_of(store, schedule).schedule, ELEVEN)
    planned = admission(record_of(store, schedule).schedule, runs=[beside])
    assert admit(store, fence_of(store, 0), [planned], now=TEN) == [AdmissionOutcome.ADMITTED]
    taken = {each.run.run_id: each.delivery for each in take(store, at=ELEVEN)}
    end(store, taken[beside.run_id])
    assert store.read_places(schedule.schedule_id) == (first.run_id,)
