"""Between rows and domain values: what each column of a table says of a value, and back.

Reading a row raises whatever is wrong with it; callers say whose row it was by `cells.reading`.
"""

from collections.abc import Mapping
from typing import Literal, cast, get_args

from sqlalchemy import RowMapping

from rota.domain.admission import Skip, SkipReason
from rota.domain.audit import AuditAction, AuditEvent
from rota.domain.cadence import Fold, Gap
from rota.domain.identity import RunId, ScheduleId
from rota.domain.period import Period
from rota.domain.run import Attempt, AttemptOutcome, Origin, Progress, Run, RunState
from rota.domain.schedule import (
    Boundary,
    CadenceRow,
    Cursor,
    Schedule,
    ScheduleStatus,
    Suspension,
    Version,
    ZoneRulesRow,
)
from rota.store.port import IdempotencyRecord, Intent, PartitionState
from rota.store.sql import bounds, cells, texts

Values = Mapping[str, object]

FOLDS, GAPS, PERIODS, BOUNDARIES = map(get_args, (Fold, Gap, Period, Boundary))
"""Asked for once: it takes as long as reading some cells."""


# --- schedules -------------------------------------------------------------------------------------------------------


def schedule_values(schedule: Schedule) -> Values:
    return {
        "id": schedule.schedule_id,
        "slot": schedule.slot,
        "partition": schedule.partition,
        "job": schedule.job,
        "labels": schedule.labels,
        "status": schedule.status.value,
        "status_reason": schedule.status_reason,
        "version": schedule.cursor.version,
        "next_scheduled_at": cells.millis_or_none(schedule.cursor.scheduled_at),
        "next_due": cells.millis_or_none(schedule.cursor.due_at),
        "latest_version": schedule.latest_version,
        "revision": schedule.revision,
        "created_at": cells.millis(schedule.created_at),
        "updated_at": cells.millis(schedule.updated_at),
        "history_from": cells.millis(schedule.history_from),
        "careful_until": cells.millis_or_none(schedule.careful_until),
        "turn": schedule.turn,
        "definition_digest": schedule.definition_digest,
    }


def to_cursor(row: RowMapping) -> Cursor:
    return Cursor(
        version=cells.integer(row["version"]),
        scheduled_at=cells.instant_or_none(row["next_scheduled_at"]),
        due_at=cells.instant_or_none(row["next_due"]),
    )


def to_schedule(row: RowMapping) -> Schedule:
    return Schedule(
        schedule_id=ScheduleId(cells.text(row["id"])),
        partition=cells.integer(row["partition"]),
        slot=cells.integer(row["slot"]),
        job=cells.text(row["job"]),
        labels=cells.json_texts(row["labels"]),
        status=ScheduleStatus(row["status"]),
        status_reason=cells.text_or_none(row["status_reason"]),
        cursor=to_cursor(row),
        latest_version=cells.integer(row["latest_version"]),
        created_at=cells.instant(row["created_at"]),
        updated_at=cells.instant(row["updated_at"]),
        history_from=cells.instant(row["history_from"]),
        careful_until=cells.instant_or_none(row["careful_until"]),
        definition_digest=cells.text(row["definition_digest"]),
        turn=cells.integer(row["turn"]),
        revision=cells.integer(row["revision"]),
    )


def version_values(version: Version) -> Values:
    return {
        "schedule_id": version.schedule_id,
        "number": version.number,
        "cadence_id": version.cadence_id,
        "definition": texts.definition_text(version.definition),
        "params": version.definition.params,
        "fold": version.fold,
        "period": version.period,
        "tzdata": version.tzdata,
        "timezone": version.definition.timezone,
        "fingerprint": version.fingerprint,
        "effective_from": cells.millis(version.effective_from),
        "effective_until": cells.millis_or_none(version.effective_until),
        "last_scheduled_at": cells.millis_or_none(version.last_scheduled_at),
        "created_at": cells.millis(version.created_at),
        "actor": version.actor,
        "reason": version.reason,
        "boundary": version.boundary,
        "series": version.series,
        "counts_from": cells.millis_or_none(version.counts_from),
        "named_before": version.named_before,
        "overlap": version.definition.overlap,
        **bounds.bound_values(version),
    }


