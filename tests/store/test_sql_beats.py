"""The columns of a schedule that repeat what the version of its cursor says: they follow it through every change."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from sqlalchemy import and_, delete, select

from rota.domain.overdue import CatchUpAll, Expire, LatestOnly, OverduePolicy
from rota.domain.recurrence import Cron
from rota.domain.schedule import Cursor, Schedule, Version
from rota.store.port import AdmissionOutcome, NewVersion, ScheduleFilter
from rota.store.sql import SqlStore
from rota.store.sql.bounds import FOLLOWED, LATENESS_UNLIMITED, bound_values, followed_values, lateness_of
from rota.store.sql.schema import schedules, versions
from tests.conftest import OpenStore
from tests.contract.beating import read_keys
from tests.contract.builders import (
    DAY,
    HOUR,
    MINUTE,
    NINE,
    SECOND,
    admission,
    change_of,
    cursor,
    definition,
    edit,
    new_schedule,
    new_version,
    pause,
    resume,
)
from tests.contract.steps import commit, create, fence_of


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, open_store: OpenStore) -> Iterator[SqlStore]:
    opened = open_store(request.param)
    assert isinstance(opened, SqlStore)
    yield opened
    assert_followed(opened)


def assert_followed(store: SqlStore) -> None:
    """Every schedule says what its cursor's version says, and every version what its definition says."""
    of_cursor = and_(versions.c.schedule_id == schedules.c.id, versions.c.number == schedules.c.version)
    with store._database.reading() as connection:
        found = connection.execute(select(*(schedules.c[name] for name in ("id", *FOLLOWED)))).all()
        wanted = connection.execute(
            select(versions.c.schedule_id, *(versions.c[name] for name in FOLLOWED)).join(
                schedules, of_cursor
            )
        ).all()
    assert sorted(map(tuple, found)) == sorted(map(tuple, wanted))
    for record in store.list_schedules(ScheduleFilter(), after=None, limit=100):
        for version in store.list_versions(record.schedule.schedule_id, before=None, limit=100):
            assert stored_of(store, version) == {**followed_values(version), **bound_values(version)}


def stored_of(store: SqlStore, version: Version) -> dict[str, object]:
    with store._database.reading() as connection:
        row = connection.execute(
            select(*(versions.c[name] for name in FOLLOWED)).where(
                versions.c.schedule_id == version.schedule_id, versions.c.number == version.number
            )
        )
        return dict(row.mappings().one())


def other_version(id_: str = "report-7", *, number: int = 2, minute: int = 0) -> NewVersion:
    """One that differs in everything that is repeated."""
    of = definition(Cron(expression=f"{minute} 9 * * 6"), overdue=Expire(deadline=MINUTE))
    new = new_version(
        id_, replace(of, ends_at=NINE + 9 * DAY), number=number, effective_from=NINE + number * MINUTE
    )
    return replace(
        new,
        version=replace(new.version, period="week", series=number, last_scheduled_at=NINE + number * DAY),
    )


def followed(store: SqlStore, schedule: Schedule) -> dict[str, object]:
    statement = select(*(schedules.c[name] for name in FOLLOWED)).where(
        schedules.c.id == schedule.schedule_id
    )
    with store._database.reading() as connection:
        return dict(connection.execute(statement).mappings().one())


def test_a_creation_is_followed(store: SqlStore) -> None:
    for id_, of in (("plain", None), ("bounded", other_version("bounded").version.definition)):
        new = new_schedule(id_, of=of)
        assert followed(store, create(store, new)) == followed_values(new.first.version)


def test_an_edit_at_once_is_followed(store: SqlStore) -> None:
    schedule, new = create(store), other_version()
    schedule = commit(store, edit(schedule, new, cursor=cursor(NINE + DAY, version=2)))
    assert followed(store, schedule) == followed_values(new.version)


def test_an_edit_to_come_is_followed_when_it_takes_over_and_not_before(store: SqlStore) -> None:
    made, new = new_schedule(), other_version()
    schedule = commit(store, edit(create(store, made), new))
    assert followed(store, schedule) == followed_values(made.first.version)
    activate(store, [schedule])
    assert followed(store, schedule) == followed_values(new.version)


def test_activations_of_one_commit_are_each_followed(store: SqlStore) -> None:
    made = []
    for number in range(5):
        id_ = f"s{number}"
        made.append(commit(store, edit(create(store, new_schedule(id_)), other_version(id_, minute=number))))
    activate(store, made)
    ids = {followed(store, schedule)["cadence_id"] for schedule in made}
    assert len(ids) == 5


def activate(store: SqlStore, pending: list[Schedule]) -> None:
    taken_over = Cursor(version=2, scheduled_at=NINE + DAY, due_at=NINE + DAY)
    commits = [replace(admission(schedule, runs=[]), cursor=taken_over) for schedule in pending]
    outcomes = store.commit_admissions(fence_of(store, 0), commits, now=NINE)
    assert set(outcomes) == {AdmissionOutcome.ADMITTED}


def test_a_version_that_is_stamped_anew_is_followed(store: SqlStore) -> None:
    made = new_schedule()
    schedule = create(store, made)
    stamped = new_version(fingerprint="newer")
    assert stamped.version.cadence_id != made.first.version.cadence_id
    schedule = commit(store, replace(change_of(schedule), restamped=(stamped,)))
    assert followed(store, schedule) == followed_values(stamped.version)


def test_a_version_that_waits_and_is_stamped_anew_is_not_followed_yet(store: SqlStore) -> None:
    made = new_schedule()
    schedule = commit(store, edit(create(store, made), other_version()))
    stamped = replace(
        other_version(), version=replace(other_version().version, fingerprint="newer", cadence_id="newer")
    )
    schedule = commit(store, replace(change_of(schedule), restamped=(stamped,)))
    assert followed(store, schedule) == followed_values(made.first.version)
    activate(store, [schedule])
    assert followed(store, schedule) == followed_values(stamped.version)


def test_a_pause_and_a_resumption_change_nothing_of_it(store: SqlStore) -> None:
    made = new_schedule()
    schedule = commit(store, pause(create(store, made), at=NINE - HOUR))
    moved = replace(resume(schedule, at=NINE, paused_at=NINE - HOUR), cursor=cursor(NINE + DAY))
    schedule = commit(store, moved)
    assert followed(store, schedule) == followed_values(made.first.version)


def test_a_schedule_that_lost_its_version_says_nothing_and_is_looked_at_alone(store: SqlStore) -> None:
    schedule = commit(store, edit(create(store), other_version()))
    with store._database.writing() as connection:
        connection.execute(delete(versions).where(versions.c.number == 2))
    activate(store, [schedule])
    assert followed(store, schedule) == dict.fromkeys(FOLLOWED)
    assert read_keys(store, now=NINE + DAY) == []
    with store._database.writing() as connection:
        connection.execute(delete(schedules))


@pytest.mark.parametrize(
    ("policy", "lateness"),
    [
        (LatestOnly(grace=SECOND), LATENESS_UNLIMITED),
        (CatchUpAll(), LATENESS_UNLIMITED),
        (CatchUpAll(max_age=HOUR), 3_600_000),
        (Expire(deadline=SECOND / 1000), 1),
    ],
)
def test_lateness_is_told_in_milliseconds(policy: OverduePolicy, lateness: int) -> None:
    assert lateness_of(policy) == lateness
