"""What several tests do to a store on their way: short names for port calls, in batches that every store takes."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

from rota.domain.admission import Admission
from rota.domain.due import DueSchedule
from rota.domain.identity import RunId
from rota.domain.run import Attempt, Run
from rota.domain.schedule import Schedule
from rota.domain.settlement import Settlement
from rota.store.port import (
    LEASE_MAX,
    AdmissionOutcome,
    ChangeOutcome,
    Creation,
    Fence,
    Heartbeat,
    HeartbeatOutcome,
    Intent,
    NewSchedule,
    OfAttempt,
    OpenedAttempt,
    ScheduleChange,
    ScheduleFilter,
    ScheduleRecord,
    Store,
    Wanted,
    turn_of_intent,
)
from tests.contract.builders import DAY, MADE_AT, NINE, SECOND, admission, change_of, new_schedule, run_at

PARTITIONS = 4
TTL = LEASE_MAX
"""Of leases that a test is not about."""

PAGES_MAX = 50

Element = TypeVar("Element")
Answer = TypeVar("Answer")


def first_attempt(run: Run, *, lease: timedelta) -> Attempt:
    """As a worker's call opens it that comes a second after nine."""
    opened_at = NINE + SECOND
    return Attempt(
        run_id=run.run_id,
        number=1,
        worker="worker-1",
        opened_at=opened_at,
        lease_expires_at=opened_at + lease,
    )


def earliest_due(store: Store, partitions: Sequence[int]) -> dict[int, datetime]:
    """The earliest due instant of each partition that has one."""
    return {partition: due.earliest for partition, due in store.read_due_times(partitions).items()}


def create(store: Store, new: NewSchedule | None = None) -> Schedule:
    new = new or new_schedule()
    assert store.commit_creation(new, now=MADE_AT) is Creation.CREATED
    return new.schedule


def commit(store: Store, change: ScheduleChange, *, fence: Fence | None = None) -> Schedule:
    """The schedule after a change that has to apply."""
    assert store.commit_change(change, fence=fence) is ChangeOutcome.CHANGED
    record = store.get_schedule(change.schedule_id)
    assert record is not None
    return record.schedule


def refuse(
    store: Store, change: ScheduleChange, outcome: ChangeOutcome, *, fence: Fence | None = None
) -> None:
    """A change that has to be refused so, and to leave everything as it was."""
    before = contents(store)
    assert store.commit_change(change, fence=fence) is outcome
    assert contents(store) == before


def contents(store: Store) -> dict[str, object]:
    """Everything that changes and admissions write, of the few schedules that there are."""
    records = store.list_schedules(ScheduleFilter(), after=None, limit=100)
    ids = [record.schedule.schedule_id for record in records]
    return {
        "schedules": records,
        "acme's": store.list_schedules(ScheduleFilter(label=("customer", "acme")), after=None, limit=100),
        "zeta's": store.list_schedules(ScheduleFilter(label=("customer", "zeta")), after=None, limit=100),
        "versions": [store.list_versions(id_, before=None, limit=100) for id_ in ids],
        "zone rules": store.list_zone_rules(),
        "history": [store.list_audit(id_, limit=100) for id_ in ids],
        "ledgers": [store.list_ledger(id_, before=None, limit=100) for id_ in ids],
        "deliveries": deliveries(store),
        "answer": store.get_idempotency("order-1", now=MADE_AT),
    }


def deliveries(store: Store, *jobs: str) -> list[Intent]:
    """Every delivery intent, whenever it becomes available."""
    return store.read_intents(jobs or ["sales_report"], now=NINE + 1000 * DAY, limit=1000)


def plan(store: Store, schedule: Schedule, *runs: Run) -> Schedule:
    """Creates these runs in one change; the schedule is as given."""
    return commit(store, replace(change_of(schedule), runs=runs))


def hold(store: Store, owner: str = "node-a", *, now: datetime = MADE_AT) -> list[Fence]:
    """Makes the partitions and takes those that are free: their fences, lowest partition first."""
    store.ensure_partitions(PARTITIONS)
    held = [
        Fence(partition=state.partition, epoch=state.epoch)
        for state in store.list_partitions()
        if state.owner == owner
    ]
    fences = store.commit_acquisitions(owner, held=held, now=now, ttl=TTL, limit=PARTITIONS)
    return sorted(fences, key=lambda fence: fence.partition)


def fence_of(store: Store, partition: int) -> Fence:
    """The fence of whoever holds that partition, after taking it where nobody does."""
    hold(store)
    return Fence(partition=partition, epoch=store.list_partitions()[partition].epoch)


