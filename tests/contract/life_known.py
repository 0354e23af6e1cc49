"""What the callers of a random life know, often stale: who they act as, what they saw, where the clock stands."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from random import Random
from typing import TypeVar

from rota.domain.identity import RunId, digest_of
from rota.domain.schedule import Cursor, Schedule
from rota.store.port import Fence, Intent, ScheduleFilter, ScheduleRecord, TakenDelivery, Wanted, ZoneRules
from tests.contract.builders import HOUR, MILLISECOND, MINUTE, NINE, SECOND, cursor, new_schedule
from tests.contract.twins import Twins

IDS = [f"s{number}" for number in range(8)]
JOBS = ["mail", "report", "unknown"]
KEYS = [f"key-{number}" for number in range(3)]
PARTITIONS = 3
REMEMBERED = 20
"""How much of each kind a caller remembers; the older, the staler."""

UTC_RULES, ROME_RULES = (
    ZoneRules(timezone=zone, fingerprint=digest_of(zone)) for zone in ("UTC", "Europe/Rome")
)
NEWER_RULES = replace(UTC_RULES, fingerprint="newer")

Thing = TypeVar("Thing")


class Known:
    """The same seed lives the same life. Time moves forward, an instant is a cursor once."""

    def __init__(self, twins: Twins, random: Random) -> None:
        self.both = twins.both
        self.random = random
        self.now = NINE
        self.never_yet = NINE + 1000 * HOUR
        self.fences = [("node-a", Fence(partition=0, epoch=7))]
        self.deliveries = [
            Intent(run_id=RunId("unknown"), attempt=1, job="mail", available_at=NINE),
        ]
        self.attempts = [(RunId("unknown"), 1)]
        self.taken: list[TakenDelivery] = []

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def soon(self) -> datetime:
        """A whole second not far from now."""
        offsets = [-HOUR, -MINUTE, 0 * SECOND, SECOND, 20 * SECOND, 2 * MINUTE, HOUR]
        return self.now.replace(microsecond=0) + self.random.choice(offsets)

    def move_on(self) -> None:
        self.now += self.random.choice([MILLISECOND, SECOND, 20 * SECOND, 2 * MINUTE])

    def known_schedule(self) -> Schedule:
        """One that exists as it is; now and then one that never was."""
        records = self.both.list_schedules(ScheduleFilter(), after=None, limit=100)
        never = new_schedule("unknown").schedule
        return never if self.chance(0.03) else self.random.choice(records).schedule

    def record_of(self, schedule: Schedule) -> ScheduleRecord | None:
        return self.both.get_schedule(schedule.schedule_id)

    def perhaps_stale(self, schedule: Schedule) -> Schedule:
        stale = [
            replace(schedule, revision=schedule.revision - 1),
            replace(schedule, cursor=replace(schedule.cursor, due_at=self.now)),
        ]
        return self.random.choice([*[schedule] * 10, *stale])

    def moved_on(self, schedule: Schedule) -> Cursor:
        """A cursor that the schedule has never had, the end of its version's window, or none where nothing is left.

        Now and then it is due before its instant, as where runs are parked, or the latest version's.
        """
        version = schedule.latest_version if self.chance(0.3) else schedule.cursor.version
        if schedule.cursor.scheduled_at is not None and self.chance(0.05):
            return cursor(None, version=version)
        owner = self.both.get_version(schedule.schedule_id, version)
        end = None if owner is None else owner.effective_until
        moved = self.cursor_ahead(schedule, end if self.chance(0.3) else None, version=version)
        return replace(moved, due_at=self.now) if self.chance(0.15) else moved

    def cursor_ahead(self, schedule: Schedule, wanted: datetime | None, *, version: int) -> Cursor:
        """The wanted instant where it lies ahead of the schedule's cursor, else another that does."""
        instant = schedule.cursor.scheduled_at
        if instant is None:
            self.never_yet += HOUR
            return cursor(self.never_yet, version=version)
        if wanted is None or wanted <= instant:
            wanted = instant + self.random.choice([2, 5, 30]) * MINUTE
        return cursor(wanted, version=version)

    def fence(self, partition: int | None = None) -> Fence:
        """Of that partition or any: most often its present one."""
        states = self.both.list_partitions()
        state = self.random.choice(states) if partition is None else states[partition]
        current = Fence(partition=state.partition, epoch=state.epoch)
        return self.random.choice([*[current] * 9, self.remembered(self.fences)[1]])

    def of_a_clock_behind(self) -> datetime:
        return self.now - self.random.choice([MINUTE, 6 * MINUTE, 2 * HOUR])

    def wanted(self) -> list[Wanted]:
        """Some of the jobs, now and then no more than a few of each."""
        jobs = self.random.choice([JOBS, JOBS[:1], JOBS[1:], []])
        return [Wanted(job=job, limit=self.random.choice([None, None, 1, 2])) for job in jobs]

    def remembered(self, things: Sequence[Thing]) -> Thing:
        return self.random.choice(things[-REMEMBERED:])
