"""Set-based admission leaves to the planner what is not ordinary, and refuses what it may not write (I2, I3, I6)."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import pytest

from rota.domain.job import Job
from rota.domain.overdue import CatchUpAll, Expire, OverduePolicy
from rota.domain.recurrence import Cron
from rota.domain.run import RunState
from rota.domain.schedule import Cursor, Schedule, ScheduleStatus
from rota.store.port import AdmissionOutcome, BeatsOutcome, Fence, RunFilter, Store
from tests.contract.beating import (
    DAILY_CASE,
    MICROSECOND,
    NINE_DAILY,
    Case,
    all_of,
    assert_left,
    beat,
    beats_of,
    made_of,
    read_keys,
    strict_and_lax_jobs,
)
from tests.contract.builders import (
    DAY,
    HOUR,
    MADE_AT,
    MILLISECOND,
    MINUTE,
    NINE,
    SECOND,
    admission,
    change_of,
    change_to,
    cursor,
    definition,
    edit,
    new_schedule,
    new_version,
    pause,
    planned_run_at,
    status_change,
)
from tests.contract.steps import (
    PARTITIONS,
    commit,
    create,
    deliveries,
    fence_of,
    hold,
    plan,
    record_of,
)

Arrange = Callable[[Store, Schedule], object]
BY_ROW: dict[str, Arrange] = {
    "paused": lambda store, schedule: commit(store, pause(schedule, at=NINE - HOUR)),
    "ended": lambda store, schedule: commit(
        store, status_change(schedule, ScheduleStatus.ENDED, at=NINE - HOUR)
    ),
    "in error": lambda store, schedule: commit(
        store, status_change(schedule, ScheduleStatus.ERROR, at=NINE - HOUR)
    ),
    "before careful_until": lambda store, schedule: commit(
        store, replace(change_of(schedule), careful_until=NINE + SECOND)
    ),
    "awaited by a version": lambda store, schedule: commit(
        store, edit(schedule, new_version(number=2, effective_from=NINE + DAY))
    ),
    "with runs that are parked": lambda store, schedule: stand(store, schedule, NINE, due=NINE - SECOND),
    "moved behind its instant": lambda store, schedule: stand(store, schedule, NINE - SECOND, due=NINE),
    "at no instant": lambda store, schedule: stand(store, schedule, None, due=NINE),
}


def stand(store: Store, schedule: Schedule, instant: datetime | None, *, due: datetime) -> Schedule:
    moved = Cursor(version=schedule.cursor.version, scheduled_at=instant, due_at=due)
    return commit(store, replace(change_of(schedule), cursor=moved))


@pytest.mark.parametrize("reason", BY_ROW)
def test_a_schedule_is_left_to_the_planner_that_is(store: Store, reason: str) -> None:
    new = new_schedule()
    BY_ROW[reason](store, create(store, new))
    assert_left(store, new)
    assert read_keys(store) == []


def test_a_schedule_is_admitted_at_its_careful_until_and_not_before(store: Store) -> None:
    new = new_schedule()
    commit(store, replace(change_of(create(store, new)), careful_until=NINE))
    assert beat(store, beats_of(new, NINE)).admitted == 1


def test_nothing_is_admitted_before_the_kept_history(store: Store) -> None:
    new = new_schedule(history_from=NINE + SECOND)
    create(store, new)
    assert_left(store, new)
    assert read_keys(store) == []


@pytest.mark.parametrize(
    "case",
    [
        Case(recurrence=NINE_DAILY, at=NINE, ends_at=NINE + DAY),
        Case(recurrence=NINE_DAILY, at=NINE, ends_at=NINE + SECOND),
        Case(recurrence=NINE_DAILY, at=NINE, last=NINE + DAY - SECOND),
        Case(recurrence=NINE_DAILY, at=NINE, last=NINE),
        Case(recurrence=NINE_DAILY, at=NINE, last=NINE + 2 * DAY, ends_at=NINE + DAY),
    ],
    ids=["next at ends_at", "ends_at", "next after the last", "the last", "the earlier of both"],
)
def test_the_last_instants_of_a_bounded_schedule_are_left_to_the_planner(store: Store, case: Case) -> None:
    new = made_of(case)
    create(store, new)
    assert_left(store, new)


def test_of_two_beats_each_bounds_its_own_schedules(store: Store) -> None:
    daily, monthly = (
        Case(recurrence=NINE_DAILY, at=NINE),
        Case(recurrence=Cron(expression="0 9 10 * *"), at=NINE),
    )
    news = [
        made_of(replace(daily, ends_at=NINE + 2 * DAY), "daily"),
        made_of(replace(monthly, ends_at=NINE + 2 * DAY), "monthly"),
        made_of(replace(monthly, ends_at=NINE + 32 * DAY), "monthly-longer"),
    ]
    for new in news:
        create(store, new)
    assert beat(store, [*beats_of(news[0], NINE), *beats_of(news[1], NINE)]).admitted == 2
    assert record_of(store, news[1].schedule).schedule == news[1].schedule


@pytest.mark.parametrize(
    ("overdue", "job"),
    [
        (Expire(deadline=MINUTE), "lax"),
        (CatchUpAll(max_age=MINUTE), "sales_report"),
        (None, "strict"),
        (Expire(deadline=MINUTE), "strict"),
    ],
    ids=["deadline", "max_age", "the job's", "its own"],
)
def test_what_is_later_than_its_policy_allows_is_left_to_the_planner(
    store: Store, overdue: OverduePolicy | None, job: str
) -> None:
    strict_and_lax_jobs(store)
    new = made_of(Case(recurrence=NINE_DAILY, at=NINE, overdue=overdue, job=job))
    create(store, new)
    assert_left(store, new, now=NINE + MINUTE + MILLISECOND)
    assert_left(store, new, now=NINE + MINUTE + MICROSECOND)
    assert beat(store, beats_of(new, NINE), now=NINE + MINUTE).admitted == 1


def test_the_policy_of_a_job_is_the_one_that_it_has_now(store: Store) -> None:
    strict_and_lax_jobs(store)
    new = made_of(Case(recurrence=NINE_DAILY, at=NINE, job="strict"))
    create(store, new)
    store.commit_job(Job(name="strict", overdue=Expire(deadline=HOUR)), now=NINE)
    assert beat(store, beats_of(new, NINE), now=NINE + HOUR).admitted == 1


def test_a_beat_admits_only_those_that_stand_at_it(store: Store) -> None:
    new = made_of(DAILY_CASE)
    create(store, new)
    [own] = beats_of(new, NINE)
    for key in (
        replace(own.key, cadence_id="other"),
        replace(own.key, period="week"),
        replace(own.key, series=2),
    ):
        assert_left(store, new, beats=[replace(own, key=key)])
    assert_left(store, new, beats=beats_of(new, NINE + DAY))
    assert_left(store, new, beats=beats_of(new, NINE - DAY, now=NINE - DAY))


def test_only_partitions_that_are_held_are_served_and_the_others_are_told(store: Store) -> None:
    news = [new_schedule(f"s{partition}", partition=partition) for partition in range(PARTITIONS)]
    for new in news:
        create(store, new)
    fences = hold(store)
    store.commit_releases("node-a", [fences[1]], now=MADE_AT)
    hold(store, "node-b")
    wrong = [fences[0], fences[1], replace(fences[2], epoch=7), Fence(partition=99, epoch=1)]
    assert beat(store, beats_of(news[0], NINE), fences=wrong) == BeatsOutcome(
        admitted=1, fenced=frozenset({1, 2, 99})
    )
    moved = [new.schedule for new in news if record_of(store, new.schedule).schedule != new.schedule]
    assert moved == [news[0].schedule]
    assert len(store.list_runs(RunFilter(), before=None, limit=10)) == len(deliveries(store)) == 1


def test_a_partition_of_which_one_fence_is_stale_is_not_served(store: Store) -> None:
    new = new_schedule()
    create(store, new)
    fence = fence_of(store, 0)
    both = [fence, replace(fence, epoch=fence.epoch + 1)]
    assert beat(store, beats_of(new, NINE), fences=both) == BeatsOutcome(fenced=frozenset({0}))
    assert record_of(store, new.schedule).schedule == new.schedule


def test_without_beats_or_fences_nothing_is_admitted(store: Store) -> None:
    new = new_schedule()
    create(store, new)
    assert beat(store, []) == BeatsOutcome()
    assert beat(store, beats_of(new, NINE), fences=[]) == BeatsOutcome()
    assert read_keys(store, []) == []


def test_a_period_key_that_is_used_refuses_the_whole_commit(store: Store) -> None:
    used, other = (made_of(DAILY_CASE, id_) for id_ in ("used", "other"))
    schedule = create(store, used)
    create(store, other)
    [own] = beats_of(used, NINE)
    plan(store, schedule, planned_run_at(schedule, NINE + HOUR, period_key=own.period_key))
    fences, before = [fence_of(store, 0)], all_of(store)
    assert beat(store, [own], fences=fences) == BeatsOutcome(is_key_used=True)
    assert all_of(store) == before


def test_a_run_id_that_exists_refuses_the_whole_commit(store: Store) -> None:
    used, other = new_schedule("used"), new_schedule("other", partition=1)
    schedule = create(store, used)
    create(store, other)
    plan(store, schedule, planned_run_at(schedule, NINE, period_key="another"))
    fences, before = hold(store), all_of(store)
    assert beat(store, beats_of(used, NINE), fences=[*fences, Fence(partition=9, epoch=1)]) == BeatsOutcome(
        is_key_used=True, fenced=frozenset({9})
    )
    assert all_of(store) == before
    assert beat(store, beats_of(used, NINE), fences=fences[1:]).admitted == 1


def test_a_period_that_a_skipped_run_freed_can_be_used(store: Store) -> None:
    new = made_of(DAILY_CASE)
    schedule = create(store, new)
    [own] = beats_of(new, NINE)
    run = planned_run_at(schedule, NINE + HOUR, period_key=own.period_key)
    schedule = plan(store, schedule, run)
    commit(
        store,
        replace(change_of(schedule), run_changes=(change_to(run, RunState.SKIPPED, reason="superseded"),)),
    )
    assert beat(store, [own]).admitted == 1


def test_an_edit_that_takes_over_is_followed(store: Store) -> None:
    new = made_of(DAILY_CASE)
    schedule = create(store, new)
    later = new_version(of=definition(Cron(expression="0 9 * * 6")), number=2, effective_from=NINE)
    commit(store, edit(schedule, later, cursor=cursor(NINE, version=2)))
    assert_left(store, new)
    [key] = read_keys(store)
    assert key.cadence_id == later.version.cadence_id


def test_an_activation_is_followed(store: Store) -> None:
    schedules = []
    for number in range(4):
        new = new_schedule(f"s{number}")
        later = new_version(
            f"s{number}",
            definition(Cron(expression=f"{number} 9 * * *")),
            number=2,
            effective_from=NINE + MINUTE,
        )
        schedules.append(commit(store, edit(create(store, new), later)))
    for schedule in schedules:
        activated = replace(
            admission(schedule, runs=[]), cursor=Cursor(version=2, scheduled_at=NINE + DAY, due_at=NINE + DAY)
        )
        assert store.commit_admissions(fence_of(store, 0), [activated], now=NINE) == [
            AdmissionOutcome.ADMITTED
        ]
    assert len(read_keys(store, now=NINE + DAY)) == 4
