"""Lives lived twice, with everything kept and with old history given up: the same runs are made in both.

What a person asks of the past that is no longer kept is refused in the one, and then not asked in the other. All else
(admissions, edits of every kind, plans, pauses, backfills of what is kept) must not be able to tell the difference, or
a period that a run used once would be used again (I2).
"""

from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from rota.domain.errors import Conflict, RotaError
from rota.domain.identity import ScheduleId
from rota.domain.key_uses import holds_its_key
from rota.domain.run import Run
from rota.store.port import RunFilter, Store
from rota.testing import World
from tests.conftest import OpenStore

START = datetime(2026, 1, 5, 5, tzinfo=UTC)
DAY = timedelta(days=1)
ZONES = ("America/New_York", "Europe/London", "Pacific/Auckland", "Pacific/Kiritimati", "Etc/GMT+12")
RULES: tuple[dict[str, object], ...] = (
    {"cron": "0 9 * * *"},
    {"cron": "15 22 * * 3"},
    {"cron": "0 9 12 * *"},
    {"cron": "0 1 1 * *"},
    {"cron": "0 9 28 * *"},
    {"cron": "0 6,18 * * *"},
    {"rrule": "DTSTART:20260105T090000\nRRULE:FREQ=MONTHLY;BYDAY=-1FR"},
)
IDS = ("one", "two", "three")
EVENTS = 30
SEEDS = 8


class Twins:
    """The same world twice; in `pruned` nothing old is kept."""

    def __init__(self, store: Store, seed: int) -> None:
        self.random = Random(seed)
        self.whole = World(now=START)
        self.pruned = World(now=START, store=store)
        self.seen: dict[str, Run] = {}
        """Every run that was ever in the pruned world, by its id."""
        self.removed = 0
        self.refused = 0
        for id_, rule in zip(IDS, RULES, strict=False):
            self.create(id_, rule)

    def live(self) -> None:
        for _ in range(EVENTS):
            event = self.random.choice(
                [self.edit, self.become_once, self.pause, self.resume, self.plan, self.fill_back, self.replay]
            )
            event(self.random.choice(IDS))
            self.pass_time()
            self.prune()
        self.look()

    def both(self, ask: Callable[[World], object]) -> None:
        """Asks the pruned world, then the whole one, which has to answer in the same way."""
        said = self.said(self.pruned, ask)
        if "The history" in str(said):
            self.refused += 1
            return
        # Each may name another run as the one that is there.
        assert type(self.said(self.whole, ask)) is type(said)

    @staticmethod
    def said(world: World, ask: Callable[[World], object]) -> RotaError | None:
        try:
            ask(world)
        except RotaError as error:
            return error
        return None

    def pass_time(self) -> None:
        end = self.pruned.now + self.random.choice([DAY / 3, 3 * DAY, 10 * DAY, 45 * DAY])
        for world in (self.whole, self.pruned):
            world.pass_time(end)

    def prune(self) -> None:
        self.look()
        keep, after = self.random.choice([0, 5, 20, 30]) * DAY, None
        for _ in range(100):
            outcome = self.pruned.store.prune_history(before=self.pruned.now - keep, after=after, limit=5)
            self.removed += outcome.runs
            after = outcome.reached
            if after is None:
                return
        raise AssertionError("it comes to no end")

    def look(self) -> None:
        self.seen |= {run.run_id: run for run in every_run(self.pruned)}

    # --- what people do ---

    def create(self, id_: str, rule: dict[str, object]) -> None:
        self.both(
            lambda world: world.app.create_schedule(
                id=id_, job="echo", timezone=ZONES[0], recurrence=rule, overdue={"policy": "catch_up_all"}
            )
        )

    def edit(self, id_: str) -> None:
        random = self.random
        rule, zone = random.choice(RULES), random.choice(ZONES)
        boundary = random.choice(["keep_period", "keep_period", "now"])
        self.both(
            lambda world: world.app.edit(
                id_, recurrence=rule, timezone=zone, period=None, boundary=boundary, replaces_pending=True
            )
        )

    def become_once(self, id_: str) -> None:
        if self.random.random() < 0.5:
            return
        at = f"{(self.pruned.now + self.random.choice([2, 50]) * DAY):%Y-%m-%dT%H:%M}"
        boundary = self.random.choice(["keep_period", "now"])
        self.both(
            lambda world: world.app.edit(
                id_, recurrence={"at": at}, period=None, boundary=boundary, replaces_pending=True
            )
        )

    def pause(self, id_: str) -> None:
        self.both(lambda world: world.app.pause(id_))

    def resume(self, id_: str) -> None:
        apply_overdue = self.random.random() < 0.3
        self.both(lambda world: world.app.resume(id_, apply_overdue=apply_overdue))

    def plan(self, id_: str) -> None:
        until = self.pruned.now + self.random.choice([5, 40]) * DAY
        self.both(lambda world: world.app.plan(id_, until))

    def fill_back(self, id_: str) -> None:
        now = self.pruned.now
        from_ = now - self.random.choice([3, 20, 60, 200]) * DAY
        until = now - self.random.choice([0, 2]) * DAY
        record = self.pruned.store.get_schedule(ScheduleId(id_))
        if record is not None and record.schedule.history_from > START and self.random.random() < 0.7:
            from_ = record.schedule.history_from
        self.both(lambda world: world.app.backfill(id_, from_, until))

    def replay(self, id_: str) -> None:
        runs = [run for run in every_run(self.pruned) if run.schedule_id == id_]
        if runs:
            run_id = self.random.choice(runs).run_id
            self.both(lambda world: world.app.replay(run_id, reason="once more"))


