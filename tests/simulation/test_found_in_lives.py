"""What the lives found out, each told by itself."""

from datetime import UTC, datetime, timedelta

import pytest

from rota.domain.run import RunState
from rota.service.planning import move_occurrence
from rota.store.port import Store
from tests.contract.conftest import store  # noqa: F401 - fixtures used here
from tests.edits.lives import ID, Life
from tests.simulation.ledger import check_windows, read_ledger

NOON = datetime(2026, 1, 10, 12, tzinfo=UTC)


@pytest.fixture
def life(store: Store) -> Life:  # noqa: F811 - the fixture
    """A daily report of which tomorrow's is moved to this afternoon."""
    life = Life(
        store,
        start=NOON,
        timezone="UTC",
        recurrence={"cron": "0 9 * * *"},
        overdue={"policy": "catch_up_all"},
    )
    move_occurrence(life.context, ID, scheduled_at="2026-01-11T09:00", to="2026-01-10T15:00")
    return life


def states(life: Life) -> list[tuple[int, str, object]]:
    return [(int(str(run["scheduled_at"])[8:10]), str(run["state"]), run["reason"]) for run in life.runs()]


def test_an_end_under_a_clock_that_was_set_back_ends_no_window_before_it_began(life: Life) -> None:
    life.edit(params={"x": 1})
    life.world.clock.leap(-timedelta(hours=1))
    life.world.app.end(ID)
    ledger = read_ledger(life.context.store, ID)
    check_windows(ledger)
    latest = ledger.versions[ledger.latest]
    assert latest.effective_from == latest.effective_until


def test_a_held_run_is_released_though_an_edit_takes_over_before_the_dispatcher_looked(life: Life) -> None:
    life.world.app.pause(ID)
    life.until(NOON + timedelta(hours=4))
    assert states(life) == [(11, RunState.HELD, None)]
    life.world.app.resume(ID, apply_overdue=True)
    life.edit(params={"x": 1})
    life.until(NOON + timedelta(days=2))
    assert states(life) == [(11, RunState.SUCCEEDED, None), (12, RunState.SUCCEEDED, None)]


def test_a_held_run_is_dropped_though_a_second_pause_ends_before_the_dispatcher_looked(life: Life) -> None:
    life.world.app.pause(ID)
    life.until(NOON + timedelta(hours=4))
    for minutes in (10, 20):
        life.world.app.resume(ID)
        life.world.clock.set(NOON + timedelta(hours=4, minutes=minutes))
        life.world.app.pause(ID)
    life.world.app.resume(ID)
    life.until(NOON + timedelta(days=2))
    assert states(life) == [(11, RunState.SKIPPED, "paused"), (12, RunState.SUCCEEDED, None)]
