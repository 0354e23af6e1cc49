"""The schedule protocol: further versions, the windows that they close, and which of them is pending (I8)."""

from dataclasses import replace
from datetime import datetime

import pytest

from rota.domain.due import DueSchedule
from rota.domain.errors import UnreadableRow
from rota.domain.identity import ScheduleId, digest_of
from rota.domain.json_text import encode_json
from rota.domain.recurrence import Cron
from rota.domain.schedule import ScheduleStatus
from rota.store.port import NewVersion, ScheduleFilter, Store, Unreadable
from tests.contract.builders import (
    DAY,
    HOUR,
    NINE,
    OPENS_AT,
    SECOND,
    change_of,
    cursor,
    definition,
    edit,
    new_schedule,
    new_version,
    status_change,
)
from tests.contract.steps import commit, create, read_pages, record_of

ID = ScheduleId("report-7")
TEN = definition(Cron(expression="0 10 * * *"), timezone="Asia/Tokyo")


def second_version(*, effective_from: datetime = NINE + DAY, number: int = 2) -> NewVersion:
    return new_version(of=TEN, number=number, effective_from=effective_from)


def test_a_further_version_is_read_back_whole(store: Store) -> None:
    schedule = create(store)
    plain = new_version(
        of=replace(
            TEN, params=encode_json({"né": 1}), starts_at=NINE, ends_at=NINE + 9 * DAY, max_occurrences=3
        ),
        number=2,
        effective_from=NINE + DAY,
    )
    version = replace(
        plain.version,
        period="week",
        fold="second",
        effective_until=NINE + 8 * DAY,
        last_scheduled_at=NINE + 2 * DAY,
        created_at=NINE,
        actor="ops",
        reason="later",
        boundary="now",
        series=2,
        counts_from=NINE + DAY,
        named_before=17,
    )
    new = replace(plain, version=version, cadence=replace(plain.cadence, fold="second"))
    commit(store, edit(schedule, new))
    assert store.get_version(ID, 2) == version
    assert store.read_cadences([new.cadence.cadence_id]) == [new.cadence]


def test_an_edit_closes_the_window_before_it(store: Store) -> None:
    new = new_schedule()
    commit(store, edit(create(store, new), second_version()))
    closed = replace(new.first.version, effective_until=NINE + DAY)
    assert store.get_version(ID, 1) == closed
    assert record_of(store, new.schedule).version == closed


def test_windows_are_closed_by_number_and_by_no_other_change(store: Store) -> None:
    new = new_schedule()
    schedule = commit(store, edit(create(store, new), second_version()))
    end = replace(
        status_change(schedule, ScheduleStatus.ENDED, at=NINE), windows=((1, NINE), (2, NINE + SECOND))
    )
    ended = commit(store, end)
    commit(store, change_of(ended))
    ends = [version.effective_until for version in store.list_versions(ID, before=None, limit=10)]
    assert ends == [NINE + SECOND, NINE]


def test_the_windows_of_another_schedule_stay(store: Store) -> None:
    other = new_schedule("report-70")
    create(store, other)
    commit(store, edit(create(store), second_version()))
    assert record_of(store, other.schedule).version == other.first.version


def test_the_latest_version_is_pending_until_the_cursor_is_its_own(store: Store) -> None:
    schedule = create(store)
    assert record_of(store, schedule).pending is None
    new = second_version()
    edited = commit(store, edit(schedule, new))
    record = record_of(store, schedule)
    assert (record.version.number, record.pending) == (1, new.version)
    activated = replace(change_of(edited), cursor=cursor(NINE + DAY, version=2))
    commit(store, activated)
    record = record_of(store, schedule)
    assert (record.version, record.pending) == (new.version, None)


def test_an_edit_can_activate_its_version_at_once(store: Store) -> None:
    new = second_version()
    schedule = commit(store, edit(create(store), new, cursor=cursor(NINE + 2 * DAY, version=2)))
    assert (schedule.latest_version, schedule.cursor) == (2, cursor(NINE + 2 * DAY, version=2))
    assert record_of(store, schedule).version == new.version


def test_one_change_can_make_several_versions(store: Store) -> None:
    """A replaced version keeps its number and has an empty window."""
    schedule = create(store)
    numbers = [2, 3]
    news = tuple(second_version(number=number) for number in numbers)
    change = replace(
        change_of(schedule), versions=news, windows=((1, NINE + DAY), (2, NINE + DAY)), cursor=None
    )
    assert commit(store, change).latest_version == 3
    versions = store.list_versions(ID, before=None, limit=10)
    assert [version.number for version in versions] == [3, 2, 1]
    assert [version.effective_until for version in versions] == [None, NINE + DAY, NINE + DAY]
    assert record_of(store, schedule).pending == news[1].version


