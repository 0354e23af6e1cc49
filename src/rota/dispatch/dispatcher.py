"""The dispatcher: turns due occurrences into queued runs, and lost attempts into further ones.

One step. Judge the clock. Renew the leases when it is time. Ask for the earliest due instants of every partition held,
and serve those in which something is due (`rounds.py`): what is ordinary by the thousand, the rest with the pure
planner; every commit under the partition's epoch, conditioned on each schedule's revision and cursor. Whatever was
refused was changed by somebody else meanwhile, and is read again in the next step. A schedule that cannot be read or
planned is put into status `error` alone (I12). Attempts whose lease ran out are settled as lost.

Nothing is remembered between steps but leases and checkpoints not yet written: any process may die between any two
statements and the next one finds all it needs in the store (I5).
"""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta

from rota.cadences import Cadences
from rota.clock import Clock
from rota.clock_guard import ClockLeap, extend_line, judge_clock
from rota.dispatch.leases import Leases
from rota.dispatch.recovery import recover_freed, recover_lost
from rota.dispatch.retention import Retention
from rota.dispatch.rounds import Rounds
from rota.domain.errors import RotaError
from rota.stepping import step_until
from rota.store.port import ClockReading, Fence, Notice, Store, sets
from rota.telemetry import get_logger

BATCH = 2_000
"""Ordinary schedules a commit, unless told otherwise: some tens of milliseconds."""

QUIET = timedelta(milliseconds=250)
"""With nothing due in so long there is time for a batch of old history."""

PRUNE_PAUSE = timedelta(milliseconds=50)
"""Between two batches of it."""

PASSED_OVER = timedelta(milliseconds=100)
"""So soon there is another look at what was refused because a run of its schedule ended in the same moment."""

ANSWERS_BATCHES_MAX = 50
"""Of kept answers to requests that a renewal forgets."""

PRUNED_BY = 0
"""Whoever holds this partition does it: one is enough."""

log = get_logger("dispatch")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """What one step did, and when the next one is wanted (never later than the poll interval)."""

    admitted: int
    recovered: int
    wake_at: datetime
    leap: ClockLeap | None = None


