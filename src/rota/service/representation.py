"""Domain values in wire names: the same shapes for HTTP, the CLI and the library."""

from collections.abc import Mapping
from datetime import datetime

from rota.domain.admission import Skip
from rota.domain.audit import AuditEvent
from rota.domain.cadence import Occurrence, SkippedLocal, explain
from rota.domain.definition import NO_SPREAD, definition_to_wire, overdue_to_wire
from rota.domain.delivery import Delivery
from rota.domain.durations import format_duration
from rota.domain.effect import Effect
from rota.domain.identity import replayed_run_id
from rota.domain.instants import EPOCH, format_instant, format_local, format_offset
from rota.domain.job import Job
from rota.domain.job_form import job_to_wire
from rota.domain.json_text import load_json
from rota.domain.key_uses import key_of
from rota.domain.run import Attempt, Run, RunDetail
from rota.domain.schedule import Suspension, Version
from rota.store.port import ScheduleRecord

Wire = dict[str, object]


def schedule_to_wire(record: ScheduleRecord, job: Job, *, next_due: datetime | None = None) -> Wire:
    """Defaults are shown resolved; `asked` says what was asked where it was not given outright.

    `next_due` is when a planned run falls due before the next occurrence that the version names, if one does.
    """
    schedule, version = record.schedule, record.version
    definition = version.definition
    asked = definition_to_wire(definition)
    return {
        "id": schedule.schedule_id,
        "job": schedule.job,
        **asked,
        "fold": version.fold,
        "period": version.period,
        "overdue": overdue_to_wire(definition.overdue or job.overdue),
        "asked": {name: asked[name] for name in ("fold", "period", "overdue")},
        "delay": _delay_to_wire(version),
        "params": load_json(definition.params),
        "labels": load_json(schedule.labels),
        "version": version.number,
        "latest_version": schedule.latest_version,
        "status": schedule.status.value,
        "status_reason": schedule.status_reason,
        "suspensions": [_suspension_to_wire(suspension) for suspension in record.suspensions],
        "next_due": optional_instant(next_due or next_due_at(record)),
        "effective_from": format_instant(version.effective_from),
        "pending": None if record.pending is None else version_to_wire(record.pending, job),
        "created_at": format_instant(schedule.created_at),
        "updated_at": format_instant(schedule.updated_at),
        "history_from": None if schedule.history_from == EPOCH else format_instant(schedule.history_from),
        "tzdata": version.tzdata,
    }


def next_due_at(record: ScheduleRecord) -> datetime | None:
    """When the instant falls due at which the schedule stands, or its next version takes over there."""
    instant, version = record.schedule.cursor.scheduled_at, record.version
    if instant is None or instant == version.effective_until:
        return instant
    return instant + version.delay


def _delay_to_wire(version: Version) -> str | None:
    return None if version.definition.spread == NO_SPREAD else format_duration(version.delay)


MEMBER_ORDER: Mapping[str, tuple[str, ...]] = {
    "": (
        *("id", "job", "timezone", "recurrence", "gap", "fold", "period", "overdue", "overlap"),
        *(
            "spread",
            "starts_at",
            "ends_at",
            "max_occurrences",
            "asked",
            "delay",
            "params",
            "labels",
            "version",
            "latest_version",
        ),
        *(
            "status",
            "status_reason",
            "suspensions",
            "next_due",
            "effective_from",
            "pending",
            "created_at",
            "updated_at",
            "history_from",
            "tzdata",
        ),
    ),
    "recurrence": ("every",),
    "overdue": ("policy",),
    "asked": ("fold", "period", "overdue"),
    "asked.overdue": ("policy",),
}
"""In which order `schedule_to_wire` shows members; those that are not named come last, by name."""


def in_shown_order(schedule: Wire) -> Wire:
    """A new schedule that was read from canonical text, with its members in the order of `schedule_to_wire`."""
    return _in_shown_order(schedule, "")


def _in_shown_order(members: Wire, path: str) -> Wire:
    first = MEMBER_ORDER[path]
    names = [*(name for name in first if name in members), *sorted(set(members) - set(first))]
    shown: Wire = {}
    for name in names:
        value = members[name]
        inner = f"{path}.{name}" if path else name
        shown[name] = (
            _in_shown_order(value, inner) if inner in MEMBER_ORDER and isinstance(value, dict) else value
        )
    return shown


def occurrence_to_wire(occurrence: Occurrence) -> Wire:
    return {
        "scheduled_at": format_instant(occurrence.scheduled_at),
        "local": format_local(occurrence.local),
        "named_local": format_local(occurrence.named_local),
        "offset": format_offset(occurrence.offset),
        "note": explain(occurrence),
    }


def named_to_wire(version: Version, occurrence: Occurrence) -> Wire:
    """An occurrence to come that nothing was decided about yet."""
    return {
        **occurrence_to_wire(occurrence),
        "due_at": format_instant(occurrence.scheduled_at + version.delay),
        "version": version.number,
        "period_key": key_of(version, occurrence),
        "state": "named",
        "run_id": None,
    }


def expected_run_to_wire(run: Run, version: Version | None) -> Wire:
    """A run that exists ahead of its time, in the shape of `named_to_wire`; `version` is its own."""
    delay = NO_SPREAD if version is None else version.delay
    notes = []
    if run.origin == "backfill":
        notes.append("backfill")
    elif run.due_at != run.scheduled_at + delay:
        notes.append(f"moved from {format_instant(run.scheduled_at)}")
    if run.carried_by is not None:
        notes.append(f"carried by version {run.carried_by}")
    return {
        "scheduled_at": format_instant(run.scheduled_at),
        "local": format_local(run.local),
        "named_local": format_local(run.named_local),
        "offset": format_offset(run.offset),
        "note": "; ".join(notes) or None,
        "due_at": format_instant(run.due_at),
        "version": run.version,
        "period_key": run.period_key,
        "state": run.state.value,
        "run_id": run.run_id,
    }


