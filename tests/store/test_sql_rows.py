"""Rows of the SQL store: every value comes back as it was."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import insert

from rota.domain.identity import RunId, ScheduleId
from rota.domain.job import Job, RetryPolicy
from rota.domain.json_text import encode_json
from rota.domain.overdue import CatchUpAll, Expire, LatestOnly, OverduePolicy
from rota.domain.recurrence import At, Cron, Every, Recurrence, RRule
from rota.domain.run import Progress, Run, RunState
from rota.domain.sink import CelerySink, DeliveryPolicy, SqsSink, WebhookSink
from rota.store.port import ChangeOutcome
from rota.store.sql import SqlStore, rows
from rota.store.sql.schema import runs
from tests.contract.builders import (
    DAY,
    HOUR,
    MINUTE,
    NINE,
    SECOND,
    change_of,
    definition,
    labels,
    new_schedule,
    new_version,
)
from tests.contract.steps import create
from tests.store.raw import execute


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
        overlap="queue",
        spread=10 * MINUTE,
        max_occurrences=3,
    )
    new = new_schedule(of=asked)
    create(store, new)
    assert store.get_version(new.schedule.schedule_id, 1) == new.first.version
    assert store.read_cadences([new.first.cadence.cadence_id]) == [new.first.cadence]


def test_a_version_comes_back_as_it_was_and_as_it_was_stamped_anew(store: SqlStore) -> None:
    schedule = create(store)
    second = new_version(number=2, effective_from=NINE)
    version = replace(
        second.version,
        effective_until=NINE + DAY,
        last_scheduled_at=NINE + HOUR,
        actor="ops",
        reason="moved",
        boundary="now",
        series=2,
        counts_from=NINE + MINUTE,
        named_before=7,
    )
    change = replace(change_of(schedule), versions=(replace(second, version=version),))
    assert store.commit_change(change) is ChangeOutcome.CHANGED
    assert store.get_version(schedule.schedule_id, 2) == version
    stamped = new_version(number=2, fingerprint="other", effective_from=NINE + HOUR)
    anew = replace(change, expected_revision=2, versions=(), restamped=(stamped,))
    assert store.commit_change(anew) is ChangeOutcome.CHANGED
    assert store.get_version(schedule.schedule_id, 2) == stamped.version
    assert store.get_zone_rules("UTC", "other") == stamped.zone_rules


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
        second_pass=True,
        carried_by=2,
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
            sink=WebhookSink(
                url="https://shop.example/hooks", secrets_from=("OLD", "NEW"), timeout=timedelta(seconds=0.2)
            ),
            delivery=DeliveryPolicy(redeliver_after=timedelta(seconds=0.5), concurrency=100_000, jitter=0.0),
            priority=0,
            max_running=7,
            description="Sends a letter\nand waits.",
        ),
        Job(name="mail", sink=CelerySink(task="tasks.mail", queue="letters"), priority=9),
        Job(name="mail", sink=CelerySink(task="tasks.mail")),
        Job(name="mail", sink=SqsSink(queue_url="https://sqs.example/1/mail.fifo"), max_running=1),
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
        ("zone_rules", "offsets"),
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
