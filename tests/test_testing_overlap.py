"""What a world shows of schedules whose runs may not overlap, and of those that are spread."""

import runpy
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rota.testing import World
from rota.worker.context import RunContext

START = datetime(2026, 1, 5, 9, 0, 30, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
GUIDE = Path(__file__).parents[1] / "docs/guides/overlap-and-spread.md"


def world_of(work: timedelta, **fields: object) -> World:
    """A schedule of every minute whose handler takes so long."""
    world = World(now=START)

    @world.app.job("sales_report")
    def report(run: RunContext) -> None:
        world.work_for(work)

    recurrence = {"cron": "* * * * *"}
    body = {"id": "report-7", "job": "sales_report", "timezone": "UTC", "recurrence": recurrence}
    world.app.create_schedule(**body, **fields)  # type: ignore[arg-type]  # as the API takes them
    return world


def minutes_of(world: World) -> list[int]:
    runs = [run for run in world.app.runs() if run["state"] == "succeeded"]
    return sorted(datetime.fromisoformat(str(run["scheduled_at"])).minute for run in runs)


@pytest.mark.parametrize(
    ("overlap", "minutes"),
    [
        ("allow", [1, 2, 3]),
        ("skip", [1, 4, 7]),  # 1 is done at 3:30, 4 at 6:30
        (
            "queue",
            [1, 2, 4],
        ),  # 2 waits, and is done at 6:00: by then 4 waits, in whose place 3 would have been
    ],
)
def test_work_that_takes_longer_than_the_interval(overlap: str, minutes: list[int]) -> None:
    world = world_of(2.5 * MINUTE, overlap=overlap, overdue={"policy": "catch_up_all"})
    world.pass_time(until=datetime(2026, 1, 5, 9, 7, 59, tzinfo=UTC))
    assert minutes_of(world) == minutes


def test_the_work_of_a_handler_is_not_lost_however_long_it_takes() -> None:
    world = world_of(timedelta(hours=2), overlap="skip")
    world.pass_time(MINUTE)
    [run] = world.app.runs()
    assert (run["state"], run["attempt"]) == ("succeeded", 1)
    skips = [entry for entry in world.app.iterate_occurrences("report-7") if entry["kind"] == "skip"]
    assert Counter(skip["reason"] for skip in skips) == {"overlap": 1}
    assert skips[0]["count"] == 120


def test_a_spread_schedule_runs_by_its_delay() -> None:
    world = world_of(timedelta(0), spread="PT1M")
    world.pass_time(3 * MINUTE)
    delay = timedelta(seconds=21)  # of this id
    assert world.app.get_schedule("report-7")["delay"] == "PT21S"
    assert {
        datetime.fromisoformat(str(run["started_at"])) - datetime.fromisoformat(str(run["scheduled_at"]))
        for run in world.app.runs()
    } == {delay}


def test_the_guides_test_passes_as_it_stands(tmp_path: Path) -> None:
    [_, block] = GUIDE.read_text().split("```python\n")
    file = tmp_path / "test_sync.py"
    file.write_text(block.partition("```")[0])
    runpy.run_path(str(file))["test_a_sync_that_takes_long_is_not_started_twice"]()