def to_version(row: RowMapping) -> Version:
    """The version in a row that bears `version_` before the name of each of its columns."""
    return Version(
        schedule_id=ScheduleId(cells.text(row["version_schedule_id"])),
        number=cells.integer(row["version_number"]),
        definition=texts.definition_with(
            cells.text(row["version_definition"]), cells.json_object(row["version_params"])
        ),
        cadence_id=cells.text(row["version_cadence_id"]),
        fold=cast("Fold", cells.choice(row["version_fold"], FOLDS)),
        period=cast("Period", cells.choice(row["version_period"], PERIODS)),
        tzdata=cells.text(row["version_tzdata"]),
        fingerprint=cells.text(row["version_fingerprint"]),
        effective_from=cells.instant(row["version_effective_from"]),
        effective_until=cells.instant_or_none(row["version_effective_until"]),
        last_scheduled_at=cells.instant_or_none(row["version_last_scheduled_at"]),
        created_at=cells.instant(row["version_created_at"]),
        actor=cells.text_or_none(row["version_actor"]),
        reason=cells.text_or_none(row["version_reason"]),
        boundary=cast("Boundary", cells.choice(row["version_boundary"], BOUNDARIES)),
        series=cells.integer(row["version_series"]),
        counts_from=cells.instant_or_none(row["version_counts_from"]),
        named_before=cells.integer(row["version_named_before"]),
    )


def cadence_values(cadence: CadenceRow) -> Values:
    return {
        "id": cadence.cadence_id,
        "recurrence": texts.recurrence_text(cadence.recurrence),
        "timezone": cadence.timezone,
        "gap": cadence.gap,
        "fold": cadence.fold,
        "fingerprint": cadence.fingerprint,
    }


def to_cadence(row: RowMapping) -> CadenceRow:
    return CadenceRow(
        cadence_id=cells.text(row["id"]),
        recurrence=texts.read_recurrence(cells.text(row["recurrence"])),
        timezone=cells.text(row["timezone"]),
        gap=cast("Gap", cells.choice(row["gap"], GAPS)),
        fold=cast("Fold", cells.choice(row["fold"], FOLDS)),
        fingerprint=cells.text(row["fingerprint"]),
    )


def zone_rules_values(zone_rules: ZoneRulesRow) -> Values:
    return {
        "timezone": zone_rules.timezone,
        "fingerprint": zone_rules.fingerprint,
        "tzdata": zone_rules.tzdata,
        "offsets": zone_rules.offsets,
    }


def to_zone_rules(row: RowMapping) -> ZoneRulesRow:
    zone_rules = ZoneRulesRow(
        timezone=cells.text(row["timezone"]),
        fingerprint=cells.text(row["fingerprint"]),
        tzdata=cells.text(row["tzdata"]),
        offsets=cells.json_object(row["offsets"]),
    )
    texts.check_offsets(zone_rules.offsets)
    return zone_rules


def suspension_values(schedule_id: ScheduleId, suspension: Suspension) -> Values:
    return {
        "schedule_id": schedule_id,
        "from_at": cells.millis(suspension.from_),
        "until_at": cells.millis_or_none(suspension.until),
        "reason": suspension.reason,
        "apply_overdue": suspension.apply_overdue,
    }


def to_suspension(row: RowMapping) -> Suspension:
    return Suspension(
        from_=cells.instant(row["from_at"]),
        until=cells.instant_or_none(row["until_at"]),
        reason=cast("Literal['paused', 'error']", row["reason"]),
        apply_overdue=bool(row["apply_overdue"]),
    )


def audit_values(event: AuditEvent) -> Values:
    return {
        "schedule_id": event.schedule_id,
        "action": event.action,
        "at": cells.millis(event.at),
        "actor": event.actor,
        "reason": event.reason,
        "details": event.details,
    }


def to_audit_event(row: RowMapping) -> AuditEvent:
    return AuditEvent(
        schedule_id=ScheduleId(cells.text(row["schedule_id"])),
        action=cast("AuditAction", row["action"]),
        at=cells.instant(row["at"]),
        actor=cells.text_or_none(row["actor"]),
        reason=cells.text_or_none(row["reason"]),
        details=cells.json_text(row["details"]),
    )


# --- runs ------------------------------------------------------------------------------------------------------------


def run_values(run: Run) -> Values:
    progress = run.progress
    return {
        "run_id": run.run_id,
        "schedule_id": run.schedule_id,
        "version": run.version,
        "scheduled_at": cells.millis(run.scheduled_at),
        "due_at": cells.millis(run.due_at),
        "named_local": cells.local_millis(run.named_local),
        "offset_seconds": run.offset.days * 86_400 + run.offset.seconds,
        "period_key": run.period_key,
        "origin": run.origin,
        "job": run.job,
        "partition": run.partition,
        "state": run.state.value,
        "reason": run.reason,
        "planned_at": cells.millis_or_none(run.planned_at),
        "admitted_at": cells.millis_or_none(run.admitted_at),
        "started_at": cells.millis_or_none(run.started_at),
        "finished_at": cells.millis_or_none(run.finished_at),
        "attempt": run.attempt,
        "available_at": cells.millis_or_none(run.available_at),
        "progress_fraction": None if progress is None else progress.fraction,
        "progress_message": None if progress is None else progress.message,
        "error": run.error,
        "cancel_requested_at": cells.millis_or_none(run.cancel_requested_at),
        "turn": run.turn,
        "second_pass": run.second_pass,
        "carried_by": run.carried_by,
    }


