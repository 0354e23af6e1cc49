"""The clock and the world that users test with."""

import asyncio
import threading
from datetime import UTC, datetime, timedelta, timezone

import pytest
import structlog
from structlog.testing import capture_logs

from rota import CatchUpAll, RetryPolicy, Rota, RunContext
from rota.domain.identity import RunId
from rota.testing import ManualClock, World
from rota.testing.world import NeverRests

NOON = datetime(2026, 1, 10, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAILY = {"cron": "0 9 * * *"}


def states(world: World) -> dict[object, object]:
    """The state of every run by its instant, oldest first."""
    return {run["scheduled_at"]: run["state"] for run in reversed(world.app.runs())}


# --- the clock ---


def test_a_manual_clock_stands_still() -> None:
    clock = ManualClock(NOON)
    assert (clock.now(), clock.now()) == (NOON, NOON)
    clock.wait(threading.Event(), 3_600)
    assert (clock.now(), clock.boot_seconds()) == (NOON, 0.0)


def test_time_that_passes_moves_both_clocks() -> None:
    clock = ManualClock(NOON)
    clock.advance(HOUR)
    clock.set(NOON + 2 * HOUR)
    assert (clock.now(), clock.boot_seconds()) == (NOON + 2 * HOUR, 7_200.0)


def test_a_leap_moves_the_wall_clock_alone() -> None:
    clock = ManualClock(NOON)
    clock.leap(HOUR)
    clock.leap(-3 * HOUR)
    assert (clock.now(), clock.boot_seconds()) == (NOON - 2 * HOUR, 0.0)


def test_a_manual_clock_shows_milliseconds_in_utc() -> None:
    clock = ManualClock(datetime(2026, 1, 10, 13, 0, 0, 123_456, tzinfo=timezone(HOUR)))
    assert clock.now() == NOON + timedelta(milliseconds=123)
    assert clock.now().tzinfo is UTC


def test_time_does_not_pass_backwards() -> None:
    clock = ManualClock(NOON)
    with pytest.raises(ValueError, match="use leap"):
        clock.advance(-HOUR)
    with pytest.raises(ValueError, match="use leap"):
        clock.set(NOON - HOUR)


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="has no zone"):
        ManualClock(datetime(2026, 1, 10))
    with pytest.raises(ValueError, match="has no zone"):
        World(now=NOON).pass_time(datetime(2026, 1, 11))


# --- the world ---


def test_time_passes_and_what_falls_due_is_done() -> None:
    app = Rota("rota.db")
    seen: list[tuple[str, datetime]] = []
    world = World(now=NOON, registry=app.registry)

    @app.job("sales_report")
    def handle(context: RunContext) -> None:
        seen.append((context.run_id, world.now))

    world.app.create_schedule(id="report-7", job="sales_report", timezone="Europe/Paris", recurrence=DAILY)
    world.pass_time(timedelta(days=2))
    assert seen == [
        ("report-7.1.20260111T080000Z", datetime(2026, 1, 11, 8, tzinfo=UTC)),
        ("report-7.1.20260112T080000Z", datetime(2026, 1, 12, 8, tzinfo=UTC)),
    ]
    assert world.now == NOON + timedelta(days=2)


def test_time_passes_until_an_instant_and_what_is_due_at_it_is_done() -> None:
    world = World(now=NOON)
    world.app.create_schedule(job="echo", timezone="UTC", recurrence=DAILY)
    until = datetime(2026, 1, 11, 10, tzinfo=timezone(HOUR))
    world.pass_time(until - timedelta(milliseconds=1))
    assert states(world) == {}
    world.pass_time(until)
    assert states(world) == {"2026-01-11T09:00:00Z": "succeeded"}
    with pytest.raises(ValueError, match="lies in the past"):
        world.pass_time(NOON)


def test_retries_come_in_their_time() -> None:
    world = World(now=NOON)

    @world.app.job("sales", retry=RetryPolicy(max_attempts=3, initial_delay=HOUR, factor=1, jitter=0))
    def handle(context: RunContext) -> str:
        if context.attempt < 3:
            raise ConnectionError
        return world.now.isoformat()

    world.app.create_schedule(job="sales", timezone="UTC", recurrence={"at": "2026-01-10T13:00:00Z"})
    world.pass_time(timedelta(days=1))
    [run] = world.app.runs()
    shown = world.app.get_run(str(run["run_id"]))
    assert (shown["state"], shown["attempt"]) == ("succeeded", 3)
    assert shown["result"] == "2026-01-10T15:00:00+00:00"


def test_a_pause_is_seen_in_what_became_of_the_occurrences() -> None:
    world = World(now=NOON)
    world.app.create_schedule(id="report-7", job="echo", timezone="UTC", recurrence={"cron": "0 * * * *"})
    world.pass_time(2 * HOUR)
    world.app.pause("report-7", reason="maintenance")
    world.pass_time(3 * HOUR)
    world.app.resume("report-7")
    world.pass_time(HOUR)
    shown = [
        (entry.get("scheduled_at", entry.get("from")), entry.get("state", entry.get("reason")))
        for entry in reversed(world.app.occurrences("report-7"))
    ]
    assert shown == [
        ("2026-01-10T13:00:00Z", "succeeded"),
        ("2026-01-10T14:00:00Z", "succeeded"),
        ("2026-01-10T15:00:00Z", "paused"),
        ("2026-01-10T17:00:00Z", "succeeded"),
        ("2026-01-10T18:00:00Z", "succeeded"),
    ]