def version_to_wire(version: Version, job: Job) -> Wire:
    """A version as it is stored, with its window; defaults are shown resolved, as in a schedule."""
    definition = version.definition
    asked = definition_to_wire(definition)
    return {
        "version": version.number,
        **asked,
        "fold": version.fold,
        "period": version.period,
        "overdue": overdue_to_wire(definition.overdue or job.overdue),
        "asked": {name: asked[name] for name in ("fold", "period", "overdue")},
        "delay": _delay_to_wire(version),
        "params": load_json(definition.params),
        "effective_from": format_instant(version.effective_from),
        "effective_until": optional_instant(version.effective_until),
        "boundary": version.boundary,
        "tzdata": version.tzdata,
        "created_at": format_instant(version.created_at),
        "actor": version.actor,
        "reason": version.reason,
    }


def skipped_local_to_wire(skipped: SkippedLocal) -> Wire:
    return {"local": format_local(skipped.local), "reason": "gap", "note": skipped.message}


def run_to_wire(run: Run) -> Wire:
    return {
        "kind": "run",
        "run_id": run.run_id,
        "schedule_id": run.schedule_id,
        "version": run.version,
        "job": run.job,
        "scheduled_at": format_instant(run.scheduled_at),
        "due_at": format_instant(run.due_at),
        "local": format_local(run.local),
        "named_local": format_local(run.named_local),
        "offset": format_offset(run.offset),
        "period_key": run.period_key,
        "origin": run.origin,
        "state": run.state.value,
        "reason": run.reason,
        "planned_at": optional_instant(run.planned_at),
        "admitted_at": optional_instant(run.admitted_at),
        "started_at": optional_instant(run.started_at),
        "finished_at": optional_instant(run.finished_at),
        "available_at": optional_instant(run.available_at),
        "carried_by": run.carried_by,
        "replay_of": replayed_run_id(run.run_id) if run.origin == "replay" else None,
        "cancel_requested_at": optional_instant(run.cancel_requested_at),
        "lateness": {
            "admitted_ms": _millis_late(run.admitted_at, run.due_at),
            "started_ms": _millis_late(run.started_at, run.due_at),
        },
        "attempt": run.attempt,
        "progress": None
        if run.progress is None
        else {"fraction": run.progress.fraction, "message": run.progress.message},
        "error": run.error,
    }


def run_detail_to_wire(detail: RunDetail, *, made_by: Wire | None) -> Wire:
    """`made_by` is the version whose rule made the run; None where it cannot be read."""
    return {
        **run_to_wire(detail.run),
        "result": None if detail.result is None else load_json(detail.result),
        "attempts": [_attempt_to_wire(attempt) for attempt in detail.attempts],
        "effects": [_effect_to_wire(effect) for effect in detail.effects],
        "delivery": None if detail.delivery is None else delivery_to_wire(detail.delivery),
        "made_by": made_by,
    }


def delivery_to_wire(delivery: Delivery) -> Wire:
    return {
        "run_id": delivery.run_id,
        "attempt": delivery.attempt,
        "schedule_id": delivery.schedule_id,
        "job": delivery.job,
        "state": delivery.state.value,
        "tries": delivery.tries,
        "first_at": format_instant(delivery.first_at),
        "next_at": optional_instant(delivery.next_at),
        "sent_at": optional_instant(delivery.sent_at),
        "error": delivery.error,
    }


def skip_to_wire(skip: Skip) -> Wire:
    return {
        "kind": "skip",
        "schedule_id": skip.schedule_id,
        "version": skip.version,
        "from": format_instant(skip.from_),
        "until": format_instant(skip.until),
        "count": skip.count,
        "reason": skip.reason,
        "note": skip.note,
    }


def named_job_to_wire(job: Job) -> Wire:
    return {"name": job.name, **job_to_wire(job)}


def audit_to_wire(event: AuditEvent) -> Wire:
    return {
        "action": event.action,
        "at": format_instant(event.at),
        "actor": event.actor,
        "reason": event.reason,
        "details": load_json(event.details),
    }


def optional_instant(instant: datetime | None) -> str | None:
    return None if instant is None else format_instant(instant)


def _suspension_to_wire(suspension: Suspension) -> Wire:
    return {
        "from": format_instant(suspension.from_),
        "until": optional_instant(suspension.until),
        "reason": suspension.reason,
        "apply_overdue": suspension.apply_overdue,
    }


def _attempt_to_wire(attempt: Attempt) -> Wire:
    return {
        "number": attempt.number,
        "worker": attempt.worker,
        "opened_at": format_instant(attempt.opened_at),
        "lease_expires_at": format_instant(attempt.lease_expires_at),
        "finished_at": optional_instant(attempt.finished_at),
        "outcome": None if attempt.outcome is None else attempt.outcome.value,
        "error": attempt.error,
    }


def _effect_to_wire(effect: Effect) -> Wire:
    return {
        "name": effect.name,
        "begun_by": effect.begun_by,
        "begun_at": format_instant(effect.begun_at),
        "recorded_at": optional_instant(effect.recorded_at),
        "result": None if effect.result is None else load_json(effect.result),
    }


def _millis_late(happened_at: datetime | None, due_at: datetime) -> int | None:
    return None if happened_at is None else round((happened_at - due_at).total_seconds() * 1000)
