"""An attempt that a worker has open: since when, last heard of when, and what it wants next.

Stretches of time are measured by the boot clock where there is one, so that a wall clock that leaps neither times an
attempt out nor silences its heartbeats (I13). Where there is none, a wall clock that went back asks for a heartbeat at
once.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from rota.wire.assignment import Assignment, AttemptId
from rota.worker.context import RunContext
from rota.worker.execution import Stop
from rota.worker.signals import Signals

HEARTBEATS_PER_LEASE = 3
PROGRESS_FLUSH = timedelta(milliseconds=500)
"""Reported progress waits no longer than this for a heartbeat."""

NOTHING = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One reading of both clocks."""

    wall: datetime
    boot_seconds: float | None

    def since(self, earlier: "Moment") -> timedelta:
        """The time that passed, to the millisecond; negative where only the wall clock tells and it went back."""
        if self.boot_seconds is None or earlier.boot_seconds is None:
            return self.wall - earlier.wall
        return timedelta(milliseconds=round(1000 * (self.boot_seconds - earlier.boot_seconds)))


@dataclass(slots=True, kw_only=True)
class OpenAttempt:
    """An attempt whose handler runs; one thread uses it, but for its signals."""

    assignment: Assignment
    context: RunContext
    signals: Signals
    began: Moment
    heard: Moment
    """When Rota last heard of it."""
    stop: Stop

    @property
    def key(self) -> AttemptId:
        return self.assignment.key

    @property
    def lease(self) -> timedelta:
        return self.assignment.lease

    @property
    def timeout(self) -> timedelta | None:
        return self.assignment.timeout

    def has_timed_out(self, moment: Moment) -> bool:
        return self.timeout is not None and moment.since(self.began) >= self.timeout

    def is_heartbeat_due(self, moment: Moment) -> bool:
        return self._heartbeat_in(moment) <= NOTHING

    def wanted_in(self, moment: Moment) -> timedelta:
        """How long it can be left alone: until its next heartbeat or its timeout."""
        wanted = self._heartbeat_in(moment)
        if self.timeout is not None:
            wanted = min(wanted, self.timeout - moment.since(self.began))
        return max(NOTHING, wanted)

    def _heartbeat_in(self, moment: Moment) -> timedelta:
        silent = moment.since(self.heard)
        interval = self.lease / HEARTBEATS_PER_LEASE
        if self.signals.has_progress:
            interval = min(interval, PROGRESS_FLUSH)
        return NOTHING if silent < NOTHING else interval - silent
