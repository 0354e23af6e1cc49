"""The schedule protocol: changes open and close suspensions, which are told while they matter (I10)."""

from dataclasses import replace
from datetime import datetime

import pytest

from rota.domain.due import DueSchedule
from rota.domain.schedule import Cursor, Schedule, ScheduleStatus, Suspension
from rota.store.port import Store
from tests.contract.builders import HOUR, MINUTE, NINE, change_of, cursor, pause, resume, status_change
from tests.contract.steps import commit, create, record_of


def suspend(store: Store, schedule: Schedule, *, from_: datetime, until: datetime) -> Schedule:
    """The schedule after a pause and its resumption."""
    paused = commit(store, pause(schedule, at=from_))
    return commit(store, resume(paused, at=until, paused_at=from_))


def test_a_pause_opens_a_suspension_and_a_resume_closes_it(store: Store) -> None:
    schedule = create(store)
    paused = commit(store, pause(schedule, at=NINE - HOUR))
    assert record_of(store, schedule).suspensions == (
        Suspension(from_=NINE - HOUR, until=None, reason="paused"),
    )
    closed = Suspension(from_=NINE - HOUR, until=NINE + HOUR, reason="paused", apply_overdue=True)
    resumed = resume(paused, at=NINE + HOUR, paused_at=NINE - HOUR)
    commit(store, replace(resumed, suspension_closed=closed))
    assert record_of(store, schedule).suspensions == (closed,)


def test_suspensions_that_reach_past_the_cursor_are_told_oldest_first(store: Store) -> None:
    schedule = create(store)
    wanted = []
    for start in (NINE, NINE + HOUR, NINE + 3 * HOUR):
        schedule = suspend(store, schedule, from_=start, until=start + MINUTE)
        wanted.append(Suspension(from_=start, until=start + MINUTE, reason="paused"))
    commit(store, pause(schedule, at=NINE + 4 * HOUR))
    wanted.append(Suspension(from_=NINE + 4 * HOUR, until=None, reason="paused"))
    assert record_of(store, schedule).suspensions == tuple(wanted)


def test_a_suspension_that_ended_by_the_cursor_no_longer_matters(store: Store) -> None:
    schedule = create(store)
    for start in (NINE - 3 * HOUR, NINE - HOUR, NINE - MINUTE):
        schedule = suspend(store, schedule, from_=start, until=start + HOUR)
    assert record_of(store, schedule).suspensions == (
        Suspension(from_=NINE - MINUTE, until=NINE + HOUR - MINUTE, reason="paused"),
    )


@pytest.mark.parametrize(
    ("moved", "matters"),
    [
        (Cursor(version=1, scheduled_at=NINE + HOUR, due_at=NINE - HOUR), True),
        (Cursor(version=1, scheduled_at=NINE - HOUR, due_at=NINE + HOUR), True),
        (Cursor(version=1, scheduled_at=NINE + HOUR, due_at=NINE), False),
        (Cursor(version=1, scheduled_at=None, due_at=NINE - MINUTE), True),
        (Cursor(version=1, scheduled_at=None, due_at=NINE), False),
        (Cursor(version=1, scheduled_at=NINE - MINUTE, due_at=None), True),
        (Cursor(version=1, scheduled_at=NINE, due_at=None), False),
        (cursor(None), False),
    ],
    ids=str,
)
def test_a_suspension_matters_while_it_ends_after_the_earlier_of_both_instants(
    store: Store, moved: Cursor, matters: bool
) -> None:
    """Parked runs are judged by it, though the cursor may stand far ahead."""
    schedule = suspend(store, create(store), from_=NINE - HOUR, until=NINE)
    commit(store, replace(change_of(schedule), cursor=moved))
    suspensions = record_of(store, schedule).suspensions
    assert suspensions == ((Suspension(from_=NINE - HOUR, until=NINE, reason="paused"),) if matters else ())
    due = store.read_due(0, now=NINE + HOUR, limit=10)
    told = [entry.suspensions for entry in due if isinstance(entry, DueSchedule)]
    assert told == ([] if moved.due_at is None else [suspensions])


def test_a_suspension_that_lasts_matters_wherever_the_cursor_stands(store: Store) -> None:
    paused = commit(store, pause(create(store), at=NINE))
    commit(store, replace(change_of(paused), cursor=cursor(None)))
    assert record_of(store, paused).suspensions == (Suspension(from_=NINE, until=None, reason="paused"),)


def test_a_pause_at_the_instant_of_a_resume_takes_the_place_of_the_one_before(store: Store) -> None:
    schedule, at = create(store), NINE + HOUR
    paused_again = commit(store, pause(suspend(store, schedule, from_=at, until=at), at=at))
    assert record_of(store, schedule).suspensions == (Suspension(from_=at, until=None, reason="paused"),)
    commit(store, resume(paused_again, at=at + HOUR, paused_at=at))
    assert record_of(store, schedule).suspensions == (Suspension(from_=at, until=at + HOUR, reason="paused"),)


def test_one_change_can_close_a_suspension_and_open_the_next(store: Store) -> None:
    schedule = create(store)
    paused = commit(store, pause(schedule, at=NINE))
    change = replace(
        status_change(paused, ScheduleStatus.ERROR, at=NINE + HOUR, status_reason="bad row"),
        suspension_closed=Suspension(from_=NINE, until=NINE + HOUR, reason="paused"),
        suspension_opened=Suspension(from_=NINE + HOUR, until=None, reason="error"),
    )
    commit(store, change)
    assert record_of(store, schedule).suspensions == (change.suspension_closed, change.suspension_opened)
