"""The rules that schedules were computed with: compared once for all that share them, and never lost in silence."""

from datetime import timedelta
from pathlib import Path

import pytest

from rota.domain.errors import UnreadableRow
from rota.domain.identity import ScheduleId
from rota.domain.schedule import Version
from rota.domain.zone_rules import names_the_same
from rota.service.creation import create_schedule
from rota.service.former_rules import Comparisons
from rota.service.health import check_readiness
from rota.service.zone_updates import apply_zones, check_zones
from rota.store.memory import MemoryStore
from rota.store.port import Store
from rota.store.sql import open_sql_store
from rota.testing import World
from tests.doctored_zones import doctored_zones
from tests.edits.lives import ID, Life, entries_of, instant, rule
from tests.store.raw import execute

PARIS, LONDON = "Europe/Paris", "Europe/London"
NO_WINTER_TIME = {PARIS: "Etc/GMT-2", LONDON: "Etc/GMT-1"}
OFFSETS = "UPDATE zone_rules SET offsets = '[]' WHERE timezone = 'Europe/Paris'"
LOST = "DELETE FROM zone_rules WHERE timezone = 'Europe/Paris'"


def life_of(store: Store) -> Life:
    """A schedule in Paris and another in London, both at nine."""
    life = Life(store, start="2026-10-20T12:00:00Z", **rule("0 9 * * *", PARIS))
    life.world.app.create_schedule(
        id="london", job="sales_report", timezone=LONDON, recurrence={"cron": "0 9 * * *"}
    )
    return life


def upgraded(life: Life, directory: Path) -> Life:
    zones = doctored_zones(directory / "zones", NO_WINTER_TIME, release="2099a")
    life.world = World(
        store=life.world.store, zones=zones, now=life.world.now, registry=life.world.app.registry
    )
    return life


def version_of(store: Store, id_: str) -> Version:
    record = store.get_schedule(ScheduleId(id_))
    assert record is not None
    return record.version


def test_schedules_that_share_a_rule_share_its_comparison(tmp_path: Path) -> None:
    life = life_of(MemoryStore())
    create_schedule(
        life.context, {"id": "again", "job": "sales_report", **rule("0 9 * * *", PARIS), "fold": "first"}
    )
    store = life.world.store
    comparisons = Comparisons(upgraded(life, tmp_path).context)
    versions = [version_of(store, id_) for id_ in (ID, "again", "london")]
    first, again, london = (comparisons.former(version) for version in versions)
    assert first is again
    assert first is not None
    assert london not in (None, first)


def test_a_shared_comparison_says_the_same_as_one_for_each(tmp_path: Path) -> None:
    life = life_of(MemoryStore())
    version = version_of(life.world.store, ID)
    new = life.context.cadences.of_version(version)
    comparisons = Comparisons(upgraded(life, tmp_path).context)
    old = comparisons.former(version)
    assert old is not None
    newer = life.context.zones.load(PARIS)
    new = type(new)(new.recurrence, newer, gap=new.gap, fold=new.fold)
    asked = [(from_, end) for from_ in range(0, 400, 50) for end in range(from_, 500, 70)]
    start = instant("2026-10-20T12:00:00Z")
    for from_day, end_day in [*asked, *asked[::-1]]:
        from_, end = start + timedelta(days=from_day), start + timedelta(days=end_day)
        expected = names_the_same(old, new, from_=from_, ends=[end])
        assert comparisons.names_the_same(version, from_=from_, ends=[end]) is expected


@pytest.mark.parametrize("damage", [OFFSETS, LOST], ids=["unreadable", "lost"])
def test_rules_that_are_lost_are_told_of_and_stop_only_their_schedules(tmp_path: Path, damage: str) -> None:
    store = open_sql_store(f"sqlite:///{tmp_path / 'rota.db'}")
    life = life_of(store)
    execute(tmp_path / "rota.db", damage)
    upgraded(life, tmp_path)
    zones = {zone["timezone"]: zone for zone in entries_of(check_zones(life.context), "zones")}
    assert {name: zone["schedules_changed"] for name, zone in zones.items()} == {PARIS: 1, LONDON: 1}
    assert "Europe/Paris" in str(check_readiness(life.context).body["warnings"])
    done = apply_zones(life.context)
    assert done["counts"] == {"version": 1, "restamped": 0, "failed": 1}
    [problem] = [entry["problem"] for entry in entries_of(done, "schedules") if "problem" in entry]
    assert "are lost" in str(problem)
    with pytest.raises(UnreadableRow, match="stores them anew"):
        life.edit(params={"x": 1})
    store.close()


def test_lost_rules_are_stored_anew_as_the_problem_says(tmp_path: Path) -> None:
    store = open_sql_store(f"sqlite:///{tmp_path / 'rota.db'}")
    life = life_of(store)
    execute(tmp_path / "rota.db", LOST)
    life.edit(params={"x": 1})
    assert apply_zones(upgraded(life, tmp_path).context)["counts"] == {
        "version": 2,
        "restamped": 0,
        "failed": 0,
    }
    store.close()
