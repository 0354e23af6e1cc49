"""Spread: an occurrence falls due later than it is scheduled, by an offset that is its schedule's own."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.domain.admission import Admission, plan_admission
from rota.domain.cadence import Cadence
from rota.domain.due import DueSchedule
from rota.domain.identity import ScheduleId
from rota.domain.overdue import CatchUpAll, Expire, LatestOnly, OverduePolicy
from rota.domain.recurrence import Cron
from rota.domain.schedule import Cursor, ScheduleStatus, Suspension, Version
from rota.zones import load_zone
from tests.contract.builders import definition, new_schedule

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
TEN = datetime(2026, 1, 10, 10, tzinfo=UTC)
FIVES = Cron(expression="*/5 * * * *")
EVERY_FIVE_MINUTES = Cadence(FIVES, load_zone("UTC"), gap="skip", fold="both")

SPREADS = st.integers(0, 24 * 3600).map(lambda seconds: seconds * SECOND)
IDS = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,20}", fullmatch=True).map(ScheduleId)


def version_of(id_: ScheduleId, spread: timedelta, policy: OverduePolicy | None = None) -> Version:
    made = new_schedule(due=TEN, of=replace(definition(FIVES, overdue=policy), spread=spread))
    return replace(made.first.version, schedule_id=id_, period="instant", effective_from=TEN)


def due_of(
    spread: timedelta,
    policy: OverduePolicy,
    *,
    status: ScheduleStatus = ScheduleStatus.ACTIVE,
    suspensions: tuple[Suspension, ...] = (),
    effective_until: datetime | None = None,
) -> DueSchedule:
    """A schedule of every five minutes whose cursor stands at ten."""
    made = new_schedule(due=TEN, of=definition(FIVES))
    version = version_of(made.schedule.schedule_id, spread, policy)
    cursor = Cursor(version=1, scheduled_at=TEN, due_at=TEN + version.delay)
    return DueSchedule(
        schedule=replace(made.schedule, status=status, cursor=cursor),
        version=replace(version, effective_until=effective_until),
        suspensions=suspensions,
        job_overdue=LatestOnly(),
    )


def plan(due: DueSchedule, *, now: datetime) -> Admission:
    return plan_admission(due, EVERY_FIVE_MINUTES, now=now)


@given(IDS, SPREADS)
def test_the_delay_lies_within_the_spread_and_is_the_same_for_ever(
    id_: ScheduleId, spread: timedelta
) -> None:
    version = version_of(id_, spread)
    assert timedelta(0) <= version.delay <= max(timedelta(0), spread - SECOND)
    assert version.delay.microseconds == 0
    assert (
        replace(version, number=2, definition=replace(version.definition, overlap="skip")).delay
        == version.delay
    )


@given(IDS, SPREADS, SPREADS)
def test_a_larger_spread_never_moves_a_schedule_forward_in_the_window(
    id_: ScheduleId, one: timedelta, other: timedelta
) -> None:
    shorter, longer = sorted([one, other])
    assert version_of(id_, shorter).delay <= version_of(id_, longer).delay


def test_many_schedules_fill_the_whole_window_evenly() -> None:
    delays = [version_of(ScheduleId(f"report-{n}"), timedelta(minutes=10)).delay for n in range(2_000)]
    by_minute = [sum(n * MINUTE <= delay < (n + 1) * MINUTE for delay in delays) for n in range(10)]
    assert sum(by_minute) == 2_000
    assert all(150 <= there <= 250 for there in by_minute), by_minute


@given(SPREADS, st.integers(0, 36 * 3600))
def test_no_occurrence_is_decided_before_it_falls_due_and_each_in_its_order(
    spread: timedelta, passed: int
) -> None:
    due = due_of(spread, CatchUpAll())
    now = TEN + passed * SECOND
    admission = plan(due, now=now)
    scheduled = [run.scheduled_at for run in admission.runs]
    assert scheduled == [TEN + n * 5 * MINUTE for n in range(len(scheduled))]
    for run in admission.runs:
        assert run.due_at == run.scheduled_at + due.version.delay <= now
        assert run.available_at == run.due_at
        assert run.period_key == f"instant:{run.scheduled_at:%Y-%m-%dT%H:%M:%SZ}"
    cursor = admission.cursor
    assert cursor.scheduled_at == TEN + len(scheduled) * 5 * MINUTE
    assert cursor.due_at == cursor.scheduled_at + due.version.delay
    assert cursor.due_at > now or len(scheduled) == 25


@given(
    SPREADS,
    st.sampled_from([CatchUpAll(), CatchUpAll(max_age=MINUTE), LatestOnly(), Expire(deadline=MINUTE)]),
)
def test_what_is_in_time_by_its_due_instant_is_not_late(spread: timedelta, policy: OverduePolicy) -> None:
    due = due_of(spread, policy)
    admission = plan(due, now=TEN + due.version.delay)
    assert [run.scheduled_at for run in admission.runs] == [TEN]
    assert admission.skips == ()


def test_lateness_counts_from_the_due_instant() -> None:
    due = due_of(timedelta(hours=1), Expire(deadline=timedelta(minutes=2)))
    admission = plan(due, now=TEN + due.version.delay + timedelta(minutes=3))
    assert [(skip.from_, skip.reason) for skip in admission.skips] == [(TEN, "expired")]


def test_a_newer_one_supersedes_when_it_is_due_and_not_when_it_is_merely_scheduled() -> None:
    due = due_of(timedelta(hours=1), LatestOnly())
    delay = due.version.delay
    assert delay > 10 * MINUTE
    admission = plan(due, now=TEN + delay + 4 * MINUTE)
    assert [run.scheduled_at for run in admission.runs] == [TEN]
    admission = plan(due, now=TEN + delay + 5 * MINUTE)
    assert [run.scheduled_at for run in admission.runs] == [TEN + 5 * MINUTE]
    assert [(skip.from_, skip.reason) for skip in admission.skips] == [(TEN, "superseded")]


def test_a_pause_skips_what_is_scheduled_in_it_and_not_what_falls_due_in_it() -> None:
    pause = Suspension(from_=TEN + MINUTE, until=TEN + 6 * MINUTE, reason="paused")
    due = due_of(timedelta(hours=1), CatchUpAll(), suspensions=(pause,))
    admission = plan(due, now=TEN + due.version.delay + 10 * MINUTE)
    assert [run.scheduled_at for run in admission.runs] == [TEN, TEN + 10 * MINUTE]
    assert [(skip.from_, skip.reason) for skip in admission.skips] == [(TEN + 5 * MINUTE, "paused")]


def test_what_an_ended_schedule_has_still_before_it_is_skipped_at_once() -> None:
    due = due_of(
        timedelta(hours=1), CatchUpAll(), status=ScheduleStatus.ENDED, effective_until=TEN + 7 * MINUTE
    )
    admission = plan(due, now=TEN + 6 * MINUTE)
    assert [(skip.from_, skip.count, skip.reason) for skip in admission.skips] == [(TEN, 2, "ended")]
    assert admission.cursor.due_at is None


@pytest.mark.parametrize("seconds", [0, 1])
def test_a_window_of_a_second_or_none_delays_nothing(seconds: int) -> None:
    assert version_of(ScheduleId("report-7"), seconds * SECOND).delay == timedelta(0)
