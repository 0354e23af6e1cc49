"""Whoever ends a run on PostgreSQL while an admission gives the place behind it: the run that waits is queued."""

from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import update

from rota.domain.run import Run, RunState
from rota.store.port import AdmissionOutcome, RunFilter
from rota.store.sql import SqlStore, settlements
from rota.store.sql.places import lock_places
from rota.store.sql.schema import versions
from tests.conftest import NewDatabase
from tests.contract.builders import HOUR, NINE, audit_event, new_schedule, run_at, success
from tests.contract.steps import admit, fence_of, open_attempt, record_of, run_of, settle, wanted
from tests.contract.test_places import TEN, give, open_and_wait, overlapping, placed, waiting
from tests.store.meeting import Meeting

JOBS = ("sales_report",)
SCHEDULE = new_schedule().schedule


@pytest.fixture
def meeting(new_database: NewDatabase) -> Iterator[Meeting]:
    meeting = Meeting(new_database("postgresql"))
    yield meeting
    meeting.close()


def cancel(store: SqlStore, run: Run) -> object:
    return store.commit_cancel(run.run_id, event=audit_event(run.schedule_id, at=TEN), now=TEN)


def end(store: SqlStore, run: Run) -> object:
    return settle(store, success(run.run_id, at=TEN))


def claim_what_cannot_be_read(store: SqlStore, run: Run) -> object:
    with store._database.writing() as connection:
        connection.execute(update(versions).values(params="{"))
    return store.commit_claims("w", wanted(*JOBS), now=TEN, limit=2)


ENDS: dict[str, tuple[Callable[[SqlStore, Run], object], bool, RunState]] = {
    "cancelled": (cancel, False, RunState.CANCELLED),
    "settled": (end, True, RunState.SUCCEEDED),
    "found to be unreadable": (claim_what_cannot_be_read, False, RunState.FAILED),
}


@pytest.mark.parametrize("name", ENDS)
def test_a_run_that_is_admitted_to_wait_while_the_one_before_it_ends_is_queued(
    meeting: Meeting, name: str
) -> None:
    ended_by, is_running, becomes = ENDS[name]
    schedule = overlapping(meeting.first)
    first = run_at(schedule, NINE)
    give(meeting.first, placed(schedule, first))
    if is_running:
        open_attempt(meeting.first, first)
    second = waiting(run_at(schedule, TEN))
    element = placed(record_of(meeting.first, schedule).schedule, second, expected=(first.run_id,))
    fence = fence_of(meeting.first, 0)
    outcomes, _ = meeting.of(
        lambda store: admit(store, fence, [element], now=TEN), lambda store: ended_by(store, first)
    )
    assert outcomes == [AdmissionOutcome.ADMITTED]
    assert run_of(meeting.first, first.run_id).state is becomes
    assert run_of(meeting.first, second.run_id).state is RunState.QUEUED
    assert meeting.first.read_places(schedule.schedule_id) == (second.run_id,)


def test_a_settlement_that_waited_for_places_holds_those_that_it_found_then(
    meeting: Meeting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were given anew meanwhile: no admission takes one of them between its look and its commit."""
    first, second = open_and_wait(meeting.first)
    open_attempt(meeting.first, first)
    third = waiting(run_at(SCHEDULE, NINE + 2 * HOUR))
    element = placed(record_of(meeting.first, SCHEDULE).schedule, third, expected=(first.run_id,))
    fence = fence_of(meeting.first, 0)
    told: list[AdmissionOutcome] = []

    def lock_and_be_met(*arguments: object, waiting: bool) -> set[str]:
        held = lock_places(*arguments, waiting=waiting)  # type: ignore[arg-type]  # handed on as they come
        if waiting:
            told.extend(admit(meeting.first, fence, [element], now=TEN))
        return held

    monkeypatch.setattr(settlements, "lock_places", lock_and_be_met)
    meeting.of(lambda store: cancel(store, second), lambda store: end(store, first))
    assert told == [AdmissionOutcome.STALE]
    assert meeting.first.read_places(first.schedule_id) == ()
    assert meeting.first.list_runs(RunFilter(state=RunState.WAITING), before=None, limit=9) == []
