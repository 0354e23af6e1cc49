"""What measurements copy into the tables equals what the service writes."""

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from sqlalchemy import create_engine, make_url, select

from bench.seeding import JOB, Group, far_ahead, seed
from rota.application import Rota
from rota.config import Settings
from rota.service.creation import create_schedule
from rota.store.sql.schema import audit, cadences, schedules, versions, zone_rules
from rota.testing.clock import ManualClock
from rota.worker.registry import Registry
from tests.conftest import NewDatabase

NOW = datetime(2026, 1, 10, 8, 30, 0, 250_000, tzinfo=UTC)
GROUPS = [
    Group(
        ids=["report-1", "report-2", "report-3"],
        recurrence={"cron": "0 9 * * 1-5"},
        timezone="America/New_York",
        overdue={"policy": "expire", "deadline": "PT5M"},
        created_at=NOW,
    ),
    Group(
        ids=["mail-1", "mail-2"],
        recurrence={"rrule": "DTSTART:20260105T090000\nRRULE:FREQ=WEEKLY;BYDAY=MO"},
        created_at=NOW,
    ),
]


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_seeded_rows_equal_those_of_the_service(kind: str, new_database: NewDatabase) -> None:
    served, seeded = new_database(kind), new_database(kind)
    with Rota(served, settings=Settings(), clock=ManualClock(NOW), registry=Registry()) as app:
        app.job(JOB)(lambda _: None)
        app.register_jobs()
        for group in GROUPS:
            for schedule_id in group.ids:
                create_schedule(app.context, group.body(schedule_id))
    assert seed(seeded, GROUPS) == 5
    assert stored_in(seeded) == stored_in(served)


def test_those_far_ahead_are_as_many_as_asked_and_due_after_a_day() -> None:
    groups = far_ahead(1_000, now=NOW)
    assert len({id_ for group in groups for id_ in group.ids}) == 1_000
    assert {group.created_at - NOW for group in groups} == {groups[0].created_at - NOW}
    assert (groups[0].created_at - NOW).days == 1


def stored_in(url: str) -> Mapping[str, list[tuple[object, ...]]]:
    """Every row of what a creation writes, but for the number of an audit event."""
    engine = create_engine(make_url(url.replace("postgresql:", "postgresql+psycopg:")))
    stored = {}
    with engine.connect() as connection:
        for table in (schedules, versions, audit, cadences, zone_rules):
            columns = [column for column in table.c if column is not audit.c.id]
            stored[table.name] = sorted(
                (tuple(row) for row in connection.execute(select(*columns))), key=repr
            )
    engine.dispose()
    return stored
