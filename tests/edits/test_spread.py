"""Schedules that are spread: what is scheduled and not yet due, through edits, ends, pauses and requests."""

from datetime import timedelta

import pytest

from rota.domain.edit_form import parse_edit
from rota.domain.errors import Conflict
from rota.domain.identity import ScheduleId
from rota.service.dry_runs import dry_run_edit, dry_run_resume
from rota.service.occurrences import list_upcoming
from rota.service.planning import move_occurrence, skip_occurrence
from rota.service.schedules import show_schedule
from rota.store.memory import MemoryStore
from rota.store.port import Store
from tests.edits.lives import ID, Life, Wire, entries_of, instant, rule

HOURLY = rule("0 * * * *", "UTC")
START = "2026-01-05T08:30:00Z"


def spread_life(store: Store | None = None, **fields: object) -> Life:
    """An hourly schedule, spread over an hour: each falls due 21 minutes and 21 seconds after it is scheduled."""
    life = Life(store or MemoryStore(), start=START, **{**HOURLY, "spread": "PT1H", **fields})
    assert show_schedule(life.context, ID)["delay"] == (
        "PT21M21S" if "spread" not in fields else "PT1H25M24S"
    )
    return life


def dues(entries: list[Wire]) -> list[tuple[object, object]]:
    return [(entry["scheduled_at"], entry["due_at"]) for entry in entries]


def test_a_spread_occurrence_is_shown_with_both_instants_and_runs_at_the_later_one(store: Store) -> None:
    life = spread_life(store)
    assert show_schedule(life.context, ID)["next_due"] == "2026-01-05T09:21:21Z"
    upcoming = list_upcoming(life.context, ID, count=2)
    expected = [
        ("2026-01-05T09:00:00Z", "2026-01-05T09:21:21Z"),
        ("2026-01-05T10:00:00Z", "2026-01-05T10:21:21Z"),
    ]
    assert dues(entries_of(upcoming, "occurrences")) == expected
    life.until("2026-01-05T10:59:00Z")
    assert dues(life.runs()) == expected
    assert [run["admitted_at"] for run in life.runs()] == [due for _, due in expected]
    assert [run["period_key"] for run in life.runs()] == [f"instant:{at}" for at, _ in expected]


def test_what_is_scheduled_and_not_yet_due_is_still_to_come() -> None:
    life = spread_life().until("2026-01-05T09:05:00Z")
    upcoming = list_upcoming(life.context, ID, count=1)
    assert dues(entries_of(upcoming, "occurrences")) == [("2026-01-05T09:00:00Z", "2026-01-05T09:21:21Z")]


def test_an_edit_takes_over_at_once_and_what_is_not_yet_due_stays_the_old_versions(store: Store) -> None:
    life = spread_life(store).until("2026-01-05T09:05:00Z")
    told = dry_run_edit(life.context, ID, parse_edit({"spread": None, "params": {"a": 1}}))
    edited = life.edit(spread=None, params={"a": 1})
    assert (edited["pending"], edited["version"], edited["delay"]) == (None, 2, None)
    assert told["is_pending"] is False
    assert dues(entries_of(told, "kept")) == [("2026-01-05T09:00:00Z", "2026-01-05T09:21:21Z")]
    assert [entry["version"] for entry in entries_of(told, "next")][:2] == [1, 2]
    life.edit(params={"a": 2})  # no version waits that it would have to replace
    life.until("2026-01-05T10:00:00Z")
    assert dues(life.runs()) == [
        ("2026-01-05T09:00:00Z", "2026-01-05T09:21:21Z"),
        ("2026-01-05T10:00:00Z", "2026-01-05T10:00:00Z"),
    ]
    assert [run["version"] for run in life.runs()] == [1, 3]
    assert life.skips("period_used") == []


