"""The dispatcher: turns due occurrences into queued runs, and lost attempts into further ones.

One step. Judge the clock. Renew the leases when it is time. Ask for the earliest due instant of every partition held.
From those that have something due, in turn: queue the planned runs that fell due, then read one page of schedules in
all, oldest first in each partition. Decide each schedule's admission with the pure planner, or activate its next
version where the cursor has reached its boundary; commit under the partition's epoch, conditioned on each schedule's
revision and cursor as they were read. Whatever was refused was changed by somebody else meanwhile, and is read again in
the next step. A schedule that cannot be read or planned is put into status `error` alone (I12). Attempts whose lease
ran out are settled as lost.

Nothing is remembered between steps but leases and checkpoints not yet written: any process may die between any two
statements and the next one finds all it needs in the store (I5).
"""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from rota.cadences import Cadences
from rota.clock import Clock
from rota.clock_guard import ClockLeap, extend_line, judge_clock
from rota.dispatch.admitting import admit_page
from rota.dispatch.leases import Leases
from rota.dispatch.planned import admit_planned
from rota.dispatch.recovery import recover_lost
from rota.domain.errors import RotaError
from rota.store.port import ClockReading, Fence, Store, ZoneRules
from rota.telemetry import get_logger

log = get_logger("dispatch")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """What one step did, and when the next one is wanted (never later than the poll interval)."""

    admitted: int
    recovered: int
    wake_at: datetime
    leap: ClockLeap | None = None


class Dispatcher:
    """Holds partitions and admits what falls due in them. One thread runs it.

    `announce` is called when something was queued, so that a worker in the same process need not poll.
    """

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
        announce: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._cadences = cadences
        self._clock = clock
        self._poll = poll
        self._page = min(page, store.elements_max)
        self._announce = announce
        self._leases = Leases(store, owner=owner, ttl=lease)
        self._line: ClockReading | None = None
        self._checkpoints: dict[int, tuple[Fence, datetime]] = {}
        self._differing: set[ZoneRules] = set()
        self._last_served = -1

    def step(self, now: datetime) -> StepReport:
        """One bounded piece of work at `now`."""
        leap = self._judge_clock(now)
        if leap is not None:
            log.error("clock.leap", problem=str(leap))
            return StepReport(admitted=0, recovered=0, wake_at=now + self._poll, leap=leap)
        if self._leases.is_renewal_due(now):
            self._store.commit_checkpoints(self._checkpoints.values())
            self._checkpoints.clear()
            self._leases.renew(now)
            if self._line is not None:
                self._store.commit_clock_reading(self._line)
            self._store.prune_idempotency(now=now, limit=self._page)
        fences = self._leases.held(now)
        due_times = self._store.read_due_times(list(fences))
        ready = {partition for partition, due in due_times.items() if due <= now}
        self._checkpoints |= {partition: (fences[partition], now) for partition in fences.keys() - ready}
        admitted, changed = self._admit(fences, self._in_turn(ready), now)
        recovered = recover_lost(
            self._store, list(self._leases.held(now).values()), now=now, limit=self._page
        )
        if admitted or recovered:
            self._announce()
        return StepReport(
            admitted=admitted,
            recovered=recovered,
            wake_at=now if changed or recovered else _next_look(due_times.values(), now, self._poll),
        )

    def run(self, stop: threading.Event, wake: threading.Event) -> None:
        """Steps until `stop` is set (set `wake` too, to end a wait); gives its partitions back at the end."""
        while not stop.is_set():
            wake.clear()
            seconds = self._poll.total_seconds()
            try:
                report = self.step(now := self._clock.now())
                seconds = min(seconds, max(0.0, (report.wake_at - now).total_seconds()))
            except RotaError as error:
                log.warning("dispatch.step_failed", problem=str(error))
            if not stop.is_set():
                self._clock.wait(wake, seconds)
        try:
            self._store.commit_checkpoints(self._checkpoints.values())
            self._leases.release(self._clock.now())
        except RotaError as error:
            log.warning("lease.release_failed", problem=str(error))

    def _in_turn(self, partitions: set[int]) -> list[int]:
        """Beginning after the one that was served last, so that no backlog delays the other partitions."""
        return sorted(partitions, key=lambda partition: (partition <= self._last_served, partition))

    def _admit(self, fences: dict[int, Fence], ready: list[int], now: datetime) -> tuple[int, bool]:
        """Pages of the partitions that are ready, until as many schedules were read as one page holds.

        Answers with the number of runs created, and whether there may be more to do at once.
        """
        admitted, changed, left = 0, False, self._page
        for place, partition in enumerate(ready):
            fence = fences[partition]
            # Before anything can raise: the next step then begins with the others.
            self._last_served = partition
            planned = admit_planned(self._store, self._cadences, fence, now=now, limit=left)
            page = admit_page(
                self._store, self._cadences, fence, now=now, limit=left, differing=self._differing
            )
            admitted += planned.queued + page.admitted
            changed = changed or planned.is_changed or page.is_changed
            left -= page.read
            if page.is_fenced:
                self._leases.drop(partition)
            if left <= 0:
                return admitted, changed or place + 1 < len(ready)
        return admitted, changed

    def _judge_clock(self, now: datetime) -> ClockLeap | None:
        reading = ClockReading(
            wall=now, boot_seconds=self._clock.boot_seconds(), boot_id=self._clock.boot_id()
        )
        leap = judge_clock(self._line, reading) if self._line is not None else None
        if self._line is None or leap is not None:
            # The stored line judges the first reading of a process, and tells of an operator's confirmation.
            self._line = self._store.get_clock_reading()
            leap = judge_clock(self._line, reading)
        if leap is None:
            self._line = extend_line(self._line, reading)
        return leap


def _next_look(due_times: Iterable[datetime], now: datetime, poll: timedelta) -> datetime:
    """The next due instant, or the next poll. What is due already and was not changed waits for the poll too."""
    return min([now + poll, *(due for due in due_times if due > now)])
