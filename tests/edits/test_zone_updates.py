"""A release of the tz data that names other instants: taken up by explicit versions, on every store."""

from datetime import timedelta
from pathlib import Path

import pytest

from rota.domain.errors import ZoneRulesDiffer
from rota.service.creation import create_schedule
from rota.service.health import check_readiness
from rota.service.zone_updates import apply_zones, check_zones
from rota.store.port import Store
from rota.testing import World
from tests.doctored_zones import doctored_zones
from tests.edits.lives import ID, Life, entries_of, rule

Fields = dict[str, object]
PARIS = "Europe/Paris"
STAYS_IN_SUMMER = {PARIS: "Etc/GMT-2"}
"""Paris gives up its winter time: from the end of October on its instants are an hour earlier."""


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    return doctored_zones(tmp_path / "zones", STAYS_IN_SUMMER, release="2099a")


def life_in_paris(store: Store, **fields: object) -> Life:
    return Life(store, start="2026-10-20T12:00:00Z", **{**rule("0 9 * * *", PARIS), **fields})


def upgraded(life: Life, zones: Path) -> Life:
    """The same store, clock and application in a process with other tz data."""
    life.world = World(
        store=life.world.store, zones=zones, now=life.world.now, registry=life.world.app.registry
    )
    return life


def test_schedules_are_left_alone_until_the_rules_are_applied_and_others_go_on(
    store: Store, newer: Path
) -> None:
    life = life_in_paris(store)
    life.world.app.create_schedule(
        id="tokyo", job="sales_report", timezone="Asia/Tokyo", recurrence={"cron": "0 9 * * *"}
    )
    upgraded(life, newer).until("2026-10-28T12:00:00Z")
    assert life.runs() == []
    assert len(list(life.world.app.iterate_occurrences("tokyo"))) == 8


def test_an_edit_takes_the_new_rules_up_as_well(store: Store, newer: Path) -> None:
    life = life_in_paris(store).until("2026-10-26T12:00:00Z")
    upgraded(life, newer).edit(params={"x": 1})
    life.until("2026-10-29T12:00:00Z")
    assert [(run["version"], run["scheduled_at"]) for run in life.runs()][-5:] == [
        (1, "2026-10-25T08:00:00Z"),
        (1, "2026-10-26T08:00:00Z"),
        (2, "2026-10-27T07:00:00Z"),
        (2, "2026-10-28T07:00:00Z"),
        (2, "2026-10-29T07:00:00Z"),
    ]
    [event] = [event for event in life.world.app.history(ID) if event["action"] == "schedule.edit"]
    assert set(event["details"]["changed"]) == {"params", "tzdata"}  # type: ignore[index]


def test_an_edit_for_a_later_instant_has_to_wait_for_the_rules(store: Store, newer: Path) -> None:
    life = upgraded(life_in_paris(store), newer)
    with pytest.raises(ZoneRulesDiffer, match="rota tz apply"):
        life.edit(params={"x": 1}, effective_from="2026-11-10T00:00:00Z")


def test_readiness_says_which_zones_differ_and_what_to_do(store: Store, newer: Path) -> None:
    life = upgraded(life_in_paris(store), newer)
    body = check_readiness(life.context).body
    assert body["zones"] == {
        "tzdata": "2099a",
        "differing": [{"timezone": PARIS, "stored_tzdata": life.versions()[0]["tzdata"]}],
    }
    assert any("rota tz apply" in str(warning) for warning in body["warnings"])  # type: ignore[attr-defined]
    apply_zones(life.context)
    assert check_readiness(life.context).body["zones"] == {"tzdata": "2099a", "differing": []}


