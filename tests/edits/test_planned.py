"""Occurrences decided ahead of their time: planned, held, released, dropped, skipped and moved, on every store."""

from datetime import timedelta

import pytest

from rota.domain.errors import Conflict, InvalidRequest, NotFound
from rota.service.dry_runs import dry_run_resume
from rota.service.planning import move_occurrence, plan_occurrences, skip_occurrence
from rota.store.port import Store
from tests.edits.lives import ID, Life, entries_of, instant, rule

LONDON = "Europe/London"


def life_in(store: Store, **fields: object) -> Life:
    return Life(store, start="2026-01-10T12:00:00Z", **{**rule("0 9 * * *", LONDON), **fields})


def states(life: Life) -> list[tuple[object, object, object]]:
    return [(str(run["scheduled_at"])[8:10], run["state"], run["reason"]) for run in life.runs()]


def test_planning_creates_what_is_not_there_and_nothing_twice(store: Store) -> None:
    life = life_in(store)
    assert life.plan("2026-01-13T09:00:00Z")["created"] == 3
    again = life.plan("2026-01-14T09:00:00Z")
    assert (again["created"], again["existing"]) == (1, 3)
    life.until("2026-01-16T00:00:00Z")
    assert states(life) == [(day, "succeeded", None) for day in ("11", "12", "13", "14", "15")]
    assert [run["version"] for run in life.runs()] == [1] * 5


def test_planning_many_goes_in_bounded_commits(store: Store) -> None:
    life = life_in(store, **rule("*/10 * * * *", LONDON))
    assert life.plan("2026-01-11T12:00:00Z")["created"] == 144
    assert len(life.runs()) == 144


def test_a_dry_run_of_planning_writes_nothing(store: Store) -> None:
    life = life_in(store)
    told = plan_occurrences(life.context, ID, until="2026-01-13T09:00", dry_run=True)
    assert (told["dry_run"], told["created"]) == (True, 3)
    assert life.runs() == []


def test_a_planned_run_runs_with_the_params_that_it_was_planned_with(store: Store) -> None:
    seen: list[object] = []
    life = life_in(store, params={"report": "old"}, handler=lambda run: seen.append(run.params["report"]))
    life.plan("2026-01-11T09:00:00Z")
    life.edit(params={"report": "new"})
    life.until("2026-01-12T12:00:00Z")
    assert seen == ["old", "new"]


def test_planning_behind_the_next_versions_boundary_is_refused(store: Store) -> None:
    life = life_in(store)
    life.edit(timezone="Asia/Tokyo", effective_from="2026-01-12T12:00:00Z")
    with pytest.raises(Conflict, match="Version 2 takes over at 2026-01-12T12:00:00Z"):
        life.plan("2026-01-13T09:00:00Z")
    assert life.plan("2026-01-12T11:59:59Z")["created"] == 2


@pytest.mark.parametrize(
    ("until", "problem"),
    [
        ("2026-01-10T11:00:00Z", "has passed"),
        ("tomorrow", "until"),
        ("2100-01-01T00:00:00Z", "More than 10000"),
    ],
)
def test_a_wrong_end_of_a_plan_is_refused_by_name(store: Store, until: str, problem: str) -> None:
    with pytest.raises(InvalidRequest, match=problem) as refused:
        life_in(store).plan(until)
    assert refused.value.errors[0].field == "until"


def test_planned_runs_that_fall_due_in_a_pause_are_held_and_skipped_on_resume(store: Store) -> None:
    life = life_in(store)
    life.plan("2026-01-14T09:00:00Z")
    life.until("2026-01-11T12:00:00Z").world.app.pause(ID)
    life.until("2026-01-13T12:00:00Z")
    assert states(life) == [
        ("11", "succeeded", None),
        ("12", "held", None),
        ("13", "held", None),
        ("14", "planned", None),
    ]
    life.world.app.resume(ID)
    life.until("2026-01-15T12:00:00Z")
    assert states(life) == [
        ("11", "succeeded", None),
        ("12", "skipped", "paused"),
        ("13", "skipped", "paused"),
        ("14", "succeeded", None),
        ("15", "succeeded", None),
    ]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({"policy": "catch_up_all"}, ["succeeded", "succeeded"]),
        ({"policy": "latest_only"}, ["skipped", "succeeded"]),
        ({"policy": "expire", "deadline": "PT4H"}, ["skipped", "succeeded"]),
    ],
)
def test_held_runs_follow_the_policy_where_the_resumption_asks_for_it(
    store: Store, policy: dict[str, object], expected: list[str]
) -> None:
    life = life_in(store, overdue=policy)
    life.plan("2026-01-12T09:00:00Z")
    life.world.app.pause(ID)
    life.until("2026-01-12T12:00:00Z").world.app.resume(ID, apply_overdue=True)
    life.world.settle()
    assert [run["state"] for run in life.runs()] == expected


