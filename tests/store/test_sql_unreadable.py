"""Rows of the SQL store that make no sense: each stops only itself; what would stop others cannot be stored (I12)."""

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError

from rota.domain.due import DueSchedule
from rota.domain.errors import UnreadableRow
from rota.domain.identity import ScheduleId
from rota.domain.job import Job, RetryPolicy
from rota.domain.recurrence import Cron
from rota.domain.run import Run, RunState
from rota.store.port import (
    AdmissionOutcome,
    Heartbeat,
    HeartbeatOutcome,
    Intent,
    LedgerKey,
    RunFilter,
    ScheduleFilter,
    Unreadable,
)
from rota.store.sql import SqlStore, rows, schema
from rota.store.sql.schema import runs
from tests.contract.builders import (
    DAY,
    HOUR,
    MINUTE,
    NINE,
    SECOND,
    admission,
    definition,
    failure,
    new_schedule,
    run_at,
    skip_at,
    success,
)
from tests.contract.steps import create, fence_of, queue_run, read_pages
from tests.store.raw import execute, execute_unchecked

TABLES = (
    schema.schedules,
    schema.versions,
    schema.zone_rules,
    schema.runs,
    schema.outbox,
    schema.partitions,
    schema.skips,
)
BAD = "bad"
GOOD = "good"


NONSENSE: dict[str, tuple[str, str]] = {
    "no JSON": ("UPDATE versions SET definition = '{' WHERE schedule_id = 'bad'", "Expecting"),
    "nested too deep": (
        f"UPDATE versions SET definition = '{'[' * 5_000}' WHERE schedule_id = 'bad'",
        "recursion",
    ),
    "another shape": (
        "UPDATE versions SET definition = '[1]' WHERE schedule_id = 'bad'",
        "not a JSON object",
    ),
    "a member missing": (
        "UPDATE versions SET definition = json_remove(definition, '$.timezone') WHERE schedule_id = 'bad'",
        "timezone",
    ),
    "no recurrence": (
        "UPDATE versions SET definition = json_set(definition, '$.recurrence', 7) WHERE schedule_id = 'bad'",
        "no recurrence",
    ),
    "params that are no JSON": (
        "UPDATE versions SET params = '{' WHERE schedule_id = 'bad'",
        "Expecting",
    ),
    "params that are no object": ("UPDATE versions SET params = '7' WHERE schedule_id = 'bad'", "not a JSON"),
    "params that no reader takes": (
        """UPDATE versions SET params = '{"a":NaN}' WHERE schedule_id = 'bad'""",
        "NaN",
    ),
    "half a character": (
        """UPDATE versions SET params = '{"a":"\\ud800"}' WHERE schedule_id = 'bad'""",
        "surrogate",
    ),
    "labels that are no JSON": ("UPDATE schedules SET labels = '' WHERE id = 'bad'", "Expecting"),
    "labels that are no texts": (
        """UPDATE schedules SET labels = '{"a":1}' WHERE id = 'bad'""",
        "not a text",
    ),
    "an unknown fold": ("UPDATE versions SET fold = 'third' WHERE schedule_id = 'bad'", "third"),
    "a date beyond all": ("UPDATE versions SET created_at = 1e18 WHERE schedule_id = 'bad'", ""),
    "an unknown boundary": ("UPDATE versions SET boundary = 'later' WHERE schedule_id = 'bad'", "later"),
    "a series that began beyond all dates": (
        "UPDATE versions SET counts_from = 1e18 WHERE schedule_id = 'bad'",
        "",
    ),
    "no latest version": (
        "UPDATE schedules SET latest_version = 2 WHERE id = 'bad'",
        "version 2 does not exist",
    ),
    "no version": ("DELETE FROM versions WHERE schedule_id = 'bad'", "version 1 does not exist"),
    "a cursor without one": ("UPDATE schedules SET version = 9 WHERE id = 'bad'", "version 9 does not exist"),
}


@pytest.mark.parametrize("kind", NONSENSE)
def test_a_row_that_makes_no_sense_stops_only_itself(store: SqlStore, path: Path, kind: str) -> None:
    statement, problem = NONSENSE[kind]
    for id_ in ("a-first", BAD, GOOD):
        create(store, new_schedule(id_))
    execute_unchecked(path, statement)
    first, bad, good = store.read_due(0, now=NINE, limit=10)
    assert isinstance(first, DueSchedule)
    assert isinstance(good, DueSchedule)
    assert isinstance(bad, Unreadable)
    assert (bad.schedule_id, bad.revision) == (BAD, 1)
    assert "schedule bad" in bad.problem
    assert problem in bad.problem
    with pytest.raises(UnreadableRow, match="schedule bad"):
        store.get_schedule(ScheduleId(BAD))
    listed = store.list_schedules(ScheduleFilter(), after=None, limit=2)
    assert [record.schedule.schedule_id for record in listed] == ["a-first", GOOD]


