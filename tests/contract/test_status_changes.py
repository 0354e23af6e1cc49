"""The schedule protocol: pause, resume, end and error, each under the status and cursor that it expects."""

from dataclasses import replace
from datetime import datetime

import pytest

from rota.domain.identity import ScheduleId
from rota.domain.schedule import Cursor, Schedule, ScheduleStatus, Suspension
from rota.store.port import Fence, StatusChange, Store
from tests.contract.builders import (
    DAY,
    HOUR,
    MADE_AT,
    MINUTE,
    NINE,
    cursor,
    new_schedule,
    pause,
    resume,
    status_change,
)
from tests.contract.steps import create, hold, record_of

PAUSED = ScheduleStatus.PAUSED
ERROR = ScheduleStatus.ERROR


def commit(store: Store, change: StatusChange) -> Schedule:
    """The schedule after a change that has to apply."""
    assert store.commit_status_change(change)
    record = store.get_schedule(change.schedule_id)
    assert record is not None
    return record.schedule


def assert_refused(store: Store, change: StatusChange, *, fence: Fence | None = None) -> None:
    """The change answers False and leaves schedule, versions, suspensions and history as they were."""
    before = store.get_schedule(change.schedule_id), store.list_audit(change.schedule_id, limit=100)
    assert not store.commit_status_change(change, fence=fence)
    assert (store.get_schedule(change.schedule_id), store.list_audit(change.schedule_id, limit=100)) == before


def whole_change(schedule: Schedule, *, at: datetime = NINE) -> StatusChange:
    """One that would write everything a change can write."""
    return replace(
        pause(schedule, at=at),
        cursor=cursor(NINE + 3 * DAY),
        window_closed_at=NINE + 5 * DAY,
        careful_until=NINE + 9 * DAY,
    )


def test_a_change_writes_status_reason_cursor_and_history_together(store: Store) -> None:
    schedule = create(store)
    change = replace(
        status_change(schedule, ERROR, at=NINE, status_reason="the zone is gone"), cursor=cursor(NINE + DAY)
    )
    assert commit(store, change) == replace(
        schedule,
        status=ERROR,
        status_reason="the zone is gone",
        cursor=cursor(NINE + DAY),
        updated_at=change.event.at,
    )
    assert store.list_audit(schedule.schedule_id, limit=1) == [change.event]


def test_a_change_clears_what_it_names_as_none(store: Store) -> None:
    schedule = create(store)
    broken = commit(store, status_change(schedule, ERROR, at=NINE, status_reason="the zone is gone"))
    ended = replace(status_change(broken, ScheduleStatus.ENDED, at=NINE + HOUR), cursor=cursor(None))
    after = commit(store, ended)
    assert (after.status_reason, after.cursor) == (None, cursor(None))


def test_a_change_leaves_other_schedules_alone(store: Store) -> None:
    schedule, other = create(store), create(store, new_schedule("report-70"))
    before = record_of(store, other)
    commit(store, whole_change(schedule))
    assert record_of(store, other) == before


@pytest.mark.parametrize(
    "status", [status for status in ScheduleStatus if status is not ScheduleStatus.ACTIVE]
)
def test_a_change_needs_the_status_that_it_expects(store: Store, status: ScheduleStatus) -> None:
    schedule = create(store)
    assert_refused(store, replace(whole_change(schedule), expected_status=status))


@pytest.mark.parametrize(
    "expected",
    [
        Cursor(version=2, scheduled_at=NINE, due_at=NINE),
        Cursor(version=1, scheduled_at=NINE + MINUTE, due_at=NINE),
        Cursor(version=1, scheduled_at=NINE, due_at=NINE + MINUTE),
        Cursor(version=1, scheduled_at=NINE, due_at=None),
        Cursor(version=1, scheduled_at=None, due_at=NINE),
        cursor(None),
    ],
    ids=["version", "scheduled_at", "due_at", "no due_at", "no scheduled_at", "none"],
)
def test_a_change_needs_the_cursor_that_it_expects(store: Store, expected: Cursor) -> None:
    schedule = create(store)
    assert_refused(store, replace(whole_change(schedule), expected_cursor=expected))


def test_an_empty_cursor_is_a_cursor_to_expect(store: Store) -> None:
    schedule = create(store, new_schedule(due=None))
    assert_refused(store, replace(whole_change(schedule), expected_cursor=cursor(NINE)))
    assert commit(store, pause(schedule, at=NINE)).status is PAUSED


def test_a_change_made_twice_applies_once(store: Store) -> None:
    change = whole_change(create(store))
    commit(store, change)
    assert_refused(store, change)


def test_a_change_of_an_unknown_schedule_is_refused(store: Store) -> None:
    change = whole_change(new_schedule("unknown").schedule)
    assert_refused(store, change)
    assert store.get_schedule(ScheduleId("unknown")) is None