def every_run(world: World) -> list[Run]:
    return world.store.list_runs(RunFilter(), before=None, limit=100_000)


def check(twins: Twins) -> None:
    assert {run.run_id: run.period_key for run in every_run(twins.whole)} == {
        run.run_id: run.period_key for run in twins.seen.values()
    }
    used = [
        (run.schedule_id, run.period_key)
        for run in twins.seen.values()
        if holds_its_key(run.state, run.reason)
    ]
    assert len(set(used)) == len(used)


def live(store: Store, seed: int) -> Twins:
    twins = Twins(store, seed)
    with closing(twins.whole):
        twins.live()
        check(twins)
    return twins


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whether_old_history_is_kept_changes_nothing_about_what_runs(
    open_store: OpenStore, seed: int
) -> None:
    twins = live(open_store("memory"), seed)
    assert twins.removed


@pytest.mark.parametrize(("kind", "seed"), [("sqlite", 100), ("postgresql", 101)])
def test_it_changes_nothing_in_a_database_either(open_store: OpenStore, kind: str, seed: int) -> None:
    twins = live(open_store(kind), seed)
    assert twins.removed


def test_a_month_that_was_used_is_not_filled_again_when_its_run_is_old() -> None:
    """A run on the 12th, history since the 26th, and then a rule that names the 28th."""
    world = World(now=START)
    with closing(world):
        id_ = str(
            world.app.create_schedule(job="echo", timezone="UTC", recurrence={"cron": "0 9 12 * *"})["id"]
        )
        world.pass_time(datetime(2026, 3, 20, tzinfo=UTC))
        world.store.prune_history(before=datetime(2026, 2, 26, tzinfo=UTC), after=None, limit=100)
        world.app.edit(id_, recurrence={"cron": "0 9 28 * *"})
        world.pass_time(timedelta(hours=1))
        world.app.backfill(id_, datetime(2026, 2, 26, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC))
        assert sorted(run.period_key for run in every_run(world)) == ["month:2026-02", "month:2026-03"]
        assert {run.scheduled_at.day for run in every_run(world)} == {12}


def test_what_ran_does_not_become_a_schedule_that_runs_once_more_when_its_runs_are_old() -> None:
    world = World(now=START)
    with closing(world):
        id_ = str(
            world.app.create_schedule(job="echo", timezone="UTC", recurrence={"cron": "0 9 12 * *"})["id"]
        )
        world.pass_time(datetime(2026, 3, 20, tzinfo=UTC))
        world.app.edit(id_, recurrence={"cron": "0 9 12 1 *"})
        world.pass_time(250 * DAY)
        assert world.store.prune_history(before=world.now, after=None, limit=100).runs == 2
        with pytest.raises(Conflict, match="A one-time schedule runs once"):
            world.app.edit(id_, recurrence={"at": "2027-06-01T09:00"})
