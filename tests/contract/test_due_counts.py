"""The dispatch protocol: how much is due in each partition, counted up to a limit."""

from dataclasses import replace

import pytest

from rota.domain.run import RunState
from rota.domain.schedule import ScheduleStatus
from rota.store.port import DueCount, Store
from tests.contract.builders import (
    DAY,
    MILLISECOND,
    NINE,
    change_of,
    change_to,
    new_schedule,
    pause,
    planned_run_at,
    status_change,
)
from tests.contract.steps import commit, create, plan


def test_what_is_due_is_counted_by_partition(store: Store) -> None:
    for number, partition in enumerate([0, 0, 0, 2, 5]):
        create(store, new_schedule(f"s{number}", partition=partition))
    create(store, new_schedule("later", partition=1, due=NINE + MILLISECOND))
    asked = [5, 2, 1, 0]
    assert store.count_due(asked, now=NINE - MILLISECOND, limit=10) == {}
    counted = store.count_due(asked, now=NINE, limit=10)
    assert counted == {0: DueCount(schedules=3), 2: DueCount(schedules=1), 5: DueCount(schedules=1)}
    assert list(counted) == [0, 2, 5]
    assert store.count_due([1, 3], now=NINE, limit=10) == {}
    assert store.count_due([], now=NINE, limit=10) == {}


@pytest.mark.parametrize(("limit", "expected"), [(1, 1), (3, 3), (4, 4), (5, 4)])
def test_counting_stops_at_the_limit(store: Store, limit: int, expected: int) -> None:
    for number in range(4):
        schedule = create(store, new_schedule(f"s{number}"))
        plan(store, schedule, planned_run_at(schedule, NINE + DAY, due=NINE))
    counted = store.count_due([0], now=NINE, limit=limit)
    assert counted == {0: DueCount(schedules=expected, planned=expected)}


def test_planned_runs_that_are_due_are_counted_apart(store: Store) -> None:
    schedule = create(store, new_schedule(due=NINE + DAY, partition=3))
    runs = [planned_run_at(schedule, NINE + days * DAY) for days in (-1, 0, 1)]
    schedule = plan(store, schedule, *runs)
    assert store.count_due([3], now=NINE, limit=10) == {3: DueCount(planned=2)}
    change = replace(change_of(schedule), run_changes=(change_to(runs[0], RunState.CANCELLED),))
    commit(store, change)
    assert store.count_due([3], now=NINE, limit=10) == {3: DueCount(planned=1)}


def test_what_nobody_admits_is_not_due(store: Store) -> None:
    paused, ended, over = (create(store, new_schedule(id_)) for id_ in ("paused", "ended", "over"))
    commit(store, pause(paused, at=NINE))
    commit(store, status_change(ended, ScheduleStatus.ENDED, at=NINE))
    commit(
        store,
        status_change(
            over, ScheduleStatus.ENDED, at=NINE, cursor=replace(over.cursor, scheduled_at=None, due_at=None)
        ),
    )
    # An ended one still owes the reasons of what was due.
    assert store.count_due([0], now=NINE, limit=10) == {0: DueCount(schedules=1)}