def test_a_schedule_whose_instants_change_gets_a_version_with_the_reason_tzdata(
    store: Store, newer: Path
) -> None:
    life = life_in_paris(store).until("2026-10-21T12:00:00Z")
    before = life.versions()[0]
    done = apply_zones(upgraded(life, newer).context)
    assert done["counts"] == {"version": 1, "restamped": 0, "failed": 0}
    [second, first] = life.versions()
    assert (second["version"], second["reason"], second["tzdata"]) == (2, "tzdata", "2099a")
    assert first == {**before, "effective_until": second["effective_from"]}
    history = life.world.app.history(ID)[0]
    assert (history["action"], history["reason"]) == ("schedule.edit", "tzdata")
    assert history["details"]["changed"] == {"tzdata": {"from": before["tzdata"], "to": "2099a"}}  # type: ignore[index]
    life.until("2026-10-27T12:00:00Z")
    assert [(run["version"], run["scheduled_at"]) for run in life.runs()] == [
        (1, "2026-10-21T07:00:00Z"),
        (2, "2026-10-22T07:00:00Z"),
        (2, "2026-10-23T07:00:00Z"),
        (2, "2026-10-24T07:00:00Z"),
        (2, "2026-10-25T07:00:00Z"),
        (2, "2026-10-26T07:00:00Z"),
        (2, "2026-10-27T07:00:00Z"),
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"ends_at": "2026-10-24T00:00:00Z"},
        {"recurrence": {"every": "PT6H"}},
        {"recurrence": {"cron": "0 9 * 7 *"}},
        {"recurrence": {"at": "2026-10-22T09:00:00Z"}},
    ],
    ids=["ends before", "elapsed time", "summer only", "an instant"],
)
def test_a_schedule_whose_instants_stay_is_stamped_with_the_new_rules(
    store: Store, newer: Path, fields: dict[str, object]
) -> None:
    life = upgraded(life_in_paris(store, **fields), newer)
    done = apply_zones(life.context)
    assert done["counts"] == {"version": 0, "restamped": 1, "failed": 0}
    [version] = life.versions()
    assert (version["version"], version["tzdata"]) == (1, "2099a")
    assert life.world.app.history(ID)[0]["action"] == "schedule.restamp"
    assert life.edit(params={"x": 1})["latest_version"] == 2


def test_applying_twice_changes_nothing_the_second_time(store: Store, newer: Path) -> None:
    life = upgraded(life_in_paris(store), newer)
    apply_zones(life.context)
    assert apply_zones(life.context)["schedules"] == []
    assert len(life.versions()) == 2


def test_a_dry_run_and_a_check_write_nothing_and_tell_what_changes(store: Store, newer: Path) -> None:
    life = upgraded(life_in_paris(store), newer)
    checked = check_zones(life.context)
    [zone] = entries_of(checked, "zones")
    assert (zone["timezone"], zone["schedules"], zone["schedules_changed"]) == (PARIS, 1, 1)
    told = apply_zones(life.context, dry_run=True)
    [schedule] = entries_of(told, "schedules")
    assert (schedule["outcome"], schedule["version"]) == ("version", 2)
    assert [entry["scheduled_at"] for entry in entries_of(schedule, "next")][-1] == "2026-10-25T07:00:00Z"
    assert len(life.versions()) == 1


def test_an_older_release_is_never_applied(store: Store, tmp_path: Path) -> None:
    older = doctored_zones(tmp_path / "zones", STAYS_IN_SUMMER, release="2001a")
    life = upgraded(life_in_paris(store), older)
    assert apply_zones(life.context)["schedules"] == []
    with pytest.raises(ZoneRulesDiffer):
        life.edit(params={"x": 1})
    assert any("upgrade" in str(warning) for warning in check_readiness(life.context).body["warnings"])  # type: ignore[attr-defined]


def test_what_was_owed_is_computed_by_the_new_rules_and_no_day_is_lost(store: Store, newer: Path) -> None:
    life = life_in_paris(store, overdue={"policy": "catch_up_all"}).until("2026-10-23T12:00:00Z")
    life.world.clock.set(life.world.now + timedelta(days=5))
    upgraded(life, newer)
    apply_zones(life.context)
    life.until("2026-10-30T12:00:00Z")
    assert [str(run["period_key"])[-2:] for run in life.runs()] == [str(day) for day in range(21, 31)]
    assert [run["scheduled_at"] for run in life.runs()][-4:] == [
        f"2026-10-{day}T07:00:00Z" for day in (27, 28, 29, 30)
    ]


def test_an_occurrence_that_the_new_rules_would_lose_is_carried(store: Store, tmp_path: Path) -> None:
    """At 06:30Z the 9 o'clock of UTC+3 is over, that of UTC+2 is to come: today runs by the old rules."""
    newer = doctored_zones(tmp_path / "zones", {PARIS: "Etc/GMT-3"}, release="2099a")
    life = life_in_paris(store).until("2026-10-21T06:30:00Z")
    apply_zones(upgraded(life, newer).context)
    life.until("2026-10-22T12:00:00Z")
    assert [(run["version"], run["scheduled_at"], run["carried_by"]) for run in life.runs()] == [
        (1, "2026-10-21T07:00:00Z", 2),
        (2, "2026-10-22T06:00:00Z", None),
    ]


