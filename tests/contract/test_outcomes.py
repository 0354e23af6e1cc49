"""The schedule protocol: what was decided ahead of its time (I4)."""

from datetime import datetime

from rota.domain.identity import ScheduleId
from rota.domain.run import Run, RunState
from rota.store.port import Store
from tests.contract.builders import (
    DAY,
    HOUR,
    MINUTE,
    NINE,
    SECOND,
    admission,
    change_to,
    new_schedule,
    planned_run_at,
)
from tests.contract.steps import admit, create, fence_of, plan, record_of

ID = ScheduleId("report-7")
SKIPPED = RunState.SKIPPED


def ahead(store: Store, *, from_: datetime = NINE, limit: int = 100) -> list[Run]:
    return store.list_ahead(ID, from_=from_, limit=limit)


def create_with(store: Store, *runs: Run) -> None:
    schedule = plan(store, create(store), *runs)
    admit(store, fence_of(store, 0), [admission(schedule, runs=[])])
    assert record_of(store, schedule).schedule.cursor != schedule.cursor


def at(instant: datetime, *, due: datetime | None = None) -> Run:
    return planned_run_at(new_schedule().schedule, instant, due=due)


def skipped(instant: datetime, reason: str) -> Run:
    return change_to(at(instant), SKIPPED, reason=reason).run


def test_planned_and_held_runs_are_ahead_wherever_they_are_scheduled(store: Store) -> None:
    planned, held = at(NINE - DAY), change_to(at(NINE - 2 * DAY), RunState.HELD).run
    create_with(store, planned, held, at(NINE + DAY))
    assert ahead(store) == [held, planned, at(NINE + DAY)]


def test_skips_on_request_are_ahead_from_the_asked_instant_on(store: Store) -> None:
    requested = [skipped(NINE + seconds * SECOND, "on_request") for seconds in (-1, 0, 1)]
    create_with(store, *requested)
    assert ahead(store) == requested[1:]
    assert ahead(store, from_=NINE + SECOND) == requested[2:]


def test_other_states_and_skips_are_not_ahead(store: Store) -> None:
    others = [
        change_to(at(NINE + hours * HOUR), state).run
        for hours, state in enumerate((RunState.QUEUED, RunState.CANCELLED, RunState.MOOT))
    ]
    skips = [
        skipped(NINE + days * DAY, reason) for days, reason in enumerate(("paused", "expired", "ended"), 1)
    ]
    create_with(store, *others, *skips)
    assert ahead(store) == []


def test_what_is_ahead_is_told_by_due_instant_then_id(store: Store) -> None:
    last, first = at(NINE, due=NINE + 2 * DAY), at(NINE + 3 * DAY, due=NINE + HOUR)
    tied = [at(NINE + minutes * MINUTE, due=NINE + DAY) for minutes in (1, 2)]
    create_with(store, last, *reversed(tied), first)
    assert ahead(store) == [first, *tied, last]
    assert ahead(store, limit=2) == [first, tied[0]]


def test_what_is_ahead_is_the_schedules_own(store: Store) -> None:
    create_with(store)
    other = create(store, new_schedule("report-70"))
    plan(store, other, planned_run_at(other, NINE))
    assert ahead(store) == []
