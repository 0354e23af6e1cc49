"""A random life of two stores: what callers do, in any order, with knowledge that is often stale."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from random import Random
from typing import TypeVar

from rota.domain.admission import Admission, DueSchedule
from rota.domain.identity import RunId, digest_of
from rota.domain.json_text import encode_json
from rota.domain.recurrence import Cron
from rota.domain.run import AttemptOutcome, Progress, RunEvent
from rota.domain.schedule import Cursor, Schedule, ScheduleStatus, Suspension
from rota.domain.settlement import AttemptEnd, Settlement
from rota.store.port import Delivery, Fence, Heartbeat, ZoneRules
from tests.contract.builders import (
    HOUR,
    MILLISECOND,
    MINUTE,
    NINE,
    SECOND,
    admission,
    audit_event,
    cursor,
    definition,
    idempotency_record,
    labels,
    loss,
    new_schedule,
    run_at,
    settlement,
    skip_at,
    status_change,
)
from tests.contract.twins import Twins

IDS = [f"s{number}" for number in range(8)]
JOBS = ["mail", "report", "unknown"]
KEYS = [f"key-{number}" for number in range(3)]
OWNERS = ["node-a", "node-b"]
PARTITIONS = 3
LEASE = 5 * MINUTE
REMEMBERED = 20
"""How much of each kind a caller remembers; the older, the staler."""

UTC_RULES, OTHER_RULES = (
    ZoneRules(timezone=zone, fingerprint=digest_of(zone)) for zone in ("UTC", "Europe/Rome")
)
ENDS = [
    (AttemptOutcome.SUCCEEDED, RunEvent.SUCCEEDED),
    (AttemptOutcome.FAILED, RunEvent.FAILED_FOR_GOOD),
    (AttemptOutcome.TIMED_OUT, RunEvent.RETRY_SCHEDULED),
    (AttemptOutcome.MOOT, RunEvent.FOUND_MOOT),
    (AttemptOutcome.CANCELLED, RunEvent.CANCELLED),
]

Thing = TypeVar("Thing")


class Life:
    """The same seed lives the same life. Time moves forward, an instant is a cursor once."""

    def __init__(self, twins: Twins, random: Random) -> None:
        self.both = twins.both
        self.random = random
        self.now = NINE
        self.never_yet = NINE + 1000 * HOUR
        self.fences = [("node-a", Fence(partition=0, epoch=7))]
        self.deliveries = [
            Delivery(run_id=RunId("unknown"), attempt=1, job="mail", available_at=NINE),
        ]
        self.attempts = [(RunId("unknown"), 1)]
        self.both.ensure_partitions(PARTITIONS)
        for _ in IDS:
            self.create()

    def step(self) -> None:
        self.now += self.random.choice([MILLISECOND, SECOND, 20 * SECOND, 2 * MINUTE])
        self.random.choice(self._actions())()

    def _actions(self) -> Sequence[Callable[[], None]]:
        often = [self.admit, self.open, self.settle, self.hold]
        sometimes = [self.create, self.change, self.heartbeat, self.cancel, self.recover, self.prune]
        return [*often, *often, *sometimes]

    def create(self) -> None:
        random = self.random
        record = idempotency_record(
            random.choice(KEYS), expires_at=self.now + random.randrange(1, 60) * MINUTE
        )
        new = new_schedule(
            random.choice(IDS),
            due=random.choice([None, NINE - MINUTE, NINE, self.now.replace(microsecond=0)]),
            partition=random.randrange(PARTITIONS),
            job=random.choice(JOBS),
            labels=labels(customer=random.choice(["acme", "zeta"])),
            of=definition(
                Cron(expression=random.choice(["0 9 * * *", "5 * * * *"])),
                timezone=random.choice([UTC_RULES.timezone, OTHER_RULES.timezone]),
            ),
            history_from=random.choice([NINE, NINE - HOUR]),
            idempotency=random.choice([None, record, record]),
        )
        self.both.commit_creation(new, now=self.now)

    def change(self) -> None:
        random, schedule = self.random, self._schedule()
        record = self.both.get_schedule(schedule.schedule_id)
        lasting = [item for item in record.suspensions if item.until is None] if record else []
        opened = Suspension(from_=self.now, until=None, reason=random.choice(["paused", "error"]))
        status = random.choice([ScheduleStatus.ACTIVE, *ScheduleStatus])
        change = replace(
            status_change(self._perhaps_stale(schedule), status, at=self.now),
            cursor=random.choice([schedule.cursor, self._moved_on(schedule)]),
            status_reason=random.choice([None, "why"]),
            suspension_closed=replace(lasting[0], until=self.now, apply_overdue=True) if lasting else None,
            suspension_opened=random.choice([None, opened]),
            window_closed_at=random.choice([None, self.now + HOUR]),
            careful_until=random.choice([None, self.now, self.now - HOUR]),
        )
        fence = random.choice([None, None, self._fence()])
        self.both.commit_status_change(change, fence=fence)

    def hold(self) -> None:
        owner, limit = self.random.choice(OWNERS), self.random.randrange(1, PARTITIONS + 1)
        known_as, fence = self._remembered(self.fences)
        match self.random.choice(["acquire", "acquire", "renew", "release", "checkpoint"]):
            case "acquire":
                now = self.random.choice([self.now, self.now, self._of_a_clock_behind()])
                taken = self.both.commit_acquisitions(owner, now=now, ttl=LEASE, limit=limit)
                self.fences += [(owner, fence) for fence in taken]
            case "renew":
                known = [fence, *(latest for held_by, latest in self.fences[-3:] if held_by == owner)]
                self.both.commit_renewals(owner, known, now=self.now, ttl=LEASE)
            case "release":
                self.both.commit_releases(known_as, [fence], now=self.now)
            case _:
                reached = [(self._fence(), self.now - self.random.choice([0, 1]) * HOUR)]
                self.both.commit_checkpoints(reached)

    def admit(self) -> None:
        fence = self._fence()
        excluding = self.random.choice([[], [], [UTC_RULES], [OTHER_RULES, replace(UTC_RULES, timezone="Z")]])
        due = self.both.read_due(fence.partition, now=self.now + HOUR, limit=3, excluding=excluding)
        schedules = [entry.schedule for entry in due if isinstance(entry, DueSchedule)]
        elements = [self._admission(schedule) for schedule in [*schedules, self._schedule()]]
        self.random.shuffle(elements)
        self.both.commit_admissions(fence, elements, now=self.now)

    def open(self) -> None:
        found = self.both.read_deliveries(JOBS, now=self.now, limit=3)
        self.deliveries += found
        handed = [*found[: self.random.randrange(4)], self._remembered(self.deliveries)]
        opened = self.both.commit_openings("worker-1", handed, now=self.now)
        self.attempts += [(attempt.run.run_id, attempt.run.attempt) for attempt in opened if attempt]

    def heartbeat(self) -> None:
        beats = [
            Heartbeat(
                run_id=run_id,
                attempt=attempt,
                lease_expires_at=self.now + MINUTE,
                progress=self.random.choice([None, Progress(fraction=0.25, message="a quarter")]),
            )
            for run_id, attempt in [*self.attempts[-2:], self._remembered(self.attempts)]
        ]
        self.both.commit_heartbeats(beats, now=self.now)

    def settle(self) -> None:
        ends = [self._settlement() for _ in range(2)]
        fences = self.random.choice([[], [], [self._fence(), self._fence()]])
        self.both.commit_settlements(ends, fences=fences)

    def recover(self) -> None:
        fence = self._fence()
        now = self.random.choice([self.now, self.now, self._of_a_clock_behind()])
        lost = self.both.read_lost([fence.partition], now=now, limit=2)
        ends = [
            loss(entry.attempt.run_id, at=now, retry_at=self.now + SECOND, attempt=entry.attempt.number)
            for entry in lost
        ]
        self.both.commit_settlements(ends, fences=[fence])

    def cancel(self) -> None:
        waiting = [delivery.run_id for delivery in self.deliveries[-2:]]
        running = [run_id for run_id, _ in self.attempts[-2:]]
        run_id = self.random.choice([*waiting, *running, self._remembered(self.attempts)[0]])
        event = audit_event(run_id.partition(".")[0], at=self.now)
        self.both.commit_cancel(run_id, event=event, now=self.now)

    def prune(self) -> None:
        self.both.prune_idempotency(now=self.now, limit=1)

    def _admission(self, schedule: Schedule) -> Admission:
        random, instant, moved = self.random, schedule.cursor.scheduled_at, self._moved_on(schedule)
        runs, skips = [], []
        if instant is not None:
            until = moved.scheduled_at or instant + 2 * MINUTE
            hourly = random.choice([None, f"hour:{instant.hour}"])
            if random.random() < 0.7:
                version = random.choice([*[schedule.cursor.version] * 9, 9])
                at = random.choice([*[instant] * 12, NINE - 2 * HOUR])
                runs = [replace(run_at(schedule, at, period_key=hourly), version=version)]
            if not runs or random.random() < 0.3:
                from_ = instant + MINUTE if runs else instant
                note = random.choice([None, "a note"])
                skips = [
                    skip_at(
                        schedule,
                        from_,
                        until,
                        count=2,
                        reason=random.choice(["expired", "paused"]),
                        note=note,
                    )
                ]
        planned = replace(admission(self._perhaps_stale(schedule), runs=runs, skips=skips), cursor=moved)
        if moved.due_at is None:
            planned = replace(planned, status=ScheduleStatus.ENDED, status_reason="exhausted")
        return replace(planned, status=random.choice([planned.status, ScheduleStatus.ACTIVE]))

    def _settlement(self) -> Settlement:
        run_id, attempt = self._remembered(self.attempts)
        outcome, event = self.random.choice(ENDS)
        end = AttemptEnd(
            outcome=outcome,
            error=None if outcome is AttemptOutcome.SUCCEEDED else f"error {self.random.randrange(9)}",
            result=self.random.choice([None, encode_json({"attempt": attempt})]),
        )
        retry_at = self.now + self.random.choice([0, 1]) * MINUTE
        return replace(
            settlement(run_id, end, event, at=self.now, attempt=attempt),
            retry_at=retry_at if event is RunEvent.RETRY_SCHEDULED else None,
            only_if_expired=self.random.random() < 0.2,
        )

    def _schedule(self) -> Schedule:
        """One that exists as it is, or one that may not exist."""
        id_ = new_schedule(self.random.choice([*IDS, "unknown"])).schedule
        record = self.both.get_schedule(id_.schedule_id)
        return id_ if record is None else record.schedule

    def _perhaps_stale(self, schedule: Schedule) -> Schedule:
        stale = [
            replace(schedule, status=self.random.choice(list(ScheduleStatus))),
            replace(schedule, cursor=replace(schedule.cursor, due_at=self.now)),
        ]
        return self.random.choice([*[schedule] * 10, *stale])

    def _moved_on(self, schedule: Schedule) -> Cursor:
        """A cursor that the schedule has never had, or the one of a schedule that names no more instants."""
        if self.random.random() < 0.05:
            return cursor(None)
        if schedule.cursor.scheduled_at is None:
            self.never_yet += HOUR
            return cursor(self.never_yet)
        return cursor(schedule.cursor.scheduled_at + self.random.choice([2, 5, 30]) * MINUTE)

    def _fence(self) -> Fence:
        """Most often the present one of a partition."""
        state = self.random.choice(self.both.list_partitions())
        current = Fence(partition=state.partition, epoch=state.epoch)
        return self.random.choice([*[current] * 9, self._remembered(self.fences)[1]])

    def _of_a_clock_behind(self) -> datetime:
        return self.now - self.random.choice([MINUTE, 6 * MINUTE, 2 * HOUR])

    def _remembered(self, things: Sequence[Thing]) -> Thing:
        return self.random.choice(things[-REMEMBERED:])
