"""Beats: one instant of a cadence, computed once for all the schedules that stand at it.

At the hour very many schedules are due that share few rules. For an *ordinary* one everything that an admission writes
follows from its row and its beat, so the store can admit thousands in a few statements, and none of them is looked at
one by one. What is not ordinary goes through `rota.domain.admission`, under the same conditions; both ways write the
same.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from rota.domain.cadence import Cadence, Occurrence
from rota.domain.overdue import OverduePolicy, judge_overdue
from rota.domain.period import Period, period_key
from rota.domain.recurrence import At
from rota.domain.schedule import Schedule, ScheduleStatus, Version
from rota.domain.zone import REACH

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class BeatKey:
    """What schedules have in common whose next admission differs in nothing but the schedule itself."""

    cadence_id: str
    period: Period
    series: int
    scheduled_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """What an admission at that instant writes, and where the cursor stands after it."""

    key: BeatKey
    occurrence: Occurrence
    following: datetime
    """The next instant of the cadence, which is not due yet."""

    @property
    def period_key(self) -> str:
        return period_key(self.key.period, self.occurrence, series=self.key.series)


def beat_of(key: BeatKey, cadence: Cadence, *, now: datetime) -> Beat | None:
    """None where the planner has to decide: the cadence does not name the instant, names no more after it, or names
    one that is due already (a backlog, in which a newer one may supersede this one)."""
    occurrence = cadence.at(key.scheduled_at)
    following = None if occurrence is None else cadence.next(key.scheduled_at)
    if occurrence is None or following is None or following.scheduled_at <= now:
        return None
    return Beat(key=key, occurrence=occurrence, following=following.scheduled_at)


def may_be_ordinary(schedule: Schedule, version: Version) -> bool:
    """Whether its row alone says that its instant has no other outcome yet and nothing else is to be done first.

    Not where a version waits, runs are parked, the instant lies before `careful_until` (periods may be used, a
    suspension may cover it) or before the kept history; nor where runs may not overlap, or fall due later than they are
    scheduled; nor where `version`, which owns its cursor, names none later: the next instant is a whole second, at
    least one away.
    """
    instant, until = schedule.cursor.scheduled_at, named_until(version)
    return (
        schedule.status is ScheduleStatus.ACTIVE
        and instant is not None
        and schedule.cursor.due_at == instant
        and schedule.cursor.version == schedule.latest_version
        and version.definition.overlap == "allow"
        and (schedule.careful_until is None or schedule.careful_until <= instant)
        and schedule.history_from <= instant
        and (until is None or until > instant + _SECOND)
    )


def beat_key_of(schedule: Schedule, version: Version) -> BeatKey | None:
    """The beat at which the schedule stands; `version` owns its cursor. None where it stands nowhere."""
    instant = schedule.cursor.scheduled_at
    if instant is None:
        return None
    return BeatKey(
        cadence_id=version.cadence_id, period=version.period, series=version.series, scheduled_at=instant
    )


def is_ordinary(
    schedule: Schedule, version: Version, beat: Beat, policy: OverduePolicy, *, now: datetime
) -> bool:
    """Whether the schedule, which stands at the beat, is admitted by it; `policy` is the one that holds for it."""
    until = named_until(version)
    verdict = judge_overdue(policy, due_at=beat.key.scheduled_at, newer_due_at=beat.following, now=now)
    return (
        may_be_ordinary(schedule, version)
        and beat_key_of(schedule, version) == beat.key
        and (until is None or beat.following < until)
        and verdict == "run"
    )


def named_until(version: Version) -> datetime | None:
    """The instant before which the version names all that its cadence names; None: it never stops.

    At its last instants a schedule comes to an end, which the planner tells. What happens once has no other: of a local
    time the instant is told by the zone alone, so its bound lies before that in every zone.
    """
    last = version.last_scheduled_at
    bounds = [version.definition.ends_at, None if last is None else last + _SECOND]
    if isinstance(version.definition.recurrence, At):
        once = version.definition.recurrence.time
        bounds.append(once.replace(tzinfo=UTC) - REACH if once.tzinfo is None else once + _SECOND)
    return min((bound for bound in bounds if bound is not None), default=None)
