"""Runs on request: now, of the past, and once more, on every store."""

from datetime import timedelta
from functools import partial

import pytest

from rota.domain.errors import Conflict, InvalidRequest
from rota.service.backfill import backfill
from rota.service.context import Actor
from rota.service.idempotency import KeyReused
from rota.service.planning import skip_occurrence
from rota.service.requested import replay_run, request_run
from rota.store.port import Store
from tests.edits.lives import ID, Life, rule

LONDON = "Europe/London"
WHY = Actor(name="ops", reason="the printer was empty")


def life_in(store: Store, **fields: object) -> Life:
    return Life(store, start="2026-01-10T12:00:00Z", **{**rule("0 9 * * *", LONDON), **fields})


def test_a_run_now_is_one_for_each_key_and_uses_no_period(store: Store) -> None:
    life = life_in(store).until("2026-01-11T08:00:00Z")
    created, run = request_run(life.context, ID, idempotency_key="order-1")
    again, same = request_run(life.context, ID, idempotency_key="order-1")
    assert (created, again) == (True, False)
    assert run["run_id"] == same["run_id"]
    assert str(run["run_id"]).startswith("report-7.1.20260111T080000Z.m-")
    assert run["period_key"] == "manual:order-1"
    request_run(life.context, ID, idempotency_key="order-2")
    life.until("2026-01-11T12:00:00Z")
    assert sorted(str(run["origin"]) for run in life.runs()) == ["manual", "manual", "schedule"]
    assert {run["state"] for run in life.runs()} == {"succeeded"}


def test_a_key_makes_one_run_even_after_its_answer_is_forgotten(store: Store) -> None:
    life = life_in(store)
    request_run(life.context, ID, idempotency_key="order-1")
    life.world.clock.set(life.world.now + timedelta(days=3))
    life.world.settle()
    with pytest.raises(KeyReused):
        request_run(life.context, ID, idempotency_key="order-1")


def test_a_paused_schedule_can_be_run_now_and_an_ended_one_cannot(store: Store) -> None:
    life = life_in(store)
    life.world.app.pause(ID)
    request_run(life.context, ID)
    life.world.settle()
    assert [run["state"] for run in life.runs()] == ["succeeded"]
    life.world.app.end(ID)
    with pytest.raises(Conflict, match="has ended"):
        request_run(life.context, ID)


def test_a_run_now_has_the_version_that_governs_now(store: Store) -> None:
    life = life_in(store)
    life.edit(params={"x": 1}, effective_from="2026-01-12T00:00:00Z")
    assert request_run(life.context, ID)[1]["version"] == 1
    life.until("2026-01-12T01:00:00Z")
    assert request_run(life.context, ID)[1]["version"] == 2


def test_a_run_now_right_after_an_edit_has_the_new_version_and_lies_in_its_window(store: Store) -> None:
    life = life_in(store)
    life.edit(params={"x": 1})
    run = request_run(life.context, ID)[1]
    assert (run["version"], run["scheduled_at"]) == (2, life.versions()[0]["effective_from"])


def test_a_run_now_and_a_backfill_have_the_version_before_one_that_waits(store: Store) -> None:
    life = life_in(store, **rule("0 9 5 * *", LONDON))
    life.edit(params={"x": 1}, effective_from="2026-01-20T00:00:00Z")
    assert life.world.app.get_schedule(ID)["version"] == 1
    assert request_run(life.context, ID)[1]["version"] == 1
    made = backfill(life.context, ID, from_="2025-12-01T00:00:00Z", until="2026-01-10T11:00:00Z")
    assert (made["version"], made["created"]) == (1, 2)


def test_a_backfill_creates_the_days_that_have_no_run(store: Store) -> None:
    life = life_in(store).until("2026-01-11T12:00:00Z")
    life.world.app.pause(ID)
    life.until("2026-01-14T12:00:00Z").world.app.resume(ID)
    life.world.settle()
    life.edit(timezone="America/New_York")
    fill = partial(backfill, life.context, ID, from_="2026-01-09T00:00:00Z", until="2026-01-14T12:00:00Z")
    told = fill(dry_run=True)
    assert (told["created"], told["left_out"]) == (4, {"period_used": 1, "owed": 0})
    assert len(life.runs()) == 1
    made = fill()
    assert made["created"] == 4
    life.until(life.world.now + timedelta(minutes=1))
    filled = [run for run in life.runs() if run["origin"] == "backfill"]
    assert [(run["version"], run["scheduled_at"], run["state"]) for run in filled] == [
        (2, "2026-01-09T14:00:00Z", "succeeded"),
        (2, "2026-01-10T14:00:00Z", "succeeded"),
        (2, "2026-01-12T14:00:00Z", "succeeded"),
        (2, "2026-01-13T14:00:00Z", "succeeded"),
    ]
    assert fill()["created"] == 0