def record_of(store: Store, schedule: Schedule) -> ScheduleRecord:
    record = store.get_schedule(schedule.schedule_id)
    assert record is not None
    return record


def run_of(store: Store, run_id: str) -> Run:
    detail = store.get_run(RunId(run_id))
    assert detail is not None
    return detail.run


def attempts_of(store: Store, run_id: str) -> tuple[Attempt, ...]:
    detail = store.get_run(RunId(run_id))
    assert detail is not None
    return detail.attempts


def due_ids(store: Store, partition: int = 0, *, now: datetime = NINE, limit: int = 100) -> list[str]:
    due = store.read_due(partition, now=now, limit=limit)
    return [entry.schedule.schedule_id for entry in due if isinstance(entry, DueSchedule)]


def admit(
    store: Store, fence: Fence, admissions: Sequence[Admission], *, now: datetime = NINE
) -> list[AdmissionOutcome]:
    return in_batches(store, admissions, lambda batch: store.commit_admissions(fence, batch, now=now))


def admit_runs(store: Store, schedule: Schedule, *runs: Run) -> None:
    """Admits these runs in one admission; the schedule is as given."""
    due = admission(schedule, runs=runs)
    assert admit(store, fence_of(store, schedule.partition), [due]) == [AdmissionOutcome.ADMITTED]


def queue_run(store: Store, id_: str = "report-7", *, job: str = "sales_report", partition: int = 0) -> Run:
    """A schedule with that id, and its run at nine admitted."""
    schedule = create(store, new_schedule(id_, job=job, partition=partition))
    run = run_at(schedule, NINE)
    admit_runs(store, schedule, run)
    return run


def queue_at(store: Store, id_: str, *, at: datetime = NINE, job: str = "sales_report", turn: int = 0) -> Run:
    """A schedule with that id, and its run at nine admitted with that turn, available from `at` on."""
    schedule = create(store, new_schedule(id_, job=job))
    run = replace(run_at(schedule, NINE), available_at=at, turn=turn)
    admit_runs(store, schedule, run)
    return run


def delivery_of(run: Run, *, attempt: int | None = None) -> Intent:
    """The delivery of the run's next attempt, as its outbox row has it."""
    assert run.available_at is not None
    return Intent(
        run_id=run.run_id,
        attempt=run.attempt + 1 if attempt is None else attempt,
        job=run.job,
        available_at=run.available_at,
        turn=turn_of_intent(run.turn, attempt=run.attempt),
    )


def wanted(*jobs: str, limit: int | None = None) -> list[Wanted]:
    return [Wanted(job=job, limit=limit) for job in jobs]


def open_attempt(store: Store, run: Run, *, now: datetime = NINE, worker: str = "worker-1") -> OpenedAttempt:
    [opened] = store.commit_openings(worker, [delivery_of(run)], now=now)
    assert opened is not None
    return opened


def open_all(
    store: Store, deliveries: Sequence[OfAttempt], *, now: datetime = NINE, worker: str = "worker-1"
) -> list[OpenedAttempt | None]:
    return in_batches(store, deliveries, lambda batch: store.commit_openings(worker, batch, now=now))


def heartbeat(
    store: Store, heartbeats: Sequence[Heartbeat], *, now: datetime = NINE
) -> list[HeartbeatOutcome]:
    return in_batches(store, heartbeats, lambda batch: store.commit_heartbeats(batch, now=now))


def settle(store: Store, *settlements: Settlement, fences: Sequence[Fence] = ()) -> list[bool]:
    return in_batches(store, settlements, lambda batch: store.commit_settlements(batch, fences=fences))


def in_batches(
    store: Store, elements: Sequence[Element], commit: Callable[[Sequence[Element]], list[Answer]]
) -> list[Answer]:
    """Every element's answer, however few the store takes at a time."""
    size = store.elements_max
    return [
        answer for start in range(0, len(elements), size) for answer in commit(elements[start : start + size])
    ]


def read_pages(read: Callable[[Element | None], list[Element]], *, limit: int) -> list[Element]:
    """Everything that `read` pages through, told the last element of the page before; it has to come to an end."""
    seen: list[Element] = []
    for _ in range(PAGES_MAX):
        page = read(seen[-1] if seen else None)
        assert len(page) <= limit
        if not page:
            return seen
        seen += page
    raise AssertionError(f"there are more than {PAGES_MAX} pages: {seen}")
