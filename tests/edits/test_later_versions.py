"""Versions that wait, and edits of what is counted, on every store."""

import pytest

from rota.domain.errors import Conflict
from rota.service.backfill import backfill
from rota.service.planning import move_occurrence
from rota.store.port import Store
from tests.edits.lives import ID, Life, rule

LONDON = "Europe/London"


def life_in(store: Store, cron: str = "0 9 * * *", **fields: object) -> Life:
    return Life(store, start="2026-01-05T12:00:00Z", **{**rule(cron, "UTC"), **fields})


def test_a_version_waits_for_its_instant_also_where_nothing_is_due_before_and_can_be_replaced_till_then(
    store: Store,
) -> None:
    life = life_in(store, "0 9 1 * *")
    edited = life.edit(recurrence={"cron": "0 0 25 * *"}, effective_from="2026-01-25T00:00:00Z")
    assert edited["version"] == 1
    life.until("2026-01-11T00:00:00Z").edit(
        recurrence={"cron": "0 0 20 * *"}, replaces_pending=True, at_once=True
    )
    life.until("2026-02-01T00:00:00Z")
    assert [(run["version"], run["scheduled_at"]) for run in life.runs()] == [(3, "2026-01-20T00:00:00Z")]


def test_a_pause_and_a_resumption_do_not_activate_a_version_that_waits(store: Store) -> None:
    life = life_in(store, params={"who": "one"})
    life.edit(params={"who": "two"}, effective_from="2026-01-07T09:00:00Z")
    life.until("2026-01-06T12:00:00Z").world.app.pause(ID)
    life.world.app.resume(ID)
    life.world.settle()
    assert life.world.app.get_schedule(ID)["version"] == 1
    life.edit(params={"who": "three"}, replaces_pending=True, at_once=True)
    life.until("2026-01-07T12:00:00Z")
    assert [run["version"] for run in life.runs()] == [1, 3]


def test_many_edits_at_one_instant_all_take_effect_in_turn(store: Store) -> None:
    life = life_in(store)
    for number in range(50):
        life.edit(params={"number": number})
    life.until("2026-01-06T12:00:00Z")
    assert [run["version"] for run in life.runs()] == [51]


def test_only_the_instant_of_a_version_that_waits_can_be_changed(store: Store) -> None:
    life = life_in(store)
    life.edit(timezone=LONDON, effective_from="2026-02-01T00:00:00Z")
    with pytest.raises(Conflict, match="has not taken over yet"):
        life.edit(effective_from="2026-03-01T00:00:00Z")
    life.edit(effective_from="2026-03-01T00:00:00Z", replaces_pending=True)
    assert life.versions()[0]["effective_from"] == "2026-03-01T00:00:00Z"
    assert life.edit(effective_from="2026-03-01T00:00:00Z")["latest_version"] == 3
    life.edit(at_once=True, replaces_pending=True)
    assert life.world.app.get_schedule(ID)["version"] == 4
    assert life.world.app.get_schedule(ID)["timezone"] == LONDON


def test_a_repeating_rule_becomes_a_one_time_one_later_only_with_a_fresh_series(store: Store) -> None:
    life = life_in(store)
    later = {"recurrence": {"at": "2026-01-18T09:00"}, "effective_from": "2026-01-10T00:00:00Z"}
    with pytest.raises(Conflict, match='"boundary": "now"'):
        life.edit(**later)
    assert life.world.app.get_schedule(ID)["latest_version"] == 1


def test_a_backfilled_day_is_used_in_a_series_that_began_after_it(store: Store) -> None:
    life = Life(store, start="2026-01-18T12:00:00Z", **rule("0 23 * * *", "UTC"))
    life.until("2026-01-20T12:00:00Z").edit(recurrence={"cron": "0 9 * * *"}, boundary="now")
    backfill(life.context, ID, from_="2026-01-20T08:00:00Z", until="2026-01-20T10:00:00Z")
    life.until("2026-01-20T12:30:00Z").edit(recurrence={"cron": "0 15 * * *"})
    assert life.plan("2026-01-22T00:00:00Z")["created"] == 1
    life.until("2026-01-22T12:00:00Z")
    assert life.world.app.get_schedule(ID)["status"] == "active"
    assert life.kept()[-2:] == [
        (2, "2026-01-20T09:00:00Z", "day:2026-01-20#2"),
        (3, "2026-01-21T15:00:00Z", "day:2026-01-21#2"),
    ]


def test_a_run_that_was_moved_past_the_beginning_of_a_fresh_series_uses_its_day(store: Store) -> None:
    life = life_in(store)
    move_occurrence(life.context, ID, scheduled_at="2026-01-06T09:00", to="2026-01-06T15:00")
    life.until("2026-01-06T12:00:00Z").edit(recurrence={"cron": "0 18 * * *"}, boundary="now")
    life.until("2026-01-07T12:00:00Z")
    assert [(run["version"], run["due_at"]) for run in life.runs()] == [(1, "2026-01-06T15:00:00Z")]
    assert [skip["from"] for skip in life.skips("period_used")] == ["2026-01-06T18:00:00Z"]


def test_a_carried_occurrence_is_one_of_max_occurrences(store: Store) -> None:
    life = life_in(store, max_occurrences=3)
    life.until("2026-01-07T08:00:00Z").edit(recurrence={"cron": "0 7 * * *"})
    life.until("2026-01-20T00:00:00Z")
    assert [str(run["scheduled_at"])[8:13] for run in life.runs()] == ["06T09", "07T09", "08T07"]