def test_the_runs_of_a_backfill_fall_due_some_time_apart_also_in_a_pause(store: Store) -> None:
    life = life_in(store, **rule("*/10 * * * *", LONDON))
    life.world.app.pause(ID)
    made = backfill(
        life.context,
        ID,
        from_="2026-01-10T06:00:00Z",
        until="2026-01-10T11:59:59Z",
        spacing=timedelta(seconds=30),
    )
    assert made["created"] == 36
    life.until("2026-01-10T12:05:00Z")
    assert sum(run["state"] == "succeeded" for run in life.runs()) == 10
    life.until("2026-01-10T12:30:00Z")
    assert sum(run["state"] == "succeeded" for run in life.runs()) == 36


def test_a_backfill_leaves_what_is_owed_to_admission(store: Store) -> None:
    life = life_in(store, overdue={"policy": "catch_up_all"})
    life.world.clock.set(life.world.now + timedelta(days=3))
    made = backfill(life.context, ID, from_="2026-01-10T00:00:00Z", until="2026-01-13T11:00:00Z")
    assert (made["created"], made["left_out"]) == (1, {"period_used": 0, "owed": 3})
    life.until(life.world.now + timedelta(hours=1))
    assert sorted(str(run["period_key"]) for run in life.runs()) == [
        f"day:2026-01-{day}" for day in (10, 11, 12, 13)
    ]


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"from_": "2026-01-09T00:00:00Z", "until": "2026-01-11T00:00:00Z"}, "until"),
        ({"from_": "2026-01-10T10:00:00Z", "until": "2026-01-10T00:00:00Z"}, "from"),
        ({"from_": "1969-01-10T10:00:00Z", "until": "2026-01-10T00:00:00Z"}, "from"),
        ({"from_": "x", "until": "2026-01-10T00:00:00Z"}, "from"),
        ({"from_": "1980-01-01T00:00:00Z", "until": "2026-01-10T00:00:00Z"}, "until"),
    ],
)
def test_a_wrong_range_of_a_backfill_is_refused_by_name(
    store: Store, asked: dict[str, str], field: str
) -> None:
    life = life_in(store)
    with pytest.raises(InvalidRequest) as refused:
        backfill(life.context, ID, **asked)  # type: ignore[arg-type]
    assert refused.value.errors[0].field == field
    assert life.runs() == []


def test_a_replay_is_a_new_run_linked_to_the_first_with_its_version(store: Store) -> None:
    life = life_in(store, params={"x": 1}).until("2026-01-11T12:00:00Z")
    life.edit(params={"x": 2})
    first = "report-7.1.20260111T090000Z"
    _, replay = replay_run(life.context, first, actor=WHY)
    assert replay["run_id"] == f"{first}.r1"
    assert (replay["version"], replay["replay_of"], replay["origin"]) == (1, first, "replay")
    with pytest.raises(Conflict, match="is queued"):
        replay_run(life.context, f"{first}.r1", actor=WHY)
    life.world.settle()
    _, again = replay_run(life.context, f"{first}.r1", actor=WHY)
    assert (again["run_id"], again["replay_of"]) == (f"{first}.r2", first)
    assert again["period_key"] == "replay:2:day:2026-01-11"


def test_an_occurrence_skipped_ahead_of_its_time_is_not_replayed_before_it(store: Store) -> None:
    life = life_in(store)
    skipped = skip_occurrence(life.context, ID, scheduled_at="2026-01-13T09:00")
    with pytest.raises(Conflict, match="its time has not come; move the occurrence"):
        replay_run(life.context, str(skipped["run_id"]), actor=WHY)
    life.until("2026-01-13T12:00:00Z")
    assert replay_run(life.context, str(skipped["run_id"]), actor=WHY)[0]


def test_a_replay_needs_a_reason_and_is_one_for_each_key(store: Store) -> None:
    life = life_in(store).until("2026-01-11T12:00:00Z")
    first = "report-7.1.20260111T090000Z"
    with pytest.raises(InvalidRequest, match="reason"):
        replay_run(life.context, first, actor=Actor(name="ops"))
    created, run = replay_run(life.context, first, actor=WHY, idempotency_key="k")
    again, same = replay_run(life.context, first, actor=WHY, idempotency_key="k")
    assert (created, again, run["run_id"]) == (True, False, same["run_id"])
