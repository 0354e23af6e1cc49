"""Versions and zone rules of the SQL store that make no sense: each stops only itself (I12)."""

from dataclasses import replace
from pathlib import Path

import pytest

from rota.domain.due import DueSchedule
from rota.domain.errors import UnreadableRow
from rota.domain.identity import ScheduleId
from rota.domain.recurrence import Cron
from rota.domain.schedule import Schedule
from rota.store.port import ChangeOutcome, ScheduleFilter, ScheduleRecord, Unreadable, ZoneRules
from rota.store.sql import SqlStore
from tests.contract.builders import DAY, NINE, change_of, definition, edit, labels, new_schedule, new_version
from tests.contract.steps import create, due_ids, read_pages
from tests.store.raw import execute, execute_unchecked

BAD = ScheduleId("bad")
GOOD = ScheduleId("good")
BROKEN_OFFSETS = [
    "{",
    "[]",
    "{}",
    """{"first":0,"changes":7}""",
    """{"first":"east","changes":[]}""",
    """{"first":0,"changes":[[5,3600],[4,0]]}""",
    """{"first":0,"changes":[[1e999,0]]}""",
]


def edited(store: SqlStore, id_: str) -> Schedule:
    """A schedule whose second version has not taken over yet."""
    schedule = create(store, new_schedule(id_))
    change = edit(schedule, new_version(id_, number=2, effective_from=NINE + DAY))
    assert store.commit_change(change) is ChangeOutcome.CHANGED
    return schedule


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE versions SET boundary = 'later' WHERE schedule_id = 'bad' AND number = 2",
        "UPDATE versions SET definition = '7' WHERE schedule_id = 'bad' AND number = 2",
        "DELETE FROM versions WHERE schedule_id = 'bad' AND number = 2",
    ],
)
def test_a_version_to_come_that_makes_no_sense_stops_only_its_schedule(
    store: SqlStore, path: Path, change: str
) -> None:
    for id_ in (BAD, GOOD):
        edited(store, id_)
    execute_unchecked(path, change)
    bad, good = store.read_due(0, now=NINE, limit=10)
    assert isinstance(bad, Unreadable)
    assert isinstance(good, DueSchedule)
    assert (bad.schedule_id, bad.revision, bad.window_until) == (BAD, 2, NINE + DAY)
    assert [record.schedule.schedule_id for record in all_schedules(store)] == [GOOD]
    with pytest.raises(UnreadableRow, match="schedule bad"):
        store.get_schedule(BAD)


def test_a_version_to_come_that_cannot_be_computed_stops_its_schedule_before_it_takes_over(
    store: SqlStore,
) -> None:
    schedule = create(store, new_schedule(BAD))
    never = new_version(BAD, definition(Cron(expression="0 0 30 2 *")), number=2, effective_from=NINE + DAY)
    store.commit_change(edit(schedule, never))
    [bad] = store.read_due(0, now=NINE, limit=10)
    assert isinstance(bad, Unreadable)
    [record] = all_schedules(store)
    assert record.latest == never.version


def test_a_list_of_versions_goes_on_over_those_that_make_no_sense(store: SqlStore, path: Path) -> None:
    schedule = create(store)
    for number in range(2, 8):
        change = replace(
            change_of(schedule), expected_revision=number - 1, versions=(new_version(number=number),)
        )
        assert store.commit_change(change) is ChangeOutcome.CHANGED
    execute(path, "UPDATE versions SET fold = 'third' WHERE number IN (7, 5, 4, 1)")
    for limit in (1, 2, 100):

        def read(last: int | None, limit: int = limit) -> list[int]:
            versions = store.list_versions(schedule.schedule_id, before=last, limit=limit)
            return [version.number for version in versions]

        assert read_pages(read, limit=limit) == [6, 3, 2]
    with pytest.raises(UnreadableRow, match="version 7 of schedule report-7"):
        store.get_version(schedule.schedule_id, 7)


@pytest.mark.parametrize("offsets", BROKEN_OFFSETS)
def test_zone_rules_that_make_no_sense_are_listed_and_stop_no_others(
    store: SqlStore, path: Path, offsets: str
) -> None:
    for id_, timezone in ((BAD, "Asia/Tokyo"), (GOOD, "Europe/Rome")):
        create(store, new_schedule(id_, of=definition(timezone=timezone)))
    execute(path, "UPDATE zone_rules SET offsets = ? WHERE timezone = 'Asia/Tokyo'", [offsets])
    assert [rules.timezone for rules in store.list_zone_rules()] == ["Asia/Tokyo", "Europe/Rome"]
    [(fingerprint,)] = execute(path, "SELECT fingerprint FROM zone_rules WHERE timezone = 'Asia/Tokyo'")
    with pytest.raises(UnreadableRow, match="zone Asia/Tokyo"):
        store.get_zone_rules("Asia/Tokyo", str(fingerprint))
    assert due_ids(store) == [BAD, GOOD]


def test_zone_rules_that_are_lost_are_listed_while_they_are_in_use(store: SqlStore, path: Path) -> None:
    for id_, timezone in (("s1", "Asia/Tokyo"), ("s2", "Europe/Rome"), ("s3", "UTC"), ("s4", "Europe/Rome")):
        create(store, new_schedule(id_, of=definition(timezone=timezone)))
    listed = store.list_zone_rules()
    execute(path, "DELETE FROM zone_rules WHERE timezone IN ('Europe/Rome', 'UTC')")
    assert store.list_zone_rules() == listed
    execute(path, "UPDATE schedules SET status = 'ended' WHERE id IN ('s1', 's2', 's3')")
    assert [rules.timezone for rules in store.list_zone_rules()] == ["Europe/Rome"]


def test_what_was_computed_with_some_rules_is_listed_over_what_makes_no_sense(
    store: SqlStore, path: Path
) -> None:
    ids = [f"s{number}" for number in range(7)]
    for id_ in ids:
        create(store, new_schedule(id_))
    execute(path, "UPDATE schedules SET labels = '' WHERE id IN ('s0', 's1', 's3', 's6')")
    rules = new_schedule().first.zone_rules
    used = ZoneRules(timezone=rules.timezone, fingerprint=rules.fingerprint)
    for limit in (1, 2, 100):

        def read(last: ScheduleId | None, limit: int = limit) -> list[ScheduleId]:
            records = store.list_computed_with(used, after=last, limit=limit)
            return [record.schedule.schedule_id for record in records]

        assert read_pages(read, limit=limit) == ["s2", "s4", "s5"]


@pytest.mark.parametrize("stored", ["", "[]", """{"team":1}""", """{"city":"rome"}"""])
def test_labels_are_written_anew_whatever_the_old_text_says(store: SqlStore, path: Path, stored: str) -> None:
    schedule = create(store, new_schedule(labels=labels(city="oslo", team="red")))
    other = create(store, new_schedule("other", labels=labels(city="oslo")))
    execute(path, "UPDATE schedules SET labels = ? WHERE id = 'report-7'", [stored])
    change = replace(change_of(schedule), labels=labels(city="oslo", team="blue"))
    assert store.commit_change(change) is ChangeOutcome.CHANGED
    found = store.list_schedules(ScheduleFilter(label=("city", "oslo")), after=None, limit=10)
    assert [record.schedule.schedule_id for record in found] == [other.schedule_id, schedule.schedule_id]
    [record] = store.list_schedules(ScheduleFilter(label=("team", "blue")), after=None, limit=10)
    assert record.schedule.labels == labels(city="oslo", team="blue")


def all_schedules(store: SqlStore) -> list[ScheduleRecord]:
    return store.list_schedules(ScheduleFilter(), after=None, limit=10)
