"""Rows of the SQL store: every value comes back as it was, and a row that makes no sense stops only itself (I12)."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError

from rota.domain.admission import DueSchedule
from rota.domain.errors import UnreadableRow
from rota.domain.identity import RunId, ScheduleId
from rota.domain.job import Job, RetryPolicy
from rota.domain.json_text import encode_json
from rota.domain.overdue import CatchUpAll, Expire, LatestOnly, OverduePolicy
from rota.domain.recurrence import At, Cron, Every, Recurrence, RRule
from rota.domain.run import Progress, Run, RunState
from rota.store.port import Delivery, ScheduleFilter, Unreadable
from rota.store.sql import SqlStore, rows
from rota.store.sql.schema import runs
from tests.contract.builders import (
    DAY,
    HOUR,
    MINUTE,
    NINE,
    SECOND,
    definition,
    labels,
    new_schedule,
    run_at,
)
from tests.contract.steps import create, queue_run
from tests.store.raw import execute

BAD = "bad"
GOOD = "good"


@pytest.mark.parametrize(
    "recurrence",
    [
        Cron(expression="0 9 * * 1-5"),
        RRule(text="DTSTART:20260105T090000\nRRULE:FREQ=WEEKLY;BYDAY=MO"),
        At(time=datetime(2026, 1, 10, 9, 0, 30)),
        At(time=NINE),
        Every(interval=timedelta(minutes=15), anchor=NINE),
        Every(interval=timedelta(days=7), anchor=NINE),
    ],
)
@pytest.mark.parametrize(
    "overdue",
    [None, CatchUpAll(), CatchUpAll(max_age=DAY), LatestOnly(grace=2 * MINUTE), Expire(deadline=HOUR)],
)
def test_a_definition_comes_back_as_it_was(
    store: SqlStore, recurrence: Recurrence, overdue: OverduePolicy | None
) -> None:
    asked = replace(
        definition(recurrence, timezone="America/New_York", gap="forward", overdue=overdue),
        params=encode_json({"ä": [1, 2.5, None, True], "b": {"c": "\u2028"}}),
        starts_at=NINE,
        ends_at=NINE + DAY,
        max_occurrences=3,
    )
    new = new_schedule(of=asked)
    create(store, new)
    assert store.get_version(new.schedule.schedule_id, 1) == new.version
    assert store.read_cadences([new.cadence.cadence_id]) == [new.cadence]


def test_a_run_comes_back_as_it_was(store: SqlStore) -> None:
    run = Run(
        run_id=RunId("report-7.1.19691231T235959Z"),
        schedule_id=ScheduleId("report-7"),
        version=1,
        scheduled_at=datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC),
        due_at=NINE,
        named_local=datetime(1969, 12, 31, 18, 59, 59),
        offset=timedelta(hours=-4, minutes=-56, seconds=-2),
        period_key="day:1969-12-31",
        origin="backfill",
        job="sales_report",
        partition=3,
        state=RunState.MOOT,
        reason="confirmed already",
        planned_at=NINE + timedelta(milliseconds=1),
        admitted_at=NINE + timedelta(milliseconds=2),
        started_at=NINE + timedelta(milliseconds=3),
        finished_at=NINE + timedelta(milliseconds=999),
        attempt=2,
        available_at=NINE + SECOND,
        progress=Progress(fraction=1 / 3, message="a third"),
        error="no paper",
        cancel_requested_at=datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC),
    )
    with store._database.writing() as connection:
        connection.execute(insert(runs), [rows.run_values(run)])
    detail = store.get_run(run.run_id)
    assert detail is not None
    assert detail.run == run


@pytest.mark.parametrize(
    "job",
    [
        Job(name="mail"),
        Job(
            name="mail",
            overdue=Expire(deadline=timedelta(seconds=1.5)),
            retry=RetryPolicy(
                max_attempts=1, initial_delay=timedelta(0), factor=1.5, max_delay=DAY, jitter=0.0
            ),
            timeout=MINUTE,
            lease=timedelta(milliseconds=250),
            params_bytes_max=10,
            description="Sends a letter\nand waits.",
        ),
    ],
)
def test_a_job_comes_back_as_it_was_even_beyond_the_limits_of_today(store: SqlStore, job: Job) -> None:
    store.commit_job(job, now=NINE)
    assert store.get_job("mail") == job


def test_every_json_text_is_canonical(store: SqlStore, path: Path) -> None:
    create(
        store, new_schedule(labels=labels(b="2", a="1"), of=definition(params=encode_json({"y": 1, "x": 2})))
    )
    store.commit_job(Job(name="mail", description="ä"), now=NINE)
    texts = [
        ("schedules", "labels"),
        ("versions", "definition"),
        ("versions", "params"),
        ("cadences", "recurrence"),
        ("audit", "details"),
        ("jobs", "spec"),
    ]
    for table, column in texts:
        [(text,)] = execute(path, f"SELECT {column} FROM {table}")
        assert isinstance(text, str)
        assert encode_json(json.loads(text)) == text


def test_schedules_with_one_rule_share_its_text_whatever_their_params(store: SqlStore, path: Path) -> None:
    for number in range(3):
        create(store, new_schedule(f"s{number}", of=definition(params=encode_json({"number": number}))))
    assert execute(path, "SELECT count(DISTINCT definition), count(DISTINCT params) FROM versions") == [
        (1, 3)
    ]


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
    "a number for a text": ("UPDATE versions SET params = x'00' WHERE schedule_id = 'bad'", "not a text"),
    "an unknown fold": ("UPDATE versions SET fold = 'third' WHERE schedule_id = 'bad'", "third"),
    "a date beyond all": ("UPDATE versions SET created_at = 1e18 WHERE schedule_id = 'bad'", ""),
    "a date as text": ("UPDATE schedules SET updated_at = 'now' WHERE id = 'bad'", "not a whole number"),
    "no version": ("DELETE FROM versions WHERE schedule_id = 'bad'", "version 1 does not exist"),
    "a cursor without one": ("UPDATE schedules SET version = 9 WHERE id = 'bad'", "version 9 does not exist"),
}


@pytest.mark.parametrize("kind", NONSENSE)
def test_a_row_that_makes_no_sense_stops_only_itself(store: SqlStore, path: Path, kind: str) -> None:
    statement, problem = NONSENSE[kind]
    for id_ in ("a-first", BAD, GOOD):
        create(store, new_schedule(id_))
    execute(path, statement)
    first, bad, good = store.read_due(0, now=NINE, limit=10)
    assert isinstance(first, DueSchedule)
    assert isinstance(good, DueSchedule)
    assert isinstance(bad, Unreadable)
    assert bad.schedule_id == BAD
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
    assert record.version == never.version


def test_a_job_that_makes_no_sense_stops_only_its_schedules(store: SqlStore, path: Path) -> None:
    good = queue_run(store, GOOD, job="mail")
    bad = queue_run(store, BAD, job="report")
    for name in ("mail", "report"):
        store.commit_job(Job(name=name), now=NINE)
    for new in (new_schedule("s1", job="mail"), new_schedule("s2", job="report")):
        create(store, new)
    execute(path, "UPDATE jobs SET spec = '{}' WHERE name = 'report'")
    assert [type(entry) for entry in store.read_due(0, now=NINE, limit=10)] == [DueSchedule, Unreadable]
    deliveries = store.read_deliveries(["mail", "report"], now=NINE, limit=10)
    opened = store.commit_openings("worker-1", deliveries, now=NINE)
    assert [attempt.run.run_id for attempt in opened if attempt] == [good.run_id]
    assert [delivery.run_id for delivery in store.read_deliveries(["report"], now=NINE, limit=10)] == [
        bad.run_id
    ]
    with pytest.raises(UnreadableRow, match="job report"):
        store.get_job("report")


def test_a_lost_attempt_whose_job_makes_no_sense_hides_no_other(store: SqlStore, path: Path) -> None:
    queued = [queue_run(store, BAD, job="report"), queue_run(store, GOOD, job="mail")]
    store.commit_job(Job(name="report"), now=NINE)
    deliveries = [Delivery(run_id=run.run_id, attempt=1, job=run.job, available_at=NINE) for run in queued]
    assert all(store.commit_openings("worker-1", deliveries, now=NINE))
    execute(path, "UPDATE jobs SET spec = 'null' WHERE name = 'report'")
    [lost] = store.read_lost([0], now=NINE + DAY, limit=10)
    assert lost.attempt.run_id == queued[1].run_id


def test_a_cadence_that_makes_no_sense_is_left_out(store: SqlStore, path: Path) -> None:
    news = [new_schedule(BAD), new_schedule(GOOD, of=definition(Cron(expression="5 * * * *")))]
    for new in news:
        create(store, new)
    ids = [new.cadence.cadence_id for new in news]
    execute(path, "UPDATE cadences SET recurrence = '{}' WHERE id = ?", [ids[0]])
    assert store.read_cadences(ids) == [news[1].cadence]


@pytest.mark.parametrize("column", ["next_due", "next_scheduled_at"])
@pytest.mark.parametrize("value", ["'soon'", "253402300800000", "-62135596800001"])
def test_a_cursor_that_could_not_be_reported_cannot_be_stored(
    store: SqlStore, path: Path, column: str, value: str
) -> None:
    create(store)
    with pytest.raises(Exception, match=f"ck_schedules_{column}"):
        execute(path, f"UPDATE schedules SET {column} = {value}")


def test_a_state_that_does_not_exist_cannot_be_stored(store: SqlStore) -> None:
    values = {**rows.run_values(run_at(new_schedule().schedule, NINE)), "state": "waiting"}
    with pytest.raises(IntegrityError, match="ck_runs_state"), store._database.writing() as connection:
        connection.execute(insert(runs), [values])