def test_versions_with_an_equal_rule_share_one_cadence(store: Store) -> None:
    new = new_schedule()
    same = new_version(number=2, effective_from=NINE)
    other = replace(same, cadence=replace(same.cadence, fold="second"))
    commit(store, edit(create(store, new), other))
    assert store.read_cadences([new.first.cadence.cadence_id]) == [new.first.cadence]


def test_versions_are_listed_latest_first_and_page_by_number(store: Store) -> None:
    schedule = create(store)
    create(store, new_schedule("report-70"))
    for number in range(2, 12):
        effective_from = NINE + number * HOUR
        schedule = commit(store, edit(schedule, second_version(number=number, effective_from=effective_from)))
    wanted = [store.get_version(ID, number) for number in range(11, 0, -1)]
    assert store.list_versions(ID, before=None, limit=100) == wanted
    pages = read_pages(
        lambda last: store.list_versions(ID, before=last.number if last else None, limit=3), limit=3
    )
    assert pages == wanted
    assert store.list_versions(ScheduleId("unknown"), before=None, limit=3) == []
    assert store.list_versions(ID, before=1, limit=3) == []


def test_a_restamped_version_takes_the_place_of_the_one_with_its_number(store: Store) -> None:
    """Other zone rules that name the same instants: no new version, another fingerprint."""
    new = new_schedule()
    schedule = commit(store, edit(create(store, new), second_version()))
    first, second = (
        new_version(of=of, number=number, effective_from=from_, fingerprint=digest_of(f"newer {of.timezone}"))
        for number, of, from_ in ((1, definition(), OPENS_AT), (2, TEN, NINE + DAY))
    )
    first = replace(first, version=replace(first.version, effective_until=NINE + DAY))
    after = commit(store, replace(change_of(schedule), restamped=(first, second)))
    assert (after.latest_version, after.cursor) == (2, schedule.cursor)
    assert store.list_versions(ID, before=None, limit=10) == [second.version, first.version]
    ids = [first.cadence.cadence_id, second.cadence.cadence_id, new.first.cadence.cadence_id]
    wanted = [first.cadence, second.cadence, new.first.cadence]
    assert sorted(store.read_cadences(ids), key=repr) == sorted(wanted, key=repr)
    assert store.get_zone_rules("UTC", first.version.fingerprint) == first.zone_rules


def test_a_window_is_closed_after_its_version_is_restamped(store: Store) -> None:
    new = new_schedule()
    schedule = create(store, new)
    change = replace(change_of(schedule), restamped=(new_version(fingerprint="f2"),), windows=((1, NINE),))
    commit(store, change)
    version = store.get_version(ID, 1)
    assert version is not None
    assert (version.fingerprint, version.effective_until) == ("f2", NINE)


def test_a_due_schedule_comes_with_its_successor(store: Store) -> None:
    schedule = create(store, new_schedule("a"))
    edited = commit(store, edit(schedule, new_version("a", TEN, number=2, effective_from=NINE + DAY)))
    create(store, new_schedule("b"))
    due = store.read_due(0, now=NINE, limit=10)
    successors = [entry.successor for entry in due if isinstance(entry, DueSchedule)]
    assert successors == [store.get_version(edited.schedule_id, 2), None]


def test_a_lost_successor_is_not_taken_for_none(store: Store) -> None:
    """I12: the schedule would end where its window does."""
    new = new_schedule()
    first_version = replace(new.first, version=replace(new.first.version, effective_until=NINE + DAY))
    lost = replace(new, schedule=replace(new.schedule, latest_version=2), first=first_version)
    broken = create(store, lost)
    create(store, new_schedule("sound"))
    first, second = sorted(store.read_due(0, now=NINE, limit=10), key=lambda due: type(due).__name__)
    assert isinstance(first, DueSchedule)
    assert isinstance(second, Unreadable)
    assert (second.schedule_id, second.window_until) == (broken.schedule_id, NINE + DAY)
    listed = store.list_schedules(ScheduleFilter(), after=None, limit=10)
    assert [record.schedule.schedule_id for record in listed] == ["sound"]
    with pytest.raises(UnreadableRow, match="version 2 does not exist"):
        store.get_schedule(broken.schedule_id)
