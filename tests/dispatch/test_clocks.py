"""Clocks that go wrong: nothing twice, nothing on a leap, and everything once they are right (I13)."""

from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from rota.clock import MeasuredClock
from rota.config import Settings
from rota.dispatch.dispatcher import Dispatcher, StepReport
from rota.domain.identity import ScheduleId
from rota.service.context import Context
from rota.service.health import check_readiness, confirm_clock
from rota.service.jobs import put_job
from rota.service.occurrences import list_upcoming
from rota.service.schedules import end_schedule
from rota.store.port import ClockReading, Store
from rota.testing.clock import ManualClock
from rota.wiring import open_context
from tests.conftest import OpenStore
from tests.database_clock import Server
from tests.dispatch.conftest import (
    LEASE,
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
    save(context, "report", "0 * * * *", overdue={"policy": "catch_up_all"})
    dispatcher = new_dispatcher("a")
    dispatcher.step(clock.now())
    clock.leap(timedelta(hours=8))
    assert dispatcher.step(clock.now()).leap is not None
    confirm_clock(context)
    assert work_off(dispatcher, clock.now()) == 8


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def machines(request: pytest.FixtureRequest, open_store: OpenStore) -> "Machines":
    return Machines(open_store(request.param))


class Machines:
    """Two of them, which started at other times, each with a dispatcher: the time of both is their database's."""

    def __init__(self, store: Store) -> None:
        self.clocks = [ManualClock(START), ManualClock(START - timedelta(days=3))]
        self.clocks[1].advance(timedelta(days=3))
        self.servers = [Server(clock, ahead=timedelta(0)) for clock in self.clocks]
        measured = [
            MeasuredClock(clock, server.read_time)
            for clock, server in zip(self.clocks, self.servers, strict=True)
        ]
        self.contexts = [open_context(Settings(partitions=4), store=store, clock=clock) for clock in measured]
        put_job(self.contexts[0], "sales_report", {})
        self.dispatchers = [self.start_dispatcher(number) for number in range(2)]

    def start_dispatcher(self, number: int) -> Dispatcher:
        context = self.contexts[number]
        return Dispatcher(
            context.store,
            cadences=context.cadences,
            clock=context.clock,
            owner=f"on-{number}",
            lease=LEASE,
            poll=SECOND,
            page=100,
        )

    def fail_over(self, *, ahead: timedelta) -> None:
        """To a server whose clock is that much ahead of what it was."""
        for server in self.servers:
            server.ahead += ahead

    def pass_time(self, duration: timedelta) -> list[StepReport]:
        for clock in self.clocks:
            clock.advance(duration)
        return self.step()

    def step(self) -> list[StepReport]:
        return [
            dispatcher.step(context.clock.now())
            for dispatcher, context in zip(self.dispatchers, self.contexts, strict=True)
        ]


def test_a_leap_of_the_databases_clock_stops_every_machine_until_it_is_declared_right(
    machines: Machines,
) -> None:
    save(machines.contexts[0], "report", "0 * * * *", overdue={"policy": "catch_up_all"})
    assert [report.leap for report in machines.pass_time(MINUTE)] == [None, None]
    machines.fail_over(ahead=timedelta(hours=8))
    for report in machines.pass_time(MINUTE):
        assert report.leap is not None
        assert report.leap.wall - report.leap.expected == timedelta(hours=8)
    machines.dispatchers[1] = machines.start_dispatcher(1)
    assert all(report.leap is not None for report in machines.pass_time(MINUTE))
    assert not check_readiness(machines.contexts[1]).is_ready

    confirm_clock(machines.contexts[0])
    assert check_readiness(machines.contexts[1]).is_ready
    reports = machines.step()
    assert [report.leap for report in reports] == [None, None]
    assert sum(report.admitted for report in reports) == 8


def test_a_databases_clock_that_is_set_right_frees_every_machine(machines: Machines) -> None:
    machines.pass_time(MINUTE)
    machines.fail_over(ahead=timedelta(hours=8))
    assert all(report.leap is not None for report in machines.pass_time(MINUTE))
    machines.fail_over(ahead=-timedelta(hours=8))
    assert [report.leap for report in machines.pass_time(MINUTE)] == [None, None]


def test_a_machines_own_clock_is_of_no_effect_where_the_database_has_one(machines: Machines) -> None:
    save(machines.contexts[0], "report", "0 9 * * *")
    machines.pass_time(MINUTE)
    machines.clocks[0].leap(timedelta(hours=8))
    reports = machines.pass_time(MINUTE)
    assert [report.leap for report in reports] == [None, None]
    assert sum(report.admitted for report in reports) == 0


def test_what_one_machine_accepted_judges_no_other(
    context: Context, clock: ManualClock, new_dispatcher: NewDispatcher
) -> None:
    new_dispatcher("a").step(clock.now())
    context.store.commit_clock_reading(
        ClockReading(wall=START - timedelta(hours=8), boot_seconds=0.0, boot_id="another machine")
    )
    clock.advance(MINUTE)
    clock.leap(timedelta(hours=8))
    assert new_dispatcher("b").step(clock.now()).leap is not None


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
