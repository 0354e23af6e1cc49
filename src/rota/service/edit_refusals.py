"""Edits that cannot be: of what has ended, beside a version that waits, and of a one-time schedule that is used up."""

from datetime import datetime

from rota.domain.errors import Conflict
from rota.domain.instants import format_instant
from rota.domain.key_uses import KeyUse, probe_of
from rota.domain.run import Run, RunState
from rota.domain.schedule import Version
from rota.service.context import Context
from rota.service.versions import ResolvedVersion
from rota.store.port import ScheduleRecord


def check_once(context: Context, record: ScheduleRecord, resolved: ResolvedVersion) -> None:
    """A one-time schedule runs once: raises `Conflict` where a run uses that up already."""
    new = resolved.version
    if new.period != "once":
        return
    probe = probe_of(new, resolved.first)
    [use] = context.store.read_key_uses(record.schedule.schedule_id, [probe])
    cursor = record.schedule.cursor.scheduled_at
    if record.version.period != "once" and new.boundary != "now":
        is_owed = cursor is not None and cursor < new.effective_from
        if use is not None or is_owed:
            there = "occurrences are to run before" if use is None else f"run {use.run_id} is there already"
            raise Conflict(
                f"A one-time schedule runs once, and {there}: end this schedule and create another, or give "
                '"boundary": "now".',
                field="recurrence",
            )
    if use is None or use.frees_its_period:
        return
    raise Conflict(_why_once(record, use), field="recurrence")


def _why_once(record: ScheduleRecord, use: KeyUse) -> str:
    instant = use.run_id.rpartition(".")[2]
    move = f"POST /schedules/{record.schedule.schedule_id}/occurrences/{instant}/move"
    if use.state in (RunState.PLANNED, RunState.HELD):
        return f"Its one occurrence is {use.state} (run {use.run_id}): move that one, by {move}."
    return (
        f"Its one occurrence is {use.state} (run {use.run_id}). Before that it could be moved ({move}); now create "
        f"another schedule, or replay the run."
    )


def why_pending(pending: Version, *, now: datetime) -> str:
    takes_over = f"it does at {format_instant(pending.effective_from)}"
    if pending.effective_from <= now:
        takes_over = f"its boundary is {format_instant(pending.effective_from)}, and what is owed before is not decided"
    return (
        f"Version {pending.number} has not taken over yet ({takes_over}); wait for it, or give "
        '"replaces_pending": true, which leaves it without a window.'
    )


def why_ended(context: Context, record: ScheduleRecord) -> str:
    schedule = record.schedule
    if record.version.period == "once":
        for entry in context.store.list_ledger(schedule.schedule_id, before=None, limit=1):
            if isinstance(entry, Run):
                return _why_once(record, KeyUse(run_id=entry.run_id, state=entry.state, reason=entry.reason))
    return f"Schedule {schedule.schedule_id!r} has ended; create a new one."
