"""The planner: every named instant from the cursor to now gets one outcome, in bounded pieces (I3, I4)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.domain.admission import (
    INSTANTS_PER_ADMISSION_MAX,
    RUNS_PER_ADMISSION_MAX,
    Admission,
    plan_admission,
    probes_of,
)
from rota.domain.cadence import Cadence
from rota.domain.due import CAREFUL_INSTANTS_MAX, DueSchedule
from rota.domain.identity import RunId, run_id_of
from rota.domain.key_uses import KeyUse
from rota.domain.overdue import CatchUpAll, Expire, LatestOnly, OverduePolicy
from rota.domain.recurrence import Cron
from rota.domain.run import RunState
from rota.domain.schedule import Cursor, ScheduleStatus, Suspension
from rota.store.port import NewSchedule
from rota.zones import load_zone
from tests.contract.builders import cursor, definition, new_schedule

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
MINUTELY = Cadence(Cron(expression="* * * * *"), load_zone("UTC"), gap="skip", fold="both")
TEN = datetime(2026, 1, 10, 10, tzinfo=UTC)


def due_since(
    instant: datetime,
    policy: OverduePolicy,
    *,
    suspensions: tuple[Suspension, ...] = (),
    status: ScheduleStatus = ScheduleStatus.ACTIVE,
    effective_until: datetime | None = None,
    ends_at: datetime | None = None,
) -> DueSchedule:
    """A minutely schedule whose cursor stands at `instant`."""
    made: NewSchedule = new_schedule(
        due=instant, of=replace(definition(Cron(expression="* * * * *"), overdue=policy), ends_at=ends_at)
    )
    return DueSchedule(
        schedule=replace(made.schedule, status=status),
        version=replace(
            made.first.version, period="instant", effective_from=instant, effective_until=effective_until
        ),
        suspensions=suspensions,
        job_overdue=LatestOnly(),
    )


def plan_all(due: DueSchedule, *, now: datetime) -> list[Admission]:
    """Commit after commit, until nothing is owed at `now`."""
    planned = [plan_admission(due, MINUTELY, now=now)]
    while (at := planned[-1].cursor.due_at) is not None and at <= now:
        due = replace(due, schedule=replace(due.schedule, cursor=planned[-1].cursor))
        planned.append(plan_admission(due, MINUTELY, now=now))
    return planned


def run_instants(planned: list[Admission]) -> list[datetime]:
    return [run.scheduled_at for admission in planned for run in admission.runs]


def skip_counts(planned: list[Admission]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for admission in planned:
        for skip in admission.skips:
            counts[skip.reason] = counts.get(skip.reason, 0) + skip.count
    return counts


def test_a_due_instant_becomes_one_queued_run_and_the_cursor_moves_on() -> None:
    planned = plan_admission(due_since(TEN, LatestOnly()), MINUTELY, now=TEN)

    [run] = planned.runs
    assert run.run_id == "report-7.1.20260110T100000Z"
    assert (run.state, run.scheduled_at, run.due_at, run.admitted_at) == (RunState.QUEUED, TEN, TEN, TEN)
    assert run.period_key == "instant:2026-01-10T10:00:00Z"
    assert planned.cursor == cursor(TEN + MINUTE)
    assert planned.expected_cursor == cursor(TEN)
    assert planned.skips == ()


def test_nothing_is_planned_before_its_instant() -> None:
    planned = plan_admission(due_since(TEN, LatestOnly()), MINUTELY, now=TEN - SECOND)
    assert (planned.runs, planned.skips, planned.cursor) == ((), (), cursor(TEN))


NIGHT = datetime(2025, 6, 9, 22, 1, tzinfo=UTC)
BACK = datetime(2025, 6, 10, 6, 0, 30, tzinfo=UTC)
MORNING = datetime(2025, 6, 10, 6, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("policy", "expected_first", "expected_count", "expected_skips"),
    [
        (CatchUpAll(), NIGHT, 480, {}),
        (LatestOnly(), MORNING, 1, {"superseded": 479}),
        (Expire(deadline=timedelta(seconds=300)), MORNING - 4 * MINUTE, 5, {"expired": 475}),
        (CatchUpAll(max_age=timedelta(hours=1)), MORNING - 59 * MINUTE, 60, {"expired": 420}),
        (LatestOnly(grace=timedelta(minutes=3)), MORNING - 2 * MINUTE, 3, {"superseded": 477}),
    ],
)
def test_b33_a_night_off_is_made_up_for_by_the_overdue_policy(
    policy: OverduePolicy, expected_first: datetime, expected_count: int, expected_skips: dict[str, int]
) -> None:
    planned = plan_all(due_since(NIGHT, policy), now=BACK)

    expected = [expected_first + n * MINUTE for n in range(expected_count)]
    assert expected == run_instants(planned)
    assert expected_skips == skip_counts(planned)
    assert planned[-1].cursor == cursor(MORNING + MINUTE)


def test_one_plan_makes_no_more_runs_than_one_transaction_holds() -> None:
    planned = plan_all(due_since(NIGHT, CatchUpAll()), now=BACK)
    assert max(len(admission.runs) for admission in planned) == RUNS_PER_ADMISSION_MAX


def test_a_year_of_backlog_is_skipped_in_bounded_pieces_that_touch() -> None:
    start = datetime(2025, 1, 1, tzinfo=UTC)
    first = plan_admission(due_since(start, LatestOnly()), MINUTELY, now=start + timedelta(days=365))

    [skip] = first.skips
    assert (skip.from_, skip.count) == (start, INSTANTS_PER_ADMISSION_MAX)
    assert skip.until == first.cursor.scheduled_at


def test_skips_of_one_plan_are_one_range_with_its_count() -> None:
    [skip] = plan_admission(due_since(NIGHT, LatestOnly()), MINUTELY, now=BACK).skips
    assert (skip.from_, skip.until, skip.count, skip.reason) == (NIGHT, MORNING, 479, "superseded")


def test_what_fell_into_a_pause_is_skipped_as_paused_and_what_lay_before_follows_the_policy() -> None:
    pause = Suspension(from_=TEN + 3 * MINUTE, until=TEN + 10 * MINUTE, reason="paused")
    planned = plan_all(due_since(TEN, CatchUpAll(), suspensions=(pause,)), now=TEN + 12 * MINUTE)

    assert run_instants(planned) == [TEN + n * MINUTE for n in (0, 1, 2, 10, 11, 12)]
    assert skip_counts(planned) == {"paused": 7}


def test_apply_overdue_treats_the_pause_by_the_policy_too() -> None:
    pause = Suspension(from_=TEN, until=TEN + 10 * MINUTE, reason="paused", apply_overdue=True)
    planned = plan_all(due_since(TEN, CatchUpAll(), suspensions=(pause,)), now=TEN + 10 * MINUTE)
    assert run_instants(planned) == [TEN + n * MINUTE for n in range(11)]


def test_an_instant_that_a_pause_will_skip_supersedes_nothing() -> None:
    pause = Suspension(from_=TEN + MINUTE, until=TEN + 10 * MINUTE, reason="paused")
    planned = plan_all(due_since(TEN, LatestOnly(), suspensions=(pause,)), now=TEN + 9 * MINUTE + 30 * SECOND)
    assert run_instants(planned) == [TEN]
    assert skip_counts(planned) == {"paused": 9}


def test_an_instant_after_the_pause_supersedes_one_before_it() -> None:
    pause = Suspension(from_=TEN + MINUTE, until=TEN + 10 * MINUTE, reason="paused")
    planned = plan_all(due_since(TEN, LatestOnly(), suspensions=(pause,)), now=TEN + 10 * MINUTE)
    assert run_instants(planned) == [TEN + 10 * MINUTE]
    assert skip_counts(planned) == {"superseded": 1, "paused": 9}


def test_an_ended_schedule_owes_a_reason_for_what_fell_due_before_its_end() -> None:
    due = due_since(
        TEN,
        CatchUpAll(),
        status=ScheduleStatus.ENDED,
        effective_until=TEN + 5 * MINUTE + SECOND,
    )
    [planned] = plan_all(due, now=TEN + timedelta(hours=1))
    assert planned.runs == ()
    assert [(skip.reason, skip.count) for skip in planned.skips] == [("ended", 6)]
    assert (planned.status, planned.cursor.due_at) == (ScheduleStatus.ENDED, None)


def test_a_rule_that_has_no_more_ends_its_schedule() -> None:
    planned = plan_admission(due_since(TEN, LatestOnly(), ends_at=TEN + SECOND), MINUTELY, now=TEN + MINUTE)
    assert [run.scheduled_at for run in planned.runs] == [TEN]
    assert (planned.status, planned.status_reason) == (ScheduleStatus.ENDED, "exhausted")
    assert planned.cursor == Cursor(version=1, scheduled_at=None, due_at=None)


def test_a_clock_behind_the_cursor_plans_nothing_again() -> None:
    """B38 (a): set back by half an hour, no minute runs a second time."""
    planned = plan_admission(due_since(TEN + MINUTE, CatchUpAll()), MINUTELY, now=TEN - 30 * MINUTE)
    assert (planned.runs, planned.skips) == ((), ())


@pytest.mark.parametrize("milliseconds", [0, 1, 250, 999])
def test_a_resume_within_a_second_is_planned_like_any_other(milliseconds: int) -> None:
    resumed_at = TEN + 10 * MINUTE + timedelta(milliseconds=milliseconds)
    pause = Suspension(from_=TEN + MINUTE + 30 * SECOND, until=resumed_at, reason="paused")
    planned = plan_all(due_since(TEN + MINUTE, LatestOnly(), suspensions=(pause,)), now=resumed_at)
    expected = [TEN + MINUTE] if milliseconds else [TEN + 10 * MINUTE]
    assert expected == run_instants(planned)


def careful(due: DueSchedule, *, until: datetime) -> DueSchedule:
    return replace(due, schedule=replace(due.schedule, careful_until=until))


def uses_at(
    due: DueSchedule, *minutes: int, state: RunState = RunState.SKIPPED, now: datetime
) -> dict[RunId, KeyUse | None]:
    """What the probes find where the instants those minutes after ten have their runs."""
    ids = {run_id_of(due.schedule.schedule_id, 1, TEN + minute * MINUTE) for minute in minutes}
    probed = [probe.run_id for probe in probes_of(due, MINUTELY, now=now)]
    return {
        id_: KeyUse(run_id=id_, state=state, reason="on_request") if id_ in ids else None for id_ in probed
    }


@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        (RunState.PLANNED, "superseded"),
        (RunState.SUCCEEDED, "superseded"),
        (RunState.SKIPPED, None),
        (RunState.CANCELLED, None),
    ],
)
def test_only_what_runs_or_has_run_supersedes(state: RunState, outcome: str | None) -> None:
    now = TEN + MINUTE + 30 * SECOND
    due = careful(due_since(TEN, LatestOnly()), until=TEN + 2 * MINUTE)
    planned = plan_admission(due, MINUTELY, now=now, uses=uses_at(due, 1, state=state, now=now))
    assert [run.scheduled_at for run in planned.runs] == ([] if outcome else [TEN])
    assert [skip.reason for skip in planned.skips] == ([outcome] if outcome else [])


@pytest.mark.parametrize("backlog", [CAREFUL_INSTANTS_MAX - 1, CAREFUL_INSTANTS_MAX, 300])
def test_the_last_one_that_is_not_skipped_on_request_runs_however_many_behind_it_are(backlog: int) -> None:
    now = TEN + backlog * MINUTE
    due = careful(due_since(TEN, LatestOnly()), until=now + MINUTE)
    uses = uses_at(due, *range(50, backlog + 1), now=now)
    planned = plan_admission(due, MINUTELY, now=now, uses=uses)
    assert [run.scheduled_at for run in planned.runs] == [TEN + 49 * MINUTE]
    assert [(skip.reason, skip.count) for skip in planned.skips] == [("superseded", 49)]


def test_a_later_one_supersedes_over_a_pause_that_is_longer_than_one_commit() -> None:
    pause = Suspension(from_=TEN + MINUTE, until=TEN + 250 * MINUTE, reason="paused")
    now = TEN + 252 * MINUTE
    due = careful(due_since(TEN, LatestOnly(), suspensions=(pause,)), until=now + MINUTE)
    planned = plan_admission(due, MINUTELY, now=now, uses=uses_at(due, 250, 251, now=now))
    assert planned.runs == ()
    assert [skip.reason for skip in planned.skips] == ["superseded", "paused"]


policies = st.one_of(
    st.builds(CatchUpAll, max_age=st.none() | st.timedeltas(timedelta(0), timedelta(hours=2))),
    st.builds(LatestOnly, grace=st.timedeltas(timedelta(0), timedelta(minutes=30))),
    st.builds(Expire, deadline=st.timedeltas(timedelta(0), timedelta(hours=2))),
)
windows = st.tuples(st.integers(0, 200_000), st.integers(0, 3_600_000), st.booleans()).map(
    lambda part: Suspension(
        from_=TEN + timedelta(seconds=part[0] / 10),
        until=TEN + timedelta(seconds=part[0] / 10, milliseconds=part[1]),
        reason="paused",
        apply_overdue=part[2],
    )
)


@given(
    policy=policies,
    suspensions=st.lists(windows, max_size=3).map(tuple),
    minutes=st.integers(0, 300),
    stops=st.lists(st.integers(0, 300), max_size=4),
)
def test_every_instant_gets_one_outcome_however_time_is_cut_up(
    policy: OverduePolicy, suspensions: tuple[Suspension, ...], minutes: int, stops: list[int]
) -> None:
    due = due_since(TEN, policy, suspensions=suspensions)
    outcomes: list[datetime] = []
    for stop in [*sorted(stop for stop in stops if stop < minutes), minutes]:
        now = TEN + stop * MINUTE
        planned = plan_all(due, now=now)
        outcomes += run_instants(planned)
        for skip in (skip for admission in planned for skip in admission.skips):
            inside = [skip.from_ + n * MINUTE for n in range(int((skip.until - skip.from_) / MINUTE))]
            assert len(inside) == skip.count
            outcomes += inside
        due = replace(due, schedule=replace(due.schedule, cursor=planned[-1].cursor))
    assert sorted(outcomes) == [TEN + n * MINUTE for n in range(minutes + 1)]