def test_a_pause_opens_a_suspension_and_a_resume_closes_it(store: Store) -> None:
    schedule = create(store)
    paused = commit(store, pause(schedule, at=NINE - HOUR))
    assert record_of(store, schedule).suspensions == (
        Suspension(from_=NINE - HOUR, until=None, reason="paused"),
    )
    closed = Suspension(from_=NINE - HOUR, until=NINE + HOUR, reason="paused", apply_overdue=True)
    commit(
        store,
        replace(resume(paused, at=NINE + HOUR, paused_at=NINE - HOUR), suspension_closed=closed),
    )
    assert record_of(store, schedule).suspensions == (closed,)


def test_suspensions_that_reach_past_the_cursor_are_told_oldest_first(store: Store) -> None:
    schedule = create(store)
    wanted = []
    for start in (NINE, NINE + HOUR, NINE + 3 * HOUR):
        paused = commit(store, pause(schedule, at=start))
        schedule = commit(store, resume(paused, at=start + MINUTE, paused_at=start))
        wanted.append(Suspension(from_=start, until=start + MINUTE, reason="paused"))
    commit(store, pause(schedule, at=NINE + 4 * HOUR))
    wanted.append(Suspension(from_=NINE + 4 * HOUR, until=None, reason="paused"))
    assert record_of(store, schedule).suspensions == tuple(wanted)


def test_a_suspension_that_ended_by_the_cursor_no_longer_matters(store: Store) -> None:
    schedule = create(store)
    for start in (NINE - 3 * HOUR, NINE - HOUR, NINE - MINUTE):
        paused = commit(store, pause(schedule, at=start))
        schedule = commit(store, resume(paused, at=start + HOUR, paused_at=start))
    assert record_of(store, schedule).suspensions == (
        Suspension(from_=NINE - MINUTE, until=NINE + HOUR - MINUTE, reason="paused"),
    )


def test_a_pause_at_the_instant_of_a_resume_takes_the_place_of_the_one_before(store: Store) -> None:
    schedule, at = create(store), NINE + HOUR
    paused = commit(store, pause(schedule, at=at))
    resumed = commit(store, resume(paused, at=at, paused_at=at))
    paused_again = commit(store, pause(resumed, at=at))
    assert record_of(store, schedule).suspensions == (Suspension(from_=at, until=None, reason="paused"),)
    commit(store, resume(paused_again, at=at + HOUR, paused_at=at))
    assert record_of(store, schedule).suspensions == (Suspension(from_=at, until=at + HOUR, reason="paused"),)


def test_one_change_can_close_a_suspension_and_open_the_next(store: Store) -> None:
    schedule = create(store)
    paused = commit(store, pause(schedule, at=NINE))
    change = replace(
        status_change(paused, ERROR, at=NINE + HOUR, status_reason="bad row"),
        suspension_closed=Suspension(from_=NINE, until=NINE + HOUR, reason="paused"),
        suspension_opened=Suspension(from_=NINE + HOUR, until=None, reason="error"),
    )
    commit(store, change)
    assert record_of(store, schedule).suspensions == (change.suspension_closed, change.suspension_opened)


def test_an_end_closes_the_window_of_the_latest_version(store: Store) -> None:
    new = new_schedule()
    schedule = create(store, new)
    change = status_change(schedule, ScheduleStatus.ENDED, at=NINE, status_reason="deleted")
    commit(store, replace(change, window_closed_at=NINE + MINUTE))
    closed = replace(new.version, effective_until=NINE + MINUTE)
    assert store.get_version(schedule.schedule_id, 1) == closed
    assert record_of(store, schedule).version == closed


def test_a_change_without_a_window_leaves_it_open(store: Store) -> None:
    new = new_schedule()
    commit(store, pause(create(store, new), at=NINE))
    assert record_of(store, new.schedule).version == new.version


def test_careful_until_only_rises(store: Store) -> None:
    schedule = create(store)
    after = []
    for careful_until in (NINE, NINE - HOUR, None, NINE + HOUR):
        change = status_change(schedule, schedule.status, at=NINE)
        schedule = commit(store, replace(change, careful_until=careful_until))
        after.append(schedule.careful_until)
    assert after == [NINE, NINE, NINE, NINE + HOUR]


def test_a_fenced_change_applies_under_the_present_epoch(store: Store) -> None:
    schedule = create(store)
    fence = hold(store)[0]
    assert store.commit_status_change(status_change(schedule, ERROR, at=NINE), fence=fence)
    assert record_of(store, schedule).schedule.status is ERROR


def test_a_fenced_change_is_refused_under_a_stale_epoch(store: Store) -> None:
    schedule = create(store)
    stale = hold(store)[0]
    store.commit_releases("node-a", [stale], now=MADE_AT)
    [current] = hold(store, "node-b")
    assert_refused(store, whole_change(schedule), fence=stale)
    assert_refused(store, whole_change(schedule), fence=replace(current, epoch=current.epoch + 1))
    assert store.commit_status_change(whole_change(schedule), fence=current)


def test_a_fenced_change_is_refused_for_a_schedule_of_another_partition(store: Store) -> None:
    schedule = create(store, new_schedule(partition=1))
    fences = hold(store)
    assert_refused(store, whole_change(schedule), fence=fences[0])
    assert_refused(store, whole_change(schedule), fence=Fence(partition=99, epoch=fences[1].epoch))
    assert store.commit_status_change(whole_change(schedule), fence=fences[1])
