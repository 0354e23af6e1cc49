"""Domain values for the contract: whole and plausible, so that a test spells out only what it is about."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from rota.domain.admission import Admission, Skip, SkipReason
from rota.domain.audit import AuditAction, AuditEvent
from rota.domain.cadence import Gap
from rota.domain.identity import RunId, ScheduleId, digest_of, run_id_of, slot_of
from rota.domain.json_text import JsonText, encode_json
from rota.domain.overdue import OverduePolicy
from rota.domain.recurrence import Cron, Recurrence
from rota.domain.run import AttemptOutcome, Run, RunEvent, RunState
from rota.domain.schedule import (
    CadenceRow,
    Cursor,
    Definition,
    Schedule,
    ScheduleStatus,
    Suspension,
    Version,
)
from rota.domain.settlement import AttemptEnd, Settlement
from rota.store.port import IdempotencyRecord, NewSchedule, StatusChange

NINE = datetime(2026, 1, 10, 9, tzinfo=UTC)
"""The instant at which the schedules of the contract first fall due."""

MADE_AT = datetime(2026, 1, 5, 12, 30, 15, 250_000, tzinfo=UTC)
"""When they were created: stamps have milliseconds."""

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
MILLISECOND = timedelta(milliseconds=1)
DAY = timedelta(days=1)


def labels(**values: str) -> JsonText:
    return encode_json(values)


def definition(
    recurrence: Recurrence = Cron(expression="0 9 * * *"),  # noqa: B008  a frozen value
    *,
    timezone: str = "UTC",
    gap: Gap = "skip",
    overdue: OverduePolicy | None = None,
    params: JsonText = JsonText("{}"),  # noqa: B008  a text
) -> Definition:
    return Definition(
        timezone=timezone,
        recurrence=recurrence,
        gap=gap,
        fold="auto",
        period="auto",
        overdue=overdue,
        params=params,
    )


def cursor(instant: datetime | None, *, version: int = 1) -> Cursor:
    return Cursor(version=version, scheduled_at=instant, due_at=instant)


def new_schedule(
    id_: str = "report-7",
    *,
    due: datetime | None = NINE,
    partition: int = 0,
    job: str = "sales_report",
    labels: JsonText = JsonText("{}"),  # noqa: B008  a text
    of: Definition | None = None,
    history_from: datetime = MADE_AT,
    idempotency: IdempotencyRecord | None = None,
) -> NewSchedule:
    """What creating the schedule writes; its cadence is one that all with an equal rule share."""
    schedule_id = ScheduleId(id_)
    of = of or definition()
    cadence = CadenceRow(
        cadence_id=digest_of(repr((of.recurrence, of.timezone, of.gap))),
        recurrence=of.recurrence,
        timezone=of.timezone,
        gap=of.gap,
        fold="first",
        fingerprint=digest_of(of.timezone),
    )
    version = Version(
        schedule_id=schedule_id,
        number=1,
        definition=of,
        cadence_id=cadence.cadence_id,
        fold=cadence.fold,
        period="day",
        tzdata="2026.1",
        fingerprint=cadence.fingerprint,
        effective_from=MADE_AT.replace(microsecond=0) + SECOND,
        effective_until=None,
        last_scheduled_at=None,
        created_at=MADE_AT,
    )
    schedule = Schedule(
        schedule_id=schedule_id,
        partition=partition,
        slot=slot_of(schedule_id),
        job=job,
        labels=labels,
        status=ScheduleStatus.ACTIVE,
        status_reason=None,
        cursor=cursor(due),
        latest_version=1,
        created_at=MADE_AT,
        updated_at=MADE_AT,
        history_from=history_from,
        careful_until=None,
        definition_digest=digest_of(repr(of)),
    )
    return NewSchedule(
        schedule=schedule,
        version=version,
        cadence=cadence,
        event=audit_event(id_, "schedule.create", at=MADE_AT),
        idempotency=idempotency,
    )


def audit_event(id_: str = "report-7", action: AuditAction = "run.cancel", *, at: datetime) -> AuditEvent:
    return AuditEvent(schedule_id=ScheduleId(id_), action=action, at=at, actor="ops", reason="asked for")


def idempotency_record(
    key: str = "order-1", *, expires_at: datetime = MADE_AT + DAY, digest: str = "d1"
) -> IdempotencyRecord:
    return IdempotencyRecord(
        key=key, request_digest=digest, answer=encode_json({"id": key}), expires_at=expires_at
    )


def status_change(
    schedule: Schedule,
    status: ScheduleStatus,
    *,
    at: datetime,
    cursor: Cursor | None = None,
    status_reason: str | None = None,
) -> StatusChange:
    """A change of status that expects the schedule as given, and leaves its cursor unless told otherwise."""
    actions: dict[ScheduleStatus, AuditAction] = {
        ScheduleStatus.ACTIVE: "schedule.resume",
        ScheduleStatus.PAUSED: "schedule.pause",
        ScheduleStatus.ERROR: "schedule.error",
        ScheduleStatus.ENDED: "schedule.end",
    }
    return StatusChange(
        schedule_id=schedule.schedule_id,
        expected_status=schedule.status,
        expected_cursor=schedule.cursor,
        status=status,
        status_reason=status_reason,
        event=audit_event(schedule.schedule_id, actions[status], at=at),
        cursor=cursor or schedule.cursor,
    )


def pause(schedule: Schedule, *, at: datetime) -> StatusChange:
    opened = Suspension(from_=at, until=None, reason="paused")
    return replace(status_change(schedule, ScheduleStatus.PAUSED, at=at), suspension_opened=opened)


def resume(schedule: Schedule, *, at: datetime, paused_at: datetime) -> StatusChange:
    closed = Suspension(from_=paused_at, until=at, reason="paused")
    return replace(status_change(schedule, ScheduleStatus.ACTIVE, at=at), suspension_closed=closed)


def run_at(schedule: Schedule, instant: datetime, *, period_key: str | None = None) -> Run:
    """The queued run of the schedule's occurrence at `instant`, as the planner makes it."""
    return Run(
        run_id=run_id_of(schedule.schedule_id, schedule.cursor.version, instant),
        schedule_id=schedule.schedule_id,
        version=schedule.cursor.version,
        scheduled_at=instant,
        due_at=instant,
        named_local=instant.replace(tzinfo=None),
        offset=timedelta(0),
        period_key=period_key or f"instant:{instant.isoformat()}",
        origin="schedule",
        job=schedule.job,
        partition=schedule.partition,
        state=RunState.QUEUED,
        admitted_at=instant,
        available_at=instant,
    )