def test_a_day_whose_occurrence_is_not_yet_due_is_neither_lost_nor_doubled_by_an_edit(store: Store) -> None:
    life = spread_life(store, recurrence={"cron": "0 9 * * *"}).until("2026-01-05T09:05:00Z")
    life.edit(recurrence={"cron": "0 10 * * *"})
    life.until("2026-01-07T00:00:00Z")
    assert [(run["version"], run["scheduled_at"]) for run in life.runs()] == [
        (1, "2026-01-05T09:00:00Z"),
        (2, "2026-01-06T10:00:00Z"),
    ]
    assert [skip["from"] for skip in life.skips("period_used")] == ["2026-01-05T10:00:00Z"]


def test_what_is_late_still_keeps_the_next_version_waiting() -> None:
    life = spread_life(overdue={"policy": "catch_up_all"})
    life.world.clock.advance(timedelta(hours=2))  # nobody is there: two are late
    edited = life.edit(params={"a": 1})
    assert edited["pending"] is not None
    life.until("2026-01-05T11:59:00Z")
    assert [run["version"] for run in life.runs()] == [1, 1, 2]


def test_more_than_a_commit_holds_keeps_the_next_version_waiting_and_loses_nothing() -> None:
    life = spread_life(recurrence={"cron": "* * * * *"}, spread="PT4H", overdue={"policy": "catch_up_all"})
    life.until("2026-01-05T09:15:00Z").edit(spread=None)
    life.until("2026-01-05T11:00:00Z")
    instants = [str(run["scheduled_at"]) for run in life.runs()]
    first, last = instant("2026-01-05T08:31:00Z"), instant("2026-01-05T11:00:00Z")
    minutes = int((last - first) / timedelta(minutes=1)) + 1
    assert [instant(text) for text in instants] == [first + n * timedelta(minutes=1) for n in range(minutes)]


def test_an_end_settles_what_is_not_yet_due_at_once(store: Store) -> None:
    life = spread_life(store).until("2026-01-05T09:05:00Z")
    life.world.app.end(ID)
    life.world.settle()
    assert life.runs() == []
    assert [(skip["from"], skip["count"]) for skip in life.skips("ended")] == [("2026-01-05T09:00:00Z", 1)]
    record = life.world.store.get_schedule(ScheduleId(ID))
    assert record is not None
    assert record.schedule.cursor.due_at is None


def test_what_is_not_yet_due_may_be_skipped_and_moved_and_what_is_due_may_not() -> None:
    life = spread_life().until("2026-01-05T09:05:00Z")
    skipped = skip_occurrence(life.context, ID, scheduled_at="2026-01-05T09:00:00Z")
    assert (skipped["state"], skipped["reason"]) == ("skipped", "on_request")
    moved = move_occurrence(life.context, ID, scheduled_at="2026-01-05T09:00:00Z", to="2026-01-05T09:40:00Z")
    assert moved["due_at"] == "2026-01-05T09:40:00Z"
    notes = [entry["note"] for entry in entries_of(list_upcoming(life.context, ID, count=2), "occurrences")]
    assert notes == ["moved from 2026-01-05T09:00:00Z", None]
    life.until("2026-01-05T10:30:00Z")
    with pytest.raises(Conflict):
        skip_occurrence(life.context, ID, scheduled_at="2026-01-05T10:00:00Z")


def test_what_is_planned_falls_due_by_the_spread_and_is_not_told_as_moved(store: Store) -> None:
    life = spread_life(store)
    life.plan("2026-01-05T10:00:00Z")
    upcoming = entries_of(list_upcoming(life.context, ID, count=3), "occurrences")
    assert [(entry["state"], entry["note"]) for entry in upcoming] == [
        ("planned", None),
        ("planned", None),
        ("named", None),
    ]
    life.until("2026-01-05T09:05:00Z")
    assert life.plan("2026-01-05T10:00:00Z")["existing"] == 2
    life.until("2026-01-05T10:59:00Z")
    assert [run["admitted_at"] for run in life.runs()] == ["2026-01-05T09:21:21Z", "2026-01-05T10:21:21Z"]


