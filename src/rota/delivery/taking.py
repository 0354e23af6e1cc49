"""Taking: which deliveries a relay takes next, by the slots that their destinations have free.

Where nothing is due a step costs one look. Else jobs that have their destination to themselves are asked for in one
call, each by its slots; those that share one in a call for each such destination, so that its slots go to whatever is
due first there. A step makes `CALLS_MAX` calls at most, and the next one goes on with the destinations behind.

What was never sent and what is sent again take turns to be first, so neither keeps the other waiting for ever; on every
fourth take a backlog comes before what is on time. A destination that has something sent again under way has a call of
its own: there what is sent again gets no more than half of the slots. One whose breaker lets a single message through
is asked with a new one, which has never failed, three times of four.

Jobs are read again after `JOBS_ARE_READ_AFTER`. What is taken names its job as it is at that moment, so one that was
changed since is sent to where it is to go now.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from typing import Protocol

from rota.delivery.destinations import Destinations, Room
from rota.domain.errors import RotaError
from rota.domain.job import Job
from rota.domain.sink import PushSink, WebhookSink, WorkerSink, destination_of
from rota.store.port import DeliveryStore, JobStore, TakenDelivery, Wanted, WorkStore
from rota.telemetry import get_logger

JOBS_ARE_READ_AFTER = timedelta(seconds=2)
JOBS_PAGE = 500
CALLS_MAX = 16
BACKLOG_EVERY = 4
"""Every so manieth take gives backlogs their share, and a probe to what is sent again."""
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


class TakingStore(JobStore, DeliveryStore, WorkStore, Protocol):
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
    room: Room | None = None
    """Of the one destination that it is for, where what is sent again there is to be told apart."""

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
        """Where among the calls for single destinations the next step begins."""
        self._takes = 0
        self._vain_looks = 0
        """In a row: something was due, and could not be had."""
        self._has_taken = False
        """Whether the step before took something: then there is no look before the calls."""

    def take(self, now: datetime) -> Take:
        """What is due and has a free slot. Raises what the store raises."""
        left_over = self._read_jobs(now)
        calls = self._calls(now)
        if not calls and not left_over:
            self._has_taken = False
            return Take()
        taken = [*left_over]
        next_at: datetime | None = None
        if calls and not (self._has_taken and len(calls) == 1):
            names = [job.name for call in calls for job in call.jobs]
            next_at = self._store.read_next_delivery_time(names)
            is_due = next_at is not None and next_at <= now
        else:
            is_due = bool(calls)
        if is_due:
            taken += self._make(calls[:CALLS_MAX], now=now, has_taken=bool(left_over))
        self._has_taken, had_taken = bool(taken), self._has_taken
        if taken:
            self._vain_looks = 0
            return Take(taken=taken, may_be_more=True)
        if not is_due:
            self._vain_looks = 0
            return Take(next_at=next_at)
        if had_taken:
            return Take(may_be_more=True)  # It was not looked whether there is anything.
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
        self._takes += 1
        for call in calls:
            # The slots of each were counted before any of them was taken.
            limit = min(call.limit, self._store.elements_max, self._destinations.bound(len(taken)))
            try:
                taken += self._take(call, now=now, limit=limit)
            except RotaError as error:
                if not taken and not has_taken:
                    raise
                log.warning("relay.take_failed", problem=f"{type(error).__name__}: {error}")
                break
        return taken

    def _take(self, call: _Call, *, now: datetime, limit: int) -> Sequence[TakenDelivery]:
        """What one call takes, up to `limit`; where it has a room, of what is sent again no more than that has."""
        backlog_first = self._takes % BACKLOG_EVERY == 0
        intents_first = self._takes % 2 == 1
        room = call.room
        if room is not None and room.is_probe:
            intents_first = not backlog_first
        elif room is not None and room.is_mixed and room.retries < limit:
            intents_first = intents_first or room.retries == 0
            limit = self._limit_of_mixed(call, room, now=now, limit=limit) if intents_first else room.retries
        if limit <= 0:
            return ()
        return self._store.commit_takes(
            call.wanted,
            now=now,
            lease=call.lease,
            limit=limit,
            intents_first=intents_first,
            backlog_first=backlog_first,
        )

    def _limit_of_mixed(self, call: _Call, room: Room, *, now: datetime, limit: int) -> int:
        """So many that what is new has its place, and what is sent again fills no more than its half."""
        names = [job.name for job in call.jobs]
        new = len(self._store.read_intents(names, now=now, limit=limit))
        return min(limit, new + room.retries)

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
        single: list[_Call] = []
        for destination, jobs in self._by_destination.items():
            concurrency = min(job.delivery.concurrency for job in jobs)
            room = self._destinations.room(destination, concurrency=concurrency, now=now)
            if room.slots <= 0:
                continue
            if len(jobs) == 1 and not room.is_probe and not room.is_mixed:
                alone.setdefault(lease_of(jobs[0]), []).append((jobs[0], room.slots))
            else:
                wanted = [Wanted(job=job.name) for job in jobs]
                single.append(_Call(jobs=jobs, wanted=wanted, limit=room.slots, room=room))
        calls = [
            _Call(
                jobs=[job for job, _ in together],
                wanted=[Wanted(job=job.name, limit=slots) for job, slots in together],
                limit=sum(slots for _, slots in together),
            )
            for together in alone.values()
        ]
        if single:
            begin = self._turn % len(single)
            self._turn = begin + CALLS_MAX - len(calls)
            calls += [*single[begin:], *single[:begin]]
        return calls


def lease_of(job: Job) -> timedelta:
    """How long a delivery of the job is to be the relay's."""
    is_long = isinstance(job.sink, WebhookSink) and job.sink.timeout > SHORT_SEND
    return LEASE_OF_LONG_SENDS if is_long else LEASE


def push_sink_of(taken: TakenDelivery) -> PushSink | None:
    """Where it is to be sent; None: nowhere any more."""
    sink = taken.job.sink
    return None if isinstance(sink, WorkerSink) else sink