def skip_at(
    schedule: Schedule,
    from_: datetime,
    until: datetime,
    *,
    reason: SkipReason = "superseded",
    count: int = 1,
    note: str | None = None,
) -> Skip:
    return Skip(
        schedule_id=schedule.schedule_id,
        version=schedule.cursor.version,
        from_=from_,
        until=until,
        count=count,
        reason=reason,
        note=note,
    )


def admission(
    schedule: Schedule,
    *,
    runs: Sequence[Run] | None = None,
    skips: Sequence[Skip] = (),
    next_due: datetime | None = NINE + DAY,
) -> Admission:
    """An admission that expects the schedule as given: of the run at its cursor, unless told of others."""
    if runs is None:
        instant = schedule.cursor.scheduled_at
        runs = [] if instant is None else [run_at(schedule, instant)]
    return Admission(
        schedule_id=schedule.schedule_id,
        expected_status=schedule.status,
        expected_cursor=schedule.cursor,
        runs=tuple(runs),
        skips=tuple(skips),
        cursor=replace(schedule.cursor, scheduled_at=next_due, due_at=next_due),
        status=schedule.status,
        status_reason=schedule.status_reason,
    )


def success(run_id: str, *, at: datetime, attempt: int = 1, result: JsonText | None = None) -> Settlement:
    end = AttemptEnd(outcome=AttemptOutcome.SUCCEEDED, result=result)
    return settlement(run_id, end, RunEvent.SUCCEEDED, at=at, attempt=attempt)


def failure(
    run_id: str, *, at: datetime, attempt: int = 1, retry_at: datetime | None = None, error: str = "no paper"
) -> Settlement:
    """For good, or with a further attempt at `retry_at`."""
    end = AttemptEnd(outcome=AttemptOutcome.FAILED, error=error)
    event = RunEvent.FAILED_FOR_GOOD if retry_at is None else RunEvent.RETRY_SCHEDULED
    return replace(settlement(run_id, end, event, at=at, attempt=attempt), retry_at=retry_at)


def loss(run_id: str, *, at: datetime, retry_at: datetime, attempt: int = 1) -> Settlement:
    """What recovery commits for an attempt whose lease ran out."""
    end = AttemptEnd(outcome=AttemptOutcome.LOST, error="the lease ran out")
    settled = settlement(run_id, end, RunEvent.RETRY_SCHEDULED, at=at, attempt=attempt)
    return replace(settled, retry_at=retry_at, only_if_expired=True)


def settlement(
    run_id: str, end: AttemptEnd, event: RunEvent, *, at: datetime, attempt: int = 1
) -> Settlement:
    return Settlement(
        run_id=RunId(run_id), attempt=attempt, end=end, event=event, settled_at=at, retry_at=None
    )
