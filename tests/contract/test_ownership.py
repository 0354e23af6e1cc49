"""The dispatch protocol: a run is its version's own, within its window, or an activation carried it (I8)."""

from dataclasses import replace
from datetime import datetime

import pytest

from rota.domain.admission import Admission
from rota.domain.run import Run, RunState
from rota.domain.schedule import Schedule, ScheduleStatus
from rota.store.port import AdmissionOutcome, Store
from tests.contract.builders import (
    DAY,
    HOUR,
    NINE,
    OPENS_AT,
    SECOND,
    admission,
    change_to,
    cursor,
    edit,
    new_schedule,
    new_version,
    planned_run_at,
    run_at,
)
from tests.contract.steps import (
    admit,
    commit,
    contents,
    create,
    deliveries,
    fence_of,
    plan,
    record_of,
    run_of,
)

ADMITTED, NOT_OWNED = AdmissionOutcome.ADMITTED, AdmissionOutcome.NOT_OWNED
BOUNDARY = NINE + DAY


def create_edited(store: Store) -> Schedule:
    """A schedule whose second version takes over at `BOUNDARY`; the cursor is the first's."""
    return commit(store, edit(create(store), new_version(number=2, effective_from=BOUNDARY)))


def activation(schedule: Schedule, *carried: Run) -> Admission:
    return replace(
        admission(schedule, runs=carried), cursor=cursor(BOUNDARY, version=2), careful_until=BOUNDARY + DAY
    )


def carried_run(schedule: Schedule, *, by: int = 2) -> Run:
    """An occurrence of the first version past the boundary, as the second one's activation creates it."""
    return replace(planned_run_at(schedule, BOUNDARY + HOUR), carried_by=by)


def apply(store: Store, element: Admission) -> AdmissionOutcome:
    """The outcome; what is refused has to change nothing."""
    fence = fence_of(store, 0)
    before = contents(store)
    [outcome] = admit(store, fence, [element])
    assert outcome is ADMITTED or contents(store) == before
    return outcome


@pytest.mark.parametrize(
    ("instant", "outcome"),
    [
        (OPENS_AT - SECOND, NOT_OWNED),
        (OPENS_AT, ADMITTED),
        (BOUNDARY - SECOND, ADMITTED),
        (BOUNDARY, NOT_OWNED),
        (BOUNDARY + DAY, NOT_OWNED),
    ],
    ids=str,
)
def test_a_queued_run_lies_in_the_window_of_its_version(
    store: Store, instant: datetime, outcome: AdmissionOutcome
) -> None:
    new = new_schedule(history_from=OPENS_AT - DAY)
    schedule = commit(store, edit(create(store, new), new_version(number=2, effective_from=BOUNDARY)))
    runs = [run_at(schedule, NINE), run_at(schedule, instant)]
    assert apply(store, admission(schedule, runs=runs)) is outcome


def test_a_window_without_an_end_owns_everything_after_its_beginning(store: Store) -> None:
    schedule = create(store)
    assert apply(store, admission(schedule, runs=[run_at(schedule, NINE + 5000 * DAY)])) is ADMITTED


def test_a_queued_run_is_of_the_version_whose_cursor_is_expected(store: Store) -> None:
    schedule = create_edited(store)
    run, new_run = run_at(schedule, NINE), replace(run_at(schedule, BOUNDARY), version=2)
    assert apply(store, admission(schedule, runs=[replace(run, version=2)])) is NOT_OWNED
    assert apply(store, replace(activation(schedule), runs=(new_run,))) is NOT_OWNED
    assert apply(store, admission(schedule, runs=[run])) is ADMITTED


def test_the_new_version_owns_what_begins_at_its_boundary(store: Store) -> None:
    schedule = create_edited(store)
    assert apply(store, activation(schedule)) is ADMITTED
    schedule = record_of(store, schedule).schedule
    early = admission(schedule, runs=[run_at(schedule, BOUNDARY - SECOND)])
    assert apply(store, early) is NOT_OWNED
    assert apply(store, replace(early, runs=(run_at(schedule, BOUNDARY),))) is ADMITTED
    assert run_of(store, "report-7.2.20260111T090000Z").version == 2