def test_a_pause_between_schedule_and_due_instant_leaves_it_to_the_policy(store: Store) -> None:
    life = spread_life(store, overdue={"policy": "catch_up_all"}).until("2026-01-05T09:05:00Z")
    life.world.app.pause(ID)
    life.until("2026-01-05T10:05:00Z")
    told = dry_run_resume(life.context, ID)
    assert dues(entries_of(told, "kept")) == [("2026-01-05T09:00:00Z", "2026-01-05T09:21:21Z")]
    life.world.app.resume(ID)
    life.until("2026-01-05T11:59:00Z")
    assert [run["scheduled_at"] for run in life.runs()] == ["2026-01-05T09:00:00Z", "2026-01-05T11:00:00Z"]
    assert [skip["from"] for skip in life.skips("paused")] == ["2026-01-05T10:00:00Z"]


@pytest.mark.parametrize("is_edited", [False, True])
def test_an_edit_does_not_make_a_pause_skip_what_was_scheduled_before_it(
    store: Store, *, is_edited: bool
) -> None:
    life = spread_life(store, overdue={"policy": "catch_up_all"}).until("2026-01-05T09:05:00Z")
    if is_edited:
        life.edit(params={"a": 1})
    life.until("2026-01-05T09:10:00Z").world.app.pause(ID)
    life.until("2026-01-05T10:05:00Z").world.app.resume(ID)
    life.until("2026-01-05T11:59:00Z")
    ran = [run["scheduled_at"] for run in life.runs() if run["state"] != "skipped"]
    assert ran == ["2026-01-05T09:00:00Z", "2026-01-05T11:00:00Z"]


@pytest.mark.parametrize("is_planned", [False, True])
def test_what_is_scheduled_in_a_pause_and_falls_due_after_it_is_skipped_though_it_was_planned(
    store: Store, *, is_planned: bool
) -> None:
    life = spread_life(store)
    if is_planned:
        life.plan("2026-01-05T09:00:00Z")
    life.until("2026-01-05T08:55:00Z").world.app.pause(ID)
    life.until("2026-01-05T09:05:00Z").world.app.resume(ID)
    life.until("2026-01-05T10:59:00Z")
    runs = [run for run in life.runs() if run["state"] != "skipped"]
    assert [run["scheduled_at"] for run in runs] == ["2026-01-05T10:00:00Z"]


def test_a_run_that_was_moved_out_of_a_pause_runs_and_one_that_was_moved_into_it_does_not(
    store: Store,
) -> None:
    life = spread_life(store)
    move_occurrence(life.context, ID, scheduled_at="2026-01-05T09:00:00Z", to="2026-01-05T12:30:00Z")
    move_occurrence(life.context, ID, scheduled_at="2026-01-05T13:00:00Z", to="2026-01-05T08:58:00Z")
    life.until("2026-01-05T08:55:00Z").world.app.pause(ID)
    life.until("2026-01-05T09:05:00Z").world.app.resume(ID)
    life.until("2026-01-05T13:59:00Z")
    ran = [run["scheduled_at"] for run in life.runs() if run["state"] != "skipped"]
    assert ran == [f"2026-01-05T{hour:02d}:00:00Z" for hour in (9, 10, 11, 12)]


def test_the_last_of_max_occurrences_falls_due_by_the_spread_and_then_the_schedule_has_ended() -> None:
    life = spread_life(max_occurrences=2).until("2026-01-05T10:05:00Z")
    assert show_schedule(life.context, ID)["status"] == "active"
    life.until("2026-01-05T12:00:00Z")
    assert [run["scheduled_at"] for run in life.runs()] == ["2026-01-05T09:00:00Z", "2026-01-05T10:00:00Z"]
    assert show_schedule(life.context, ID)["status"] == "ended"
