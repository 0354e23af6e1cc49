"""The schedule protocol: which rules of zones the schedules were computed with (I11)."""

from dataclasses import replace

from rota.domain.identity import ScheduleId
from rota.domain.json_text import encode_json
from rota.domain.schedule import ScheduleStatus, ZoneRulesRow
from rota.store.port import Creation, NewSchedule, NewVersion, Store, UsedZoneRules, ZoneRules
from tests.contract.builders import (
    MADE_AT,
    NINE,
    change_of,
    cursor,
    definition,
    edit,
    new_schedule,
    new_version,
    status_change,
    zone_rules_row,
)
from tests.contract.steps import commit, create, read_pages, record_of


def new_in(id_: str, timezone: str, fingerprint: str, *, tzdata: str = "2026.1") -> NewSchedule:
    """A schedule in that zone, computed with those rules of it."""
    plain = new_schedule(id_, of=definition(timezone=timezone))
    return replace(plain, first=version_in(id_, timezone, fingerprint, tzdata=tzdata))


def version_in(
    id_: str, timezone: str, fingerprint: str, *, number: int = 1, tzdata: str = "2026.1"
) -> NewVersion:
    new = new_version(id_, definition(timezone=timezone), number=number, fingerprint=fingerprint)
    return replace(new, zone_rules=zone_rules_row(timezone, fingerprint, tzdata=tzdata))


def listed(store: Store) -> list[tuple[str, str]]:
    return [(row.timezone, row.fingerprint) for row in store.list_zone_rules()]


def computed_with(store: Store, timezone: str, fingerprint: str, *, limit: int = 100) -> list[str]:
    rules = ZoneRules(timezone=timezone, fingerprint=fingerprint)
    pages = read_pages(
        lambda last: store.list_computed_with(
            rules, after=None if last is None else last.schedule.schedule_id, limit=limit
        ),
        limit=limit,
    )
    return [record.schedule.schedule_id for record in pages]


def test_zone_rules_are_read_back_whole(store: Store) -> None:
    new = new_in("a", "Europe/Rome", "f1")
    row = ZoneRulesRow(
        timezone="Europe/Rome",
        fingerprint="f1",
        tzdata="2025.3",
        offsets=encode_json({"first": 2996, "changes": [[-100, 3600], [2**40, -7200]]}),
    )
    create(store, replace(new, first=replace(new.first, zone_rules=row)))
    assert store.get_zone_rules("Europe/Rome", "f1") == row
    used = UsedZoneRules(timezone="Europe/Rome", fingerprint="f1", tzdata="2025.3")
    assert store.list_zone_rules() == [used]
    assert store.get_zone_rules("Europe/Rome", "f2") is None
    assert store.get_zone_rules("UTC", "f1") is None


def test_the_release_that_was_seen_with_the_rules_first_is_kept(store: Store) -> None:
    first = new_in("a", "Europe/Rome", "f1", tzdata="2025.3")
    schedule = create(store, first)
    create(store, new_in("b", "Europe/Rome", "f1", tzdata="2026.1"))
    later = version_in("a", "Europe/Rome", "f1", number=2, tzdata="2026.2")
    edited = commit(store, edit(schedule, later))
    commit(store, replace(change_of(edited), restamped=(later,)))
    assert [used.tzdata for used in store.list_zone_rules()] == ["2025.3"]
    assert store.get_zone_rules("Europe/Rome", "f1") == first.first.zone_rules


def test_a_refused_creation_leaves_no_zone_rules(store: Store) -> None:
    create(store, new_in("a", "UTC", "f1"))
    refused = new_in("a", "Asia/Tokyo", "f2")
    assert store.commit_creation(refused, now=MADE_AT) is Creation.ID_TAKEN
    assert store.get_zone_rules("Asia/Tokyo", "f2") is None


def test_the_rules_in_use_are_listed_by_zone_then_fingerprint(store: Store) -> None:
    zones = [
        ("UTC", "f1"),
        ("Asia/Tokyo", "f9"),
        ("Asia/Tokyo", "f10"),
        ("America/New_York", "f1"),
        ("UTC", "f1"),
    ]
    for number, (timezone, fingerprint) in enumerate(zones):
        create(store, new_in(f"s{number}", timezone, fingerprint))
    assert listed(store) == sorted(set(zones))


