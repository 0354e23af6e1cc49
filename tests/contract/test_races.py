"""Every protocol: of callers that do the same thing at once, one does it, and the others are told."""

from collections import Counter

from rota.domain.identity import RunId
from rota.domain.json_text import encode_json
from rota.domain.schedule import ScheduleStatus
from rota.store.port import AdmissionOutcome, ChangeOutcome, Creation, RunFilter, Store
from tests.contract.builders import (
    MADE_AT,
    MINUTE,
    NINE,
    admission,
    idempotency_record,
    new_schedule,
    pause,
    success,
)
from tests.contract.racing import CALLERS, all_at_once
from tests.contract.steps import (
    admit,
    attempts_of,
    create,
    delivery_of,
    hold,
    open_all,
    open_attempt,
    queue_run,
    record_of,
    settle,
)


def test_an_id_is_created_by_one(store: Store) -> None:
    new = [new_schedule(job=f"job-{number}") for number in range(CALLERS)]
    outcomes = all_at_once(lambda number: store.commit_creation(new[number], now=MADE_AT))
    assert Counter(outcomes) == {Creation.CREATED: 1, Creation.ID_TAKEN: CALLERS - 1}
    winner = outcomes.index(Creation.CREATED)
    assert record_of(store, new[winner].schedule).schedule == new[winner].schedule


def test_an_idempotency_key_creates_one(store: Store) -> None:
    new = [
        new_schedule(f"s{number}", idempotency=idempotency_record(digest=str(number)))
        for number in range(CALLERS)
    ]
    outcomes = all_at_once(lambda number: store.commit_creation(new[number], now=MADE_AT))
    assert Counter(outcomes) == {Creation.CREATED: 1, Creation.KEY_TAKEN: CALLERS - 1}
    winner = outcomes.index(Creation.CREATED)
    assert store.get_idempotency("order-1", now=MADE_AT) == new[winner].idempotency


def test_partitions_are_each_acquired_by_one(store: Store) -> None:
    store.ensure_partitions(6)
    taken = all_at_once(
        lambda number: store.commit_acquisitions(f"node-{number}", held=[], now=NINE, ttl=MINUTE, limit=2)
    )
    partitions = [fence.partition for fences in taken for fence in fences]
    assert len(partitions) == len(set(partitions))
    for number, fences in enumerate(taken):
        held = store.list_partitions()
        assert {held[fence.partition].owner for fence in fences} <= {f"node-{number}"}


def test_an_admission_is_committed_by_one(store: Store) -> None:
    schedules = [create(store, new_schedule(f"s{number}")) for number in range(5)]
    fence = hold(store)[0]
    elements = [admission(schedule) for schedule in schedules]
    outcomes = all_at_once(lambda number: admit(store, fence, elements))
    for of_one in zip(*outcomes, strict=True):
        assert Counter(of_one) == {AdmissionOutcome.ADMITTED: 1, AdmissionOutcome.STALE: CALLERS - 1}
    assert len(store.list_runs(RunFilter(), before=None, limit=100)) == 5
    assert len(store.read_intents(["sales_report"], now=NINE, limit=100)) == 5


def test_a_pause_and_an_admission_do_not_both_apply_to_one_cursor(store: Store) -> None:
    schedule = create(store)
    fence = hold(store)[0]

    def call(number: int) -> bool:
        if number % 2:
            return store.commit_change(pause(schedule, at=NINE)) is ChangeOutcome.CHANGED
        return admit(store, fence, [admission(schedule)]) == [AdmissionOutcome.ADMITTED]

    applied = all_at_once(call)
    assert sum(applied) == 1
    paused = record_of(store, schedule).schedule.status is ScheduleStatus.PAUSED
    assert paused is any(applied[1::2])
    assert len(store.list_runs(RunFilter(), before=None, limit=10)) == sum(applied[::2])


def test_a_delivery_is_opened_by_one(store: Store) -> None:
    runs = [queue_run(store, f"s{number}") for number in range(5)]
    deliveries = [delivery_of(run) for run in runs]
    opened = all_at_once(lambda number: open_all(store, deliveries, worker=f"worker-{number}"))
    for run, of_one in zip(runs, zip(*opened, strict=True), strict=True):
        winners = [number for number, attempt in enumerate(of_one) if attempt is not None]
        assert len(winners) == 1
        assert [attempt.worker for attempt in attempts_of(store, run.run_id)] == [f"worker-{winners[0]}"]


def test_an_attempt_is_settled_by_one(store: Store) -> None:
    run = queue_run(store)
    open_attempt(store, run)
    applied = all_at_once(
        lambda number: settle(store, success(run.run_id, at=NINE + MINUTE, result=encode_json(number)))
    )
    assert applied.count([True]) == 1
    detail = store.get_run(RunId(run.run_id))
    assert detail is not None
    assert detail.result == encode_json(applied.index([True]))
