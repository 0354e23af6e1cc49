"""The dispatcher's step: what is due becomes runs under a lease, whatever clocks and rivals do."""

from datetime import UTC, datetime, timedelta

import pytest

from rota.domain.identity import ScheduleId
from rota.domain.run import RunState
from rota.domain.schedule import ScheduleStatus
from rota.service.context import Context
from rota.service.schedules import end_schedule, pause_schedule, resume_schedule, show_schedule
from rota.store.port import Fence, RunFilter
from rota.testing.clock import ManualClock
from tests.dispatch.conftest import (
    LEASE,
    START,
    NewDispatcher,
    believe_until,
    run_instants,
    save,
    skips,
    work_off,
)

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
NINE = datetime(2025, 6, 10, 9, tzinfo=UTC)


def test_a_due_occurrence_becomes_one_run_and_one_delivery(
    context: Context, new_dispatcher: NewDispatcher
) -> None:
    save(context, "report", "0 9 * * *")
    dispatcher = new_dispatcher("a")

    assert work_off(dispatcher, NINE - SECOND) == 0
    assert work_off(dispatcher, NINE) == 1
    assert work_off(dispatcher, NINE + MINUTE) == 0

    [run] = context.store.list_runs(RunFilter(), before=None, limit=10)
    assert (run.run_id, run.state) == ("report.1.20250610T090000Z", RunState.QUEUED)
    [delivery] = context.store.read_intents(["sales_report"], now=NINE, limit=10)
    assert (delivery.run_id, delivery.attempt) == (run.run_id, 1)
    assert show_schedule(context, "report")["next_due"] == "2025-06-11T09:00:00Z"


def test_an_idle_step_wakes_for_the_next_due_instant(context: Context, new_dispatcher: NewDispatcher) -> None:
    save(context, "report", "0 9 * * *")
    dispatcher = new_dispatcher("a")
    work_off(dispatcher, NINE - 5 * SECOND)
    assert dispatcher.step(NINE - 5 * SECOND).wake_at == NINE - 4 * SECOND
    half = NINE - timedelta(milliseconds=500)
    assert dispatcher.step(half).wake_at == NINE


def test_two_dispatchers_that_both_believe_they_own_a_partition_make_one_run(
    context: Context, new_dispatcher: NewDispatcher
) -> None:
    save(context, "report", "* * * * *", overdue={"policy": "catch_up_all"})
    frozen, other = new_dispatcher("frozen"), new_dispatcher("other")
    work_off(frozen, START)
    assert frozen._leases.held(START)

    taken_at = START + LEASE + SECOND
    work_off(other, taken_at)
    believe_until(frozen, START + MINUTE + SECOND)

    admitted = [work_off(frozen, START + MINUTE), work_off(other, START + MINUTE)]
    assert admitted == [0, 1]
    assert run_instants(context, "report") == [START + MINUTE]


def test_b40_a_stale_holder_changes_nothing_and_stops_owning_at_once(
    context: Context, new_dispatcher: NewDispatcher
) -> None:
    save(context, "report", "0 9 * * *")
    a, b = new_dispatcher("a"), new_dispatcher("b")
    work_off(a, START)
    held_by_a = list(a._leases.held(START).values())
    work_off(b, START + LEASE + SECOND)

    assert context.store.commit_renewals("a", held_by_a, now=START + LEASE + 2 * SECOND, ttl=LEASE) == []
    believe_until(a, NINE + SECOND)
    assert work_off(a, NINE) == 0
    partition = context.store.get_schedule(ScheduleId("report")).schedule.partition  # type: ignore[union-attr]
    assert partition not in a._leases.held(NINE)

    work_off(b, NINE)
    assert run_instants(context, "report") == [NINE]


def test_the_partitions_of_a_dead_dispatcher_are_taken_when_its_lease_ends(
    context: Context, new_dispatcher: NewDispatcher
) -> None:
    save(context, "report", "* * * * *")
    work_off(new_dispatcher("dead"), START)
    successor = new_dispatcher("successor")
    started_at = START + timedelta(seconds=6)
    work_off(successor, started_at)
    assert not successor._leases.held(started_at)
    work_off(successor, started_at + LEASE / 3)
    work_off(successor, START + LEASE - SECOND)
    assert not successor._leases.held(START + LEASE - SECOND)
    work_off(successor, START + LEASE)
    assert len(successor._leases.held(START + LEASE)) == 4


def test_a_lease_is_not_trusted_to_its_end(context: Context, new_dispatcher: NewDispatcher) -> None:
    dispatcher = new_dispatcher("a")
    dispatcher.step(START)
    assert dispatcher._leases.held(START + LEASE * 0.7)
    assert not dispatcher._leases.held(START + LEASE * 0.9)


def test_while_paused_nothing_is_admitted_and_what_fell_due_says_so(
    context: Context, new_dispatcher: NewDispatcher, clock: ManualClock
) -> None:
    save(context, "report", "* * * * *", overdue={"policy": "catch_up_all"})
    dispatcher = new_dispatcher("a")
    work_off(dispatcher, START + MINUTE)
    clock.set(START + MINUTE + SECOND)
    pause_schedule(context, "report")
    assert work_off(dispatcher, START + 5 * MINUTE) == 0
    clock.set(START + 5 * MINUTE + SECOND)
    resume_schedule(context, "report")
    work_off(dispatcher, START + 6 * MINUTE)

    assert run_instants(context, "report") == [START + MINUTE, START + 6 * MINUTE]
    assert skips(context, "report") == [("paused", 4)]


