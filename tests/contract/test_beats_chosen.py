"""Set-based admission chooses the first of every partition within its bounds, and tells at which beats they stand."""

import pytest

from rota.domain.recurrence import At, Cron
from rota.domain.run import RunState
from rota.store.port import BeatsOutcome, RunFilter, Store
from rota.store.sql import beats as beats_module
from tests.contract.beating import (
    MICROSECOND,
    NINE_DAILY,
    Case,
    assert_left,
    beat,
    beats_of,
    daily_at,
    made_of,
    read_keys,
)
from tests.contract.builders import (
    HOUR,
    MILLISECOND,
    MINUTE,
    NINE,
    SECOND,
    definition,
    new_schedule,
    pause,
)
from tests.contract.conftest import STORES, OpenStore
from tests.contract.steps import (
    PARTITIONS,
    commit,
    create,
    deliveries,
    fence_of,
    hold,
    run_of,
)


def test_what_is_due_after_the_one_bound_and_until_the_other_is_admitted(store: Store) -> None:
    instants = [NINE + minutes * MINUTE for minutes in (-10, -5, 0, 5)]
    news = [daily_at(minutes, f"s{minutes}") for minutes in (-10, -5, 0, 5)]
    for new in news:
        create(store, new)
    beats = [each for new in news for each in beats_of(new, *instants)]
    assert [key.scheduled_at for key in read_keys(store, after=instants[0], now=instants[2])] == instants[1:3]
    assert beat(store, beats, after=instants[0], now=instants[2]).admitted == 2
    assert [run.scheduled_at for run in store.list_runs(RunFilter(), before=None, limit=9)] == instants[
        2:0:-1
    ]


def test_a_beat_whose_successor_is_due_already_is_left_to_the_planner(store: Store) -> None:
    new = made_of(Case(recurrence=Cron(expression="*/5 * * * *"), at=NINE))
    create(store, new)
    [own] = beats_of(new, NINE)
    assert_left(store, new, beats=[own], now=NINE + 5 * MINUTE)


def test_a_fraction_of_a_millisecond_makes_nothing_due(store: Store) -> None:
    new = new_schedule()
    create(store, new)
    assert read_keys(store, now=NINE - MICROSECOND) == []
    assert read_keys(store, after=NINE, now=NINE + HOUR) == []
    assert beat(store, beats_of(new, NINE), now=NINE - MICROSECOND) == BeatsOutcome()
    assert len(read_keys(store, after=NINE - MICROSECOND, now=NINE + MICROSECOND)) == 1
    assert beat(store, beats_of(new, NINE), after=NINE - MICROSECOND, now=NINE + MICROSECOND).admitted == 1


def test_of_each_partition_the_first_by_due_instant_and_id_are_admitted(store: Store) -> None:
    places = [
        ("a1", -5, 0),
        ("a_1", 0, 0),
        ("a-1", 0, 0),
        ("b", 0, 1),
        ("c", -5, 1),
        ("d", 0, 1),
        ("e", 0, 2),
        ("f", 0, 3),
    ]
    for id_, minutes, partition in places:
        create(store, daily_at(minutes, id_, partition=partition))
    beats = [*beats_of(daily_at(-5), NINE - 5 * MINUTE), *beats_of(daily_at(0), NINE)]
    fences = hold(store)[:3]
    assert beat(store, beats, fences=fences, each=2).admitted == 5
    runs = store.list_runs(RunFilter(), before=None, limit=9)
    assert {run.schedule_id for run in runs} == {"a1", "a-1", "c", "b", "e"}
    assert beat(store, beats, fences=fences, each=2).admitted == 2
    assert beat(store, beats, fences=fences, each=2).admitted == 0
    assert len(deliveries(store)) == 7


def test_those_that_are_not_ordinary_keep_nobodys_place(store: Store) -> None:
    ordinary, other = new_schedule("z"), made_of(Case(recurrence=Cron(expression="0 9 * * 6"), at=NINE), "y")
    for number in range(3):
        commit(store, pause(create(store, new_schedule(f"paused-{number}")), at=NINE - HOUR))
        create(store, made_of(Case(recurrence=NINE_DAILY, at=NINE, last=NINE), f"last-{number}"))
    create(store, other)
    create(store, ordinary)
    assert beat(store, beats_of(ordinary, NINE), each=1).admitted == 1
    assert run_of(store, "z.1.20260110T090000Z").state is RunState.QUEUED


