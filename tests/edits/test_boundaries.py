"""The boundary at which a version takes over: not before it has come, whoever looks at the schedule early."""

import pytest

from rota.domain.identity import ScheduleId
from rota.domain.schedule import Cursor
from rota.store.port import Store
from tests.edits.lives import ID, Life, instant, rule

BOUNDARY = "2026-02-01T00:00:00Z"


def cursor_of(life: Life) -> Cursor:
    record = life.world.store.get_schedule(ScheduleId(ID))
    assert record is not None
    return record.schedule.cursor


@pytest.fixture
def life(store: Store) -> Life:
    """A schedule whose cursor stands at the boundary, far ahead: its first version names nothing more."""
    life = Life(
        store,
        start="2026-01-10T12:00:00Z",
        **rule("0 9 * * *", "UTC"),
        ends_at="2026-01-12T00:00:00Z",
    )
    life.edit(ends_at=None, recurrence={"cron": "0 8 * * *"}, effective_from=BOUNDARY)
    life.until("2026-01-13T12:00:00Z")
    assert cursor_of(life) == Cursor(version=1, scheduled_at=instant(BOUNDARY), due_at=instant(BOUNDARY))
    return life


def test_a_pause_and_a_resumption_do_not_activate_a_version_that_waits(life: Life) -> None:
    life.world.app.pause(ID)
    life.until("2026-01-14T12:00:00Z").world.app.resume(ID)
    assert cursor_of(life).is_looked_at
    life.world.settle()
    assert cursor_of(life) == Cursor(version=1, scheduled_at=instant(BOUNDARY), due_at=instant(BOUNDARY))
    assert life.world.app.get_schedule(ID)["version"] == 1
    life.until("2026-02-01T12:00:00Z")
    assert [(run["version"], run["scheduled_at"]) for run in life.runs()] == [
        (1, "2026-01-11T09:00:00Z"),
        (2, "2026-02-01T08:00:00Z"),
    ]


def test_the_version_that_waits_can_still_be_replaced_after_a_pause(life: Life) -> None:
    life.world.app.pause(ID)
    life.until("2026-01-14T12:00:00Z").world.app.resume(ID)
    life.world.settle()
    assert life.world.app.get_schedule(ID)["pending"] is not None


def test_an_end_before_the_boundary_keeps_the_version_that_waits_from_ever_governing(life: Life) -> None:
    life.world.app.end(ID)
    life.until("2026-03-01T00:00:00Z")
    assert [run["version"] for run in life.runs()] == [1]
    shown = life.world.app.get_schedule(ID)
    assert (shown["status"], shown["next_due"]) == ("ended", None)
