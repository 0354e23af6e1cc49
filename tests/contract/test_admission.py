"""The dispatch protocol: committing decisions under the epoch and the state that they were made for (I2, I3, I6)."""

from dataclasses import replace

import pytest

from rota.domain.admission import Admission
from rota.domain.run import Run, RunState
from rota.domain.schedule import Cursor, Schedule, ScheduleStatus
from rota.store.port import (
    AdmissionOutcome,
    Fence,
    Intent,
    RunFilter,
    Store,
    TooManyElements,
)
from tests.contract.builders import (
    DAY,
    HOUR,
    MADE_AT,
    MINUTE,
    NINE,
    SECOND,
    admission,
    change_of,
    cursor,
    new_schedule,
    run_at,
    skip_at,
)
from tests.contract.steps import admit, commit, contents, create, deliveries, due_ids, hold, record_of

ADMITTED, STALE = AdmissionOutcome.ADMITTED, AdmissionOutcome.STALE
FENCED, KEY_USED = AdmissionOutcome.FENCED, AdmissionOutcome.KEY_USED


def assert_refused(store: Store, fence: Fence, element: Admission, outcome: AdmissionOutcome) -> None:
    before = contents(store)
    assert admit(store, fence, [element]) == [outcome]
    assert contents(store) == before


def whole_admission(schedule: Schedule) -> Admission:
    """One that writes everything an admission can write."""
    skip = skip_at(schedule, NINE + HOUR, NINE + 2 * HOUR)
    return admission(schedule, runs=[run_at(schedule, NINE)], skips=[skip])


def test_an_admission_writes_run_delivery_skip_and_cursor_together(store: Store) -> None:
    schedule = create(store)
    fence = hold(store)[0]
    element = whole_admission(schedule)
    assert admit(store, fence, [element]) == [ADMITTED]
    assert store.list_ledger(schedule.schedule_id, before=None, limit=10) == [*element.skips, *element.runs]
    [run] = element.runs
    assert deliveries(store) == [Intent(run_id=run.run_id, attempt=1, job="sales_report", available_at=NINE)]
    after = record_of(store, schedule).schedule
    assert (after.cursor, after.status, after.status_reason) == (
        cursor(NINE + DAY),
        ScheduleStatus.ACTIVE,
        None,
    )
    untouched = replace(after, cursor=schedule.cursor, updated_at=schedule.updated_at)
    assert untouched == schedule


def test_a_delivery_is_available_when_its_run_is(store: Store) -> None:
    schedule = create(store)
    run = replace(run_at(schedule, NINE), available_at=NINE + MINUTE)
    assert admit(store, hold(store)[0], [admission(schedule, runs=[run])]) == [ADMITTED]
    assert [delivery.available_at for delivery in deliveries(store)] == [NINE + MINUTE]


def test_an_admission_can_end_its_schedule(store: Store) -> None:
    schedule = create(store)
    element = replace(
        admission(schedule, next_due=None), status=ScheduleStatus.ENDED, status_reason="exhausted"
    )
    assert admit(store, hold(store)[0], [element]) == [ADMITTED]
    after = record_of(store, schedule).schedule
    assert (after.status, after.status_reason, after.cursor) == (
        ScheduleStatus.ENDED,
        "exhausted",
        cursor(None),
    )
    assert due_ids(store, now=NINE + 1000 * DAY) == []


def test_an_admission_may_have_skips_alone_or_nothing_but_a_cursor(store: Store) -> None:
    schedule, fence = create(store), hold(store)[0]
    skips = [skip_at(schedule, NINE, NINE + DAY)]
    assert admit(store, fence, [admission(schedule, runs=[], skips=skips)]) == [ADMITTED]
    assert deliveries(store) == []
    moved = record_of(store, schedule).schedule
    assert admit(store, fence, [admission(moved, runs=[], next_due=None)]) == [ADMITTED]
    assert record_of(store, schedule).schedule.cursor == cursor(None)
    assert store.list_ledger(schedule.schedule_id, before=None, limit=10) == skips


def test_many_runs_of_one_admission_are_each_delivered(store: Store) -> None:
    schedule = create(store)
    runs = [run_at(schedule, NINE + minutes * MINUTE) for minutes in range(25)]
    assert admit(store, hold(store)[0], [admission(schedule, runs=runs)]) == [ADMITTED]
    assert [delivery.run_id for delivery in deliveries(store)] == [run.run_id for run in runs]
    assert store.list_ledger(schedule.schedule_id, before=None, limit=100) == runs[::-1]


