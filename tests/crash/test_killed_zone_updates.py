"""Killed at every statement while new rules of a zone are taken up by several schedules, and applied again (I11)."""

from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from rota.domain.schedule import Version
from rota.service.zone_updates import apply_zones
from tests.crash.process import Process, kill_at_every_point, prepared_at
from tests.doctored_zones import doctored_zones
from tests.simulation.ledger import check_days

pytestmark = pytest.mark.slow

PARIS = "Europe/Paris"
NEWER = "2099a"
EVERY_DAY = "0 9 * * *"
CREATED = "2026-10-20T12:00:00Z"
SCHEDULES = ("changes", "stays", "waits-elsewhere", "waits-here")


def zone_of(version: Version) -> ZoneInfo:
    """Paris gives up its winter time."""
    name = version.definition.timezone
    return ZoneInfo("Etc/GMT-2" if (name, version.tzdata) == (PARIS, NEWER) else name)


def create(process: Process) -> None:
    process.create("changes", EVERY_DAY, PARIS)
    process.create("stays", "0 9 * 7 *", PARIS)
    process.create("waits-elsewhere", EVERY_DAY, "Asia/Tokyo")
    process.edit("waits-elsewhere", timezone=PARIS, effective_from="2026-10-27T12:00:00Z")
    process.create("waits-here", EVERY_DAY, PARIS)
    process.edit("waits-here", params={"x": 2}, effective_from="2026-10-28T00:00:00Z")


def apply(process: Process) -> None:
    apply_zones(process.context)


def test_killed_while_new_rules_are_applied_no_day_is_doubled_or_lost(folder: Path) -> None:
    newer = doctored_zones(folder / "zones", {PARIS: "Etc/GMT-2"}, release=NEWER)

    def check(process: Process) -> None:
        for id_ in SCHEDULES:
            process.ledger(id_, zone_of=zone_of)
        apply(process)
        assert apply_zones(process.context)["schedules"] == [], "what is done is done"
        process.dispatch(*(f"2026-10-{day}T16:00:00Z" for day in range(21, 31)))
        for id_ in SCHEDULES:
            ledger = process.ledger(id_, zone_of=zone_of)
            check_days(ledger)
            assert len(ledger.runs) == (0 if id_ == "stays" else 10), id_
            governing = ledger.record.version
            assert (governing.definition.timezone, governing.tzdata) == (PARIS, NEWER)
        numbers = {id_: process.ledger(id_, zone_of=zone_of).latest for id_ in SCHEDULES}
        assert numbers == {"changes": 2, "stays": 1, "waits-elsewhere": 2, "waits-here": 4}

    database = prepared_at(folder, [(CREATED, create)])
    killed = kill_at_every_point(
        database, apply, check, at="2026-10-20T13:00:00Z", restart="2026-10-20T13:01:00Z", zones=newer
    )
    assert killed > 40
