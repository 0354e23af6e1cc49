"""Worlds in which schedules are changed while they live: edited, planned, paused, and computed by other zone rules."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from rota import RunContext
from rota.config import Settings
from rota.testing import World
from rota.zones import Zones
from tests.doctored_zones import doctored_zones

NOON = datetime(2026, 1, 10, 12, tzinfo=UTC)
DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
DAILY = {"cron": "0 9 * * *"}


def outcomes(world: World) -> list[tuple[object, object]]:
    """Every run and skip of the schedule with its state or reason, oldest first."""
    return [
        (entry.get("run_id", entry.get("from")), entry.get("state", entry.get("reason")))
        for entry in reversed(world.app.occurrences("report-7"))
    ]


def test_a_life_with_a_plan_a_skip_a_move_a_pause_and_an_edit_is_told_without_sleeping() -> None:
    world = World(now=NOON)
    started: dict[str, datetime] = {}

    @world.app.job("sales_report")
    def handle(context: RunContext) -> None:
        started[context.run_id] = world.now

    app = world.app
    app.create_schedule(id="report-7", job="sales_report", timezone="America/New_York", recurrence=DAILY)
    app.plan("report-7", "2026-01-12T09:00")
    app.skip("report-7", "2026-01-12T09:00")
    app.move("report-7", "2026-01-13T09:00", "2026-01-13T11:30")
    world.pass_time(until=datetime(2026, 1, 14, 10, tzinfo=UTC))
    app.edit("report-7", timezone="Europe/London")  # nine in London has passed, nine in New York has not
    world.pass_time(2 * DAY)
    app.pause("report-7")
    world.pass_time(DAY)
    app.resume("report-7")
    world.pass_time(DAY)
    assert outcomes(world) == [
        ("report-7.1.20260110T140000Z", "succeeded"),
        ("report-7.1.20260111T140000Z", "succeeded"),
        ("report-7.1.20260112T140000Z", "skipped"),
        ("report-7.1.20260113T140000Z", "succeeded"),
        ("report-7.1.20260114T140000Z", "succeeded"),
        ("report-7.2.20260115T090000Z", "succeeded"),
        ("report-7.2.20260116T090000Z", "succeeded"),
        ("2026-01-17T09:00:00Z", "paused"),
        ("report-7.2.20260118T090000Z", "succeeded"),
    ]
    assert started["report-7.1.20260113T140000Z"] == datetime(2026, 1, 13, 16, 30, tzinfo=UTC)
    assert started["report-7.1.20260114T140000Z"] == datetime(2026, 1, 14, 14, tzinfo=UTC)


def test_a_planned_run_is_held_in_a_pause_and_released_after_it() -> None:
    world = World(now=NOON)
    world.app.create_schedule(id="report-7", job="echo", timezone="UTC", recurrence=DAILY)
    world.app.plan("report-7", NOON + DAY)
    world.app.pause("report-7")
    world.pass_time(DAY)
    assert outcomes(world) == [("report-7.1.20260111T090000Z", "held")]
    world.app.resume("report-7", apply_overdue=True)
    world.settle()
    assert outcomes(world) == [("report-7.1.20260111T090000Z", "succeeded")]


def test_an_edit_that_takes_over_later_does_so_when_time_gets_there() -> None:
    world = World(now=NOON)
    world.app.create_schedule(id="report-7", job="echo", timezone="UTC", recurrence=DAILY)
    world.app.edit("report-7", recurrence={"cron": "0 15 * * *"}, effective_from=NOON + DAY)
    world.pass_time(3 * DAY)
    assert [run_id for run_id, _ in outcomes(world)] == [
        "report-7.1.20260111T090000Z",
        "2026-01-11T15:00:00Z",  # the day has its run already
        "report-7.2.20260112T150000Z",
    ]


# --- other zone rules ---


@pytest.fixture
def updated(tmp_path: Path) -> Path:
    """Paris keeps to UTC+2."""
    return doctored_zones(tmp_path, {"Europe/Paris": "Etc/GMT-2"}, release="2027a")


def test_a_world_runs_by_the_rules_that_it_is_given(updated: Path) -> None:
    for zones in (updated, str(updated), Zones(updated)):
        with World(now=NOON, zones=zones) as world:
            world.app.create_schedule(id="report-7", job="echo", timezone="Europe/Paris", recurrence=DAILY)
            world.pass_time(DAY)
            assert outcomes(world) == [("report-7.1.20260111T070000Z", "succeeded")]


def test_the_rules_may_change_in_the_middle_of_a_life(updated: Path) -> None:
    world = World(now=NOON)
    world.app.create_schedule(id="report-7", job="echo", timezone="Europe/Paris", recurrence=DAILY)
    world.pass_time(DAY)
    with capture_logs() as lines:
        world = World(store=world.store, now=world.now, zones=updated, registry=world.app.registry)
    assert [line["event"] for line in lines if line["log_level"] == "error"] == ["zone.rules_differ"]
    world.app.apply_zones()
    world.pass_time(DAY)
    assert [run_id for run_id, _ in outcomes(world)] == [
        "report-7.1.20260111T080000Z",
        "report-7.2.20260112T070000Z",
    ]


def test_what_waits_for_new_rules_keeps_nobody_elses_time(updated: Path) -> None:
    world = World(now=NOON, settings=Settings(partitions=1))
    hourly = {"cron": "0 * * * *"}
    world.app.create_schedule(id="report-1", job="echo", timezone="Europe/Paris", recurrence=hourly)
    world.app.create_schedule(id="report-7", job="echo", timezone="Europe/London", recurrence=hourly)
    world.app.move("report-7", "2026-01-10T15:00", "2026-01-10T15:30")
    world = World(store=world.store, now=world.now, zones=updated, log_level="critical")
    world.pass_time(timedelta(hours=4))
    assert [(run["scheduled_at"], run["admitted_at"]) for run in reversed(world.app.runs())] == [
        ("2026-01-10T13:00:00Z", "2026-01-10T13:00:00Z"),
        ("2026-01-10T14:00:00Z", "2026-01-10T14:00:00Z"),
        ("2026-01-10T15:00:00Z", "2026-01-10T15:30:00Z"),
        ("2026-01-10T16:00:00Z", "2026-01-10T16:00:00Z"),
    ]


def test_what_a_world_tells_at_its_beginning_may_be_left_out(updated: Path) -> None:
    world = World(now=NOON)
    world.app.create_schedule(job="echo", timezone="Europe/Paris", recurrence=DAILY)
    with capture_logs() as lines:
        World(store=world.store, now=world.now, zones=updated, log_level="critical")
    assert lines == []


# --- one world after another ---


def test_a_world_on_the_store_of_another_goes_on_at_once() -> None:
    first = World(now=NOON, log_level="error")
    first.app.create_schedule(id="report-7", job="echo", timezone="UTC", recurrence={"cron": "* * * * *"})
    first.pass_time(timedelta(minutes=1, seconds=58))
    second = World(store=first.store, now=first.now)
    second.settle()
    assert [run_id for run_id, _ in outcomes(second)] == ["report-7.1.20260110T120100Z"]
    second.pass_time(2 * SECOND)  # less than a lease
    assert [run_id for run_id, _ in outcomes(second)] == [
        "report-7.1.20260110T120100Z",
        "report-7.1.20260110T120200Z",
    ]


def test_a_world_after_another_may_begin_much_later() -> None:
    first = World(now=NOON)
    first.app.create_schedule(id="report-7", job="echo", timezone="UTC", recurrence=DAILY)
    first.pass_time(timedelta(hours=1))
    second = World(store=first.store, now=NOON + 2 * DAY)  # no leap: the machine was off
    second.settle()
    assert outcomes(second)[-1] == ("report-7.1.20260112T090000Z", "succeeded")