def test_an_admission_is_refused_under_any_other_epoch(store: Store) -> None:
    schedule = create(store)
    stale = hold(store)[0]
    store.commit_releases("node-a", [stale], now=MADE_AT)
    [current] = hold(store, "node-b")
    for fence in (stale, replace(current, epoch=current.epoch + 1), Fence(partition=99, epoch=1)):
        assert_refused(store, fence, whole_admission(schedule), FENCED)
    assert admit(store, current, [whole_admission(schedule)]) == [ADMITTED]


def test_a_stale_epoch_refuses_every_element_of_a_batch(store: Store) -> None:
    one, other = create(store), create(store, new_schedule("other"))
    fence = hold(store)[0]
    before = contents(store)
    stale = replace(fence, epoch=fence.epoch - 1)
    assert admit(store, stale, [admission(one), admission(other)]) == [FENCED, FENCED]
    assert contents(store) == before


def test_a_fence_of_one_partition_admits_nothing_in_another(store: Store) -> None:
    schedule = create(store, new_schedule(partition=1))
    fences = hold(store)
    before = contents(store)
    assert admit(store, fences[0], [whole_admission(schedule)]) != [ADMITTED]
    assert contents(store) == before
    assert admit(store, fences[1], [whole_admission(schedule)]) == [ADMITTED]


@pytest.mark.parametrize(
    "expected",
    [
        Cursor(version=2, scheduled_at=NINE, due_at=NINE),
        Cursor(version=1, scheduled_at=NINE + SECOND, due_at=NINE),
        Cursor(version=1, scheduled_at=NINE, due_at=NINE + SECOND),
        cursor(None),
    ],
    ids=["version", "scheduled_at", "due_at", "none"],
)
def test_an_admission_needs_the_cursor_that_it_expects(store: Store, expected: Cursor) -> None:
    schedule, fence = create(store), hold(store)[0]
    assert_refused(store, fence, replace(whole_admission(schedule), expected_cursor=expected), STALE)


def test_an_admission_needs_the_revision_that_it_expects(store: Store) -> None:
    schedule, fence = create(store), hold(store)[0]
    element = whole_admission(schedule)
    for revision in (schedule.revision - 1, schedule.revision + 1):
        assert_refused(store, fence, replace(element, expected_revision=revision), STALE)
    commit(store, change_of(schedule))
    assert_refused(store, fence, element, STALE)


def test_admissions_leave_the_revision_as_it_is(store: Store) -> None:
    schedule = create(store)
    assert admit(store, hold(store)[0], [whole_admission(schedule)]) == [ADMITTED]
    assert record_of(store, schedule).schedule.revision == schedule.revision


def test_an_admission_of_an_unknown_schedule_is_stale(store: Store) -> None:
    create(store)
    element = whole_admission(new_schedule("unknown").schedule)
    assert_refused(store, hold(store)[0], element, STALE)


def test_an_admission_made_twice_applies_once(store: Store) -> None:
    schedule, fence = create(store), hold(store)[0]
    element = whole_admission(schedule)
    assert admit(store, fence, [element]) == [ADMITTED]
    assert_refused(store, fence, element, STALE)


def test_a_schedule_twice_in_a_batch_is_admitted_once(store: Store) -> None:
    schedule, fence = create(store), hold(store)[0]
    element = whole_admission(schedule)
    assert admit(store, fence, [element, element]) == [ADMITTED, STALE]
    assert len(deliveries(store)) == 1


def test_a_schedule_twice_in_a_batch_may_take_two_steps(store: Store) -> None:
    schedule, fence = create(store), hold(store)[0]
    first = admission(schedule, next_due=NINE + DAY)
    second = admission(replace(schedule, cursor=first.cursor), next_due=NINE + 2 * DAY)
    assert admit(store, fence, [first, second]) == [ADMITTED, ADMITTED]
    assert record_of(store, schedule).schedule.cursor == cursor(NINE + 2 * DAY)
    assert len(deliveries(store)) == 2


def test_a_run_that_exists_refuses_its_element(store: Store) -> None:
    schedule, fence = create(store), hold(store)[0]
    assert admit(store, fence, [admission(schedule)]) == [ADMITTED]
    moved = record_of(store, schedule).schedule
    again = replace(run_at(schedule, NINE), period_key="day:2026-01-11")
    element = admission(
        moved,
        runs=[run_at(moved, NINE + DAY), again],
        skips=[skip_at(moved, NINE + 2 * DAY, NINE + 3 * DAY)],
        next_due=NINE + 3 * DAY,
    )
    assert_refused(store, fence, element, KEY_USED)


