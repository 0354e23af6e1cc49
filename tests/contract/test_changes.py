"""The schedule protocol: changes of a schedule, each under the revision and cursor that it expects (I3)."""

from dataclasses import replace

import pytest

from rota.domain.audit import AuditAction
from rota.domain.identity import ScheduleId
from rota.domain.run import RunState
from rota.domain.schedule import Cursor, Schedule, ScheduleStatus
from rota.store.port import ChangeOutcome, Fence, ScheduleChange, ScheduleFilter, Store
from tests.contract.builders import (
    DAY,
    HOUR,
    MADE_AT,
    MILLISECOND,
    MINUTE,
    NINE,
    admission,
    audit_event,
    change_of,
    change_to,
    cursor,
    edit,
    idempotency_record,
    labels,
    new_schedule,
    new_version,
    pause,
    planned_run_at,
    run_at,
    status_change,
)
from tests.contract.steps import (
    admit,
    commit,
    contents,
    create,
    due_ids,
    fence_of,
    hold,
    plan,
    record_of,
    refuse,
)

ERROR = ScheduleStatus.ERROR
STALE, KEY_TAKEN = ChangeOutcome.STALE, ChangeOutcome.KEY_TAKEN


def whole_change(schedule: Schedule) -> ScheduleChange:
    """One that writes everything a change can write; its planned run at `NINE` + a day exists."""
    opening = pause(schedule, at=NINE)
    new = new_version(schedule.schedule_id, number=2, effective_from=NINE + 5 * DAY)
    existing = planned_run_at(schedule, NINE + DAY)
    return replace(
        edit(schedule, new, cursor=cursor(NINE + 3 * DAY)),
        status=opening.status,
        status_reason="stock-taking",
        suspension_opened=opening.suspension_opened,
        careful_until=NINE + 9 * DAY,
        labels=labels(customer="zeta"),
        runs=(run_at(schedule, NINE),),
        run_changes=(change_to(existing, RunState.SKIPPED, reason="on_request"),),
        idempotency=idempotency_record(expires_at=NINE + DAY),
    )


def create_with_a_plan(store: Store, id_: str = "report-7") -> Schedule:
    schedule = create(store, new_schedule(id_, labels=labels(customer="acme")))
    return plan(store, schedule, planned_run_at(schedule, NINE + DAY))


def test_a_change_writes_the_schedules_row_and_its_history_together(store: Store) -> None:
    schedule = create_with_a_plan(store)
    change = whole_change(schedule)
    assert commit(store, change) == replace(
        schedule,
        status=ScheduleStatus.PAUSED,
        status_reason="stock-taking",
        cursor=cursor(NINE + 3 * DAY),
        careful_until=NINE + 9 * DAY,
        labels=labels(customer="zeta"),
        latest_version=2,
        updated_at=NINE,
        revision=schedule.revision + 1,
    )
    assert store.list_audit(schedule.schedule_id, limit=1) == [change.event]
    assert store.get_idempotency("order-1", now=MADE_AT) == change.idempotency


def test_what_a_change_does_not_name_stays(store: Store) -> None:
    schedule = commit(store, whole_change(create_with_a_plan(store)))
    before = contents(store)
    after = commit(store, change_of(schedule, at=NINE + MINUTE))
    assert after == replace(schedule, updated_at=NINE + MINUTE, revision=schedule.revision + 1)
    kept = {name for name, content in contents(store).items() if content == before[name]}
    assert before.keys() - kept == {"schedules", "zeta's"}


def test_a_status_comes_with_its_reason_even_where_that_is_none(store: Store) -> None:
    schedule = create(store)
    broken = commit(store, status_change(schedule, ERROR, at=NINE, status_reason="the zone is gone"))
    assert (broken.status, broken.status_reason) == (ERROR, "the zone is gone")
    untouched = commit(store, replace(change_of(broken), status_reason="not written"))
    assert (untouched.status, untouched.status_reason) == (ERROR, "the zone is gone")
    ended = commit(store, status_change(untouched, ScheduleStatus.ENDED, at=NINE, cursor=cursor(None)))
    assert (ended.status, ended.status_reason, ended.cursor) == (ScheduleStatus.ENDED, None, cursor(None))


def test_a_change_leaves_other_schedules_alone(store: Store) -> None:
    schedule, other = create_with_a_plan(store), create_with_a_plan(store, "report-70")
    before = record_of(store, other), store.list_ledger(other.schedule_id, before=None, limit=10)
    commit(store, whole_change(schedule))
    assert (record_of(store, other), store.list_ledger(other.schedule_id, before=None, limit=10)) == before


def test_a_schedule_is_found_by_its_new_labels_alone(store: Store) -> None:
    schedule = create(store, new_schedule(labels=labels(customer="acme", tier="1")))
    other = create(store, new_schedule("report-70", labels=labels(customer="acme")))
    commit(store, replace(change_of(schedule), labels=labels(customer="zeta", team="a")))

    def found(name: str, value: str) -> list[str]:
        records = store.list_schedules(ScheduleFilter(label=(name, value)), after=None, limit=10)
        return [record.schedule.schedule_id for record in records]

    assert found("customer", "acme") == [other.schedule_id]
    assert found("customer", "zeta") == [schedule.schedule_id]
    assert found("team", "a") == [schedule.schedule_id]
    assert found("tier", "1") == []
    commit(store, replace(change_of(record_of(store, schedule).schedule), labels=labels()))
    assert found("customer", "zeta") == []


