"""Commits of several writers into one SQLite file: none is lost, none applies twice, a broken batch leaves nothing."""

import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import bindparam, insert, update
from sqlalchemy.exc import IntegrityError

from rota.domain.errors import Stale
from rota.domain.job import Job
from rota.domain.run import RunState
from rota.store.port import AdmissionOutcome, ChangeOutcome, RunFilter
from rota.store.sql import SqlStore, open_sql_store, rows
from rota.store.sql.prepared import Prepared
from rota.store.sql.schema import jobs, runs
from tests.contract.builders import (
    DAY,
    NINE,
    admission,
    change_of,
    change_to,
    cursor,
    edit,
    idempotency_record,
    new_schedule,
    new_version,
    planned_run_at,
    run_at,
    skip_at,
)
from tests.contract.steps import create, fence_of, hold, record_of
from tests.store.raw import connect, execute

WRITERS = 4
ROUNDS = 15


def test_writers_of_several_connections_lose_no_commit(path: Path, store: SqlStore) -> None:
    [fence, *_] = hold(store)
    schedules = [create(store, new_schedule(f"s{writer}")) for writer in range(WRITERS)]
    failures: list[object] = []

    def admit_every_day(writer: int) -> None:
        own = open_sql_store(str(path))
        schedule = schedules[writer]
        try:
            for day in range(ROUNDS):
                element = admission(schedule, next_due=NINE + (day + 1) * DAY)
                outcome = own.commit_admissions(fence, [element], now=NINE)
                if outcome != [AdmissionOutcome.ADMITTED]:
                    failures.append(outcome)
                record = own.get_schedule(schedule.schedule_id)
                assert record is not None
                schedule = record.schedule
        finally:
            own.close()

    _all_at_once(admit_every_day)
    assert failures == []
    assert len(store.list_runs(RunFilter(), before=None, limit=1_000)) == WRITERS * ROUNDS
    assert execute(path, "SELECT count(*) FROM outbox") == [(WRITERS * ROUNDS,)]


def test_an_admission_that_all_connections_try_applies_for_one(path: Path, store: SqlStore) -> None:
    [fence, *_] = hold(store)
    elements = [admission(create(store, new_schedule(f"s{number:02d}"))) for number in range(20)]
    outcomes: list[Sequence[AdmissionOutcome]] = []

    def admit_all(_: int) -> None:
        own = open_sql_store(str(path))
        outcomes.append(own.commit_admissions(fence, elements, now=NINE))
        own.close()

    _all_at_once(admit_all)
    for told in zip(*outcomes, strict=True):
        assert sorted(told) == [AdmissionOutcome.ADMITTED] + [AdmissionOutcome.STALE] * (WRITERS - 1)
    assert execute(path, "SELECT count(*) FROM runs") == [(20,)]


def test_a_change_that_all_connections_try_applies_for_one(path: Path, store: SqlStore) -> None:
    schedules = [create(store, new_schedule(f"s{number:02d}")) for number in range(10)]
    outcomes: list[list[ChangeOutcome]] = []

    def edit_all(writer: int) -> None:
        own = open_sql_store(str(path))
        changes = [
            replace(
                edit(schedule, new_version(schedule.schedule_id, number=2, effective_from=NINE + DAY)),
                runs=(planned_run_at(schedule, NINE),),
                idempotency=idempotency_record(f"{writer}-{schedule.schedule_id}", expires_at=NINE + DAY),
            )
            for schedule in schedules
        ]
        outcomes.append([own.commit_change(change) for change in changes])
        own.close()

    _all_at_once(edit_all)
    for told in zip(*outcomes, strict=True):
        assert sorted(told) == [ChangeOutcome.CHANGED] + [ChangeOutcome.STALE] * (WRITERS - 1)
    for table, count in (("versions", 20), ("runs", 10), ("audit", 20), ("idempotency", 10)):
        assert execute(path, f"SELECT count(*) FROM {table}") == [(count,)]


def test_planned_runs_that_all_connections_see_due_are_queued_once(path: Path, store: SqlStore) -> None:
    fence = fence_of(store, 0)
    for number in range(30):
        schedule = create(store, new_schedule(f"s{number:02d}", due=NINE + DAY))
        store.commit_change(replace(change_of(schedule), runs=(planned_run_at(schedule, NINE),)))
    queued: list[int] = []

    def fall_due(_: int) -> None:
        own = open_sql_store(str(path))
        queued.extend(own.commit_planned(fence, now=NINE, limit=4).queued for _ in range(10))
        own.close()

    _all_at_once(fall_due)
    assert sum(queued) == 30
    assert execute(path, "SELECT count(*) FROM outbox") == [(30,)]


def test_elements_of_one_batch_that_build_on_each_other_apply_one_after_the_other(store: SqlStore) -> None:
    [fence, *_] = hold(store)
    schedule = create(store)
    store.commit_change(edit(schedule, new_version(number=2, effective_from=NINE)))
    first = record_of(store, schedule).schedule
    taken_over = replace(first, cursor=cursor(NINE, version=2))
    activation = replace(admission(first, runs=[]), cursor=taken_over.cursor)
    elements = [activation, admission(taken_over), admission(first)]
    outcomes = store.commit_admissions(fence, elements, now=NINE)
    assert outcomes == [AdmissionOutcome.ADMITTED, AdmissionOutcome.ADMITTED, AdmissionOutcome.STALE]


