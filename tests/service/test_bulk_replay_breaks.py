"""A replay of many runs that breaks in the middle and is repeated with its key: nothing is left out, nor doubled."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from rota import CatchUpAll, RetryPolicy
from rota.service import bulk
from rota.store.memory import MemoryStore
from rota.store.port import ChangeOutcome, Fence, ScheduleChange, StoreUnavailable
from rota.testing import World

NOW = datetime(2026, 1, 10, 8, tzinfo=UTC)
HOURS, SCHEDULES = 5, 2
WHY = "the mail was lost"


class BreakingStore(MemoryStore):
    """Goes away at a replay, before or after that is done."""

    def __init__(self) -> None:
        super().__init__()
        self.left = -1
        self.is_done_before = False

    def commit_change(self, change: ScheduleChange, *, fence: Fence | None = None) -> ChangeOutcome:
        is_replay = any(run.origin == "replay" for run in change.runs)
        self.left -= is_replay
        if is_replay and self.left == -1:
            if self.is_done_before:
                super().commit_change(change, fence=fence)
            raise StoreUnavailable("The database is restarting.")
        return super().commit_change(change, fence=fence)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """Two schedules with five runs each that have failed."""
    monkeypatch.setattr(bulk, "RUNS_PER_ADMISSION_MAX", 2)
    world = World(now=NOW, store=BreakingStore(), log_level="error")

    @world.app.job("fragile", retry=RetryPolicy(max_attempts=1))
    def fragile(ctx: object) -> None:
        raise ValueError("no data")

    for number in range(SCHEDULES):
        world.app.create_schedule(
            id=f"report-{number}",
            job="fragile",
            timezone="UTC",
            recurrence={"cron": "0 * * * *"},
            overdue=CatchUpAll(),
        )
    world.pass_time(timedelta(hours=HOURS))
    assert [run["state"] for run in world.app.runs()] == ["failed"] * HOURS * SCHEDULES
    return world


def replays_of(world: World) -> Counter[str]:
    """How many replays each occurrence has."""
    replays = world.app.runs(origin="replay", limit=200)
    return Counter(str(run["run_id"]).rpartition(".r")[0] for run in replays)


@pytest.mark.parametrize("is_done_before", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(6))
def test_a_replay_that_broke_is_completed_by_its_repetition(
    world: World, at: int, *, is_done_before: bool
) -> None:
    store = world.store
    assert isinstance(store, BreakingStore)
    store.left, store.is_done_before = at, is_done_before

    def ask() -> dict[str, object]:
        return world.app.replay_runs(job="fragile", state="failed", reason=WHY, idempotency_key="k")

    with pytest.raises(StoreUnavailable):
        ask()
    # What was made ends meanwhile, as its occurrence had: it would match once more.
    world.settle()
    told = ask()
    assert (told["replayed"], told["left_out"], told["is_complete"]) == (HOURS * SCHEDULES, 0, True)
    world.settle()
    assert ask() == told
    assert set(replays_of(world).values()) == {1}
    assert replays_of(world).total() == HOURS * SCHEDULES


def test_what_somebody_else_replayed_meanwhile_is_not_replayed_once_more(world: World) -> None:
    store = world.store
    assert isinstance(store, BreakingStore)
    store.left = 2
    with pytest.raises(StoreUnavailable):
        world.app.replay_runs(job="fragile", reason=WHY, idempotency_key="k")
    world.settle()
    world.app.replay("report-1.1.20260110T130000Z", reason="by hand")
    world.settle()
    world.app.replay_runs(job="fragile", reason=WHY, idempotency_key="k")
    assert set(replays_of(world).values()) == {1}