def test_careful_until_only_rises(store: Store) -> None:
    schedule = create(store)
    after = []
    for careful_until in (NINE, NINE - HOUR, None, NINE + HOUR):
        schedule = commit(store, replace(change_of(schedule), careful_until=careful_until))
        after.append(schedule.careful_until)
    assert after == [NINE, NINE, NINE, NINE + HOUR]


def test_a_change_needs_the_revision_that_it_expects(store: Store) -> None:
    schedule = create_with_a_plan(store)
    for revision in (schedule.revision - 1, schedule.revision + 1):
        refuse(store, replace(whole_change(schedule), expected_revision=revision), STALE)
    commit(store, change_of(schedule))
    refuse(store, whole_change(schedule), STALE)


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
    schedule = create_with_a_plan(store)
    refuse(store, replace(whole_change(schedule), expected_cursor=expected), STALE)


def test_an_empty_cursor_is_a_cursor_to_expect(store: Store) -> None:
    schedule = create(store, new_schedule(due=None))
    refuse(store, replace(pause(schedule, at=NINE), expected_cursor=cursor(NINE)), STALE)
    assert commit(store, pause(schedule, at=NINE)).status is ScheduleStatus.PAUSED


def test_a_change_that_expects_no_cursor_neither_compares_nor_raises(store: Store) -> None:
    """A run on request is told apart from a plan: admission goes on beside it."""
    schedule = create(store)
    requested = replace(run_at(schedule, NINE - HOUR, period_key="manual:1"), origin="manual")
    change = replace(change_of(schedule), expected_cursor=None, runs=(requested,))
    moved = admission(schedule, runs=[])
    admit(store, hold(store)[0], [moved])
    assert commit(store, change) == replace(schedule, cursor=moved.cursor, updated_at=NINE)
    refuse(store, replace(change, expected_revision=schedule.revision + 1), STALE)


def test_a_change_made_twice_applies_once(store: Store) -> None:
    change = replace(whole_change(create_with_a_plan(store)), idempotency=None)
    commit(store, change)
    refuse(store, change, STALE)


def test_a_change_of_an_unknown_schedule_is_stale(store: Store) -> None:
    refuse(store, pause(new_schedule().schedule, at=NINE), STALE)
    assert store.get_schedule(ScheduleId("report-7")) is None


def test_a_used_idempotency_key_changes_nothing_until_it_expires(store: Store) -> None:
    schedule = create(store)
    record = idempotency_record(expires_at=NINE + HOUR)
    commit(store, replace(pause(schedule, at=NINE), idempotency=record))
    other = replace(record, request_digest="another body", expires_at=NINE + DAY)
    again = create_with_a_plan(store, "report-70")
    early = replace(change_of(again, at=NINE + HOUR - MILLISECOND), idempotency=other)
    refuse(store, early, KEY_TAKEN)
    commit(store, replace(early, at=NINE + HOUR))
    assert store.get_idempotency("order-1", now=NINE + HOUR) == other


def test_a_repeated_request_is_told_of_its_key_before_anything_else(store: Store) -> None:
    change = whole_change(create_with_a_plan(store))
    commit(store, change)
    refuse(store, change, KEY_TAKEN)
    refuse(store, replace(change, schedule_id=ScheduleId("unknown")), KEY_TAKEN)
    refuse(store, change, KEY_TAKEN, fence=Fence(partition=99, epoch=1))


def test_a_refused_change_leaves_its_key_unused(store: Store) -> None:
    schedule = create_with_a_plan(store)
    refuse(store, replace(whole_change(schedule), expected_revision=99), STALE)
    assert store.get_idempotency("order-1", now=MADE_AT) is None
    commit(store, whole_change(schedule))


def test_a_change_may_be_without_an_event(store: Store) -> None:
    schedule = create(store)
    before = store.list_audit(schedule.schedule_id, limit=10)
    commit(store, change_of(schedule))
    assert store.list_audit(schedule.schedule_id, limit=10) == before


@pytest.mark.parametrize(
    "action", ["schedule.plan", "schedule.backfill", "schedule.restamp", "occurrence.skip", "run.replay"]
)
def test_an_event_tells_what_was_done(store: Store, action: AuditAction) -> None:
    schedule = create(store)
    event = replace(audit_event(at=NINE), action=action)
    commit(store, replace(change_of(schedule), event=event))
    assert store.list_audit(schedule.schedule_id, limit=1) == [event]


def test_a_fenced_change_applies_under_the_present_epoch(store: Store) -> None:
    schedule = create(store)
    commit(store, status_change(schedule, ERROR, at=NINE), fence=fence_of(store, 0))
    assert due_ids(store) == []


def test_a_fenced_change_is_refused_under_a_stale_epoch(store: Store) -> None:
    schedule = create_with_a_plan(store)
    stale = hold(store)[0]
    store.commit_releases("node-a", [stale], now=MADE_AT)
    [current] = hold(store, "node-b")
    refuse(store, whole_change(schedule), STALE, fence=stale)
    refuse(store, whole_change(schedule), STALE, fence=replace(current, epoch=current.epoch + 1))
    commit(store, whole_change(schedule), fence=current)


def test_a_fenced_change_is_refused_for_a_schedule_of_another_partition(store: Store) -> None:
    schedule = create(store, new_schedule(partition=1))
    fences = hold(store)
    change = status_change(schedule, ERROR, at=NINE)
    refuse(store, change, STALE, fence=fences[0])
    refuse(store, change, STALE, fence=Fence(partition=99, epoch=fences[1].epoch))
    commit(store, change, fence=fences[1])
