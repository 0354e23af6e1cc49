"""The schedule protocol: what was decided ahead of its time, and how far everything is decided (I4)."""

from dataclasses import replace
from datetime import datetime

import pytest

from rota.domain.admission import Skip
from rota.domain.identity import ScheduleId
from rota.domain.run import Origin, Run, RunState
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
    run_at,
    skip_at,
)
from tests.contract.steps import admit, create, fence_of, open_attempt, plan, queue_run, record_of

ID = ScheduleId("report-7")
SKIPPED = RunState.SKIPPED


def ahead(store: Store, *, from_: datetime = NINE, limit: int = 100) -> list[Run]:
    return store.list_ahead(ID, from_=from_, limit=limit)


def create_with(store: Store, *runs: Run, skips: tuple[Skip, ...] = ()) -> None:
    schedule = plan(store, create(store), *runs)
    admit(store, fence_of(store, 0), [admission(schedule, runs=[], skips=skips)])
    assert record_of(store, schedule).schedule.cursor != schedule.cursor


def at(instant: datetime, *, due: datetime | None = None) -> Run:
    return planned_run_at(new_schedule().schedule, instant, due=due)


def skipped(instant: datetime, reason: str) -> Run:
    return change_to(at(instant), SKIPPED, reason=reason).run


def gap(from_: datetime, until: datetime) -> Skip:
    return skip_at(new_schedule().schedule, from_, until, count=2)


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


def test_nothing_is_decided_of_a_schedule_without_outcomes(store: Store) -> None:
    create(store)
    for before in (None, NINE + DAY):
        assert store.get_last_decided(ID, before=before) is None
        assert store.get_last_decided(ScheduleId("unknown"), before=before) is None


@pytest.mark.parametrize(
    ("state", "decides"),
    [
        (RunState.PLANNED, False),
        (RunState.HELD, False),
        (RunState.SKIPPED, False),
        (RunState.QUEUED, True),
        (RunState.CANCELLED, True),
        (RunState.FAILED, True),
        (RunState.MOOT, True),
    ],
)
def test_a_run_decides_its_instant_once_it_is_more_than_planned(
    store: Store, state: RunState, decides: bool
) -> None:
    run = at(NINE)
    create_with(store, run if state is RunState.PLANNED else change_to(run, state, reason="on_request").run)
    assert store.get_last_decided(ID, before=None) == (NINE if decides else None)
    assert store.get_last_decided(ID, before=NINE + SECOND) == (NINE if decides else None)
    assert store.get_last_decided(ID, before=NINE) is None


def test_a_running_run_has_decided_its_instant(store: Store) -> None:
    open_attempt(store, queue_run(store))
    assert store.get_last_decided(ID, before=None) == NINE


@pytest.mark.parametrize("origin", ["backfill", "manual", "replay"])
def test_only_runs_that_the_schedule_itself_admitted_decide(store: Store, origin: Origin) -> None:
    create_with(store, replace(run_at(new_schedule().schedule, NINE), origin=origin))
    assert store.get_last_decided(ID, before=None) is None


@pytest.mark.parametrize(
    ("before", "decided"),
    [
        (None, NINE + HOUR - SECOND),
        (NINE + DAY, NINE + HOUR - SECOND),
        (NINE + HOUR, NINE + HOUR - SECOND),
        (NINE + MINUTE, NINE + MINUTE - SECOND),
        (NINE + SECOND, NINE),
        (NINE, None),
    ],
    ids=str,
)
def test_a_skip_decides_up_to_its_last_second(
    store: Store, before: datetime | None, decided: datetime | None
) -> None:
    create_with(store, skips=(gap(NINE, NINE + HOUR),))
    assert store.get_last_decided(ID, before=before) == decided


def test_the_latest_of_runs_and_skips_is_told(store: Store) -> None:
    runs = [run_at(new_schedule().schedule, NINE + hours * HOUR) for hours in (0, 4)]
    create_with(
        store, *runs, skips=(gap(NINE + HOUR, NINE + 3 * HOUR), gap(NINE + 6 * HOUR, NINE + 8 * HOUR))
    )
    answers = {
        hours: store.get_last_decided(ID, before=NINE + hours * HOUR) for hours in (1, 2, 3, 4, 5, 6, 7, 9)
    }
    assert answers == {
        1: NINE,
        2: NINE + 2 * HOUR - SECOND,
        3: NINE + 3 * HOUR - SECOND,
        4: NINE + 3 * HOUR - SECOND,
        5: NINE + 4 * HOUR,
        6: NINE + 4 * HOUR,
        7: NINE + 7 * HOUR - SECOND,
        9: NINE + 8 * HOUR - SECOND,
    }
    assert store.get_last_decided(ID, before=None) == NINE + 8 * HOUR - SECOND


def test_a_long_skip_decides_more_than_a_later_one_that_is_over(store: Store) -> None:
    """Skips of several reasons do not always begin where the one before ended."""
    create_with(store, skips=(gap(NINE, NINE + 9 * HOUR), gap(NINE + HOUR, NINE + 2 * HOUR)))
    assert store.get_last_decided(ID, before=None) == NINE + 9 * HOUR - SECOND
    assert store.get_last_decided(ID, before=NINE + 5 * HOUR) == NINE + 5 * HOUR - SECOND
