"""A daily report walks between zones: before, between and after its two local times, on days with a gap and a fold.

Two dispatchers are at it. The second still has the old definition in memory: it decided by it before the edit, and
commits after it.
"""

from datetime import datetime, timedelta

import pytest

from rota.dispatch.planning import Plans
from rota.domain.admission import Admission
from rota.store.port import AdmissionOutcome, Fence, Store
from tests.edits.lives import ID, Life, instant

WALKS = [
    ("America/New_York", "Europe/London"),
    ("Europe/London", "America/New_York"),
    ("Asia/Tokyo", "Europe/London"),
    ("Pacific/Auckland", "America/Los_Angeles"),
    ("America/Los_Angeles", "Pacific/Auckland"),
]
DAYS = {
    "ordinary": "2026-01-14",
    "a gap in America": "2026-03-08",
    "a gap in Europe": "2026-03-29",
    "a fold in Auckland": "2026-04-05",
    "a fold in Europe": "2026-10-25",
    "a fold in America": "2026-11-01",
}
HOURS = ["9", "2", "1"]
"""At two and at one the clocks change: there the day has a gap or a fold."""


@pytest.mark.parametrize("hour", HOURS)
@pytest.mark.parametrize("day", DAYS.values(), ids=DAYS)
@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: f"{walk[0]} to {walk[1]}")
def test_no_day_is_doubled_or_lost(memory_store: Store, walk: tuple[str, str], day: str, hour: str) -> None:
    life = _life(memory_store, walk[0], day, hour)
    for edit_at in _moments(day):
        life.until(edit_at)
        stale = _decided_by_another(life)
        timezone = walk[1] if life.world.app.get_schedule(ID)["timezone"] == walk[0] else walk[0]
        life.edit(timezone=timezone)
        for fence, admission in stale:
            [outcome] = life.world.store.commit_admissions(fence, [admission], now=life.world.now)
            assert outcome is AdmissionOutcome.STALE
    life.world.pass_time(timedelta(days=4))
    days = sorted(str(run["named_local"])[:10] for run in life.runs())
    first = datetime.fromisoformat(days[0])
    assert days == [(first + timedelta(days=number)).date().isoformat() for number in range(len(days))]


def test_what_exists_stays_and_the_next_one_is_the_new_versions(store: Store) -> None:
    """The walk of the guide: tomorrow is there under version 1 when the zone becomes London."""
    life = _life(store, "America/New_York", "2026-01-14", "9")
    life.until("2026-01-13T15:00:00Z").plan("2026-01-14T15:00:00Z")
    stale = _decided_by_another(life)
    life.until("2026-01-13T16:00:00Z").edit(timezone="Europe/London")
    for fence, admission in stale:
        life.world.store.commit_admissions(fence, [admission], now=life.world.now)
    life.until("2026-01-15T12:00:00Z")
    assert life.kept()[-2:] == [
        (1, "2026-01-14T14:30:00Z", "day:2026-01-14"),
        (2, "2026-01-15T09:30:00Z", "day:2026-01-15"),
    ]


def _life(store: Store, timezone: str, day: str, hour: str) -> Life:
    start = instant(f"{day}T00:00:00+00:00") - timedelta(days=3)
    return Life(store, start=start, timezone=timezone, recurrence={"cron": f"30 {hour} * * *"}, gap="forward")


def _moments(day: str) -> list[datetime]:
    """Before, between and after the local times of every zone of the walks, and there and back."""
    midnight = instant(f"{day}T00:00:00+00:00")
    return [midnight + timedelta(hours=hours) for hours in (-12, -4, 3, 7, 11, 15, 20, 26)]


def _decided_by_another(life: Life) -> list[tuple[Fence, Admission]]:
    """What a second process would admit in the next two days, by the definition that it has in memory."""
    world, decided = life.world, []
    later = world.now + timedelta(days=2)
    plans = Plans(world.store, world.app.context.cadences, now=later)
    for state in world.store.list_partitions():
        for row in world.store.read_due(state.partition, now=later, limit=10):
            plan = plans.plan(row)
            assert isinstance(plan, Admission)
            decided.append((Fence(partition=state.partition, epoch=state.epoch), plan))
    return decided