def test_held_runs_are_released_though_instants_from_before_the_pause_are_owed(store: Store) -> None:
    life = life_in(store, overdue={"policy": "catch_up_all"})
    move_occurrence(life.context, ID, scheduled_at="2026-01-13T09:00", to="2026-01-11T10:00")
    life.world.clock.set(instant("2026-01-11T09:30:00Z"))  # the 11th is owed
    life.world.app.pause(ID)
    life.until("2026-01-11T11:00:00Z")
    assert states(life) == [("13", "held", None)]
    life.world.app.resume(ID, apply_overdue=True)
    life.world.settle()
    assert states(life) == [("11", "succeeded", None), ("13", "succeeded", None)]


def test_planned_runs_that_nobody_held_in_a_pause_are_skipped_as_paused_all_the_same(store: Store) -> None:
    life = life_in(store, **rule("*/10 * * * *", LONDON), overdue={"policy": "catch_up_all"})
    life.plan("2026-01-11T12:00:00Z")
    life.world.app.pause(ID)
    life.world.clock.set(instant("2026-01-11T11:55:00Z"))  # nobody dispatches meanwhile
    life.world.app.resume(ID)
    life.until("2026-01-11T12:30:00Z")
    assert [(run["state"], run["reason"]) for run in life.runs()] == [
        *[("skipped", "paused")] * 143,
        *[("succeeded", None)] * 4,
    ]


def test_a_held_run_that_was_skipped_frees_its_day(store: Store) -> None:
    life = life_in(store)
    life.plan("2026-01-11T09:00:00Z")
    life.world.app.pause(ID)
    life.until("2026-01-11T10:00:00Z").world.app.resume(ID)
    life.world.settle()
    life.edit(recurrence={"cron": "0 17 * * *"})
    life.until("2026-01-12T00:00:00Z")
    assert [(run["version"], run["state"]) for run in life.runs()] == [(1, "skipped"), (2, "succeeded")]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({"policy": "catch_up_all"}, ["succeeded"] * 3),
        ({"policy": "latest_only"}, ["skipped", "skipped", "succeeded"]),
        ({"policy": "expire", "deadline": "PT5M"}, ["skipped"] * 3),
    ],
)
def test_planned_runs_that_nobody_admitted_in_time_meet_the_overdue_policy(
    store: Store, policy: dict[str, object], expected: list[str]
) -> None:
    life = life_in(store, overdue=policy)
    life.plan("2026-01-13T09:00:00Z")
    life.world.clock.set(instant("2026-01-13T12:00:00Z"))
    life.world.settle()
    assert [run["state"] for run in life.runs()] == expected


def test_a_planned_run_is_superseded_by_a_newer_one_that_was_not_planned(store: Store) -> None:
    life = life_in(store)
    life.plan("2026-01-11T09:00:00Z")
    life.world.clock.set(instant("2026-01-12T12:00:00Z"))
    life.world.settle()
    assert states(life) == [("11", "skipped", "superseded"), ("12", "succeeded", None)]


def test_a_planned_run_is_not_superseded_by_one_that_was_skipped_on_request(store: Store) -> None:
    life = life_in(store)
    life.plan("2026-01-11T09:00:00Z")
    skip_occurrence(life.context, ID, scheduled_at="2026-01-12T09:00")
    life.world.clock.set(instant("2026-01-12T12:00:00Z"))
    life.world.settle()
    assert states(life) == [("11", "succeeded", None), ("12", "skipped", "on_request")]


def test_an_unplanned_instant_is_superseded_by_a_planned_run_but_not_by_a_skipped_one(store: Store) -> None:
    life = life_in(store)
    skip_occurrence(life.context, ID, scheduled_at="2026-01-12T09:00")
    life.world.clock.set(instant("2026-01-12T12:00:00Z"))
    life.world.settle()
    assert states(life) == [("11", "succeeded", None), ("12", "skipped", "on_request")]


def test_the_end_of_a_schedule_drops_planned_and_held_runs(store: Store) -> None:
    life = life_in(store, **rule("*/10 * * * *", LONDON))
    life.plan("2026-01-11T12:00:00Z")
    life.world.app.pause(ID)
    life.until("2026-01-10T12:30:00Z").world.app.end(ID)
    life.world.settle()
    assert {(run["state"], run["reason"]) for run in life.runs()} == {("skipped", "ended")}
    assert len(life.runs()) == 144


