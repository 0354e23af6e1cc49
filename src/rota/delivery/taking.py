"""Taking: which deliveries a relay takes next, by the slots that their destinations have free.

Where nothing is due a step costs one look. Else jobs that have their destination to themselves are asked for in one
call, each by its slots; those that share one in a call for each such destination, so that its slots go to whatever is
due first there. A step makes `CALLS_MAX` calls at most, and the next one goes on with the destinations behind.

Jobs are read again after `JOBS_ARE_READ_AFTER`. What is taken names its job as it is at that moment, so one that was
changed since is sent to where it is to go now.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from typing import Protocol

from rota.delivery.destinations import Destinations
from rota.domain.errors import RotaError
from rota.domain.job import Job
from rota.domain.sink import PushSink, WebhookSink, WorkerSink, destination_of
from rota.store.port import DeliveryStore, JobStore, TakenDelivery, Wanted
from rota.telemetry import get_logger

JOBS_ARE_READ_AFTER = timedelta(seconds=2)
JOBS_PAGE = 500
CALLS_MAX = 16
GIVEN_BACK_MAX = 100
"""In one step."""
HELD_FOR = timedelta(milliseconds=20)
"""How soon it is looked again for what others hold, at first; then after twice as long, and so on."""
DOUBLED_MAX = 10
LEASE = timedelta(seconds=90)
"""How long a delivery is the relay's; longer than its send takes."""
SHORT_SEND = timedelta(minutes=1)
LEASE_OF_LONG_SENDS = timedelta(seconds=330)
"""For what may take longer than `SHORT_SEND`: a webhook's timeout is five minutes at most."""

log = get_logger("delivery")


class TakingStore(JobStore, DeliveryStore, Protocol):
    """What taking needs of a store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Take:
    """What a step took."""

    taken: Sequence[TakenDelivery] = ()
    may_be_more: bool = False
    """It is worth looking again at once."""
    next_at: datetime | None = None
    """When to look again, where it is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """What is asked for in one call: of all its jobs together no more than `limit`."""

    jobs: Sequence[Job]
    wanted: Sequence[Wanted]
    limit: int

    @property
    def lease(self) -> timedelta:
        return max(lease_of(job) for job in self.jobs)


class Takes:
    """One thread uses it."""

    def __init__(self, store: TakingStore, destinations: Destinations) -> None:
        self._store = store
        self._destinations = destinations
        self._by_destination: dict[str, list[Job]] = {}
        self._read_at: datetime | None = None
        self._turn = 0
        """Where among the shared destinations the next step begins."""
        self._vain_looks = 0
        """In a row: something was due, and could not be had."""

    def take(self, now: datetime) -> Take:
        """What is due and has a free slot. Raises what the store raises."""
        left_over = self._read_jobs(now)
        calls = self._calls(now)
        if not calls and not left_over:
            return Take()
        names = [job.name for call in calls for job in call.jobs]
        due_at = self._store.read_next_delivery_time(names) if names else None
        taken = [*left_over]
        if due_at is not None and due_at <= now:
            taken += self._make(calls[:CALLS_MAX], now=now, has_taken=bool(left_over))
        elif not left_over:
            self._vain_looks = 0
            return Take(next_at=due_at)
        if taken:
            self._vain_looks = 0
            return Take(taken=taken, may_be_more=True)
        self._vain_looks += 1
        # After as many as it takes to ask for all there is.
        beyond = self._vain_looks - ceil(len(calls) / CALLS_MAX)
        if beyond < 0:
            return Take(may_be_more=True)
        # Another relay is about to take it: to ask at once would be to ask all the time.
        return Take(next_at=now + HELD_FOR * 2 ** min(beyond, DOUBLED_MAX))

    def _make(self, calls: Sequence[_Call], *, now: datetime, has_taken: bool) -> list[TakenDelivery]:
        """What the calls take. Raises what the store raises, unless something was taken: that is to be sent now."""
        taken: list[TakenDelivery] = []
        for call in calls:
            # The slots of each were counted before any of them was taken.
            limit = min(call.limit, self._store.elements_max, self._destinations.room - len(taken))
            if limit <= 0:
                break
            try:
                taken += self._store.commit_takes(call.wanted, now=now, lease=call.lease, limit=limit)
            except RotaError as error:
                if not taken and not has_taken:
                    raise
                log.warning("relay.take_failed", problem=f"{type(error).__name__}: {error}")
                break
        return taken

    def _read_jobs(self, now: datetime) -> Sequence[TakenDelivery]:
        """Reads the jobs again, where that is due, and takes what is left over of those that are not sent any more."""
        if self._read_at is not None and self._read_at <= now < self._read_at + JOBS_ARE_READ_AFTER:
            return ()
        by_destination: dict[str, list[Job]] = {}
        fetched: list[str] = []
        after: str | None = None
        while page := self._store.list_jobs(after=after, limit=JOBS_PAGE):
            for job in page:
                if isinstance(job.sink, WorkerSink):
                    fetched.append(job.name)
                else:
                    by_destination.setdefault(destination_of(job.sink), []).append(job)
            after = page[-1].name
        self._by_destination = by_destination
        self._read_at = now
        left_over_at = self._store.read_next_delivery_time(fetched) if fetched else None
        if left_over_at is None or left_over_at > now:
            return ()
        self._read_at = None  # There may be more than one step can give back.
        limit = min(GIVEN_BACK_MAX, self._store.elements_max)
        wanted = [Wanted(job=name) for name in fetched]
        return self._store.commit_takes(wanted, now=now, lease=LEASE, limit=limit)

    def _calls(self, now: datetime) -> list[_Call]:
        alone: dict[timedelta, list[tuple[Job, int]]] = {}
        shared: list[_Call] = []
        for destination, jobs in self._by_destination.items():
            concurrency = min(job.delivery.concurrency for job in jobs)
            free = self._destinations.free(destination, concurrency=concurrency, now=now)
            if free > 0 and len(jobs) == 1:
                alone.setdefault(lease_of(jobs[0]), []).append((jobs[0], free))
            elif free > 0:
                wanted = [Wanted(job=job.name) for job in jobs]
                shared.append(_Call(jobs=jobs, wanted=wanted, limit=free))
        calls = [
            _Call(
                jobs=[job for job, _ in together],
                wanted=[Wanted(job=job.name, limit=free) for job, free in together],
                limit=sum(free for _, free in together),
            )
            for together in alone.values()
        ]
        if shared:
            begin = self._turn % len(shared)
            self._turn = begin + CALLS_MAX - len(calls)
            calls += [*shared[begin:], *shared[:begin]]
        return calls


def lease_of(job: Job) -> timedelta:
    """How long a delivery of the job is to be the relay's."""
    is_long = isinstance(job.sink, WebhookSink) and job.sink.timeout > SHORT_SEND
    return LEASE_OF_LONG_SENDS if is_long else LEASE


def push_sink_of(taken: TakenDelivery) -> PushSink | None:
    """Where it is to be sent; None: nowhere any more."""
    sink = taken.job.sink
    return None if isinstance(sink, WorkerSink) else sink
