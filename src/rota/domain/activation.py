"""The moment at which a version takes over: what of its forerunner is carried, and where the cursor then stands (I9).

The boundary is the new version's `effective_from`. Both sides are compared under the new version's period. An old
occurrence at or past the boundary is *carried*, where its period is unused and the new rule's occurrence of that period
lies before the boundary: nobody would run that period else. It is created at once, planned, with the old version and
the old instant; one for each period, the first. A new occurrence whose period is used is *suppressed*, when the cursor
reaches it: it would be a double. Everything later is the new rule's.

With `boundary: now` nothing is carried, and the new version begins a fresh series of keys.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from rota.domain.admission import Admission, cursor_at_first, run_of, unchanged
from rota.domain.cadence import Cadence, Occurrence
from rota.domain.identity import run_id_of
from rota.domain.key_uses import PERIOD_REACH, KeyProbe, Uses, key_of, period_end, probe_of
from rota.domain.run import Run
from rota.domain.schedule import Cursor, Schedule, ScheduleStatus, Version, next_named

_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """What taking over writes to the schedule."""

    carried: tuple[Run, ...]
    cursor: Cursor
    careful_until: datetime
    """No instant from here on can be of a period that is used already."""


def occurrences_at_stake(
    old: Version, old_cadence: Cadence, new: Version, new_cadence: Cadence
) -> list[Occurrence]:
    """The old version's occurrences past the boundary that nobody would run: the first of each period, in order.

    Whether their periods are unused is for the store to say: see `stake_probes`.
    """
    if new.boundary == "now" or new.period in ("instant", "once"):
        return []
    boundary, reach = new.effective_from, PERIOD_REACH[new.period]
    missed = {
        key_of(new, occurrence): period_end(new.period, occurrence.named_local)
        for occurrence in _named_between(new, new_cadence, boundary - reach, boundary)
    }
    at_stake: list[Occurrence] = []
    for occurrence in _named_between(old, old_cadence, boundary, boundary + reach):
        if not missed or occurrence.named_local > max(missed.values()) + timedelta(days=1):
            break
        if missed.pop(key_of(new, occurrence), None) is not None:
            at_stake.append(occurrence)
    return at_stake


def stake_probes(old: Version, new: Version, at_stake: list[Occurrence]) -> list[KeyProbe]:
    return [probe_of(new, occurrence, of_version=old.number) for occurrence in at_stake]


def plan_activation(
    schedule: Schedule,
    old: Version,
    new: Version,
    new_cadence: Cadence,
    *,
    at_stake: list[Occurrence],
    uses: Uses,
    last_run_at: datetime | None,
    now: datetime,
) -> Activation:
    """`uses` is what the `stake_probes` found; `last_run_at` is the latest `scheduled_at` of the schedule's runs."""
    carried = tuple(
        replace(run_of(schedule, old, occurrence, planned_at=now), carried_by=new.number)
        for occurrence in at_stake
        if uses.get(run_id_of(schedule.schedule_id, old.number, occurrence.scheduled_at)) is None
    )
    latest = [new.effective_from, *(run.scheduled_at for run in carried)]
    if last_run_at is not None:
        latest.append(last_run_at)
    cursor = cursor_at_first(new, new_cadence, after=new.effective_from - _MICROSECOND)
    careful_until = max(latest) + PERIOD_REACH[new.period]
    if new.period == "once" and cursor.scheduled_at is not None:
        careful_until = max(careful_until, cursor.scheduled_at + PERIOD_REACH["once"])
    return Activation(carried=carried, cursor=cursor, careful_until=careful_until)


def activation_commit(schedule: Schedule, new: Version, activation: Activation) -> Admission:
    """The dispatcher's commit: of an active schedule, or of one that ended with its next version still to come."""
    cursor, status, status_reason = activation.cursor, schedule.status, schedule.status_reason
    exhausted = cursor.scheduled_at is None and status is not ScheduleStatus.ENDED
    return replace(
        unchanged(schedule),
        runs=activation.carried if status is not ScheduleStatus.ENDED else (),
        cursor=cursor,
        careful_until=activation.careful_until,
        status=ScheduleStatus.ENDED if exhausted else status,
        status_reason="exhausted" if exhausted else status_reason,
        window_closed_at=new.effective_from + timedelta(seconds=1) if exhausted else None,
    )


def _named_between(
    version: Version, cadence: Cadence, from_: datetime, until: datetime
) -> Iterator[Occurrence]:
    """The occurrences in `[from_, until)` within the version's bounds, whatever its window."""
    unwindowed = replace(version, effective_from=min(version.effective_from, from_), effective_until=None)
    after = from_ - _MICROSECOND
    while (occurrence := next_named(unwindowed, cadence, after)) is not None:
        if occurrence.scheduled_at >= until:
            return
        yield occurrence
        after = occurrence.scheduled_at
