"""A random life of two stores: what callers do, in any order, with knowledge that is often stale."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from random import Random

from rota.domain.admission import Admission, Skip, SkipReason
from rota.domain.beat import Beat, BeatKey
from rota.domain.cadence import Occurrence
from rota.domain.due import DueSchedule
from rota.domain.json_text import encode_json
from rota.domain.overlap import take_place
from rota.domain.run import AttemptOutcome, Progress, Run, RunEvent, RunState
from rota.domain.schedule import Schedule, ScheduleStatus
from rota.domain.settlement import AttemptEnd, Settlement
from rota.store.port import Heartbeat
from tests.contract.builders import (
    DAY,
    HOUR,
    MINUTE,
    NINE,
    SECOND,
    admission,
    audit_event,
    loss,
    planned_run_at,
    run_at,
    settlement,
    skip_at,
)
from tests.contract.life_known import IDS, JOBS, NEWER_RULES, PARTITIONS, ROME_RULES, UTC_RULES
from tests.contract.life_schedules import LifeOfSchedules
from tests.contract.twins import Twins

OWNERS = ["node-a", "node-b"]
LEASE = 5 * MINUTE
ENDS = [
    (AttemptOutcome.SUCCEEDED, RunEvent.SUCCEEDED),
    (AttemptOutcome.FAILED, RunEvent.FAILED_FOR_GOOD),
    (AttemptOutcome.TIMED_OUT, RunEvent.RETRY_SCHEDULED),
    (AttemptOutcome.MOOT, RunEvent.FOUND_MOOT),
    (AttemptOutcome.CANCELLED, RunEvent.CANCELLED),
]


class Life(LifeOfSchedules):
    """A life of everything that the port offers."""

    def __init__(self, twins: Twins, random: Random) -> None:
        super().__init__(twins, random)
        self.both.ensure_partitions(PARTITIONS)
        for _ in IDS:
            self.create()

    def step(self) -> None:
        self.move_on()
        self.random.choice(self._actions())()

    def _actions(self) -> Sequence[Callable[[], None]]:
        often = [
            self.admit,
            self.beat,
            self.open,
            self.settle,
            self.hold,
            self.change,
            self.plan,
            self.fall_due,
        ]
        sometimes = [self.create, self.heartbeat, self.cancel, self.recover, self.prune, self.claim]
        return [*often, *often, *sometimes]

    def hold(self) -> None:
        owner, limit = self.random.choice(OWNERS), self.random.randrange(1, PARTITIONS + 1)
        known_as, fence = self.remembered(self.fences)
        match self.random.choice(["acquire", "acquire", "renew", "release", "checkpoint"]):
            case "acquire":
                now = self.random.choice([self.now, self.now, self.of_a_clock_behind()])
                held = [known for held_by, known in self.fences if held_by == owner]
                if len(held) % 4 == 3:
                    del held[-1]  # It has not heard of the last.
                taken = self.both.commit_acquisitions(owner, held=held, now=now, ttl=LEASE, limit=limit)
                self.fences += [(owner, fence) for fence in taken]
                self.both.commit_presence(owner, now=now, ttl=LEASE)
            case "renew":
                known = [fence, *(latest for held_by, latest in self.fences[-3:] if held_by == owner)]
                self.both.commit_renewals(owner, known, now=self.now, ttl=LEASE)
            case "release":
                self.both.commit_releases(known_as, [fence], now=self.now)
                self.both.commit_absence(known_as)
            case _:
                reached = [(self.fence(), self.now - self.random.choice([0, 1]) * HOUR)]
                self.both.commit_checkpoints(reached)

    def admit(self) -> None:
        fence = self.fence()
        excluding = self.random.choice([[], [], [UTC_RULES], [ROME_RULES, NEWER_RULES]])
        due = self.both.read_due(fence.partition, now=self.now + HOUR, limit=3, excluding=excluding)
        found = [entry for entry in due if isinstance(entry, DueSchedule)]
        elements = [self._placed(self._admission(entry.schedule, entry.parked), entry) for entry in found]
        elements += [self._admission(self.known_schedule(), ())]
        self.random.shuffle(elements)
        self.both.commit_admissions(fence, elements, now=self.now)

    def beat(self) -> None:
        """By whatever beats are read: what follows each is never due, and its period is sometimes another's."""
        fences = [self.fence() for _ in range(self.random.randrange(1, 3))]
        after, each = self.now - self.random.choice([1, 30, 900]) * HOUR, self.random.choice([1, 5])
        keys = self.both.read_beats([fence.partition for fence in fences], after=after, now=self.now, each=3)
        beats = [self._beat(key) for key in keys if self.random.random() < 0.9]
        self.both.commit_beats(fences, beats, after=after, now=self.now, each=each)

    def _beat(self, key: BeatKey) -> Beat:
        named = key.scheduled_at.replace(tzinfo=None)
        occurrence = Occurrence(
            scheduled_at=key.scheduled_at,
            named_local=self.random.choice([named, named, named - HOUR, NINE.replace(tzinfo=None)]),
            local=named,
            offset=self.random.choice([-1, 0, 1]) * HOUR,
            second_pass=self.random.random() < 0.1,
            note=None,
        )
        return Beat(key=key, occurrence=occurrence, following=self.now + self.random.choice([1, 9]) * HOUR)

    def open(self) -> None:
        found = self.both.read_intents(JOBS, now=self.now, limit=3)
        self.deliveries += found
        handed = [*found[: self.random.randrange(4)], self.remembered(self.deliveries)]
        opened = self.both.commit_openings("worker-1", handed, now=self.now)
        self.attempts += [(attempt.run.run_id, attempt.run.attempt) for attempt in opened if attempt]

    def claim(self) -> None:
        opened = self.both.commit_claims(
            "worker-2",
            self.wanted(),
            now=self.now,
            limit=self.random.randrange(4),
            backlog_first=self.chance(0.3),
        )
        self.attempts += [(attempt.run.run_id, attempt.run.attempt) for attempt in opened]

    def heartbeat(self) -> None:
        beats = [
            Heartbeat(
                run_id=run_id,
                attempt=attempt,
                lease_expires_at=self.now + MINUTE,
                progress=self.random.choice([None, Progress(fraction=0.25, message="a quarter")]),
            )
            for run_id, attempt in [*self.attempts[-2:], self.remembered(self.attempts)]
        ]
        self.both.commit_heartbeats(beats, now=self.now)

    def settle(self) -> None:
        ends = [self._settlement() for _ in range(2)]
        fences = self.random.choice([[], [], [self.fence(), self.fence()]])
        self.both.commit_settlements(ends, fences=fences)

    def recover(self) -> None:
        fence = self.fence()
        now = self.random.choice([self.now, self.now, self.of_a_clock_behind()])
        lost = self.both.read_lost([fence.partition], now=now, limit=2)
        ends = [
            loss(entry.attempt.run_id, at=now, retry_at=self.now + SECOND, attempt=entry.attempt.number)
            for entry in lost
        ]
        self.both.commit_settlements(ends, fences=[fence])

    def cancel(self) -> None:
        waiting = [delivery.run_id for delivery in self.deliveries[-2:]]
        running = [run_id for run_id, _ in self.attempts[-2:]]
        run_id = self.random.choice([*waiting, *running, self.remembered(self.attempts)[0]])
        event = audit_event(run_id.partition(".")[0], at=self.now)
        self.both.commit_cancel(run_id, event=event, now=self.now)

    def prune(self) -> None:
        self.both.prune_idempotency(now=self.now, limit=1)
        before = self.now + self.random.choice([0, 40]) * DAY
        self.both.prune_history(before=before, after=None, limit=self.random.randrange(1, 5))

    def _admission(self, schedule: Schedule, parked: Sequence[Run]) -> Admission:
        random, instant, moved = self.random, schedule.cursor.scheduled_at, self.moved_on(schedule)
        runs: list[Run] = []
        skips: list[Skip] = []
        if instant is not None:
            until = moved.scheduled_at or instant + 2 * MINUTE
            hourly = random.choice([None, f"hour:{instant.hour}"])
            if self.chance(0.7):
                version = random.choice([*[schedule.cursor.version] * 9, 9])
                at = random.choice([*[instant] * 12, NINE - 2 * HOUR])
                turn = random.choice([0, 0, 1, 2])
                runs = [replace(run_at(schedule, at, period_key=hourly), version=version, turn=turn)]
            if not runs or self.chance(0.3):
                skips = [self._skip(schedule, instant + MINUTE if runs else instant, until)]
        if moved.version != schedule.cursor.version and self.chance(0.8):
            carried = planned_run_at(schedule, self.soon(), period_key=random.choice([None, "day:carried"]))
            runs = [replace(carried, carried_by=random.choice([*[moved.version] * 5, 1]))]
        is_over = moved.due_at is None
        planned = replace(
            admission(self.perhaps_stale(schedule), runs=runs, skips=skips),
            cursor=moved,
            run_changes=tuple(self._decided(run) for run in parked[: random.randrange(4)]),
            careful_until=random.choice([None, self.soon()]),
            turn=random.choice([0, 3]),
        )
        if is_over and schedule.status is not ScheduleStatus.ENDED:
            planned = replace(planned, status=ScheduleStatus.ENDED, status_reason="exhausted")
            planned = replace(planned, window_closed_at=self.soon())
        return planned

    def _placed(self, admission: Admission, entry: DueSchedule) -> Admission:
        """The same, with the places that its runs take."""
        overlap, places = entry.version.definition.overlap, entry.places
        if overlap == "allow":
            return admission
        runs: list[Run] = []
        for run in admission.runs:
            place = take_place(overlap, places, run.run_id)
            if run.state is RunState.PLANNED:
                runs.append(run)
            elif place.state is RunState.WAITING:
                runs.append(replace(run, state=place.state, available_at=None))
            elif place.state is RunState.QUEUED:
                runs.append(run)
            places = places if run.state is RunState.PLANNED else place.places
        expected = self.random.choice([*[entry.places] * 8, ()])
        # Now and then a run that waits is left behind nobody.
        places = self.random.choice([*[places] * 4, places[1:]])
        return replace(admission, runs=tuple(runs), expected_places=expected, places=places)

    def _skip(self, schedule: Schedule, from_: datetime, until: datetime) -> Skip:
        reason: SkipReason = self.random.choice(["expired", "paused"])
        note = self.random.choice([None, "a note"])
        return skip_at(schedule, from_, until, count=2, reason=reason, note=note)

    def _settlement(self) -> Settlement:
        run_id, attempt = self.remembered(self.attempts)
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
            only_if_expired=self.chance(0.2),
        )