def test_an_expression_that_cannot_be_computed_is_shown_but_not_due(store: SqlStore) -> None:
    never = new_schedule(BAD, of=definition(Cron(expression="0 0 30 2 *")))
    create(store, never)
    [bad] = store.read_due(0, now=NINE, limit=10)
    assert isinstance(bad, Unreadable)
    assert bad.cursor == never.schedule.cursor
    record = store.get_schedule(ScheduleId(BAD))
    assert record is not None
    assert record.version == never.first.version


def test_a_job_that_makes_no_sense_stops_only_its_schedules(store: SqlStore, path: Path) -> None:
    good, bad = queue_run(store, GOOD, job="mail"), queue_run(store, BAD, job="report")
    for name in ("mail", "report"):
        store.commit_job(Job(name=name), now=NINE)
    for new in (new_schedule("s1", job="mail"), new_schedule("s2", job="report")):
        create(store, new)
    execute(path, "UPDATE jobs SET spec = '{}' WHERE name = 'report'")
    assert [type(entry) for entry in store.read_due(0, now=NINE, limit=10)] == [DueSchedule, Unreadable]
    deliveries = store.read_intents(["mail", "report"], now=NINE, limit=10)
    opened = store.commit_openings("worker-1", deliveries, now=NINE)
    assert [attempt.run.run_id for attempt in opened if attempt] == [good.run_id]
    assert_failed(store, bad, problem="job report cannot be read")
    with pytest.raises(UnreadableRow, match="job report"):
        store.get_job("report")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("UPDATE versions SET definition = '{' WHERE schedule_id = 'bad'", "Expecting"),
        ("UPDATE versions SET params = 'x' WHERE schedule_id = 'bad'", "Expecting"),
        ("DELETE FROM versions WHERE schedule_id = 'bad'", "version 1 does not exist"),
        (
            "INSERT INTO jobs SELECT 'bad', replace(spec, 'PT30S', 'P2500000D'), 0, 0, 0, 5, NULL, 1 FROM jobs",
            "longer than ten years",
        ),
        (
            "UPDATE runs SET available_at = 7, offset_seconds = 90000 WHERE schedule_id = 'bad'",
            "no offset",
        ),
    ],
)
def test_a_run_that_makes_no_sense_fails_instead_of_being_delivered_for_ever(
    store: SqlStore, path: Path, change: str, problem: str
) -> None:
    bad, good = queue_run(store, BAD, job="bad"), queue_run(store, GOOD)
    store.commit_job(Job(name="good"), now=NINE)
    execute(path, change)
    deliveries = store.read_intents(["bad", "sales_report"], now=NINE, limit=10)
    opened = store.commit_openings("worker-1", deliveries, now=NINE)
    assert [attempt and attempt.run.run_id for attempt in opened] == [None, good.run_id]
    execute(path, "UPDATE runs SET available_at = due_at, offset_seconds = 0")
    assert_failed(store, bad, problem=problem)


@pytest.mark.parametrize("change", ["available_at = 7", "available_at = NULL", "job = 'other'"])
def test_a_run_that_says_another_delivery_than_its_own_stops_no_other(
    store: SqlStore, path: Path, change: str
) -> None:
    bad, good = queue_run(store, BAD), queue_run(store, GOOD)
    execute(path, f"UPDATE runs SET {change} WHERE schedule_id = 'bad'")
    deliveries = store.read_intents(["sales_report"], now=NINE, limit=10)
    opened = store.commit_openings("worker-1", deliveries, now=NINE)
    assert [attempt and attempt.run.run_id for attempt in opened] == [bad.run_id, good.run_id]
    assert store.read_next_intent_time(["sales_report"]) is None


def assert_failed(store: SqlStore, run: Run, *, problem: str) -> None:
    detail = store.get_run(run.run_id)
    assert detail is not None
    assert (detail.run.state, detail.run.finished_at, detail.run.attempt) == (RunState.FAILED, NINE, 0)
    assert problem in str(detail.run.error)
    assert detail.attempts == ()
    assert store.read_next_intent_time([run.job]) is None


