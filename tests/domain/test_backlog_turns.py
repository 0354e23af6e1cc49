"""Turns of a backlog, and what of it becomes a run where runs may not overlap."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.domain.admission import RUNS_PER_ADMISSION_MAX, Admission, plan_admission
from rota.domain.cadence import Cadence
from rota.domain.due import DueSchedule
from rota.domain.identity import RunId
from rota.domain.overdue import CatchUpAll, LatestOnly, OverduePolicy
from rota.domain.overlap import Places, free_place
from rota.domain.recurrence import Cron
from rota.domain.run import RunState
from rota.domain.schedule import Overlap
from rota.zones import load_zone
from tests.contract.builders import definition, new_schedule

MINUTE = timedelta(minutes=1)
TEN = datetime(2026, 1, 10, 10, tzinfo=UTC)
EVERY_MINUTE = Cron(expression="* * * * *")
MINUTELY = Cadence(EVERY_MINUTE, load_zone("UTC"), gap="skip", fold="both")
OPEN = RunId("report-7.1.20260110T095900Z")


def due_at_ten(
    policy: OverduePolicy, *, overlap: Overlap = "allow", places: Places = (), turn: int = 0
) -> DueSchedule:
    made = new_schedule(due=TEN, of=replace(definition(EVERY_MINUTE, overdue=policy), overlap=overlap))
    return DueSchedule(
        schedule=replace(made.schedule, turn=turn),
        version=replace(made.first.version, period="instant", effective_from=TEN),
        suspensions=(),
        job_overdue=LatestOnly(),
        places=places,
    )


def plan(due: DueSchedule, minutes: int) -> Admission:
    return plan_admission(due, MINUTELY, now=TEN + minutes * MINUTE)


def after(due: DueSchedule, admission: Admission) -> DueSchedule:
    """The schedule as the commit leaves it."""
    schedule = replace(due.schedule, cursor=admission.cursor, turn=admission.turn)
    return replace(due, schedule=schedule, places=admission.places)


def test_a_run_that_is_on_time_has_turn_0() -> None:
    admission = plan(due_at_ten(CatchUpAll()), 0)
    assert ([run.turn for run in admission.runs], admission.turn) == ([0], 0)


def test_the_runs_of_a_backlog_have_turns_from_1_on_and_the_last_of_them_is_on_time() -> None:
    admission = plan(due_at_ten(CatchUpAll()), 4)
    assert ([run.turn for run in admission.runs], admission.turn) == ([1, 2, 3, 4, 0], 0)


def test_turns_go_on_from_commit_to_commit_until_the_schedule_is_on_time() -> None:
    due = due_at_ten(CatchUpAll())
    turns: list[int] = []
    for _ in range(3):
        admission = plan(due, 59)
        turns += [run.turn for run in admission.runs]
        due = after(due, admission)
    assert turns == [*range(1, 60), 0]
    assert due.schedule.turn == 0
    [on_time] = plan(due, 60).runs
    assert on_time.turn == 0


def test_a_run_with_nothing_due_behind_it_is_on_time_as_a_beat_has_it_whatever_came_before() -> None:
    admission = plan(due_at_ten(CatchUpAll(), turn=RUNS_PER_ADMISSION_MAX), 0)
    assert ([run.turn for run in admission.runs], admission.turn) == ([0], 0)


@pytest.mark.parametrize(("minutes", "turns", "turn"), [(9, [1, 2, 3], 3), (2, [1, 2, 0], 0)])
def test_a_backlog_that_goes_on_in_the_next_version_is_counted_on(
    minutes: int, turns: list[int], turn: int
) -> None:
    due = due_at_ten(CatchUpAll())
    boundary = TEN + 3 * MINUTE
    next_version = replace(due.version, number=2, effective_from=boundary)
    due = replace(due, version=replace(due.version, effective_until=boundary), successor=next_version)
    admission = plan(due, minutes)
    assert ([run.turn for run in admission.runs], admission.turn) == (turns, turn)
    assert admission.cursor.scheduled_at == boundary


def test_the_one_run_of_a_backlog_that_is_superseded_but_for_it_has_turn_0() -> None:
    admission = plan(due_at_ten(LatestOnly(grace=timedelta(0))), 9)
    assert [(run.scheduled_at, run.turn) for run in admission.runs] == [(TEN + 9 * MINUTE, 0)]


def test_of_a_backlog_the_oldest_runs_and_the_others_are_one_range_that_names_it() -> None:
    admission = plan(due_at_ten(CatchUpAll(), overlap="skip"), 99)
    [run] = admission.runs
    [skip] = admission.skips
    assert (run.scheduled_at, run.state, admission.places) == (TEN, RunState.QUEUED, (run.run_id,))
    assert (skip.from_, skip.until, skip.count) == (TEN + MINUTE, TEN + 100 * MINUTE, 99)
    assert (skip.reason, skip.note) == ("overlap", f"run {run.run_id} is open")


def test_under_queue_the_oldest_runs_and_the_one_after_it_waits() -> None:
    admission = plan(due_at_ten(CatchUpAll(), overlap="queue"), 99)
    first, second = admission.runs
    assert (first.state, first.available_at) == (RunState.QUEUED, TEN)
    assert (second.state, second.available_at) == (RunState.WAITING, None)
    assert second.admitted_at == TEN + 99 * MINUTE
    assert [(skip.count, skip.reason) for skip in admission.skips] == [(98, "overlap")]


def test_the_newest_of_a_backlog_is_the_one_that_runs_under_latest_only() -> None:
    admission = plan(due_at_ten(LatestOnly(grace=timedelta(0)), overlap="skip"), 99)
    assert [run.scheduled_at for run in admission.runs] == [TEN + 99 * MINUTE]
    assert [(skip.count, skip.reason) for skip in admission.skips] == [(99, "superseded")]


@pytest.mark.parametrize(
    ("overlap", "places", "expected"),
    [("allow", (OPEN,), None), ("skip", (OPEN,), (OPEN,)), ("queue", (), ())],
)
def test_only_a_schedule_whose_runs_may_not_overlap_depends_on_its_places(
    overlap: Overlap, places: Places, expected: Places | None
) -> None:
    assert plan(due_at_ten(CatchUpAll(), overlap=overlap, places=places), 0).expected_places == expected


@given(
    st.sampled_from(["skip", "queue"]),
    st.sampled_from([CatchUpAll(), CatchUpAll(max_age=3 * MINUTE), LatestOnly()]),
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 2)), min_size=1, max_size=12),
)
def test_never_two_runs_are_open_at_most_one_waits_and_every_instant_has_one_outcome(
    overlap: Overlap, policy: OverduePolicy, life: list[tuple[int, int]]
) -> None:
    """Minutes pass, then so many of the open runs end one after the other."""
    due = due_at_ten(policy, overlap=overlap)
    minute, ends = 0, 0
    instants: list[datetime] = []
    states: dict[RunId, RunState] = {}
    for passed, ends in life:
        minute += passed
        admission = plan(due, minute)
        states |= {run.run_id: run.state for run in admission.runs}
        instants += [run.scheduled_at for run in admission.runs]
        for skip in admission.skips:
            instants += [skip.from_ + n * MINUTE for n in range(skip.count)]
        due = after(due, admission)
        check(states, due.places)
        for _ in range(min(ends, len(due.places))):
            ended = due.places[0]
            places, next_id = free_place(due.places, ended)
            states[ended] = RunState.SUCCEEDED
            if next_id is not None:
                states[next_id] = RunState.QUEUED
            due = replace(due, places=places)
            check(states, due.places)
    assert sorted(instants) == [TEN + n * MINUTE for n in range(len(instants))]
    assert due.schedule.cursor.scheduled_at == TEN + len(instants) * MINUTE > TEN + minute * MINUTE


def check(states: dict[RunId, RunState], places: Places) -> None:
    by_state = {state: [run_id for run_id, its in states.items() if its is state] for state in RunState}
    assert len(by_state[RunState.QUEUED]) <= 1
    assert len(by_state[RunState.WAITING]) <= 1
    assert places == (*by_state[RunState.QUEUED], *by_state[RunState.WAITING])
