"""Dry runs against what then happens: what is late, what a waiting version owes, what it will suppress."""

from datetime import timedelta

import pytest

from rota.domain.edit_form import parse_edit
from rota.domain.schedule import next_named
from rota.service import forecast
from rota.service.dry_runs import dry_run_edit, dry_run_resume
from rota.service.planning import move_occurrence
from rota.store.memory import MemoryStore
from tests.edits.lives import ID, Life, Wire, entries_of, instant, rule


def life_in(start: str = "2026-01-05T12:00:00Z", **fields: object) -> Life:
    return Life(MemoryStore(), start=start, **{**rule("0 9 * * *", "UTC"), **fields})


def told_outcomes(told: Wire) -> set[tuple[object, object]]:
    """What is told of what happens at once: the runs by their ids, the skips by where they begin."""
    kept = {(run["run_id"], "runs") for run in entries_of(told, "kept") if run["state"] == "queued"}
    skips = entries_of(told, "skipped")
    return kept | {(skip.get("run_id") or skip["from"], skip["reason"]) for skip in skips}


def outcomes(life: Life) -> set[tuple[object, object]]:
    """The same of the history."""
    return {
        (entry.get("run_id", entry.get("from")), entry["reason"] or "runs")
        for entry in life.entries()
        if entry.get("state") != "planned"
    }


@pytest.mark.parametrize("apply_overdue", [False, True])
@pytest.mark.parametrize("cron", ["0 9 * * *", "0 7 * * *", "0 17 * * *"])
def test_a_resumption_is_told_past_the_boundary_of_the_version_that_waits(
    cron: str, *, apply_overdue: bool
) -> None:
    life = life_in(overdue={"policy": "catch_up_all"})
    life.world.app.pause(ID)
    life.until("2026-01-07T08:00:00Z").edit(recurrence={"cron": cron}, params={"a": 1})
    life.until("2026-01-10T12:00:00Z")
    told = dry_run_resume(life.context, ID, apply_overdue=apply_overdue)
    assert told["is_complete"] is True
    life.world.app.resume(ID, apply_overdue=apply_overdue)
    life.world.settle()
    assert told_outcomes(told) == outcomes(life)
    assert {run["version"] for run in entries_of(told, "next")} == {2}


@pytest.mark.parametrize(("minute", "is_due"), [(45, False), (75, True)])
def test_what_a_version_carries_that_takes_over_on_a_resumption_is_told(*, minute: int, is_due: bool) -> None:
    life = life_in(overdue={"policy": "catch_up_all"})
    life.world.app.pause(ID)
    life.until("2026-01-07T08:30:00Z").edit(recurrence={"cron": "0 7 * * *"})
    life.until(instant("2026-01-07T08:00:00Z") + timedelta(minutes=minute))
    told = dry_run_resume(life.context, ID, apply_overdue=True)
    life.world.app.resume(ID, apply_overdue=True)
    life.world.settle()
    [carried] = [run["run_id"] for run in life.runs() if run["carried_by"]]
    assert [run["run_id"] for run in entries_of(told, "carried")] == ([] if is_due else [carried])
    assert told_outcomes(told) == outcomes(life)
    assert ((carried, "runs") in told_outcomes(told)) is is_due


def test_a_backlog_that_is_told_in_part_says_so() -> None:
    life = life_in(recurrence={"every": "PT1M"})
    life.world.app.pause(ID)
    life.world.clock.set(instant("2026-01-10T12:00:00Z"))
    assert dry_run_resume(life.context, ID)["is_complete"] is False


@pytest.mark.parametrize(
    ("policy", "reasons"),
    [
        ({"policy": "expire", "deadline": "PT5M"}, ["expired"]),
        ({"policy": "latest_only"}, []),
        ({"policy": "catch_up_all"}, []),
    ],
)
def test_an_edit_tells_what_becomes_of_planned_runs_that_are_late(
    policy: dict[str, object], reasons: list[str]
) -> None:
    life = life_in(overdue=policy)
    life.plan("2026-01-06T09:00:00Z")
    life.world.clock.set(instant("2026-01-06T10:00:00Z"))
    patch = {"recurrence": {"cron": "0 17 * * *"}}
    told = dry_run_edit(life.context, ID, parse_edit(patch))
    life.edit(**patch)
    life.world.settle()
    assert told_outcomes(told) == outcomes(life)
    assert [skip["reason"] for skip in entries_of(told, "skipped")] == reasons
    expected = [entry["scheduled_at"] for entry in entries_of(told, "next")]
    life.until("2026-01-11T10:00:00Z")
    ran = [run["scheduled_at"] for run in life.runs() if run["version"] == 2 and run["state"] == "succeeded"]
    assert expected[: len(ran)] == ran
    assert len(ran) == (5 if reasons else 4)


def test_a_late_moved_run_frees_the_day_of_an_owed_instant() -> None:
    life = life_in(overdue={"policy": "expire", "deadline": "PT2H"})
    move_occurrence(life.context, ID, scheduled_at="2026-01-07T09:00:00Z", to="2026-01-06T10:00:00Z")
    life.edit(recurrence={"cron": "0 11 * * *"})
    life.world.clock.set(instant("2026-01-07T12:00:00Z"))
    told = dry_run_edit(life.context, ID, parse_edit({"params": {"a": 1}}))
    life.edit(params={"a": 1})
    life.world.settle()
    assert told_outcomes(told) == outcomes(life)
    assert ("report-7.2.20260107T110000Z", "runs") in told_outcomes(told)


@pytest.mark.parametrize("cron", ["0 9 1 * *", "30 0 * * 1", "0 0 * * *"])
@pytest.mark.parametrize("old", [{"every": "PT1H"}, {"cron": "30 0,9 * * *"}, {"cron": "0 * * * *"}])
@pytest.mark.parametrize("zone", ["Pacific/Apia", "America/Sao_Paulo", "Europe/London"])
def test_what_a_waiting_version_will_suppress_is_told_before(
    cron: str, old: dict[str, object], zone: str
) -> None:
    life = life_in("2011-12-10T12:00:00Z", timezone=zone, recurrence=old)
    life.edit(
        **{**rule(cron, "Europe/London"), "recurrence": {"cron": cron}},
        effective_from="2012-01-01T00:00:00Z",
    )
    told = life.world.app.upcoming(ID, count=700)
    suppressed = [entry["scheduled_at"] for entry in entries_of(told, "suppressed")]
    life.until("2012-01-10T00:00:00Z")
    skips = [entry["from"] for entry in life.skips("period_used")]
    assert [entry for entry in suppressed if str(entry) < "2012-01-10"] == skips


def test_a_month_of_seconds_is_not_walked_to_tell_what_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    life = life_in(recurrence={"every": "PT1S"})
    life.edit(recurrence={"cron": "0 9 1 * *"}, effective_from="2026-03-05T00:00:00Z")
    walked = 0

    def counted(*given: object) -> object:
        nonlocal walked
        walked += 1
        return next_named(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(forecast, "next_named", counted)
    life.world.app.upcoming(ID, count=5)
    assert 0 < walked < 2_000