def test_the_end_of_a_schedule_keeps_a_version_that_waits_from_ever_governing(store: Store) -> None:
    life = life_in(store)
    life.edit(timezone="Asia/Tokyo", effective_from="2026-02-01T00:00:00Z")
    life.until("2026-01-12T12:00:00Z").world.app.end(ID)
    life.until("2026-03-01T00:00:00Z")
    assert [run["version"] for run in life.runs()] == [1, 1]
    assert life.world.app.get_schedule(ID)["status"] == "ended"
    [second, first] = life.versions()
    assert second["effective_from"] == second["effective_until"]
    assert first["effective_until"] == "2026-01-12T12:00:01Z"


def test_a_skip_and_a_move_are_only_of_what_the_schedule_names(store: Store) -> None:
    life = life_in(store)
    with pytest.raises(NotFound, match="occurrence"):
        skip_occurrence(life.context, ID, scheduled_at="2026-01-13T10:00:00Z")
    with pytest.raises(InvalidRequest, match="scheduled_at"):
        skip_occurrence(life.context, ID, scheduled_at="tuesday")
    with pytest.raises(InvalidRequest, match="has passed"):
        move_occurrence(life.context, ID, scheduled_at="2026-01-13T09:00", to="2026-01-09T09:00")
    assert life.runs() == []


def test_what_has_run_can_neither_be_skipped_nor_moved(store: Store) -> None:
    life = life_in(store).until("2026-01-11T12:00:00Z")
    with pytest.raises(Conflict, match="is succeeded"):
        skip_occurrence(life.context, ID, scheduled_at="2026-01-11T09:00")
    with pytest.raises(Conflict, match="is succeeded"):
        move_occurrence(life.context, ID, scheduled_at="2026-01-11T09:00", to="2026-01-12T11:00")


def test_skipping_twice_changes_nothing_the_second_time(store: Store) -> None:
    life = life_in(store)
    first = skip_occurrence(life.context, ID, scheduled_at="20260113T090000Z")
    assert skip_occurrence(life.context, ID, scheduled_at="2026-01-13T09:00:00Z") == first
    assert (first["state"], first["reason"]) == ("skipped", "on_request")


def test_an_occurrence_moved_to_an_earlier_time_runs_then_and_not_again(store: Store) -> None:
    life = life_in(store)
    move_occurrence(life.context, ID, scheduled_at="2026-01-13T09:00", to="2026-01-12T18:00")
    life.until("2026-01-12T18:00:00Z")
    assert [run["due_at"] for run in life.runs()][-1] == "2026-01-12T18:00:00Z"
    life.until("2026-01-14T12:00:00Z")
    assert states(life) == [(day, "succeeded", None) for day in ("11", "12", "13", "14")]


def test_upcoming_merges_planned_moved_suppressed_and_skipped_ones(store: Store) -> None:
    life = life_in(store)
    life.plan("2026-01-11T09:00:00Z")
    move_occurrence(life.context, ID, scheduled_at="2026-01-12T09:00", to="2026-01-13T11:00")
    skip_occurrence(life.context, ID, scheduled_at="2026-01-14T09:00")
    life.edit(recurrence={"cron": "0 8 * * *"})
    seen = life.world.app.upcoming(ID, count=4)
    assert [(entry["due_at"], entry["version"], entry["state"]) for entry in seen["occurrences"]] == [  # type: ignore[attr-defined]
        ("2026-01-11T09:00:00Z", 1, "planned"),
        ("2026-01-13T08:00:00Z", 2, "named"),
        ("2026-01-13T11:00:00Z", 1, "planned"),
        ("2026-01-15T08:00:00Z", 2, "named"),
    ]
    assert [entry["scheduled_at"] for entry in seen["suppressed"]] == [  # type: ignore[attr-defined]
        "2026-01-11T08:00:00Z",
        "2026-01-12T08:00:00Z",
        "2026-01-14T08:00:00Z",
    ]
    assert [entry["reason"] for entry in seen["skipped"]] == ["on_request"]  # type: ignore[attr-defined]


def test_a_cancelled_planned_run_keeps_its_day(store: Store) -> None:
    life = life_in(store)
    life.plan("2026-01-11T09:00:00Z")
    life.world.app.cancel_run("report-7.1.20260111T090000Z")
    life.until(life.world.now + timedelta(days=1))
    assert states(life) == [("11", "cancelled", None)]


