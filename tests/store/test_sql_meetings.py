"""Commits that meet on PostgreSQL, where writers do not take turns: each answers as if one had come after the other."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from rota.domain.admission import Skip
from rota.domain.identity import RunId
from rota.domain.job import Job
from rota.domain.run import RunState
from rota.domain.schedule import Schedule, ScheduleStatus
from rota.store.port import (
    AdmissionOutcome,
    ChangeOutcome,
    ClockReading,
    Creation,
    Fence,
    Heartbeat,
    HeartbeatOutcome,
    ScheduleChange,
)
from rota.store.sql import SqlStore
from tests.conftest import NewDatabase
from tests.contract.builders import (
    DAY,
    HOUR,
    MADE_AT,
    MINUTE,
    NINE,
    SECOND,
    admission,
    audit_event,
    change_of,
    edit,
    idempotency_record,
    labels,
    loss,
    new_schedule,
    new_version,
    pause,
    planned_run_at,
    run_at,
    skip_at,
    success,
)
from tests.contract.steps import (
    attempts_of,
    create,
    delivery_of,
    fence_of,
    open_attempt,
    plan,
    queue_run,
    record_of,
    run_of,
)
from tests.store.meeting import Meeting


@pytest.fixture
def meeting(new_database: NewDatabase) -> Iterator[Meeting]:
    meeting = Meeting(new_database("postgresql"))
    yield meeting
    meeting.close()


def on_request(schedule: Schedule, name: str, *, key: str | None = None) -> ScheduleChange:
    """A run on request: it neither compares the cursor nor raises the revision."""
    run = replace(
        run_at(schedule, NINE),
        run_id=RunId(f"{schedule.schedule_id}.{name}"),
        period_key=name,
        origin="manual",
    )
    record = None if key is None else idempotency_record(key, expires_at=NINE + DAY)
    return replace(change_of(schedule), expected_cursor=None, runs=(run,), idempotency=record)


def test_schedules_that_share_a_cadence_and_zone_rules_are_both_created_at_once(meeting: Meeting) -> None:
    outcomes = meeting.of(
        lambda store: store.commit_creation(new_schedule("a"), now=MADE_AT),
        lambda store: store.commit_creation(new_schedule("b"), now=MADE_AT),
    )
    assert outcomes == (Creation.CREATED, Creation.CREATED)
    assert meeting.undone == 0, "what is shared undoes nobody's commit"


def test_of_two_creations_with_one_key_or_one_id_the_second_is_told(meeting: Meeting) -> None:
    keyed = [new_schedule(id_, idempotency=idempotency_record(digest=id_)) for id_ in ("a", "b")]
    outcomes = meeting.of(
        lambda store: store.commit_creation(keyed[0], now=MADE_AT),
        lambda store: store.commit_creation(keyed[1], now=MADE_AT),
    )
    assert outcomes == (Creation.CREATED, Creation.KEY_TAKEN)
    same_id = meeting.of(
        lambda store: store.commit_creation(new_schedule("c"), now=MADE_AT),
        lambda store: store.commit_creation(new_schedule("c"), now=MADE_AT),
    )
    assert same_id == (Creation.CREATED, Creation.ID_TAKEN)


@pytest.mark.parametrize("is_expired_there", [False, True])
def test_an_idempotency_key_is_written_by_one(meeting: Meeting, is_expired_there: bool) -> None:
    if is_expired_there:
        expired = idempotency_record(expires_at=MADE_AT)
        assert meeting.first.commit_idempotency(expired, now=MADE_AT - DAY)
    written = meeting.of(
        lambda store: store.commit_idempotency(idempotency_record(), now=MADE_AT),
        lambda store: store.commit_idempotency(idempotency_record(), now=MADE_AT),
    )
    assert written == (True, False)


def test_an_expired_key_that_is_used_anew_is_not_pruned(meeting: Meeting) -> None:
    assert meeting.first.commit_idempotency(idempotency_record(expires_at=MADE_AT), now=MADE_AT - DAY)
    meeting.of(
        lambda store: store.commit_idempotency(idempotency_record(), now=MADE_AT),
        lambda store: store.prune_idempotency(now=MADE_AT, limit=10),
    )
    assert meeting.first.get_idempotency("order-1", now=MADE_AT) is not None


def test_a_repeated_request_that_meets_the_first_is_told_that_its_key_is_taken(meeting: Meeting) -> None:
    schedule = create(meeting.first)
    runs = meeting.of(
        lambda store: store.commit_change(on_request(schedule, "m-1", key="k1")),
        lambda store: store.commit_change(on_request(schedule, "m-1", key="k1")),
    )
    assert runs == (ChangeOutcome.CHANGED, ChangeOutcome.KEY_TAKEN)
    keyed = replace(pause(schedule, at=NINE), idempotency=idempotency_record("k2", expires_at=NINE + DAY))
    pauses = meeting.of(lambda store: store.commit_change(keyed), lambda store: store.commit_change(keyed))
    assert pauses == (ChangeOutcome.CHANGED, ChangeOutcome.KEY_TAKEN)


def test_runs_on_request_of_one_name_are_made_once_and_of_two_names_both(meeting: Meeting) -> None:
    schedule = create(meeting.first)
    same = meeting.of(
        lambda store: store.commit_change(on_request(schedule, "m-1")),
        lambda store: store.commit_change(on_request(schedule, "m-1")),
    )
    assert same == (ChangeOutcome.CHANGED, ChangeOutcome.KEY_USED)
    others = meeting.of(
        lambda store: store.commit_change(on_request(schedule, "m-2")),
        lambda store: store.commit_change(on_request(schedule, "m-3")),
    )
    assert others == (ChangeOutcome.CHANGED, ChangeOutcome.CHANGED)


def test_of_an_edit_and_an_admission_the_second_is_stale(meeting: Meeting) -> None:
    first, second = create(meeting.first, new_schedule("a")), create(meeting.first, new_schedule("b"))
    fence = fence_of(meeting.first, 0)
    edited = meeting.of(
        lambda store: store.commit_change(_edit_at_noon(first)),
        lambda store: store.commit_admissions(fence, [admission(first)], now=NINE),
    )
    assert edited == (ChangeOutcome.CHANGED, [AdmissionOutcome.STALE])
    admitted = meeting.of(
        lambda store: store.commit_admissions(fence, [admission(second)], now=NINE),
        lambda store: store.commit_change(_edit_at_noon(second)),
    )
    assert admitted == ([AdmissionOutcome.ADMITTED], ChangeOutcome.STALE)


def test_an_admission_that_meets_the_taking_of_its_partition_is_refused_or_waited_for(
    meeting: Meeting,
) -> None:
    schedule, fence = create(meeting.first), fence_of(meeting.first, 0)
    later = NINE + HOUR
    taken, outcomes = meeting.of(
        lambda store: store.commit_acquisitions("node-b", held=[], now=later, ttl=MINUTE, limit=1),
        lambda store: store.commit_admissions(fence, [admission(schedule)], now=later),
    )
    assert (taken, outcomes) == ([Fence(partition=0, epoch=fence.epoch + 1)], [AdmissionOutcome.FENCED])


def test_skips_that_touch_and_meet_are_one_row(meeting: Meeting) -> None:
    schedule, fence = create(meeting.first), fence_of(meeting.first, 0)
    skipped = skip_at(schedule, NINE, NINE + HOUR)
    admitted = replace(admission(schedule, runs=(), skips=(skipped,)))
    outcomes = meeting.of(
        lambda store: store.commit_admissions(fence, [admitted], now=NINE),
        lambda store: store.commit_admissions(fence, [admitted], now=NINE),
    )
    assert outcomes == ([AdmissionOutcome.ADMITTED], [AdmissionOutcome.STALE])
    following = record_of(meeting.first, schedule).schedule
    lengthened = admission(
        following,
        runs=(),
        skips=(skip_at(schedule, NINE + HOUR, NINE + 2 * HOUR),),
        next_due=NINE + 2 * DAY,
    )
    outcomes = meeting.of(
        lambda store: store.commit_admissions(fence, [lengthened], now=NINE),
        lambda store: store.commit_admissions(fence, [lengthened], now=NINE),
    )
    assert outcomes == ([AdmissionOutcome.ADMITTED], [AdmissionOutcome.STALE])
    [entry] = meeting.first.list_ledger(schedule.schedule_id, before=None, limit=10)
    assert isinstance(entry, Skip)
    assert (entry.until, entry.count) == (NINE + 2 * HOUR, 2)


def test_labels_are_those_of_the_edit_that_was_committed(meeting: Meeting) -> None:
    schedule = create(meeting.first, new_schedule(labels=labels(city="oslo")))
    changes = [
        replace(change_of(schedule), labels=labels(city=city), careful_until=NINE)
        for city in ("rome", "bern")
    ]
    outcomes = meeting.of(
        lambda store: store.commit_change(changes[0]), lambda store: store.commit_change(changes[1])
    )
    assert outcomes == (ChangeOutcome.CHANGED, ChangeOutcome.STALE)
    assert record_of(meeting.first, schedule).schedule.labels == labels(city="rome")


def test_a_pause_and_the_falling_due_of_a_planned_run_leave_it_held_or_queued(meeting: Meeting) -> None:
    for id_, is_pause_first in (("a", True), ("b", False)):
        made = create(meeting.first, new_schedule(id_, due=NINE + DAY))
        run = planned_run_at(made, NINE)
        schedule = plan(meeting.first, made, run)
        fence = fence_of(meeting.first, 0)

        def fall_due(store: SqlStore, fence: Fence = fence) -> object:
            return store.commit_planned(fence, now=NINE, limit=10)

        def halt(store: SqlStore, schedule: Schedule = schedule) -> object:
            return store.commit_change(pause(schedule, at=NINE))

        meeting.of(*((halt, fall_due) if is_pause_first else (fall_due, halt)))
        assert record_of(meeting.first, schedule).schedule.status is ScheduleStatus.PAUSED
        fall_due(meeting.first)
        state = run_of(meeting.first, run.run_id).state
        assert state is (RunState.HELD if is_pause_first else RunState.QUEUED)


def test_a_job_is_created_by_one_and_both_have_put_it(meeting: Meeting) -> None:
    created = meeting.of(
        lambda store: store.commit_job(Job(name="mail"), now=NINE),
        lambda store: store.commit_job(Job(name="mail", description="x"), now=NINE),
    )
    assert created == (True, False)
    assert meeting.first.get_job("mail") == Job(name="mail", description="x")


def test_partitions_are_made_by_one_and_both_have_its_number(meeting: Meeting) -> None:
    assert meeting.of(lambda store: store.ensure_partitions(4), lambda store: store.ensure_partitions(6)) == (
        4,
        4,
    )


def test_a_clock_reading_is_written_by_both(meeting: Meeting) -> None:
    readings = [
        ClockReading(wall=NINE + number * SECOND, boot_seconds=100.0 + number, boot_id="b")
        for number in (0, 1)
    ]
    meeting.of(
        lambda store: store.commit_clock_reading(readings[0]),
        lambda store: store.commit_clock_reading(readings[1]),
    )


def test_partitions_are_taken_by_one(meeting: Meeting) -> None:
    meeting.first.ensure_partitions(4)
    taken = meeting.of(
        lambda store: store.commit_acquisitions("a", held=[], now=NINE, ttl=MINUTE, limit=3),
        lambda store: store.commit_acquisitions("b", held=[], now=NINE, ttl=MINUTE, limit=3),
    )
    assert [len(fences) for fences in taken] == [3, 1]
    assert not {fence.partition for fence in taken[0]} & {fence.partition for fence in taken[1]}


def test_a_cancellation_and_an_opening_of_one_run_end_as_the_first_of_them_says(meeting: Meeting) -> None:
    cancelled, opened = queue_run(meeting.first, "a"), queue_run(meeting.first, "b")

    def cancel(store: SqlStore, run_id: RunId) -> RunState | None:
        run = store.commit_cancel(run_id, event=audit_event(at=NINE), now=NINE)
        return None if run is None else run.state

    answers = meeting.of(
        lambda store: cancel(store, cancelled.run_id),
        lambda store: store.commit_openings("w", [delivery_of(cancelled)], now=NINE),
    )
    assert answers == (RunState.CANCELLED, [None])
    _, state = meeting.of(
        lambda store: store.commit_openings("w", [delivery_of(opened)], now=NINE),
        lambda store: cancel(store, opened.run_id),
    )
    assert state is RunState.RUNNING
    assert run_of(meeting.first, opened.run_id).cancel_requested_at == NINE


def test_a_settlement_and_a_cancellation_of_one_run_end_as_the_first_of_them_says(meeting: Meeting) -> None:
    run = queue_run(meeting.first)
    open_attempt(meeting.first, run)
    settled, cancelled = meeting.of(
        lambda store: store.commit_settlements([success(run.run_id, at=NINE)]),
        lambda store: store.commit_cancel(run.run_id, event=audit_event(at=NINE), now=NINE),
    )
    assert settled == [True]
    assert cancelled is not None
    assert (cancelled.state, cancelled.cancel_requested_at) == (RunState.SUCCEEDED, None)


@pytest.mark.parametrize(
    "has_fence", [True, False], ids=["recovery passes over it", "without a fence it waits"]
)
def test_an_attempt_whose_heartbeat_comes_first_is_not_lost(meeting: Meeting, *, has_fence: bool) -> None:
    """The heartbeat leaves the run's row as it is, and whoever waits for it has read the attempt's lease before."""
    run = queue_run(meeting.first)
    open_attempt(meeting.first, run)
    [attempt] = attempts_of(meeting.first, run.run_id)
    now = attempt.lease_expires_at
    beat = Heartbeat(run_id=run.run_id, attempt=1, lease_expires_at=now + MINUTE, progress=None)
    outcomes = meeting.of(
        lambda store: store.commit_heartbeats([beat], now=now),
        lambda store: store.commit_settlements(
            [loss(run.run_id, at=now, retry_at=now)], fences=[fence_of_holder(store)] if has_fence else []
        ),
    )
    assert outcomes == ([HeartbeatOutcome.CURRENT], [False])
    assert run_of(meeting.first, run.run_id).state is RunState.RUNNING


def fence_of_holder(store: SqlStore) -> Fence:
    return Fence(partition=0, epoch=store.list_partitions()[0].epoch)


def test_an_attempt_that_was_lost_first_has_no_heartbeat(meeting: Meeting) -> None:
    run = queue_run(meeting.first)
    open_attempt(meeting.first, run)
    [attempt] = attempts_of(meeting.first, run.run_id)
    now, fence = attempt.lease_expires_at, fence_of_holder(meeting.first)
    beat = Heartbeat(run_id=run.run_id, attempt=1, lease_expires_at=now + MINUTE, progress=None)
    outcomes = meeting.of(
        lambda store: store.commit_settlements([loss(run.run_id, at=now, retry_at=now)], fences=[fence]),
        lambda store: store.commit_heartbeats([beat], now=now),
    )
    assert outcomes == ([True], [HeartbeatOutcome.STALE])


def test_two_settlements_of_one_attempt_write_one_retry(meeting: Meeting) -> None:
    run = queue_run(meeting.first)
    open_attempt(meeting.first, run)
    [attempt] = attempts_of(meeting.first, run.run_id)
    now, fence = attempt.lease_expires_at, fence_of_holder(meeting.first)
    lost = loss(run.run_id, at=now, retry_at=now + timedelta(seconds=5))
    outcomes = meeting.of(
        lambda store: store.commit_settlements([lost], fences=[fence]),
        lambda store: store.commit_settlements([success(run.run_id, at=now)]),
    )
    assert outcomes == ([True], [False])
    assert len(meeting.first.read_intents(["sales_report"], now=NINE + DAY, limit=10)) == 1


def _edit_at_noon(schedule: Schedule) -> ScheduleChange:
    noon = NINE + 3 * HOUR
    return edit(schedule, new_version(schedule.schedule_id, number=2, effective_from=noon))