def test_a_night_off_is_caught_up_as_the_policy_says() -> None:
    world = World(now=NOON)
    world.app.create_schedule(
        id="report-7", job="echo", timezone="UTC", recurrence={"cron": "0 * * * *"}, overdue=CatchUpAll()
    )
    world.clock.advance(5 * HOUR)  # nobody dispatches
    world.settle()
    assert list(states(world).values()) == ["succeeded"] * 5


def test_an_attempt_whose_worker_is_gone_is_lost_and_followed_by_another() -> None:
    world = World(now=NOON)
    world.app.create_schedule(
        id="report-7", job="echo", timezone="UTC", recurrence={"at": "2026-01-10T13:00:00Z"}
    )
    world.clock.advance(HOUR)
    world.dispatcher.step(world.now)
    deliveries = world.store.read_intents(["echo"], now=world.now, limit=1)
    world.store.commit_openings("a worker that dies", deliveries, now=world.now)
    world.pass_time(HOUR)
    detail = world.store.get_run(RunId("report-7.1.20260110T130000Z"))
    assert detail is not None
    assert [attempt.outcome for attempt in detail.attempts] == ["lost", "succeeded"]
    assert detail.attempts[0].finished_at == NOON + HOUR + timedelta(seconds=30)


def test_async_handlers_run_in_the_world_too() -> None:
    world = World(now=NOON)

    @world.app.job("sales")
    async def handle(context: RunContext) -> int:
        return context.attempt

    world.app.create_schedule(job="sales", timezone="UTC", recurrence={"at": "2026-01-10T13:00:00Z"})
    world.pass_time(HOUR)
    assert states(world) == {"2026-01-10T13:00:00Z": "succeeded"}


def test_the_world_goes_on_inside_of_an_event_loop() -> None:
    async def inside() -> None:
        test_async_handlers_run_in_the_world_too()

    asyncio.run(inside())


def test_a_handler_may_take_its_time() -> None:
    world = World(now=NOON)
    world.app.job("sales")(lambda context: world.clock.advance(3 * HOUR))
    world.app.create_schedule(job="sales", timezone="UTC", recurrence={"at": "2026-01-10T13:00:00Z"})
    world.pass_time(2 * HOUR)
    assert world.now == NOON + 4 * HOUR


# B38, the clock that leaps ahead.
def test_a_clock_that_leaps_ahead_admits_nothing_until_it_is_set_right() -> None:
    world = World(now=datetime(2025, 6, 10, 12, 0, 30, tzinfo=UTC))
    world.app.create_schedule(job="echo", timezone="UTC", recurrence={"cron": "* * * * *"})
    world.settle()
    world.clock.leap(8 * HOUR)
    world.pass_time(timedelta(minutes=10))
    assert states(world) == {}
    world.clock.leap(-8 * HOUR)
    world.pass_time(timedelta(minutes=1))
    assert set(states(world)) >= {"2025-06-10T12:10:00Z", "2025-06-10T12:11:00Z"}
    assert max(str(instant) for instant in states(world)) == "2025-06-10T12:11:00Z"


def test_what_is_never_done_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.testing.world.STEPS_AT_ONE_INSTANT_MAX", 20)
    world = World(now=NOON)
    retry = RetryPolicy(max_attempts=100, initial_delay=timedelta(0))

    @world.app.job("sales", retry=retry)
    def handle(context: RunContext) -> None:
        raise ConnectionError

    world.app.create_schedule(job="sales", timezone="UTC", recurrence={"at": "2026-01-10T13:00:00Z"})
    with pytest.raises(NeverRests):
        world.pass_time(HOUR)


def test_two_worlds_with_the_same_life_are_the_same() -> None:
    lives = []
    for _ in range(2):
        with World(now=NOON) as world:
            world.app.create_schedule(
                id="report-7", job="echo", timezone="Europe/London", recurrence={"cron": "*/20 * * * *"}
            )
            world.pass_time(3 * HOUR)
            lives.append(world.app.occurrences("report-7"))
    assert lives[0] == lives[1]
    assert len(lives[0]) == 9


# --- its log ---


@pytest.mark.parametrize(
    ("level", "shown"),
    [("warning", ["my.own", "handler.raise"]), ("info", ["lease.acquire", "my.own", "handler.raise"])],
)
def test_a_world_leaves_out_log_lines_of_rota_below_its_level(level: str, shown: list[str]) -> None:
    world = World(now=NOON, log_level=level)

    @world.app.job("sales", retry=RetryPolicy(max_attempts=1))
    def handle(context: RunContext) -> None:
        structlog.get_logger().info("my.own")
        raise ConnectionError

    world.app.create_schedule(job="sales", timezone="UTC", recurrence={"at": NOON + HOUR})
    with capture_logs() as lines:
        before = structlog.get_config()["processors"]
        world.pass_time(2 * HOUR)
        assert structlog.get_config()["processors"] is before
    told = {"lease.acquire", "my.own", "handler.raise"}
    assert [line["event"] for line in lines if line["event"] in told][: len(shown)] == shown
