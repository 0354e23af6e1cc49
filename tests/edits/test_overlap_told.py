"""Dry runs of schedules whose runs may not overlap: what is told is what the dispatcher then does."""

from datetime import timedelta

import pytest

from rota.domain.edit_form import parse_edit
from rota.domain.run import RunState
from rota.service.dry_runs import dry_run_edit, dry_run_resume
from rota.service.planning import move_occurrence, plan_occurrences
from rota.store.memory import MemoryStore
from rota.store.port import RunFilter
from tests.edits.lives import ID, Life, Wire, entries_of, rule

MINUTE = timedelta(minutes=1)


def paused_life(overlap: str, *, is_open: bool, **fields: object) -> Life:
    """A schedule of every ten minutes, paused over eight of its instants, maybe with a run that is still open."""
    life = Life(
        MemoryStore(),
        start="2026-01-05T08:55:00Z",
        **{
            **rule("*/10 * * * *", "UTC"),
            "overlap": overlap,
            "overdue": {"policy": "catch_up_all"},
            **fields,
        },
    )
    if is_open:
        # Admitted, and nobody works.
        life.world.clock.advance(6 * MINUTE)
        admit(life)
    life.world.app.pause(ID)
    return life


def admit(life: Life) -> None:
    """What the dispatcher has to do now, while nobody works."""
    while life.world.dispatcher.step(life.world.now).wake_at <= life.world.now:
        pass


def told_outcomes(told: Wire) -> dict[object, object]:
    kept = {run["run_id"]: run["state"] for run in entries_of(told, "kept")}
    skips = {
        skip.get("run_id") or (skip["from"], skip["count"], skip["note"]): skip["reason"]
        for skip in entries_of(told, "skipped")
    }
    return kept | skips


def outcomes(life: Life, before: set[object]) -> dict[object, object]:
    """The same of the history, without the runs that were there before."""
    return {
        entry.get("run_id") or (entry["from"], entry["count"], entry["note"]): entry["reason"]
        or entry["state"]
        for entry in life.entries()
        if entry.get("run_id") not in before
    }


def settled_or_open(life: Life) -> set[object]:
    runs = life.world.store.list_runs(RunFilter(), before=None, limit=100)
    return {run.run_id for run in runs if run.state not in {RunState.PLANNED, RunState.HELD}}


@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize("overlap", ["allow", "skip", "queue"])
@pytest.mark.parametrize("spread", [None, "PT30M"])
def test_a_resumption_tells_who_runs_who_waits_and_who_is_in_the_way(
    overlap: str, spread: str | None, *, is_open: bool
) -> None:
    life = paused_life(overlap, is_open=is_open, spread=spread)
    life.world.clock.advance(80 * MINUTE)
    before = settled_or_open(life)
    told = dry_run_resume(life.context, ID, apply_overdue=True)
    life.world.app.resume(ID, apply_overdue=True)
    admit(life)
    assert told_outcomes(told) == outcomes(life, before)
    assert told["is_complete"] is True


@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize("overlap", ["skip", "queue"])
def test_a_resumption_tells_the_same_of_planned_runs_and_of_those_that_were_held(
    overlap: str, *, is_open: bool
) -> None:
    life = paused_life(overlap, is_open=is_open)
    plan_occurrences(life.context, ID, until="2026-01-05T09:40:00Z")
    move_occurrence(life.context, ID, scheduled_at="2026-01-05T09:20:00Z", to="2026-01-05T09:35:00Z")
    life.world.clock.advance(40 * MINUTE)
    admit(life)
    before = settled_or_open(life)
    told = dry_run_resume(life.context, ID, apply_overdue=True)
    life.world.app.resume(ID, apply_overdue=True)
    admit(life)
    assert told_outcomes(told) == outcomes(life, before)


@pytest.mark.parametrize("overlap", ["allow", "skip", "queue"])
def test_an_edit_tells_what_is_owed_by_the_rule_of_the_version_that_owes_it(overlap: str) -> None:
    life = Life(
        MemoryStore(),
        start="2026-01-05T08:55:00Z",
        **rule("*/10 * * * *", "UTC"),
        overlap=overlap,
        overdue={"policy": "catch_up_all"},
    )
    life.world.clock.advance(40 * MINUTE)
    patch: Wire = {"overlap": "skip" if overlap == "allow" else "allow", "params": {"a": 1}}
    told = dry_run_edit(life.context, ID, parse_edit(patch))
    life.edit(**patch)
    admit(life)
    assert told_outcomes(told) == outcomes(life, set())