def test_an_activation_writes_carried_runs_cursor_and_care_together(store: Store) -> None:
    schedule = create_edited(store)
    carried = carried_run(schedule)
    assert apply(store, activation(schedule, carried)) is ADMITTED
    after = record_of(store, schedule)
    assert (after.version.number, after.pending) == (2, None)
    assert after.schedule == replace(
        schedule, cursor=cursor(BOUNDARY, version=2), careful_until=BOUNDARY + DAY, updated_at=NINE
    )
    assert run_of(store, carried.run_id) == carried
    assert deliveries(store) == []


@pytest.mark.parametrize("by", [None, 1, 3])
def test_a_planned_run_is_carried_by_the_version_that_takes_over(store: Store, by: int | None) -> None:
    schedule = create_edited(store)
    wrong = replace(carried_run(schedule), carried_by=by)
    assert apply(store, activation(schedule, carried_run(schedule, by=2), wrong)) is NOT_OWNED


def test_a_planned_run_is_not_owned_by_the_window_it_lies_in(store: Store) -> None:
    """Only a plan on request creates those, and it is no admission."""
    schedule = create(store)
    run = planned_run_at(schedule, NINE)
    assert apply(store, admission(schedule, runs=[run])) is NOT_OWNED
    plan(store, schedule, run)


def test_what_is_carried_past_the_boundary_is_still_before_the_kept_history(store: Store) -> None:
    new = new_schedule(history_from=BOUNDARY + 2 * HOUR)
    schedule = commit(store, edit(create(store, new), new_version(number=2, effective_from=BOUNDARY)))
    unowned = run_at(schedule, BOUNDARY)
    assert apply(store, activation(schedule, carried_run(schedule))) is AdmissionOutcome.PRUNED
    assert apply(store, admission(schedule, runs=[unowned])) is AdmissionOutcome.PRUNED


def test_ownership_is_judged_before_keys_and_after_staleness(store: Store) -> None:
    schedule = create_edited(store)
    run = run_at(schedule, NINE)
    schedule = plan(store, schedule, run)
    unowned = admission(schedule, runs=[replace(run, version=2)])
    assert apply(store, unowned) is NOT_OWNED
    assert apply(store, admission(schedule, runs=[run])) is AdmissionOutcome.KEY_USED
    assert apply(store, replace(unowned, expected_revision=99)) is AdmissionOutcome.STALE


def test_a_run_that_is_changed_may_be_of_any_version(store: Store) -> None:
    """Released and dropped runs were owned, or carried, when they were created."""
    schedule = create_edited(store)
    assert apply(store, activation(schedule, carried_run(schedule))) is ADMITTED
    moved = record_of(store, schedule).schedule
    change = change_to(carried_run(schedule), RunState.SKIPPED, reason="paused")
    assert apply(store, replace(admission(moved, runs=[]), run_changes=(change,))) is ADMITTED
    assert run_of(store, change.run.run_id) == change.run


def test_an_end_closes_the_window_of_the_version_whose_cursor_it_writes(store: Store) -> None:
    schedule = create_edited(store)
    ended = replace(
        activation(schedule),
        cursor=cursor(None, version=2),
        status=ScheduleStatus.ENDED,
        status_reason="exhausted",
        window_closed_at=BOUNDARY + SECOND,
    )
    assert apply(store, ended) is ADMITTED
    versions = store.list_versions(schedule.schedule_id, before=None, limit=10)
    assert [version.effective_until for version in versions] == [BOUNDARY + SECOND, BOUNDARY]


def test_an_admission_without_an_end_leaves_the_window_open(store: Store) -> None:
    new = new_schedule()
    schedule = create(store, new)
    assert apply(store, admission(schedule)) is ADMITTED
    assert record_of(store, schedule).version == new.first.version


def test_an_admission_only_raises_careful_until(store: Store) -> None:
    schedule = create(store)
    after = []
    for careful_until in (NINE, NINE - HOUR, None, NINE + HOUR):
        element = replace(admission(schedule, runs=[]), careful_until=careful_until)
        assert apply(store, element) is ADMITTED
        schedule = record_of(store, schedule).schedule
        after.append(schedule.careful_until)
    assert after == [NINE, NINE, NINE, NINE + HOUR]


def test_a_version_that_does_not_exist_owns_nothing(store: Store) -> None:
    new = new_schedule()
    lost = replace(new.schedule, cursor=cursor(NINE, version=9))
    store.commit_creation(replace(new, schedule=lost), now=NINE)
    [outcome] = admit(store, fence_of(store, 0), [admission(lost)])
    assert outcome is NOT_OWNED
    assert deliveries(store) == []