def test_an_element_that_finds_a_run_changed_takes_no_intent_away(path: Path, store: SqlStore) -> None:
    [fence, *_] = hold(store)
    changed, other = (create(store, new_schedule(f"s{number}", due=NINE + DAY)) for number in range(2))
    run = planned_run_at(changed, NINE)
    store.commit_change(replace(change_of(changed), expected_cursor=None, runs=(run,)))
    assert store.commit_planned(fence, now=NINE, limit=1).queued == 1
    late = replace(admission(changed, runs=[]), run_changes=(change_to(run, RunState.SKIPPED),))
    outcomes = store.commit_admissions(fence, [late, admission(other)], now=NINE)
    assert outcomes == [AdmissionOutcome.STALE, AdmissionOutcome.ADMITTED]
    assert execute(path, "SELECT count(*) FROM outbox") == [(2,)]


def test_a_change_that_can_never_be_written_is_raised(path: Path, store: SqlStore) -> None:
    schedule = create(store)
    execute(path, "UPDATE versions SET number = 2")
    with pytest.raises(IntegrityError, match="UNIQUE constraint failed: versions"):
        store.commit_change(edit(schedule, new_version(number=2)))
    assert execute(path, "SELECT count(*) FROM audit") == [(1,)]


def test_a_batch_in_which_a_key_is_used_is_written_but_for_that_element(path: Path, store: SqlStore) -> None:
    [fence, *_] = hold(store)
    schedules = [create(store, new_schedule(f"s{number}")) for number in range(4)]
    elements = [admission(schedule, skips=[skip_at(schedule, NINE - DAY, NINE)]) for schedule in schedules]
    used = run_at(schedules[2], NINE + DAY, period_key=elements[2].runs[0].period_key)
    with store._database.writing() as connection:
        connection.execute(insert(runs), [rows.run_values(used)])
    outcomes = store.commit_admissions(fence, elements, now=NINE)
    admitted, key_used = AdmissionOutcome.ADMITTED, AdmissionOutcome.KEY_USED
    assert outcomes == [admitted, admitted, key_used, admitted]
    assert execute(path, "SELECT schedule_id FROM skips ORDER BY 1") == [("s0",), ("s1",), ("s3",)]
    assert execute(path, "SELECT count(*) FROM outbox") == [(3,)]
    assert record_of(store, schedules[2]).schedule == schedules[2]


def test_a_conditional_write_that_finds_another_state_gives_up_its_transaction(store: SqlStore) -> None:
    store.commit_job(Job(name="mail"), now=NINE)
    rename = Prepared(update(jobs).where(jobs.c.name == bindparam("old")).values(name=bindparam("new")))
    renames = [{"old": "mail", "new": "post"}, {"old": "unknown", "new": "other"}]
    with (
        pytest.raises(Stale, match="2 rows were to change and 1 did"),
        store._database.writing() as connection,
    ):
        rename.change_each(connection, renames)
    assert [job.name for job in store.list_jobs(after=None, limit=10)] == ["mail"]


def test_an_epoch_cannot_change_between_the_fence_and_the_commit(path: Path, store: SqlStore) -> None:
    [fence, *_] = hold(store)
    rival = connect(path)
    with store._database.writing(), pytest.raises(Exception, match="locked"):
        rival.execute("PRAGMA busy_timeout=0").execute("UPDATE partitions SET epoch = epoch + 1")
    rival.execute("UPDATE partitions SET epoch = epoch + 1")
    rival.close()
    element = admission(create(store))
    assert store.commit_admissions(fence, [element], now=NINE) == [AdmissionOutcome.FENCED]


@pytest.mark.slow
def test_processes_acquire_each_partition_once_and_lose_nothing(path: Path, store: SqlStore) -> None:
    store.ensure_partitions(8)
    script = (
        "import sys; from datetime import datetime, timedelta, UTC; from rota.store.sql import open_sql_store;"
        "store = open_sql_store(sys.argv[1]); now = datetime(2026, 1, 10, 9, tzinfo=UTC); sys.stdin.read(1);"
        "held = [];"
        "[held.extend(store.commit_acquisitions(sys.argv[2], held=held, now=now, ttl=timedelta(minutes=5), limit=1))"
        " for _ in range(8)];"
        "store.commit_checkpoints([(f, now) for f in held]); store.close(); print(*[f.partition for f in held])"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(path), f"node-{number}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for number in range(3)
    ]
    answers = [process.communicate(b"x", timeout=60)[0].split() for process in processes]
    assert sorted(int(partition) for answer in answers for partition in answer) == list(range(8))
    states = store.list_partitions()
    assert [state.epoch for state in states] == [1] * 8
    assert [state.checkpoint for state in states] == [NINE] * 8


def _all_at_once(write: Callable[[int], None]) -> None:
    """Calls `write` in `WRITERS` threads, with the number of each."""
    threads = [threading.Thread(target=write, args=[writer]) for writer in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
