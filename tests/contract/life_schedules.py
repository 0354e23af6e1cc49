"""The part of a random life that is about schedules: they are made, changed in every way, and fall due."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from rota.domain.recurrence import Cron
from rota.domain.run import Run, RunChange, RunState
from rota.domain.schedule import Overlap, Schedule, ScheduleStatus, Suspension
from rota.store.port import NewVersion, PlannedDue, ScheduleChange
from tests.contract.builders import (
    HOUR,
    MINUTE,
    NINE,
    audit_event,
    change_of,
    change_to,
    definition,
    edit,
    idempotency_record,
    labels,
    new_schedule,
    new_version,
    planned_run_at,
    run_at,
    status_change,
)
from tests.contract.life_known import IDS, JOBS, KEYS, NEWER_RULES, PARTITIONS, ROME_RULES, UTC_RULES, Known

ENDED = ScheduleStatus.ENDED
OVERLAPS: list[Overlap] = ["allow", "allow", "allow", "skip", "queue"]
HELD, QUEUED, SKIPPED, CANCELLED = (
    RunState.HELD,
    RunState.QUEUED,
    RunState.SKIPPED,
    RunState.CANCELLED,
)


class LifeOfSchedules(Known):
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
                timezone=random.choice([UTC_RULES.timezone, ROME_RULES.timezone]),
                overlap=random.choice(OVERLAPS),
            ),
            history_from=random.choice([NINE, NINE - HOUR]),
            idempotency=random.choice([None, record, record]),
        )
        self.both.commit_creation(new, now=self.now)

    def change(self) -> None:
        """A change of one or two kinds at once, under a revision and cursor that are often the present ones."""
        schedule = self.known_schedule()
        kinds: list[Callable[[ScheduleChange, Schedule], ScheduleChange]] = [
            self._with_status,
            self._with_version,
            self._restamped,
            self._with_runs,
            self._with_run_changes,
            self._with_details,
        ]
        change = change_of(self.perhaps_stale(schedule), at=self.now)
        for kind in self.random.sample(kinds, self.random.choice([1, 1, 2, 3])):
            change = kind(change, schedule)
        fence = self.random.choice([None, None, self.fence(schedule.partition)])
        self.both.commit_change(change, fence=fence)

    def plan(self) -> None:
        """Runs, and what becomes of others; sometimes on request, beside whatever else is decided."""
        schedule = self.known_schedule()
        change = change_of(self.perhaps_stale(schedule), at=self.now)
        if self.chance(0.3):
            change = replace(change, expected_cursor=None)
        kind = self.random.choice([self._with_runs, self._with_runs, self._with_run_changes])
        self.both.commit_change(kind(change, schedule))

    def fall_due(self) -> None:
        """What is planned falls due; what is left to judgement is decided by whoever read it."""
        fence, limit = self.fence(), self.random.randrange(1, 4)
        in_time = [due.earliest for due in self.both.read_due_times([fence.partition]).values()]
        now = min(self.now, self.random.choice([self.now, *in_time, *in_time]))
        left = self.both.read_planned(fence.partition, now=now, limit=limit)
        self.both.commit_planned(fence, now=now, limit=limit)
        self.both.commit_freed([fence, self.fence()], now=self.now, limit=limit)
        for entry in left:
            if isinstance(entry, PlannedDue):
                schedule = self.perhaps_stale(entry.due.schedule)
                change = replace(change_of(schedule, at=self.now), run_changes=(self._decided(entry.run),))
                self.both.commit_change(change, fence=fence)

    def _with_status(self, change: ScheduleChange, schedule: Schedule) -> ScheduleChange:
        random, record = self.random, self.record_of(schedule)
        lasting = [item for item in record.suspensions if item.until is None] if record else []
        opened = Suspension(from_=self.now, until=None, reason=random.choice(["paused", "error"]))
        status = random.choice([ScheduleStatus.ACTIVE, *ScheduleStatus])
        closed = (schedule.latest_version, self.soon())
        if status is ENDED:
            change = replace(change, windows=random.choice([(), (closed,)]), versions=(), cursor=None)
        elif schedule.status is ENDED:
            # No caller does this, but a life would soon be over. The latest version of what lives has an open window.
            change = self._with_version(change, schedule)
        return replace(
            change,
            status=status,
            status_reason=random.choice([None, "why"]),
            event=status_change(schedule, status, at=self.now).event,
            cursor=random.choice([change.cursor, self.moved_on(schedule)]),
            suspension_closed=replace(lasting[0], until=self.now, apply_overdue=True) if lasting else None,
            suspension_opened=random.choice([None, opened]),
        )

    def _with_version(self, change: ScheduleChange, schedule: Schedule) -> ScheduleChange:
        number = schedule.latest_version + 1
        new = self._version(schedule, number)
        edited = edit(schedule, new, at=self.now)
        moved = self.cursor_ahead(schedule, new.version.effective_from, version=number)
        return replace(
            change,
            versions=(new, self._version(schedule, number + 1)) if self.chance(0.1) else (new,),
            windows=edited.windows,
            event=edited.event,
            cursor=self.random.choice([None, moved]),
            careful_until=self.now + HOUR,
        )

    def _restamped(self, change: ScheduleChange, schedule: Schedule) -> ScheduleChange:
        version = self.both.get_version(schedule.schedule_id, schedule.cursor.version)
        if version is None:
            return change
        fingerprint = self.random.choice(["newer", "newest"])
        new = new_version(schedule.schedule_id, version.definition, fingerprint=fingerprint)
        as_it_becomes = replace(version, fingerprint=fingerprint, cadence_id=new.cadence.cadence_id)
        return replace(change, restamped=(replace(new, version=as_it_becomes),))

    def _version(self, schedule: Schedule, number: int) -> NewVersion:
        random = self.random
        new = new_version(
            schedule.schedule_id,
            definition(
                timezone=random.choice([UTC_RULES.timezone, ROME_RULES.timezone]),
                overlap=random.choice(OVERLAPS),
            ),
            number=number,
            effective_from=self.soon(),
            fingerprint=random.choice([None, NEWER_RULES.fingerprint]),
        )
        version = replace(
            new.version,
            period=random.choice(["day", "week", "instant"]),
            boundary=random.choice(["keep_period", "now"]),
            series=random.choice([1, number]),
            counts_from=random.choice([None, self.soon()]),
            named_before=random.randrange(3),
        )
        return replace(new, version=version)

    def _with_runs(self, change: ScheduleChange, schedule: Schedule) -> ScheduleChange:
        runs = tuple(self._run(schedule) for _ in range(self.random.choice([1, 1, 2, 3])))
        event = audit_event(schedule.schedule_id, "schedule.plan", at=self.now)
        return replace(change, runs=runs, event=event, careful_until=self.random.choice([None, self.soon()]))

    def _run(self, schedule: Schedule) -> Run:
        """Planned, most often; some share a key, lie before the kept history, or exist already."""
        random = self.random
        instant = self.soon() + random.randrange(60) * MINUTE
        if self.chance(0.05):
            instant = NINE - 2 * HOUR
        key = random.choice([None, None, f"hour:{instant.hour}", f"day:{instant.day}#2"])
        run = planned_run_at(schedule, instant, due=random.choice([None, self.soon()]), period_key=key)
        run = replace(
            run,
            planned_at=self.now,
            version=9 if self.chance(0.05) else run.version,
            origin=random.choice(["schedule", "schedule", "backfill"]),
            turn=random.choice([0, 0, 1, 3]),
            named_local=run.named_local + random.choice([-1, 0, 5]) * HOUR,
            offset=timedelta(hours=random.choice([-1, 0, 5])),
            second_pass=self.chance(0.2),
            carried_by=random.choice([None, 2]),
        )
        return random.choice(
            [
                *[run] * 6,
                change_to(run, SKIPPED, reason=random.choice(["on_request", "paused"])).run,
                replace(run_at(schedule, instant), origin="manual", available_at=self.now),
            ]
        )

    def _with_run_changes(self, change: ScheduleChange, schedule: Schedule) -> ScheduleChange:
        ahead = self.both.list_ahead(schedule.schedule_id, from_=self.soon(), limit=100)
        chosen = self.random.sample(ahead, min(len(ahead), self.random.choice([1, 2, 3])))
        return replace(
            change,
            run_changes=tuple(self._decided(run) for run in chosen),
            cursor=replace(schedule.cursor, due_at=self.now) if self.chance(0.2) else change.cursor,
        )

    def _decided(self, run: Run) -> RunChange:
        """A further state of the run, or another due instant; now and then somebody else was faster."""
        random = self.random
        moved = RunChange(expected_state=run.state, run=replace(run, due_at=self.soon(), reason="moved"))
        changes = [
            *[change_to(run, HELD), change_to(run, QUEUED, at=self.now)] * 2,
            change_to(run, SKIPPED, at=self.now, reason="paused"),
            change_to(run, SKIPPED, at=self.now, reason="on_request"),
            change_to(run, CANCELLED, at=self.now),
            moved,
        ]
        change = moved if run.state is SKIPPED else random.choice(changes)
        return replace(change, expected_state=HELD) if self.chance(0.1) else change

    def _with_details(self, change: ScheduleChange, schedule: Schedule) -> ScheduleChange:
        random = self.random
        record = idempotency_record(
            random.choice(KEYS), expires_at=self.now + random.randrange(1, 20) * MINUTE
        )
        return replace(
            change,
            labels=labels(customer=random.choice(["acme", "zeta"])) if self.chance(0.7) else labels(),
            careful_until=random.choice([None, self.now, self.now - HOUR]),
            idempotency=random.choice([None, record]),
        )