class Dispatcher:
    """Holds partitions and admits what falls due in them. One thread runs it."""

    def __init__(
        self,
        store: Store,
        *,
        cadences: Cadences,
        clock: Clock,
        owner: str,
        lease: timedelta,
        poll: timedelta,
        page: int,
        batch: int = BATCH,
        keep: timedelta | None = None,
    ) -> None:
        """`keep` is how much history is kept; None: all."""
        self._store = store
        self._clock = clock
        self._poll = poll
        self._page = min(page, store.elements_max)
        self._leases = Leases(store, owner=owner, ttl=lease)
        self._line: ClockReading | None = None
        self._checkpoints: dict[int, tuple[Fence, datetime]] = {}
        self._rounds = Rounds(store, cadences, page=self._page, batch=batch, drop=self._leases.drop)
        self._retention = Retention(store, keep=keep, limit=self._page)

    def step(self, now: datetime) -> StepReport:
        """One bounded piece of work at `now`."""
        leap = self._judge_clock(now)
        if leap is not None:
            log.error("clock.leap", problem=str(leap))
            return StepReport(admitted=0, recovered=0, wake_at=now + self._poll, leap=leap)
        is_renewal = self._leases.is_renewal_due(now)
        if is_renewal:
            self._store.commit_checkpoints(self._checkpoints.values())
            self._checkpoints.clear()
            self._leases.renew(now)
            if self._line is not None:
                self._store.commit_clock_reading(self._line)
            self._forget_answers(now)
        elif self._leases.is_look_due(now):
            self._leases.look(now)
        fences = self._leases.held(now)
        due_times = self._store.read_due_times(list(fences))
        up_to_date = fences.keys() - {
            partition for partition, due in due_times.items() if due.earliest <= now
        }
        self._checkpoints |= {partition: (fences[partition], now) for partition in up_to_date}
        served = self._rounds.serve(fences, due_times, now=now, is_time_up=self._until_renewal())
        held = list(self._leases.held(now).values())
        recovered = recover_lost(self._store, held, now=now, limit=self._page)
        if is_renewal:
            recovered += recover_freed(self._store, held, now=now, limit=self._page)
        if served.problem is not None:
            raise served.problem
        if served.is_changed or recovered:
            return StepReport(admitted=served.admitted, recovered=recovered, wake_at=now)
        due = [instant for times in due_times.values() for instant in (times.schedule, times.planned)]
        due.append(self._leases.wanted_at(now))
        due.append(now + PASSED_OVER if served.is_passed_over else None)
        due += self._due_behind(fences.keys() - up_to_date, now)
        if is_renewal:
            self._rounds.prepare(fences, due_times, now=now)
        due.append(self._prune(fences, due, now, at_once=is_renewal))
        return StepReport(admitted=0, recovered=0, wake_at=_next_look(due, now, self._poll))

    def _until_renewal(self) -> Callable[[], bool]:
        """Whether the step has taken so long that its leases want to be renewed.

        On a machine that has too much to do a round may take longer than a lease: others would take the partitions
        over, be as slow, and lose them again.
        """
        began = self._clock.now()
        return lambda: not timedelta(0) <= self._clock.now() - began < self._leases.renewal_interval

    def _due_behind(self, partitions: Collection[int], now: datetime) -> list[datetime]:
        """What falls due behind what is left alone, such as schedules of a zone with other rules."""
        if not partitions:
            return []
        later = self._store.read_due_times(sorted(partitions), after=now)
        return [due.earliest for due in later.values()]

    def _forget_answers(self, now: datetime) -> None:
        for _ in range(ANSWERS_BATCHES_MAX):
            if self._store.prune_idempotency(now=now, limit=self._page) < self._page:
                return

    def _prune(
        self, fences: Mapping[int, Fence], due: Iterable[datetime | None], now: datetime, *, at_once: bool
    ) -> datetime | None:
        """A batch of old history, where nothing falls due meanwhile or it is to be `at_once`; when to go on with it."""
        is_quiet = _next_look(due, now, QUIET) == now + QUIET
        if PRUNED_BY not in fences or not (is_quiet or at_once):
            return None
        pruned = self._retention.step(now)
        return None if pruned is None or pruned.reached is None else now + PRUNE_PAUSE

    def run(self, stop: threading.Event, wake: threading.Event) -> None:
        """Steps until `stop` is set (set `wake` too, to end a wait); gives its partitions back at the end."""
        with closing(self._store.subscribe(sets(wake, Notice.DUE))):
            step_until(stop, wake, clock=self._clock, step=self._try_step)
            self._give_back()

    def _try_step(self) -> float:
        """A step that the loop outlives; how many seconds it may wait now."""
        seconds = self._poll.total_seconds()
        try:
            report = self.step(self._clock.now())
            # What the step took is not to be waited for once more.
            seconds = min(seconds, max(0.0, (report.wake_at - self._clock.now()).total_seconds()))
        except RotaError as error:
            log.warning("dispatch.step_failed", problem=str(error))
        return seconds

    def _give_back(self) -> None:
        try:
            self._store.commit_checkpoints(self._checkpoints.values())
            self._leases.release(self._clock.now())
        except RotaError as error:
            log.warning("lease.release_failed", problem=str(error))
        log.info("dispatch.stop", owner=self._leases.owner)

    def _judge_clock(self, now: datetime) -> ClockLeap | None:
        reading = ClockReading(
            wall=now, boot_seconds=self._clock.boot_seconds(), boot_id=self._clock.boot_id()
        )
        leap = judge_clock(self._line, reading) if self._line is not None else None
        if self._line is None or leap is not None:
            # The stored line judges the first reading of a process, and tells of an operator's confirmation.
            self._line = self._store.get_clock_reading(reading.boot_id)
            leap = judge_clock(self._line, reading)
        if leap is None:
            self._line = extend_line(self._line, reading)
        return leap


def _next_look(due: Iterable[datetime | None], now: datetime, poll: timedelta) -> datetime:
    """The next due instant, or the next poll. What is due already and was not changed waits for the poll too."""
    return min([now + poll, *(instant for instant in due if instant is not None and instant > now)])
