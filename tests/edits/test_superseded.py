"""What `latest_only` drops for the sake of a newer one: only where that one runs, or has run, on every store."""

import pytest

from rota.service.planning import move_occurrence, skip_occurrence
from rota.store.port import Store
from tests.edits.lives import ID, Life, instant, rule

LATEST = {"policy": "latest_only", "grace": "PT1M"}


def life_in(store: Store, cron: str = "0 9 * * *") -> Life:
    return Life(store, start="2026-01-05T00:30:00Z", **rule(cron, "UTC"), overdue=LATEST)


def sleep_until(life: Life, moment: str) -> None:
    """Nobody dispatches meanwhile."""
    life.world.clock.set(instant(moment))
    life.world.settle()


def states(life: Life) -> list[tuple[object, object, object]]:
    return [(str(run["due_at"])[8:13], run["state"], run["reason"]) for run in life.runs()]


@pytest.mark.parametrize("skipped", [9, 10, 13])
def test_a_planned_run_is_not_superseded_by_any_number_of_skipped_ones(store: Store, skipped: int) -> None:
    life = life_in(store, "0 * * * *")
    life.plan("2026-01-05T01:00:00Z")
    for hour in range(2, 2 + skipped):
        skip_occurrence(life.context, ID, scheduled_at=f"2026-01-05T{hour:02d}:00:00Z")
    sleep_until(life, f"2026-01-05T{1 + skipped:02d}:30:00Z")
    assert states(life)[0] == ("05T01", "succeeded", None)
    assert {run["reason"] for run in life.runs()[1:]} == {"on_request"}


def test_a_planned_run_is_superseded_by_one_behind_some_skipped_ones(
    store: Store,
) -> None:
    life = life_in(store, "0 * * * *")
    life.plan("2026-01-05T01:00:00Z")
    for hour in range(2, 11):
        skip_occurrence(life.context, ID, scheduled_at=f"2026-01-05T{hour:02d}:00:00Z")
    sleep_until(life, "2026-01-05T11:30:00Z")
    assert (states(life)[0], states(life)[-1]) == (
        ("05T01", "skipped", "superseded"),
        ("05T11", "succeeded", None),
    )


def test_a_planned_run_is_not_superseded_by_a_cancelled_one(store: Store) -> None:
    life = life_in(store)
    life.plan("2026-01-06T09:00:00Z")
    life.world.app.cancel_run("report-7.1.20260106T090000Z")
    sleep_until(life, "2026-01-06T12:00:00Z")
    assert states(life) == [("05T09", "succeeded", None), ("06T09", "cancelled", None)]


def test_an_instant_that_was_not_planned_is_not_superseded_by_a_cancelled_run(store: Store) -> None:
    life = life_in(store)
    move_occurrence(life.context, ID, scheduled_at="2026-01-06T09:00:00Z", to="2026-01-06T09:00:00Z")
    life.world.app.cancel_run("report-7.1.20260106T090000Z")
    sleep_until(life, "2026-01-06T12:00:00Z")
    assert states(life) == [("05T09", "succeeded", None), ("06T09", "cancelled", None)]


@pytest.mark.parametrize(
    ("moment", "expected"),
    [("2026-01-06T11:05:00Z", ("succeeded", None)), ("2026-01-07T09:05:00Z", ("skipped", "superseded"))],
)
def test_a_moved_run_is_superseded_only_by_what_falls_due_after_it(
    store: Store, moment: str, expected: tuple[str, str | None]
) -> None:
    life = life_in(store)
    move_occurrence(life.context, ID, scheduled_at="2026-01-05T09:00:00Z", to="2026-01-06T11:00:00Z")
    life.until("2026-01-06T10:00:00Z")
    sleep_until(life, moment)
    assert states(life)[:2] == [("06T11", *expected), ("06T09", "succeeded", None)]


def test_a_run_that_was_moved_ahead_is_superseded_neither_by_itself_nor_by_those_it_overtook(
    store: Store,
) -> None:
    life = life_in(store)
    move_occurrence(life.context, ID, scheduled_at="2026-01-07T09:00:00Z", to="2026-01-05T10:00:00Z")
    sleep_until(life, "2026-01-07T12:00:00Z")
    assert states(life) == [("05T10", "succeeded", None)]
