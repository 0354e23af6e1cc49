"""Set-based admission that meets other commits on PostgreSQL: what it chose may be another's by the time it writes."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from rota.domain.run import Run
from rota.domain.schedule import Cursor, Schedule, ScheduleStatus
from rota.store.port import AdmissionOutcome, BeatsOutcome, ChangeOutcome, Fence, RunFilter, ScheduleChange
from rota.store.sql import SqlStore
from tests.conftest import NewDatabase
from tests.contract.beating import LONG_AGO, beats_of
from tests.contract.builders import (
    DAY,
    HOUR,
    MADE_AT,
    NINE,
    SECOND,
    admission,
    change_of,
    cursor,
    edit,
    new_schedule,
    new_version,
    pause,
    planned_run_at,
    status_change,
)
from tests.contract.racing import CALLERS, all_at_once
from tests.contract.steps import PARTITIONS, create, deliveries, fence_of, hold, record_of
from tests.store.meeting import Meeting

NEW = new_schedule("met")
OTHER = new_schedule("other")


@pytest.fixture
def meeting(new_database: NewDatabase) -> Iterator[Meeting]:
    met = Meeting(new_database("postgresql"))
    hold(met.first)
    for new in (NEW, OTHER):
        create(met.first, new)
    yield met
    met.close()


def beat(store: SqlStore, *fences: Fence) -> BeatsOutcome:
    held = fences or (fence_of(store, 0),)
    return store.commit_beats(held, beats_of(NEW, NINE), after=LONG_AGO, now=NINE, each=100)


Change = Callable[[Schedule], ScheduleChange]
CHANGES: dict[str, Change] = {
    "pause": lambda met: pause(met, at=NINE),
    "end": lambda met: status_change(met, ScheduleStatus.ENDED, at=NINE, status_reason="deleted"),
    "error": lambda met: status_change(met, ScheduleStatus.ERROR, at=NINE),
    "an edit at once": lambda met: edit(
        met, new_version("met", number=2, effective_from=NINE), cursor=cursor(NINE, version=2)
    ),
    "an edit to come": lambda met: edit(met, new_version("met", number=2, effective_from=NINE + DAY)),
    "a plan": lambda met: replace(
        change_of(met), runs=(planned_run_at(met, NINE + HOUR),), careful_until=NINE + SECOND
    ),
    "a move": lambda met: replace(change_of(met), cursor=cursor(NINE - HOUR)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_changed_between_choice_and_update_is_left_alone(meeting: Meeting, name: str) -> None:
    met = record_of(meeting.first, NEW.schedule).schedule
    changed, beaten = meeting.of(lambda store: store.commit_change(CHANGES[name](met)), beat)
    assert (changed, beaten) == (ChangeOutcome.CHANGED, BeatsOutcome(admitted=1))
    assert [run.schedule_id for run in queued(meeting.first)] == ["other"]
    assert [delivery.run_id for delivery in deliveries(meeting.first)] == ["other.1.20260110T090000Z"]
    assert record_of(meeting.first, NEW.schedule).schedule.updated_at == NINE


def test_an_admission_between_choice_and_update_is_not_repeated(meeting: Meeting) -> None:
    fence = fence_of(meeting.first, 0)
    admitted, beaten = meeting.of(
        lambda store: store.commit_admissions(fence, [admission(NEW.schedule)], now=NINE),
        lambda store: beat(store, fence),
    )
    assert (admitted, beaten) == ([AdmissionOutcome.ADMITTED], BeatsOutcome(admitted=1))
    assert len(queued(meeting.first)) == len(deliveries(meeting.first)) == 2


def test_a_later_careful_until_between_choice_and_update_is_heeded(meeting: Meeting) -> None:
    fence = fence_of(meeting.first, 0)
    raised = replace(
        admission(NEW.schedule, runs=[]), cursor=NEW.schedule.cursor, careful_until=NINE + SECOND
    )
    meeting.of(
        lambda store: store.commit_admissions(fence, [raised], now=NINE), lambda store: beat(store, fence)
    )
    assert [run.schedule_id for run in queued(meeting.first)] == ["other"]


def test_a_change_that_waits_for_the_admission_is_stale(meeting: Meeting) -> None:
    fence = fence_of(meeting.first, 0)
    beaten, changed = meeting.of(
        lambda store: beat(store, fence), lambda store: store.commit_change(pause(NEW.schedule, at=NINE))
    )
    assert (beaten, changed) == (BeatsOutcome(admitted=2), ChangeOutcome.STALE)
    assert record_of(meeting.first, NEW.schedule).schedule.status is ScheduleStatus.ACTIVE


def test_two_that_hold_the_same_fence_admit_each_schedule_once(meeting: Meeting) -> None:
    fence = fence_of(meeting.first, 0)
    assert meeting.of(lambda store: beat(store, fence), lambda store: beat(store, fence)) == (
        BeatsOutcome(admitted=2),
        BeatsOutcome(),
    )
    assert meeting.undone == 0
    assert len(queued(meeting.first)) == len(deliveries(meeting.first)) == 2


def test_a_holder_that_is_taken_over_meanwhile_admits_nothing(meeting: Meeting) -> None:
    stale = fence_of(meeting.first, 0)
    meeting.first.commit_releases("node-a", [stale], now=MADE_AT)

    def take(store: SqlStore) -> list[Fence]:
        return store.commit_acquisitions("node-b", held=[], now=MADE_AT, ttl=HOUR, limit=PARTITIONS)

    taken, beaten = meeting.of(take, lambda store: beat(store, stale))
    assert beaten == BeatsOutcome(fenced=frozenset({0}))
    assert queued(meeting.first) == []
    assert deliveries(meeting.first) == []
    assert beat(meeting.second, *taken).admitted == 2


def test_callers_at_once_admit_each_schedule_once(meeting: Meeting) -> None:
    for number in range(40):
        create(meeting.first, new_schedule(f"s{number}", partition=number % PARTITIONS))
    fences = [fence_of(meeting.first, partition) for partition in range(PARTITIONS)]
    stale = [replace(fence, epoch=fence.epoch + 1) for fence in fences]
    stores = [meeting.first, meeting.second]
    outcomes = all_at_once(lambda number: beat(stores[number % 2], *(stale if number == 3 else fences)))
    assert CALLERS == 4
    assert outcomes[3] == BeatsOutcome(fenced=frozenset(range(PARTITIONS)))
    assert sum(outcome.admitted for outcome in outcomes) == 42
    assert len(queued(meeting.first)) == len(deliveries(meeting.first)) == 42


def test_a_cursor_that_was_set_back_meanwhile_is_read_again(meeting: Meeting) -> None:
    met = NEW.schedule
    back = replace(change_of(met), cursor=Cursor(version=1, scheduled_at=NINE, due_at=NINE))
    _, beaten = meeting.of(lambda store: store.commit_change(back), beat)
    assert beaten == BeatsOutcome(admitted=1)


def queued(store: SqlStore) -> list[Run]:
    runs = store.list_runs(RunFilter(), before=None, limit=100)
    return [run for run in runs if run.admitted_at is not None]