def test_the_rules_in_use_are_those_of_the_latest_version_and_of_the_cursors(store: Store) -> None:
    """The one that is pending is to be recomputed before it takes over, the other as long as it governs."""
    schedule = create(store, new_in("a", "UTC", "f1"))
    for number, fingerprint in ((2, "f2"), (3, "f3")):
        new = version_in("a", "Asia/Tokyo", fingerprint, number=number)
        schedule = commit(store, edit(schedule, new))
    assert (schedule.cursor.version, schedule.latest_version) == (1, 3)
    assert listed(store) == [("Asia/Tokyo", "f3"), ("UTC", "f1")]
    used = [
        computed_with(store, *rules) for rules in [("UTC", "f1"), ("Asia/Tokyo", "f2"), ("Asia/Tokyo", "f3")]
    ]
    assert used == [["a"], [], ["a"]]
    restamped = version_in("a", "Asia/Tokyo", "f4", number=3)
    schedule = commit(store, replace(change_of(schedule), restamped=(restamped,)))
    assert listed(store) == [("Asia/Tokyo", "f4"), ("UTC", "f1")]
    commit(store, replace(change_of(schedule), cursor=cursor(NINE, version=3)))
    assert listed(store) == [("Asia/Tokyo", "f4")]
    assert (computed_with(store, "UTC", "f1"), computed_with(store, "Asia/Tokyo", "f4")) == ([], ["a"])
    assert store.get_zone_rules("UTC", "f1") is not None


def test_a_schedule_of_which_two_versions_have_the_rules_is_told_once(store: Store) -> None:
    for id_ in ("a", "b", "c"):
        schedule = create(store, new_in(id_, "UTC", "f1"))
        commit(store, edit(schedule, version_in(id_, "UTC", "f1", number=2)))
    for limit in (1, 2, 10):
        assert computed_with(store, "UTC", "f1", limit=limit) == ["a", "b", "c"]


def test_an_ended_schedule_uses_no_rules(store: Store) -> None:
    for number, status in enumerate(ScheduleStatus):
        schedule = create(store, new_in(f"s{number}", "UTC", f"f{number}"))
        commit(store, status_change(schedule, status, at=NINE))
        is_used = status is not ScheduleStatus.ENDED
        assert (("UTC", f"f{number}") in listed(store)) is is_used
        assert computed_with(store, "UTC", f"f{number}") == ([f"s{number}"] if is_used else [])


def test_schedules_are_found_by_zone_and_fingerprint_together(store: Store) -> None:
    create(store, new_in("a", "UTC", "f1"))
    create(store, new_in("b", "UTC", "f2"))
    create(store, new_in("c", "Asia/Tokyo", "f1"))
    assert computed_with(store, "UTC", "f1") == ["a"]
    assert computed_with(store, "Asia/Tokyo", "f2") == []


def test_pages_of_schedules_are_in_order_and_repeat_nothing(store: Store) -> None:
    ids = ["10", "9", "a", "a-1", "a1", "a_1", "b"]
    for id_ in reversed(ids):
        create(store, new_in(id_, "UTC", "f1"))
    for limit in (1, 2, 3, 100):
        assert computed_with(store, "UTC", "f1", limit=limit) == ids


def test_a_found_schedule_is_the_record_that_is_read_alone(store: Store) -> None:
    schedule = create(store, new_in("a", "UTC", "f1"))
    commit(store, edit(schedule, version_in("a", "UTC", "f1", number=2)))
    rules = ZoneRules(timezone="UTC", fingerprint="f1")
    assert store.list_computed_with(rules, after=None, limit=10) == [record_of(store, schedule)]
    assert store.list_computed_with(rules, after=ScheduleId("a"), limit=10) == []


def test_a_schedule_that_lost_its_version_hides_no_other(store: Store) -> None:
    new = new_in("a", "UTC", "f1")
    create(store, replace(new, schedule=replace(new.schedule, cursor=cursor(NINE, version=9))))
    create(store, new_in("b", "UTC", "f1"))
    assert computed_with(store, "UTC", "f1", limit=1) == ["b"]