def test_a_planned_run_keeps_its_instant_through_a_rule_change(store: Store, newer: Path) -> None:
    life = life_in_paris(store)
    life.plan("2026-10-27T12:00:00Z")
    apply_zones(upgraded(life, newer).context)
    life.until("2026-10-28T12:00:00Z")
    assert [(run["version"], run["scheduled_at"][11:16]) for run in life.runs()] == [  # type: ignore[index]
        *[(1, "07:00")] * 4,
        *[(1, "08:00")] * 3,
        (2, "07:00"),
    ]


def test_a_version_that_waits_takes_over_behind_the_new_one(store: Store, newer: Path) -> None:
    life = life_in_paris(store)
    life.edit(recurrence={"cron": "0 12 * * *"}, effective_from="2026-10-28T00:00:00Z")
    apply_zones(upgraded(life, newer).context)
    life.until("2026-10-29T23:00:00Z")
    assert [(run["version"], run["scheduled_at"]) for run in life.runs()][-4:] == [
        (3, "2026-10-26T07:00:00Z"),
        (3, "2026-10-27T07:00:00Z"),
        (4, "2026-10-28T10:00:00Z"),
        (4, "2026-10-29T10:00:00Z"),
    ]
    windows = {
        version["version"]: (version["effective_from"], version["effective_until"])
        for version in life.versions()
    }
    assert windows[2][0] == windows[2][1]
    assert windows[3][1] == windows[4][0] == "2026-10-28T00:00:00Z"


def test_what_max_occurrences_ends_with_follows_the_rules_of_a_version_that_waits(
    store: Store, tmp_path: Path
) -> None:
    """Each of the 14 comes an hour or two later; 9 are named before it takes over, one of them has run."""
    newer = doctored_zones(tmp_path / "zones", {PARIS: "UTC"}, release="2099a")
    life = life_in_paris(store).until("2026-10-21T12:00:00Z")
    life.edit(max_occurrences=14, effective_from="2026-10-30T00:00:00Z", recurrence={"cron": "0 10 * * *"})
    assert apply_zones(upgraded(life, newer).context)["counts"] == {
        "version": 1,
        "restamped": 0,
        "failed": 0,
    }
    life.until("2026-11-30T12:00:00Z")
    instants = [str(run["scheduled_at"]) for run in life.runs()]
    assert (len(instants), instants[-1]) == (14, "2026-11-03T10:00:00Z")


def test_what_the_new_rules_name_before_it_counts_for_a_version_that_waits(
    store: Store, tmp_path: Path
) -> None:
    """By the clocks of Tokyo the boundary, midnight in UTC, comes after the 8 o'clock of the day that begins there."""
    newer = doctored_zones(tmp_path / "zones", {PARIS: "Asia/Tokyo"}, release="2099a")
    life = life_in_paris(store, recurrence={"cron": "0 8 * * *"}).until("2026-10-21T12:00:00Z")
    life.edit(max_occurrences=14, effective_from="2026-10-30T00:00:00Z")
    apply_zones(upgraded(life, newer).context)
    life.until("2026-11-30T12:00:00Z")
    assert [run["period_key"] for run in life.runs()] == [
        *(f"day:2026-10-{day}" for day in range(21, 32)),
        *(f"day:2026-11-{day:02}" for day in range(1, 4)),
    ]


def test_what_max_occurrences_ends_with_follows_the_rules_though_a_replaced_version_hid_the_change(
    store: Store, tmp_path: Path
) -> None:
    newer = doctored_zones(tmp_path / "zones", {PARIS: "Etc/GMT-1"}, release="2099a")
    life = Life(store, start="2027-03-20T00:00:00Z", **rule("0 9 * * *", PARIS), max_occurrences=14)
    life.until("2027-03-21T00:00:00Z")
    life.edit(max_occurrences=None, effective_from="2027-03-25T00:00:00Z")
    assert apply_zones(upgraded(life, newer).context)["counts"] == {
        "version": 0,
        "restamped": 1,
        "failed": 0,
    }
    life.edit(params={"x": 1}, effective_from="2027-05-01T00:00:00Z", replaces_pending=True)
    life.until("2027-04-30T00:00:00Z")
    instants = [str(run["scheduled_at"]) for run in life.runs()]
    assert (len(instants), instants[-1]) == (14, "2027-04-02T08:00:00Z")