@pytest.mark.parametrize("state", ["failed", "cancelled", "succeeded"])
def test_a_delivery_that_nobody_can_open_is_taken_away_and_keeps_nobodys_place(
    store: SqlStore, path: Path, state: str
) -> None:
    queue_run(store, BAD)
    queue_run(store, GOOD)
    execute(path, "UPDATE runs SET state = ? WHERE schedule_id = 'bad'", [state])
    [dead] = store.read_intents(["sales_report"], now=NINE, limit=1)
    assert store.commit_openings("w", [dead], now=NINE) == [None]
    [waiting] = store.read_intents(["sales_report"], now=NINE, limit=1)
    assert waiting.run_id.startswith(GOOD)


def test_a_copy_of_an_older_delivery_takes_nothing_away(store: SqlStore) -> None:
    run = queue_run(store, GOOD)
    [first] = store.read_intents(["sales_report"], now=NINE, limit=1)
    assert store.commit_openings("w", [first], now=NINE) != [None]
    assert store.commit_settlements([failure(run.run_id, at=NINE, retry_at=NINE)]) == [True]
    [second] = store.read_intents(["sales_report"], now=NINE, limit=1)
    assert (second.attempt, second.available_at) == (2, first.available_at)
    assert store.commit_openings("w", [first], now=NINE) == [None]
    assert store.read_intents(["sales_report"], now=NINE, limit=1) == [second]


def test_a_lost_attempt_whose_job_makes_no_sense_is_lost_by_the_defaults(store: SqlStore, path: Path) -> None:
    queued = [queue_run(store, BAD, job="report"), queue_run(store, GOOD, job="mail")]
    store.commit_job(Job(name="report", retry=RetryPolicy(max_attempts=1)), now=NINE)
    deliveries = [Intent(run_id=run.run_id, attempt=1, job=run.job, available_at=NINE) for run in queued]
    assert all(store.commit_openings("worker-1", deliveries, now=NINE))
    execute(path, "UPDATE jobs SET spec = 'null' WHERE name = 'report'")
    lost = store.read_lost([0], now=NINE + DAY, limit=10)
    assert [(entry.attempt.run_id, entry.job) for entry in lost] == [
        (queued[0].run_id, Job(name="report")),
        (queued[1].run_id, Job(name="mail")),
    ]


def test_a_running_run_that_makes_no_sense_stops_no_other(store: SqlStore, path: Path) -> None:
    queued = [queue_run(store, id_) for id_ in (BAD, "gone", GOOD)]
    deliveries = [Intent(run_id=run.run_id, attempt=1, job=run.job, available_at=NINE) for run in queued]
    assert all(store.commit_openings("worker-1", deliveries, now=NINE))
    execute(path, "UPDATE runs SET offset_seconds = 90000 WHERE schedule_id = 'bad'")
    execute(path, "DELETE FROM attempts WHERE run_id LIKE 'gone.%'")
    beats = [
        Heartbeat(run_id=run.run_id, attempt=1, lease_expires_at=NINE + MINUTE, progress=None)
        for run in queued
    ]
    current, stale = HeartbeatOutcome.CURRENT, HeartbeatOutcome.STALE
    assert store.commit_heartbeats(beats, now=NINE) == [current, stale, current]
    ends = [success(run.run_id, at=NINE) for run in queued]
    # It ends all the same: nothing of what makes no sense is needed for it.
    assert store.commit_settlements(ends) == [True, False, True]


def test_lists_of_runs_go_on_over_those_that_make_no_sense(store: SqlStore, path: Path) -> None:
    schedule = create(store)
    queued = [run_at(schedule, NINE + hours * HOUR) for hours in range(9)]
    skips = [skip_at(schedule, NINE + number * SECOND, NINE + HOUR, count=number + 1) for number in range(9)]
    fence = fence_of(store, 0)
    element = admission(schedule, runs=queued, skips=skips)
    assert store.commit_admissions(fence, [element], now=NINE) == [AdmissionOutcome.ADMITTED]
    execute(path, "UPDATE runs SET started_at = 1e18 WHERE (scheduled_at / 3600000) % 9 NOT IN (1, 2)")
    execute(path, "UPDATE skips SET version = -1, count = 1 WHERE count > 6")
    good = [run for run in reversed(queued) if store_can_read(store, run)]
    assert len(good) == 2
    for limit in (1, 2, 3, 100):

        def read(last: Run | None, limit: int = limit) -> list[Run]:
            before = None if last is None else LedgerKey(instant=last.scheduled_at, id_=last.run_id)
            return store.list_runs(RunFilter(), before=before, limit=limit)

        assert read_pages(read, limit=limit) == good
    ledger = store.list_ledger(schedule.schedule_id, before=None, limit=100)
    assert [entry for entry in ledger if isinstance(entry, Run)] == good
    assert len(ledger) == len(good) + len(skips)


