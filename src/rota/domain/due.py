"""A schedule that is due, with what deciding needs, and which of its instants may run in place of a late one."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, takewhile

from rota.domain.cadence import Cadence, Occurrence
from rota.domain.identity import RunId, run_id_of
from rota.domain.key_uses import KeyProbe, Uses, probe_of
from rota.domain.overdue import OverduePolicy
from rota.domain.overlap import Places
from rota.domain.run import Run, RunState
from rota.domain.schedule import Schedule, ScheduleStatus, Suspension, Version, next_named

CAREFUL_INSTANTS_MAX = 100
"""Instants of one decision, where each is looked up in the store."""

NEWER_LOOKED_AT = 10
"""How many instants beyond are looked up to tell whether a newer one supersedes a late one."""

WILL_NOT_RUN = frozenset({RunState.SKIPPED, RunState.CANCELLED})


@dataclass(frozen=True, slots=True, kw_only=True)
class DueSchedule:
    """A schedule that is due, with what deciding needs."""

    schedule: Schedule
    version: Version
    """The version that owns the cursor."""
    suspensions: tuple[Suspension, ...]
    job_overdue: OverduePolicy
    successor: Version | None = None
    """The version that takes over at the end of this one's window."""
    places: Places = ()
    """Its open runs that took places (`rota.domain.overlap`)."""
    parked: tuple[Run, ...] = ()
    """Some of the runs that an end or a resumption has still to decide (`rota.domain.planned`)."""

    @property
    def is_careful(self) -> bool:
        """Whether instants from the cursor on have to be looked up."""
        instant, until = self.schedule.cursor.scheduled_at, self.schedule.careful_until
        return until is not None and instant is not None and instant < until

    @property
    def is_at_boundary(self) -> bool:
        """Whether nothing is left to do but to activate the successor."""
        return (
            self.successor is not None
            and self.schedule.cursor.scheduled_at is not None
            and self.schedule.cursor.scheduled_at == self.version.effective_until
        )

    @property
    def delay(self) -> timedelta:
        """By how much later than they are scheduled its instants are decided: those of what has ended, at once."""
        return timedelta(0) if self.schedule.status is ScheduleStatus.ENDED else self.version.delay

    @property
    def policy(self) -> OverduePolicy:
        return self.version.definition.overdue or self.job_overdue

    def suspension_that_skips(self, instant: datetime) -> Suspension | None:
        for suspension in self.suspensions:
            if suspension.covers(instant) and not suspension.apply_overdue:
                return suspension
        return None


def superseding_probes(
    due: DueSchedule, cadence: Cadence, following: Occurrence | None, *, now: datetime
) -> list[KeyProbe]:
    """What is to be looked up of the instants from `following` on to tell whether one supersedes a late one."""
    due_until = now - due.delay
    newer = takewhile(
        lambda occurrence: occurrence.scheduled_at <= due_until, unsuspended_from(due, cadence, following)
    )
    return [probe_of(due.version, occurrence) for occurrence in islice(newer, NEWER_LOOKED_AT)]


def first_that_may_run(
    due: DueSchedule,
    cadence: Cadence,
    following: Occurrence | None,
    uses: Uses | None,
) -> datetime | None:
    """When the first one from `following` on falls due that runs or may run, and is not suspended: only such a one
    supersedes.

    None too where too many are suppressed to tell, or one that should be was not looked up: then the older one runs,
    and nothing is lost.
    """
    careful_until = due.schedule.careful_until
    for occurrence in islice(unsuspended_from(due, cadence, following), CAREFUL_INSTANTS_MAX):
        instant, due_at = occurrence.scheduled_at, occurrence.scheduled_at + due.version.delay
        if uses is None:
            return due_at
        run_id = id_of(due.version, occurrence)
        use = uses.get(run_id)
        if use is None:
            is_known = run_id in uses or careful_until is None or instant >= careful_until
            return due_at if is_known else None
        if use.run_id == run_id and use.state not in WILL_NOT_RUN:
            return due_at
    return None


def unsuspended_from(
    due: DueSchedule, cadence: Cadence, following: Occurrence | None
) -> Iterator[Occurrence]:
    """The named instants from `following` on that no suspension skips."""
    while following is not None:
        suspension = due.suspension_that_skips(following.scheduled_at)
        after = following.scheduled_at
        if suspension is None:
            yield following
        elif suspension.until is None:
            return
        else:
            after = suspension.until - timedelta(microseconds=1)
        following = next_named(due.version, cadence, after)


def id_of(version: Version, occurrence: Occurrence) -> RunId:
    return run_id_of(version.schedule_id, version.number, occurrence.scheduled_at)
