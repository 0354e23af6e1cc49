"""A chain of edits, plans, pauses and crashes, played on one schedule by two dispatchers."""

from contextlib import suppress
from datetime import datetime, timedelta

from hypothesis import strategies as st

from rota.dispatch.planning import Plans
from rota.domain.admission import Admission
from rota.domain.due import DueSchedule
from rota.domain.errors import Conflict, InvalidRequest
from rota.domain.instants import format_instant
from rota.store.port import Fence, Store
from tests.edits.lives import ID, Life

START = datetime.fromisoformat("2026-03-20T00:00:00+00:00")
"""Before the weeks in which the clocks change on both hemispheres."""

ZONES = (
    "America/New_York",
    "Europe/London",
    "Asia/Tokyo",
    "Pacific/Auckland",
    "America/Los_Angeles",
    "Etc/GMT+12",
    "Pacific/Kiritimati",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
)
RULES = {"day": "0 9 * * *", "week": "0 9 * * 3", "month": "0 9 5 * *"}
HOURS = {"day": 40, "week": 24 * 9, "month": 24 * 35}
"""How far a step reaches at most: over more than one period."""

Step = tuple[str, int]
"""What is done, and a number by which it is done."""


def steps(*kinds: str) -> st.SearchStrategy[list[Step]]:
    return st.lists(st.tuples(st.sampled_from(kinds), st.integers(0, 200)), min_size=3, max_size=12)


class Chain:
    """Plays steps; beside the dispatcher another one decides by what it read, and may commit it much later."""

    def __init__(self, store: Store, period: str, zone: int = 0) -> None:
        self.store = store
        self.hours = HOURS[period]
        self.life = Life(
            store,
            start=START,
            timezone=ZONES[zone % len(ZONES)],
            recurrence={"cron": RULES[period]},
            overdue={"policy": "catch_up_all"},
        )
        self.world = self.life.world
        self.stale: list[tuple[Fence, Admission]] = []

    def played(self, chain: list[Step]) -> Life:
        for kind, number in chain:
            getattr(self, kind)(number)
        if self.world.app.get_schedule(ID)["status"] == "paused":
            self.resume(0)
        self.world.pass_time(timedelta(days=70))
        return self.life

    def passing(self, number: int) -> None:
        self.world.pass_time(timedelta(hours=number % self.hours, minutes=17 * number % 60))

    def zone(self, number: int) -> None:
        self.life.edit(timezone=ZONES[number % len(ZONES)], replaces_pending=True, at_once=number % 2 == 0)

    def hour(self, number: int) -> None:
        self.life.edit(recurrence={"cron": f"{number % 60} {number % 24} * * *"}, replaces_pending=True)

    def rule(self, number: int) -> None:
        """Another kind of period, or none."""
        expressions = [
            "0 9 * * *",
            "30 * * * *",
            "0 9 * * 1",
            "15 4,16 * * *",
            "0 9 1 * *",
            "*/20 8-10 * * *",
        ]
        self.life.edit(recurrence={"cron": expressions[number % len(expressions)]}, replaces_pending=True)

    def later(self, number: int) -> None:
        at = self.world.now.replace(microsecond=0) + timedelta(hours=1 + number % self.hours)
        with suppress(InvalidRequest):  # the version before takes over later than that
            self.life.edit(
                timezone=ZONES[number % len(ZONES)], effective_from=format_instant(at), replaces_pending=True
            )

    def anew(self, number: int) -> None:
        self.life.edit(timezone=ZONES[number % len(ZONES)], boundary="now", replaces_pending=True)

    def plan(self, number: int) -> None:
        until = self.world.now + timedelta(hours=1 + number % (3 * self.hours))
        with suppress(Conflict):  # a version waits to take over
            self.life.plan(format_instant(until.replace(microsecond=0)))

    def pause(self, _: int) -> None:
        self.world.app.pause(ID)

    def resume(self, _: int) -> None:
        self.world.app.resume(ID, apply_overdue=True)

    def down(self, number: int) -> None:
        """Nobody admits for a while: instants are owed, and an edit after it is pending."""
        self.world.clock.set(self.world.now + timedelta(hours=number % self.hours))

    def crash(self, _: int) -> None:
        """The dispatcher is gone, and another one waits for its leases to end."""
        self.world.dispatcher = self.world.app.build_dispatcher()
        self.world.clock.set(self.world.now + timedelta(minutes=11))

    def decide(self, _: int) -> None:
        """Another process decides by what it reads now, with a clock that is ahead, and falls asleep."""
        later = self.world.now + timedelta(hours=30)
        plans = Plans(self.store, self.world.app.context.cadences, now=later)
        for state in self.store.list_partitions():
            for row in self.store.read_due(state.partition, now=later, limit=10):
                plan = plans.plan(row)
                if isinstance(row, DueSchedule) and isinstance(plan, Admission):
                    self.stale.append((Fence(partition=state.partition, epoch=state.epoch), plan))

    def commit(self, _: int) -> None:
        """It wakes up and commits what it decided."""
        for fence, admission in self.stale:
            self.store.commit_admissions(fence, [admission], now=self.world.now)
        self.stale.clear()