def store_can_read(store: SqlStore, run: Run) -> bool:
    try:
        return store.get_run(run.run_id) is not None
    except UnreadableRow:
        return False


def test_a_list_of_jobs_goes_on_over_those_that_make_no_sense(store: SqlStore, path: Path) -> None:
    for number in range(9):
        store.commit_job(Job(name=f"job-{number}"), now=NINE)
    execute(path, "UPDATE jobs SET spec = '[' WHERE name IN ('job-0', 'job-1', 'job-2', 'job-4', 'job-8')")
    for limit in (1, 2, 100):

        def read(last: Job | None, limit: int = limit) -> list[Job]:
            return store.list_jobs(after=None if last is None else last.name, limit=limit)

        assert [job.name[-1] for job in read_pages(read, limit=limit)] == ["3", "5", "6", "7"]


def test_a_cadence_that_makes_no_sense_is_left_out(store: SqlStore, path: Path) -> None:
    news = [new_schedule(BAD), new_schedule(GOOD, of=definition(Cron(expression="5 * * * *")))]
    for new in news:
        create(store, new)
    ids = [new.first.cadence.cadence_id for new in news]
    execute(path, "UPDATE cadences SET recurrence = '{}' WHERE id = ?", [ids[0]])
    assert store.read_cadences(ids) == [news[1].first.cadence]


def test_a_revision_is_at_least_one(store: SqlStore, path: Path) -> None:
    create(store)
    with pytest.raises(Exception, match="ck_schedules_revision"):
        execute(path, "UPDATE schedules SET revision = 0")


@pytest.mark.parametrize("column", ["next_due", "next_scheduled_at"])
@pytest.mark.parametrize("value", ["253402300800000", "-62135596800001"])
def test_a_cursor_that_could_not_be_reported_cannot_be_stored(
    store: SqlStore, path: Path, column: str, value: str
) -> None:
    create(store)
    with pytest.raises(Exception, match=f"ck_schedules_{column}"):
        execute(path, f"UPDATE schedules SET {column} = {value}")


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("outbox", "available_at"),
        ("runs", "due_at"),
        ("attempts", "lease_expires_at"),
        ("partitions", "expires_at"),
        ("partitions", "checkpoint"),
    ],
)
def test_what_all_of_a_kind_are_ordered_by_cannot_lie_beyond_all_dates(
    store: SqlStore, path: Path, table: str, column: str
) -> None:
    for run in (queue_run(store, "waits"), queue_run(store, "runs")):
        delivery = Intent(run_id=run.run_id, attempt=1, job=run.job, available_at=NINE)
    store.commit_openings("worker-1", [delivery], now=NINE)
    with pytest.raises(Exception, match=f"ck_{table}_{column}"):
        execute(path, f"UPDATE {table} SET {column} = 253402300800000")


@pytest.mark.parametrize("column", [f"{table.name}.{column.name}" for table in TABLES for column in table.c])
def test_no_column_takes_another_type_than_its_own(store: SqlStore, path: Path, column: str) -> None:
    schedule = create(store)
    skip = skip_at(schedule, NINE - DAY, NINE)
    fence = fence_of(store, 0)
    store.commit_admissions(fence, [admission(schedule, skips=[skip])], now=NINE)
    table, name = column.split(".")
    [(type_,)] = execute(path, f"SELECT type FROM pragma_table_info('{table}') WHERE name = '{name}'")
    others = {"INTEGER": ["1.5", "'x'", "x'00'"], "TEXT": ["x'00'"], "REAL": ["'x'", "x'00'"]}
    for value in others[str(type_)]:
        with pytest.raises(sqlite3.IntegrityError, match=r"cannot store|datatype mismatch"):
            execute(path, f"UPDATE {table} SET {name} = {value}")


def test_a_state_that_does_not_exist_cannot_be_stored(store: SqlStore) -> None:
    values = {**rows.run_values(run_at(new_schedule().schedule, NINE)), "state": "sleeping"}
    with pytest.raises(IntegrityError, match="ck_runs_state"), store._database.writing() as connection:
        connection.execute(insert(runs), [values])
