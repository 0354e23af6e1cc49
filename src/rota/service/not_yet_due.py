"""What is scheduled before an edit and falls due after it, because the schedule's occurrences are spread.

It stays the version's that named it, and falls due when it would have. As planned runs it keeps the next version from
nothing: else each edit in the hour of a spread of an hour would wait until the hour is over.
"""

from datetime import datetime, timedelta

from rota.domain.admission import RUNS_PER_ADMISSION_MAX, run_of
from rota.domain.cadence import Cadence, Occurrence
from rota.domain.key_uses import probe_of
from rota.domain.run import Run
from rota.domain.schedule import Cursor, ScheduleStatus, Version, next_named
from rota.service.context import Context
from rota.store.port import ScheduleRecord, read_uses


def planned_ahead(
    context: Context,
    record: ScheduleRecord,
    before: Version,
    cadence: Cadence | None,
    *,
    cursor: Cursor,
    now: datetime,
) -> list[Run] | None:
    """The runs, not there yet, of what is left of the version's window and falls due after `now`.

    None where the next version has to wait all the same: something is due, or would not become a run, or it is more
    than one commit holds.
    """
    instant, schedule = cursor.scheduled_at, record.schedule
    if (
        cadence is None
        or instant is None
        or instant + before.delay <= now
        or schedule.cursor.is_looked_at
        or schedule.status is not ScheduleStatus.ACTIVE
    ):
        return None
    left: list[Occurrence] = []
    after = instant - timedelta(seconds=1)
    while (occurrence := next_named(before, cadence, after)) is not None:
        if len(left) == RUNS_PER_ADMISSION_MAX or _is_suspended(record, occurrence.scheduled_at):
            return None
        left.append(occurrence)
        after = occurrence.scheduled_at
    probes = [probe_of(before, occurrence) for occurrence in left]
    uses = read_uses(context.store, schedule.schedule_id, probes)
    if any((use := uses[probe.run_id]) is not None and use.run_id != probe.run_id for probe in probes):
        return None
    return [
        run_of(schedule, before, occurrence, planned_at=now)
        for occurrence, probe in zip(left, probes, strict=True)
        if uses[probe.run_id] is None
    ]


def _is_suspended(record: ScheduleRecord, instant: datetime) -> bool:
    return any(suspension.covers(instant) for suspension in record.suspensions)