def test_a_pause_is_made_up_for_where_the_resume_asks_for_it(
    context: Context, new_dispatcher: NewDispatcher, clock: ManualClock
) -> None:
    save(context, "report", "* * * * *", overdue={"policy": "catch_up_all"})
    pause_schedule(context, "report")
    clock.set(START + 3 * MINUTE)
    resume_schedule(context, "report", apply_overdue=True)
    work_off(new_dispatcher("a"), START + 3 * MINUTE)
    assert run_instants(context, "report") == [START + n * MINUTE for n in (1, 2, 3)]


def test_ending_records_what_was_owed_and_keeps_the_history(
    context: Context, new_dispatcher: NewDispatcher, clock: ManualClock
) -> None:
    save(context, "report", "* * * * *")
    dispatcher = new_dispatcher("a")
    work_off(dispatcher, START + MINUTE)
    clock.set(START + 4 * MINUTE + SECOND)
    end_schedule(context, "report")
    work_off(dispatcher, START + 10 * MINUTE)

    assert run_instants(context, "report") == [START + MINUTE]
    assert skips(context, "report") == [("ended", 3)]
    assert context.store.read_due_times(range(4)) == {}


def test_a_one_time_schedule_runs_once_and_ends(context: Context, new_dispatcher: NewDispatcher) -> None:
    save(context, "once", "", recurrence={"at": "2025-06-10T11:00"}, timezone="Europe/Paris")
    work_off(new_dispatcher("a"), NINE)
    [run] = context.store.list_runs(RunFilter(), before=None, limit=10)
    assert (run.scheduled_at, run.period_key) == (NINE, "once")
    assert show_schedule(context, "once")["status"] == ScheduleStatus.ENDED


def test_a_step_reads_one_page_and_the_next_one_goes_on_with_the_other_partitions(
    context: Context, new_dispatcher: NewDispatcher, clock: ManualClock
) -> None:
    for number in range(40):
        save(context, f"report-{number}", "0 9 * * *", max_occurrences=1)  # its last one is the planner's
    clock.set(NINE)
    dispatcher = new_dispatcher("a", page=5)
    steps = [dispatcher.step(NINE).admitted for _ in range(8)]
    assert steps == [5] * 8
    assert dispatcher.step(NINE).admitted == 0


@pytest.mark.parametrize(
    ("overdue", "expected_first", "expected_count", "expected_skips"),
    [
        ({"policy": "catch_up_all"}, "2025-06-09T22:01:00Z", 480, []),
        ({"policy": "latest_only"}, "2025-06-10T06:00:00Z", 1, [("superseded", 479)]),
        ({"policy": "expire", "deadline": "PT5M"}, "2025-06-10T05:56:00Z", 5, [("expired", 475)]),
    ],
)
def test_b33_after_a_night_off_the_ledger_says_what_became_of_every_minute(
    context: Context,
    new_dispatcher: NewDispatcher,
    clock: ManualClock,
    overdue: dict[str, object],
    expected_first: str,
    expected_count: int,
    expected_skips: list[tuple[str, int]],
) -> None:
    clock.leap(datetime(2025, 6, 9, 22, tzinfo=UTC) - clock.now())
    save(context, "report", "* * * * *", overdue=overdue)
    dispatcher = new_dispatcher("a")
    work_off(dispatcher, datetime(2025, 6, 10, 6, 0, 30, tzinfo=UTC))
    first = datetime.fromisoformat(expected_first)
    expected = [first + n * MINUTE for n in range(expected_count)]
    assert expected == run_instants(context, "report")
    assert expected_skips == skips(context, "report")
    work_off(dispatcher, datetime(2025, 6, 10, 6, 1, 30, tzinfo=UTC))
    assert run_instants(context, "report")[-1] == datetime(2025, 6, 10, 6, 1, tzinfo=UTC)


def test_checkpoints_tell_how_far_a_partition_has_admitted_everything(
    context: Context, new_dispatcher: NewDispatcher
) -> None:
    dispatcher = new_dispatcher("a")
    work_off(dispatcher, START)
    work_off(dispatcher, START + LEASE)
    assert {state.checkpoint for state in context.store.list_partitions()} == {START}


def test_a_backlog_of_one_schedule_does_not_hold_up_the_others(
    context: Context, new_dispatcher: NewDispatcher, clock: ManualClock
) -> None:
    save(context, "backlog", "* * * * *", overdue={"policy": "catch_up_all"})
    save(context, "on-time", "0 8 * * *")
    later = START + timedelta(days=1)
    clock.set(later)
    dispatcher = new_dispatcher("a")
    dispatcher.step(later)
    assert run_instants(context, "on-time") == [later]
    assert len(run_instants(context, "backlog")) < 1440
    work_off(dispatcher, later)
    assert len(run_instants(context, "backlog")) == 1440


def test_a_fence_of_another_partition_admits_nothing(context: Context, new_dispatcher: NewDispatcher) -> None:
    save(context, "report", "0 9 * * *")
    dispatcher = new_dispatcher("a")
    work_off(dispatcher, START)
    for partition, fence in dispatcher._leases.held(START).items():
        dispatcher._leases._fences[partition] = Fence(partition=partition, epoch=fence.epoch - 1)
    believe_until(dispatcher, NINE + SECOND)
    assert work_off(dispatcher, NINE) == 0
    assert run_instants(context, "report") == []