ONCE = {
    "a local time": At(time=NINE.replace(tzinfo=None)),
    "an instant": At(time=NINE),
}


@pytest.mark.parametrize("kind", ONCE)
def test_what_happens_once_hides_no_beat_behind_it(store: Store, kind: str) -> None:
    for number in range(3):
        create(store, made_of(Case(recurrence=ONCE[kind], at=NINE), f"once-{number}"))
        create(store, made_of(Case(recurrence=NINE_DAILY, at=NINE, ends_at=NINE + SECOND), f"last-{number}"))
    create(store, made_of(Case(recurrence=NINE_DAILY, at=NINE, series=2), "z"))
    assert [key.series for key in read_keys(store, each=1)] == [2]


def test_one_that_may_have_a_next_instant_is_read(store: Store) -> None:
    create(store, made_of(Case(recurrence=NINE_DAILY, at=NINE, ends_at=NINE + SECOND + MILLISECOND)))
    assert len(read_keys(store)) == 1


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_what_is_passed_over_is_bounded(
    open_store: OpenStore, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beats_module, "PASSED_OVER_MAX", 2)
    store, ordinary = open_store(kind), new_schedule("z")
    create(store, ordinary)
    hold(store)
    fences = [fence_of(store, 0)]
    others = [made_of(Case(recurrence=NINE_DAILY, at=NINE, last=NINE), f"last-{place}") for place in range(3)]
    for other in others[:2]:
        create(store, other)
    assert len(read_keys(store, each=1)) == 1
    create(store, others[2])
    assert read_keys(store, each=1) == []
    assert beat(store, beats_of(ordinary, NINE), fences=fences, each=1).admitted == 0
    assert beat(store, beats_of(ordinary, NINE), fences=fences, each=2).admitted == 1


@pytest.mark.parametrize("kind", STORES)
def test_schedules_that_are_never_ordinary_hold_up_none_behind_them(
    open_store: OpenStore, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beats_module, "PASSED_OVER_MAX", 0)
    store, ordinary = open_store(kind), new_schedule("z")
    for number in range(3):
        create(store, new_schedule(f"a{number}", of=definition(overlap="skip")))
    create(store, ordinary)
    hold(store)
    assert len(read_keys(store, each=1)) == 1
    assert beat(store, beats_of(ordinary, NINE), each=1).admitted == 1


def test_beats_are_read_once_each_and_in_order(store: Store) -> None:
    cases = [
        Case(recurrence=Cron(expression="*/5 * * * *"), at=NINE - 5 * MINUTE, partition=1),
        Case(recurrence=NINE_DAILY, at=NINE, period="day", series=2),
        Case(recurrence=NINE_DAILY, at=NINE, period="day"),
        Case(recurrence=NINE_DAILY, at=NINE, period="week", partition=2),
        Case(recurrence=Cron(expression="*/5 * * * *"), at=NINE),
    ]
    for number, case in enumerate(cases * 2):
        create(store, made_of(case, f"s{number}"))
    keys = read_keys(store, range(PARTITIONS))
    assert keys == sorted(keys, key=lambda key: (key.scheduled_at, key.cadence_id, key.period, key.series))
    assert [(key.scheduled_at, key.period, key.series) for key in keys] == [
        (NINE - 5 * MINUTE, "instant", 1),
        (NINE, "instant", 1),
        (NINE, "day", 1),
        (NINE, "day", 2),
        (NINE, "week", 1),
    ]
    assert read_keys(store, [0, 0, 1]) == [key for key in keys if key.period != "week"]


def test_beats_are_read_of_the_first_of_each_partition(store: Store) -> None:
    for number in range(4):
        case = Case(recurrence=NINE_DAILY, at=NINE, series=number + 1, partition=number % 2)
        create(store, made_of(case, f"s{number}"))
    assert [key.series for key in read_keys(store, [0, 1], each=1)] == [1, 2]
    assert [key.series for key in read_keys(store, [0, 1], each=2)] == [1, 2, 3, 4]


def test_excluded_cadences_keep_nobodys_place_and_are_not_read(store: Store) -> None:
    first, second = (
        made_of(Case(recurrence=NINE_DAILY, at=NINE, timezone=zone), zone[0].lower()) for zone in ("UTC", "Z")
    )
    for new in (first, second):
        create(store, new)
    excluding = [first.first.version.cadence_id, "unknown"]
    assert [key.cadence_id for key in read_keys(store, each=1, excluding=excluding)] == [
        second.first.version.cadence_id
    ]
