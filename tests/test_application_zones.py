"""Rota as a library after an update of the tz data: what a start tells, what a check shows, what is taken up (I11)."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from rota import Rota
from rota.service.representation import Wire
from rota.testing import World
from rota.zones import Zones
from tests.doctored_zones import doctored_zones

NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)
NINE = {"cron": "0 9 * * *"}


@pytest.fixture
def older(tmp_path: Path) -> Path:
    return doctored_zones(tmp_path / "older", {}, release="2026a")


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """Paris keeps to UTC+2."""
    return doctored_zones(tmp_path / "newer", {"Europe/Paris": "Etc/GMT-2"}, release="2027a")


@pytest.fixture
def world(older: Path) -> World:
    """With two reports of Paris, of which one goes by its clocks, and one of London."""
    world = World(now=NOW, zones=older)
    for id_, timezone in [("paris", "Europe/Paris"), ("london", "Europe/London")]:
        world.app.create_schedule(id=id_, job="echo", timezone=timezone, recurrence=NINE)
    world.app.create_schedule(
        id="paris-every", job="echo", timezone="Europe/Paris", recurrence={"every": "PT12H"}
    )
    return world


def rules_lines(app: Rota) -> list[dict[str, object]]:
    """What the log tells of zones when the loops start."""
    with capture_logs() as lines:
        app.build_dispatcher()
    return [dict(line) for line in lines if line["event"] == "zone.rules_differ"]


def members(answer: Wire, name: str) -> list[Wire]:
    """A list of entries in an answer."""
    entries = answer[name]
    assert isinstance(entries, list)
    return entries


def test_with_the_rules_that_schedules_were_computed_with_nothing_is_told(world: World) -> None:
    assert rules_lines(world.app) == []
    assert world.app.check_zones() == {"tzdata": "2026a", "zones": []}


def test_a_start_with_newer_rules_tells_each_zone_and_how_to_take_them_up(world: World, newer: Path) -> None:
    app = Rota(store=world.store, clock=world.clock, zones=Zones(newer))
    [line] = rules_lines(app)
    assert (line["log_level"], line["timezone"]) == ("error", "Europe/Paris")
    assert (line["stored_tzdata"], line["tzdata"]) == ("2026a", "2027a")
    assert "it leaves them alone" in str(line["problem"])
    assert "`rota tz apply`" in str(line["problem"])


def test_a_start_with_older_rules_or_without_the_zone_asks_for_an_upgrade(
    newer: Path, older: Path, tmp_path: Path
) -> None:
    world = World(now=NOW, zones=newer)
    for timezone in ("Europe/Paris", "Europe/London"):
        world.app.create_schedule(job="echo", timezone=timezone, recurrence=NINE)
    [line] = rules_lines(Rota(store=world.store, clock=world.clock, zones=Zones(older)))
    assert (line["timezone"], line["stored_tzdata"], line["tzdata"]) == ("Europe/Paris", "2027a", "2026a")
    assert str(line["problem"]).endswith("upgrade it.")
    bare = Zones(doctored_zones(tmp_path / "bare", {}, release="2028a", kept=["UTC"]))
    lines = rules_lines(Rota(store=world.store, clock=world.clock, zones=bare))
    assert [line["timezone"] for line in lines] == ["Europe/London", "Europe/Paris"]
    assert all(str(line["problem"]).endswith("upgrade it.") for line in lines)


def test_a_zone_with_several_older_rules_is_told_once(world: World, newer: Path, tmp_path: Path) -> None:
    World(store=world.store, now=world.now, zones=newer, log_level="critical").app.create_schedule(
        job="echo", timezone="Europe/Paris", recurrence=NINE
    )
    newest = doctored_zones(tmp_path / "newest", {"Europe/Paris": "Etc/GMT-3"}, release="2028a")
    [line] = rules_lines(Rota(store=world.store, clock=world.clock, zones=Zones(newest)))
    assert line["stored_tzdata"] == "2026a, 2027a"


def test_a_check_counts_the_schedules_whose_instants_change(world: World, newer: Path) -> None:
    updated = World(store=world.store, now=world.now, zones=newer, log_level="critical")
    assert updated.app.check_zones() == {
        "tzdata": "2027a",
        "zones": [
            {
                "timezone": "Europe/Paris",
                "stored_tzdata": "2026a",
                "tzdata": "2027a",
                "is_newer_here": True,
                "schedules": 2,
                "schedules_changed": 1,
            }
        ],
    }


def test_new_rules_are_taken_up_by_a_version_where_instants_change_and_by_a_stamp_elsewhere(
    world: World, newer: Path
) -> None:
    world.pass_time(until=datetime(2026, 1, 11, 12, tzinfo=UTC))
    updated = World(store=world.store, now=world.now, zones=newer, log_level="critical")
    assert updated.app.apply_zones(dry_run=True)["counts"] == {"version": 1, "restamped": 1, "failed": 0}
    assert updated.app.get_schedule("paris")["version"] == 1
    applied = updated.app.apply_zones(actor="ops")
    assert [(entry["schedule_id"], entry["outcome"]) for entry in members(applied, "schedules")] == [
        ("paris", "version"),
        ("paris-every", "restamped"),
    ]
    updated.pass_time(timedelta(days=2))
    assert [run["run_id"] for run in reversed(updated.app.runs(schedule="paris"))] == [
        "paris.1.20260111T080000Z",
        "paris.2.20260112T070000Z",
        "paris.2.20260113T070000Z",
    ]
    assert updated.app.check_zones()["zones"] == []
    latest, _ = updated.app.versions("paris")
    assert (latest["reason"], latest["actor"], latest["tzdata"]) == ("tzdata", "ops", "2027a")
    [restamped] = updated.app.versions("paris-every")
    assert restamped["tzdata"] == "2027a"


def test_until_they_are_taken_up_schedules_of_the_zone_wait_and_a_dry_run_tells_what_is_owed(
    world: World, newer: Path
) -> None:
    updated = World(store=world.store, now=world.now, zones=newer, log_level="critical")
    updated.pass_time(timedelta(days=1))
    assert {run["schedule_id"] for run in updated.app.runs()} == {"london"}
    foretold = members(updated.app.apply_zones(dry_run=True), "schedules")
    [changed] = [entry for entry in foretold if entry["outcome"] == "version"]
    owed = [entry["run_id"] for entry in members(changed, "kept")]
    assert owed == ["paris.2.20260111T070000Z"]
    updated.app.apply_zones()
    updated.settle()
    assert [run["run_id"] for run in updated.app.runs(schedule="paris")] == owed


def test_older_rules_are_never_taken_up(older: Path, newer: Path) -> None:
    world = World(now=NOW, zones=newer)
    world.app.create_schedule(id="paris", job="echo", timezone="Europe/Paris", recurrence=NINE)
    behind = World(store=world.store, now=world.now, zones=older, log_level="critical")
    assert behind.app.apply_zones()["schedules"] == []
    assert behind.app.get_schedule("paris")["version"] == 1