def test_a_used_period_key_refuses_its_element(store: Store) -> None:
    """I2: at most one run per period key, whatever became of it."""
    schedule, fence = create(store), hold(store)[0]
    first = run_at(schedule, NINE, period_key="day:2026-01-10")
    assert admit(store, fence, [admission(schedule, runs=[first])]) == [ADMITTED]
    moved = record_of(store, schedule).schedule
    runs = [run_at(moved, NINE + DAY), run_at(moved, NINE + HOUR, period_key="day:2026-01-10")]
    assert_refused(store, fence, admission(moved, runs=runs, next_due=NINE + 2 * DAY), KEY_USED)


def test_two_runs_of_one_admission_cannot_share_a_period_key(store: Store) -> None:
    schedule, fence = create(store), hold(store)[0]
    runs = [run_at(schedule, NINE + hours * HOUR, period_key="day:2026-01-10") for hours in range(2)]
    assert_refused(store, fence, admission(schedule, runs=runs), KEY_USED)


def test_period_keys_are_each_schedules_own(store: Store) -> None:
    schedules = [create(store), create(store, new_schedule("other"))]
    elements = [
        admission(schedule, runs=[run_at(schedule, NINE, period_key="day:2026-01-10")])
        for schedule in schedules
    ]
    assert admit(store, hold(store)[0], elements) == [ADMITTED, ADMITTED]


def test_nothing_is_created_before_the_kept_history(store: Store) -> None:
    schedule = create(store, new_schedule(history_from=NINE + SECOND))
    fence = hold(store)[0]
    assert_refused(store, fence, admission(schedule), AdmissionOutcome.PRUNED)
    late = admission(schedule, runs=[run_at(schedule, NINE + SECOND)])
    assert admit(store, fence, [late]) == [ADMITTED]


def runs_in(store: Store) -> list[str]:
    return [run.run_id for run in store.list_runs(RunFilter(), before=None, limit=100)]


@pytest.mark.parametrize("refused", ["stale", "key used"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_refused_element_does_not_disturb_the_others(store: Store, refused: str, place: int) -> None:
    fence = hold(store)[0]
    schedules = [create(store, new_schedule(id_)) for id_ in ("a", "b", "c")]
    bad = schedules[place]
    elements = [admission(schedule) for schedule in schedules]
    expected = [ADMITTED] * 3
    before: list[Run] = []
    if refused == "stale":
        elements[place] = replace(elements[place], expected_cursor=cursor(NINE - DAY))
        expected[place] = STALE
    else:
        before = [run_at(bad, NINE - DAY, period_key=elements[place].runs[0].period_key)]
        early = admission(bad, runs=before, next_due=NINE)
        assert admit(store, fence, [early]) == [ADMITTED]
        expected[place] = KEY_USED
    assert admit(store, fence, elements) == expected
    others = [schedule for schedule in schedules if schedule is not bad]
    wanted = [*(run_at(schedule, NINE).run_id for schedule in others), *(run.run_id for run in before)]
    assert sorted(runs_in(store)) == sorted(wanted)
    assert sorted(delivery.run_id for delivery in deliveries(store)) == sorted(wanted)
    assert record_of(store, bad).schedule.cursor == cursor(NINE)
    assert {record_of(store, schedule).schedule.cursor for schedule in others} == {cursor(NINE + DAY)}


def test_more_elements_than_the_store_takes_are_refused_whole(store: Store) -> None:
    fence = hold(store)[0]
    schedules = [create(store, new_schedule(f"s{number}")) for number in range(3)]
    elements = [admission(schedule) for schedule in schedules]
    elements += [elements[0]] * (store.elements_max - len(elements) + 1)
    with pytest.raises(TooManyElements):
        store.commit_admissions(fence, elements, now=NINE)
    assert runs_in(store) == []
    assert deliveries(store) == []


def test_an_empty_batch_has_no_answers(store: Store) -> None:
    assert store.commit_admissions(hold(store)[0], [], now=NINE) == []


def test_an_admitted_run_keeps_its_own_stamp(store: Store) -> None:
    schedule, fence = create(store), hold(store)[0]
    assert admit(store, fence, [admission(schedule)], now=NINE + MINUTE) == [ADMITTED]
    [run] = store.list_runs(RunFilter(state=RunState.QUEUED), before=None, limit=1)
    assert run.admitted_at == NINE