def to_run(row: RowMapping) -> Run:
    fraction = row["progress_fraction"]
    return Run(
        run_id=RunId(cells.text(row["run_id"])),
        schedule_id=ScheduleId(cells.text(row["schedule_id"])),
        version=cells.integer(row["version"]),
        scheduled_at=cells.instant(row["scheduled_at"]),
        due_at=cells.instant(row["due_at"]),
        named_local=cells.instant(row["named_local"]).replace(tzinfo=None),
        offset=cells.offset(row["offset_seconds"]),
        period_key=cells.text(row["period_key"]),
        origin=cast("Origin", row["origin"]),
        job=cells.text(row["job"]),
        partition=cells.integer(row["partition"]),
        state=RunState(row["state"]),
        reason=cells.text_or_none(row["reason"]),
        planned_at=cells.instant_or_none(row["planned_at"]),
        admitted_at=cells.instant_or_none(row["admitted_at"]),
        started_at=cells.instant_or_none(row["started_at"]),
        finished_at=cells.instant_or_none(row["finished_at"]),
        attempt=cells.integer(row["attempt"]),
        available_at=cells.instant_or_none(row["available_at"]),
        progress=None
        if fraction is None
        else Progress(fraction=cells.number(fraction), message=cells.text_or_none(row["progress_message"])),
        error=cells.text_or_none(row["error"]),
        cancel_requested_at=cells.instant_or_none(row["cancel_requested_at"]),
        turn=cells.integer(row["turn"]),
        second_pass=bool(row["second_pass"]),
        carried_by=None if row["carried_by"] is None else cells.integer(row["carried_by"]),
    )


def skip_values(skip: Skip) -> Values:
    return {
        "schedule_id": skip.schedule_id,
        "from_at": cells.millis(skip.from_),
        "version": skip.version,
        "reason": skip.reason,
        "until_at": cells.millis(skip.until),
        "count": skip.count,
        "note": skip.note,
    }


def to_skip(row: RowMapping) -> Skip:
    return Skip(
        schedule_id=ScheduleId(cells.text(row["schedule_id"])),
        version=cells.integer(row["version"]),
        from_=cells.instant(row["from_at"]),
        until=cells.instant(row["until_at"]),
        count=cells.integer(row["count"]),
        reason=cast("SkipReason", row["reason"]),
        note=cells.text_or_none(row["note"]),
    )


def attempt_values(attempt: Attempt, *, partition: int) -> Values:
    """`partition` is its run's."""
    return {
        "run_id": attempt.run_id,
        "number": attempt.number,
        "worker": attempt.worker,
        "partition": partition,
        "opened_at": cells.millis(attempt.opened_at),
        "lease_expires_at": cells.millis(attempt.lease_expires_at),
        "finished_at": cells.millis_or_none(attempt.finished_at),
        "outcome": None if attempt.outcome is None else attempt.outcome.value,
        "error": attempt.error,
    }


def to_attempt(row: RowMapping) -> Attempt:
    outcome = row["outcome"]
    return Attempt(
        run_id=RunId(cells.text(row["run_id"])),
        number=cells.integer(row["number"]),
        worker=cells.text(row["worker"]),
        opened_at=cells.instant(row["opened_at"]),
        lease_expires_at=cells.instant(row["lease_expires_at"]),
        finished_at=cells.instant_or_none(row["finished_at"]),
        outcome=None if outcome is None else AttemptOutcome(outcome),
        error=cells.text_or_none(row["error"]),
    )


# --- what belongs to no run ------------------------------------------------------------------------------------------


def idempotency_values(record: IdempotencyRecord) -> Values:
    return {
        "key": record.key,
        "request_digest": record.request_digest,
        "answer": record.answer,
        "expires_at": cells.millis(record.expires_at),
    }


def to_idempotency(row: RowMapping) -> IdempotencyRecord:
    return IdempotencyRecord(
        key=cells.text(row["key"]),
        request_digest=cells.text(row["request_digest"]),
        answer=cells.json_text(row["answer"]),
        expires_at=cells.instant(row["expires_at"]),
    )


def to_partition(row: RowMapping) -> PartitionState:
    return PartitionState(
        partition=cells.integer(row["partition"]),
        owner=cells.text_or_none(row["owner"]),
        epoch=cells.integer(row["epoch"]),
        expires_at=cells.instant_or_none(row["expires_at"]),
        checkpoint=cells.instant_or_none(row["checkpoint"]),
    )


def to_intent(row: RowMapping) -> Intent:
    return Intent(
        run_id=RunId(cells.text(row["run_id"])),
        attempt=cells.integer(row["attempt"]),
        job=cells.text(row["job"]),
        available_at=cells.instant(row["available_at"]),
        turn=cells.integer(row["turn"]),
    )