@pytest.mark.parametrize(
    ("rules", "fields", "edit", "problem"),
    [
        (
            "America/New_York",
            {"recurrence": {"at": "2027-03-20T02:30"}},
            {"recurrence": {"at": "2027-03-14T02:30"}, "effective_from": "2027-03-01T00:00:00Z"},
            "does not exist",
        ),
        (
            "Etc/GMT-2",
            {},
            {"ends_at": "2026-10-30T09:00:00Z", "effective_from": "2026-10-30T07:30:00Z"},
            "no occurrence before this end",
        ),
    ],
    ids=["the other stays", "the other changes too"],
)
def test_a_version_that_waits_and_is_left_nothing_is_told_and_left_alone(
    store: Store, tmp_path: Path, rules: str, fields: Fields, edit: Fields, problem: str
) -> None:
    newer = doctored_zones(tmp_path / "zones", {PARIS: rules}, release="2099a")
    life = life_in_paris(store, **fields)
    life.edit(**edit)
    before = life.versions()
    [zone] = entries_of(check_zones(upgraded(life, newer).context), "zones")
    assert zone["schedules_changed"] == 1
    done = apply_zones(life.context)
    assert done["counts"] == {"version": 0, "restamped": 0, "failed": 1}
    [schedule] = entries_of(done, "schedules")
    assert problem in str(schedule["problem"])
    assert life.versions() == before


def test_schedules_that_share_a_rule_are_judged_each_by_its_own_end(store: Store, newer: Path) -> None:
    life = life_in_paris(store)
    for id_, ends_at in (("a", "2026-10-24T00:00:00Z"), ("z", "2026-11-24T00:00:00Z")):
        create_schedule(
            life.context, {"id": id_, "job": "sales_report", **rule("0 9 * * *", PARIS), "ends_at": ends_at}
        )
    done = apply_zones(upgraded(life, newer).context)
    outcomes = {entry["schedule_id"]: entry["outcome"] for entry in entries_of(done, "schedules")}
    assert outcomes == {"a": "restamped", ID: "version", "z": "version"}


def test_a_version_that_waits_in_the_changed_zone_is_stamped_while_the_other_zone_governs(
    store: Store, newer: Path
) -> None:
    life = Life(store, start="2026-10-20T12:00:00Z", **rule("0 9 * * *", "Asia/Tokyo"))
    life.edit(timezone=PARIS, effective_from="2026-10-27T12:00:00Z")
    upgraded(life, newer)
    assert apply_zones(life.context)["counts"] == {"version": 0, "restamped": 1, "failed": 0}
    life.until("2026-10-29T12:00:00Z")
    assert [run["scheduled_at"] for run in life.runs()][-2:] == [
        "2026-10-28T07:00:00Z",
        "2026-10-29T07:00:00Z",
    ]


def test_a_version_that_governs_in_the_changed_zone_is_found_behind_one_that_waits_in_another(
    store: Store, newer: Path
) -> None:
    life = life_in_paris(store)
    life.edit(timezone="Asia/Tokyo", effective_from="2026-11-10T12:00:00Z")
    upgraded(life, newer)
    assert apply_zones(life.context)["counts"] == {"version": 1, "restamped": 0, "failed": 0}
    life.until("2026-11-12T12:00:00Z")
    days = [str(run["period_key"]) for run in life.runs()]
    assert len(days) == len(set(days)) == 23


def test_a_local_time_that_ceases_to_exist_is_told_and_left_alone(store: Store, tmp_path: Path) -> None:
    newer = doctored_zones(tmp_path / "zones", {PARIS: "America/New_York"}, release="2099a")
    life = life_in_paris(store, recurrence={"at": "2027-03-14T02:30"})
    done = apply_zones(upgraded(life, newer).context)
    assert done["counts"] == {"version": 0, "restamped": 0, "failed": 1}
    [schedule] = entries_of(done, "schedules")
    assert "does not exist" in str(schedule["problem"])
    assert len(life.versions()) == 1
    life.edit(recurrence={"at": "2027-03-14T03:30"})
    assert life.world.app.get_schedule(ID)["next_due"] == "2027-03-14T07:30:00Z"