@pytest.mark.parametrize("apply_overdue", [False, True])
def test_a_dry_run_of_a_resumption_tells_what_it_then_does(store: Store, *, apply_overdue: bool) -> None:
    life = life_in(store, **rule("0 */6 * * *", LONDON), overdue={"policy": "latest_only"})
    life.plan("2026-01-11T06:00:00Z")
    life.world.app.pause(ID)
    life.until("2026-01-12T01:00:00Z")
    told = dry_run_resume(life.context, ID, apply_overdue=apply_overdue)
    assert {run["state"] for run in life.runs()} == {"held"}
    life.world.app.resume(ID, apply_overdue=apply_overdue)
    life.world.settle()
    ran = [run["scheduled_at"] for run in life.runs() if run["state"] == "succeeded"]
    assert [entry["scheduled_at"] for entry in entries_of(told, "kept")] == ran
    reasons = {entry["reason"] for entry in entries_of(told, "skipped")}
    skipped = [entry["reason"] for entry in life.entries() if entry.get("state") != "succeeded"]
    assert reasons == set(skipped) == ({"superseded"} if apply_overdue else {"paused"})


def test_a_skipped_occurrence_is_restored_by_moving_it(store: Store) -> None:
    life = life_in(store)
    skip_occurrence(life.context, ID, scheduled_at="2026-01-12T09:00")
    skip_occurrence(life.context, ID, scheduled_at="2026-01-13T09:00")
    move_occurrence(life.context, ID, scheduled_at="2026-01-12T09:00", to="2026-01-12T09:00")
    life.until("2026-01-13T12:00:00Z")
    move_occurrence(life.context, ID, scheduled_at="2026-01-13T09:00", to="2026-01-13T15:00")
    life.until("2026-01-14T12:00:00Z")
    assert [(str(run["due_at"])[8:13], run["state"], run["reason"]) for run in life.runs()] == [
        ("11T09", "succeeded", None),
        ("12T09", "succeeded", None),
        ("13T15", "succeeded", None),
        ("14T09", "succeeded", None),
    ]


def test_what_is_not_named_is_refused_with_the_next_one_that_is(store: Store) -> None:
    with pytest.raises(NotFound, match=r"next one after it is at 2026-01-14T09:00:00Z \(2026-01-14T09:00"):
        skip_occurrence(life_in(store).context, ID, scheduled_at="2026-01-13T10:00")


def test_upcoming_tells_a_cancelled_day_and_the_next_due_is_that_of_a_planned_run(store: Store) -> None:
    life = life_in(store)
    life.plan("2026-01-12T09:00:00Z")
    life.world.app.cancel_run("report-7.1.20260111T090000Z")
    move_occurrence(life.context, ID, scheduled_at="2026-01-13T09:00", to="2026-01-10T18:00")
    assert [entry["reason"] for entry in entries_of(life.world.app.upcoming(ID), "skipped")] == ["cancelled"]
    assert life.world.app.get_schedule(ID)["next_due"] == "2026-01-10T18:00:00Z"
    assert life.world.app.list_schedules()[0]["next_due"] == "2026-01-10T18:00:00Z"


def test_what_waits_to_take_over_can_be_skipped_but_not_moved(store: Store) -> None:
    life = life_in(store)
    life.edit(timezone="Asia/Tokyo", effective_from="2026-01-12T12:00:00Z")
    with pytest.raises(Conflict, match="Version 2 has not taken over yet: move it when it has"):
        move_occurrence(life.context, ID, scheduled_at="2026-01-14T00:00:00Z", to="2026-01-14T02:00:00Z")
    skip_occurrence(life.context, ID, scheduled_at="2026-01-14T00:00:00Z")
    with pytest.raises(Conflict, match="has not taken over yet"):
        move_occurrence(life.context, ID, scheduled_at="2026-01-14T00:00:00Z", to="2026-01-14T02:00:00Z")
    life.until("2026-01-12T12:00:00Z")
    move_occurrence(life.context, ID, scheduled_at="2026-01-14T00:00:00Z", to="2026-01-14T02:00:00Z")
    life.until("2026-01-14T12:00:00Z")
    assert [run["due_at"] for run in life.runs()][-1] == "2026-01-14T02:00:00Z"


def test_a_local_time_is_of_the_version_in_whose_window_it_lies(store: Store) -> None:
    life = life_in(store)
    life.edit(timezone="Asia/Tokyo", effective_from="2026-01-12T12:00:00Z")
    before = skip_occurrence(life.context, ID, scheduled_at="2026-01-12T09:00")
    after = skip_occurrence(life.context, ID, scheduled_at="2026-01-14T09:00")
    assert [run["run_id"] for run in (before, after)] == [
        "report-7.1.20260112T090000Z",
        "report-7.2.20260114T000000Z",
    ]


def test_the_hint_at_the_next_occurrence_is_of_the_version_that_names_it(store: Store) -> None:
    life = life_in(store)
    life.edit(timezone="Asia/Tokyo", effective_from="2026-01-12T12:00:00Z")
    with pytest.raises(NotFound, match=r"2026-01-13T00:00:00Z \(2026-01-13T09:00 in Asia/Tokyo\)"):
        skip_occurrence(life.context, ID, scheduled_at="2026-01-12T11:00:00Z")
