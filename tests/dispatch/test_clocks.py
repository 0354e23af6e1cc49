"""Clocks that go wrong: nothing twice, nothing on a leap, and everything once they are right (I13)."""

from datetime import UTC, datetime, timedelta
from typing import cast

from rota.domain.identity import ScheduleId
from rota.service.context import Context
from rota.service.occurrences import list_upcoming
from rota.service.schedules import end_schedule
from rota.testing.clock import ManualClock
from tests.dispatch.conftest import (
    START,
    NewDispatcher,
    run_instants,
    save,
    work_off,
)

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
NINE = datetime(2025, 6, 10, 9, tzinfo=UTC)


def test_b38_a_clock_set_back_runs_nothing_twice_and_sleeps_no_longer(
    context: Context, new_dispatcher: NewDispatcher
) -> None:
    save(context, "report", "* * * * *", overdue={"policy": "catch_up_all"})
    dispatcher = new_dispatcher("a")
    for minute in range(241):
        work_off(dispatcher, START + minute * MINUTE + 30 * SECOND)
    before = run_instants(context, "report")
    for minute in range(210, 242):
        now = START + minute * MINUTE + 30 * SECOND
        work_off(dispatcher, now)
        assert dispatcher.step(now).wake_at <= now + SECOND
    assert run_instants(context, "report") == [*before, START + 241 * MINUTE]


def test_b38_nothing_is_admitted_on_a_forward_leap_until_the_clock_is_set_right(
    context: Context, new_dispatcher: NewDispatcher, clock: ManualClock
) -> None:
    save(context, "report", "* * * * *", overdue={"policy": "catch_up_all"})
    dispatcher = new_dispatcher("a")

    def pass_minutes(count: int) -> None:
        for _ in range(count):
            clock.advance(MINUTE)
            work_off(dispatcher, clock.now())

    pass_minutes(4)
    clock.leap(timedelta(hours=8))
    report = dispatcher.step(clock.now())
    assert report.leap is not None
    assert report.leap.wall - report.leap.expected == timedelta(hours=8)
    pass_minutes(10)
    assert run_instants(context, "report")[-1] == START + 4 * MINUTE
    assert new_dispatcher("restarted").step(clock.now()).leap is not None

    clock.leap(-timedelta(hours=8))
    pass_minutes(2)
    assert run_instants(context, "report") == [START + n * MINUTE for n in range(1, 17)]


def test_b38_a_forward_leap_that_is_declared_right_is_gone_along_with(
    context: Context, new_dispatcher: NewDispatcher, clock: ManualClock
) -> None:
    from rota.service.health import confirm_clock

    save(context, "report", "0 * * * *", overdue={"policy": "catch_up_all"})
    dispatcher = new_dispatcher("a")
    dispatcher.step(clock.now())
    clock.leap(timedelta(hours=8))
    assert dispatcher.step(clock.now()).leap is not None
    confirm_clock(context)
    assert work_off(dispatcher, clock.now()) == 8


def test_a_machine_that_was_suspended_has_not_leapt(
    context: Context, new_dispatcher: NewDispatcher, clock: ManualClock
) -> None:
    save(context, "report", "0 9 * * *")
    dispatcher = new_dispatcher("a")
    dispatcher.step(clock.now())
    clock.advance(timedelta(hours=8))
    assert work_off(dispatcher, clock.now()) == 1


def test_upcoming_names_nothing_again_after_the_clock_was_set_back(
    context: Context, new_dispatcher: NewDispatcher, clock: ManualClock
) -> None:
    save(context, "report", "* * * * *")
    work_off(new_dispatcher("a"), START + 30 * MINUTE)
    clock.leap(-20 * MINUTE)
    upcoming = cast("list[dict[str, object]]", list_upcoming(context, "report", count=2)["occurrences"])
    assert [entry["scheduled_at"] for entry in upcoming] == ["2025-06-10T08:31:00Z", "2025-06-10T08:32:00Z"]


def test_an_end_under_a_clock_that_was_set_back_leaves_runs_in_their_versions_window(
    context: Context, new_dispatcher: NewDispatcher, clock: ManualClock
) -> None:
    save(context, "report", "* * * * *")
    work_off(new_dispatcher("a"), START + 30 * MINUTE)
    clock.leap(-20 * MINUTE)
    end_schedule(context, "report")
    work_off(new_dispatcher("b"), clock.now())
    record = context.store.get_schedule(ScheduleId("report"))
    assert record is not None
    assert record.version.effective_until == START + 30 * MINUTE + SECOND
    assert record.schedule.cursor.due_at is None
