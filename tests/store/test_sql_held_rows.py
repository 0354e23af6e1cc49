"""One row that another connection holds on PostgreSQL keeps only itself waiting, and not the batch that it is in."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import psycopg
import pytest

from rota.config import Settings
from rota.dispatch.admitting import PageReport, admit_page
from rota.domain.run import Progress, Run, RunState
from rota.service.jobs import put_job
from rota.store.port import AdmissionOutcome, Fence, Heartbeat, HeartbeatOutcome, StoreUnavailable
from rota.store.sql import SqlStore, open_sql_store
from rota.testing.clock import ManualClock
from rota.wiring import open_context
from tests.conftest import NewDatabase
from tests.contract.builders import HOUR, MINUTE, NINE, admission, change_to, loss, new_schedule, success
from tests.contract.steps import (
    attempts_of,
    create,
    deliveries,
    fence_of,
    open_attempt,
    queue_run,
    run_of,
)
from tests.dispatch.conftest import save
from tests.store.meeting import Meeting

PATIENCE = timedelta(milliseconds=300)
"""Whoever waits for a lock fails after this time."""

HOLD_RUN = "SELECT 1 FROM runs WHERE run_id = %s FOR UPDATE"
HOLD_ATTEMPT = "SELECT 1 FROM attempts WHERE run_id = %s FOR UPDATE"
HOLD_SCHEDULE = "SELECT 1 FROM schedules WHERE id = %s FOR UPDATE"
LATER = NINE + 2 * HOUR
CURRENT = HeartbeatOutcome.CURRENT


@pytest.fixture
def store(url: str) -> Iterator[SqlStore]:
    opened = open_sql_store(url, busy_timeout=PATIENCE)
    yield opened
    opened.close()


@pytest.fixture
def other(url: str) -> Iterator[psycopg.Connection]:
    """Of somebody who is slow."""
    with psycopg.connect(url) as connection:
        yield connection


@pytest.fixture
def running(store: SqlStore) -> list[Run]:
    queued = [queue_run(store, id_) for id_ in ("a", "held", "z")]
    for run in queued:
        open_attempt(store, run)
    return queued


def beat(run: Run, progress: Progress | None = None) -> Heartbeat:
    return Heartbeat(run_id=run.run_id, attempt=1, lease_expires_at=LATER, progress=progress)


def lease_of(store: SqlStore, run: Run) -> object:
    return attempts_of(store, run.run_id)[0].lease_expires_at


def test_of_a_run_that_is_held_the_lease_is_lengthened_without_a_wait(
    store: SqlStore, other: psycopg.Connection, running: list[Run]
) -> None:
    other.execute(HOLD_RUN, [running[1].run_id])
    assert store.commit_heartbeats([beat(run) for run in running], now=NINE) == [CURRENT] * 3
    assert [lease_of(store, run) for run in running] == [LATER] * 3


@pytest.mark.parametrize("hold", [HOLD_RUN, HOLD_ATTEMPT])
def test_before_anybody_waits_the_leases_of_the_others_are_lengthened(
    store: SqlStore, other: psycopg.Connection, running: list[Run], hold: str
) -> None:
    """For the progress of a run that is held, or for an attempt that is being ended."""
    held = running[1]
    progress = Progress(fraction=0.5, message=None)
    beats = [beat(run, progress) for run in running]
    other.execute(HOLD_RUN, [held.run_id])
    other.execute(hold, [held.run_id])
    with pytest.raises(StoreUnavailable, match="lock timeout"):
        store.commit_heartbeats(beats, now=NINE)
    is_lengthened = [lease_of(store, run) == LATER for run in running]
    assert is_lengthened == [True, hold == HOLD_RUN, True]
    assert [run_of(store, run.run_id).progress for run in running] == [progress, None, progress]
    other.rollback()
    assert store.commit_heartbeats(beats, now=NINE) == [CURRENT] * 3
    assert run_of(store, held.run_id).progress == progress


def test_a_heartbeat_that_meets_the_end_of_its_attempt_is_stale(new_database: NewDatabase) -> None:
    meeting = Meeting(new_database("postgresql"))
    run = queue_run(meeting.first)
    open_attempt(meeting.first, run)
    answers = meeting.of(
        lambda store: store.commit_settlements([success(run.run_id, at=NINE)]),
        lambda store: store.commit_heartbeats([beat(run), beat(run)], now=NINE),
    )
    assert answers == ([True], [HeartbeatOutcome.STALE] * 2)
    meeting.close()


@pytest.mark.parametrize("hold", [HOLD_RUN, HOLD_ATTEMPT])
def test_recovery_passes_over_a_run_that_is_held(
    store: SqlStore, other: psycopg.Connection, running: list[Run], hold: str
) -> None:
    now = NINE + HOUR
    fence = Fence(partition=0, epoch=store.list_partitions()[0].epoch)
    losses = [loss(run.run_id, at=now, retry_at=now) for run in running]
    other.execute(hold, [running[1].run_id])
    assert store.commit_settlements(losses, fences=[fence]) == [True, False, True]
    other.rollback()
    assert store.commit_settlements(losses, fences=[fence]) == [False, True, False]


def test_before_a_worker_waits_for_a_run_its_other_settlements_are_written(
    store: SqlStore, other: psycopg.Connection, running: list[Run]
) -> None:
    other.execute(HOLD_RUN, [running[1].run_id])
    ends = [success(run.run_id, at=NINE) for run in running]
    with pytest.raises(StoreUnavailable, match="lock timeout"):
        store.commit_settlements(ends)
    states = [run_of(store, run.run_id).state for run in running]
    assert states == [RunState.SUCCEEDED, RunState.RUNNING, RunState.SUCCEEDED]
    other.rollback()
    assert store.commit_settlements(ends) == [False, True, False]


def test_a_settlement_that_has_waited_is_told_in_its_place(new_database: NewDatabase) -> None:
    meeting = Meeting(new_database("postgresql"))
    runs = [queue_run(meeting.first, id_) for id_ in ("a", "held", "z")]
    for run in runs:
        open_attempt(meeting.first, run)
    progress = Progress(fraction=0.5, message=None)
    answers = meeting.of(
        lambda store: store.commit_heartbeats([beat(runs[1], progress)], now=NINE),
        lambda store: store.commit_settlements(
            [success(run.run_id, at=NINE) for run in (*runs, runs[1])] + [success("none.1.x", at=NINE)]
        ),
    )
    assert answers == ([CURRENT], [True, True, True, False, False])
    meeting.close()


def test_a_page_is_admitted_without_the_schedule_that_is_held(
    store: SqlStore, other: psycopg.Connection
) -> None:
    schedules = [create(store, new_schedule(id_)) for id_ in ("a", "held", "z")]
    fence = fence_of(store, 0)
    elements = [admission(schedule) for schedule in schedules]
    other.execute(HOLD_SCHEDULE, ["held"])
    outcomes = store.commit_admissions(fence, elements, now=NINE)
    assert outcomes == [AdmissionOutcome.ADMITTED, AdmissionOutcome.STALE, AdmissionOutcome.ADMITTED]
    assert len(deliveries(store)) == 2
    other.rollback()
    assert store.commit_admissions(fence, elements[1:2], now=NINE) == [AdmissionOutcome.ADMITTED]


def test_a_page_of_which_all_is_held_is_not_read_again_at_once(
    store: SqlStore, other: psycopg.Connection
) -> None:
    """It would be read again and again for as long as somebody holds it."""
    clock = ManualClock(NINE - HOUR)
    context = open_context(Settings(partitions=1), store=store, clock=clock)
    put_job(context, "sales_report", {})
    save(context, "held", "0 9 * * *")
    [fence] = store.commit_acquisitions("node-a", held=[], now=NINE, ttl=MINUTE, limit=1)

    def admit() -> PageReport:
        cadences, after = context.cadences, NINE - HOUR
        return admit_page(store, cadences, fence, after=after, now=NINE, limit=9, differing=set())

    other.execute(HOLD_SCHEDULE, ["held"])
    assert (admit().read, admit().is_changed) == (1, False)
    other.rollback()
    report = admit()
    assert (report.admitted, report.is_changed) == (1, True)


def test_a_page_is_admitted_without_the_schedule_whose_run_is_held(
    store: SqlStore, other: psycopg.Connection
) -> None:
    waiting = queue_run(store, "held")
    record, free = store.get_schedule(waiting.schedule_id), create(store, new_schedule("z"))
    assert record is not None
    cancelling = replace(
        admission(record.schedule, runs=(), next_due=NINE + MINUTE),
        run_changes=(change_to(waiting, RunState.CANCELLED),),
    )
    other.execute(HOLD_RUN, [waiting.run_id])
    outcomes = store.commit_admissions(fence_of(store, 0), [cancelling, admission(free)], now=NINE)
    assert outcomes == [AdmissionOutcome.STALE, AdmissionOutcome.ADMITTED]
    other.rollback()
    assert store.commit_admissions(fence_of(store, 0), [cancelling], now=NINE) == [AdmissionOutcome.ADMITTED]
