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
from rota.domain.run import SETTLED, AttemptOutcome, Run, RunChange, RunEvent, RunState
from rota.domain.schedule import (
    CadenceRow,
    Cursor,
    Definition,
    Overlap,
    Schedule,
    ScheduleStatus,
    Suspension,
    Version,
    ZoneRulesRow,
)
from rota.domain.settlement import AttemptEnd, Settlement
from rota.store.port import IdempotencyRecord, NewSchedule, NewVersion, ScheduleChange

NINE = datetime(2026, 1, 10, 9, tzinfo=UTC)
"""The instant at which the schedules of the contract first fall due."""

MADE_AT = datetime(2026, 1, 5, 12, 30, 15, 250_000, tzinfo=UTC)
"""When they were created: stamps have milliseconds."""

OPENS_AT = datetime(2026, 1, 5, 12, 30, 16, tzinfo=UTC)
"""Where the window of their first version begins."""

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
    overlap: Overlap = "allow",
    spread: timedelta = timedelta(0),
) -> Definition:
    return Definition(
        timezone=timezone,
        recurrence=recurrence,
        gap=gap,
        fold="auto",
        period="auto",
        overdue=overdue,
        params=params,
        overlap=overlap,
        spread=spread,
    )


def cursor(instant: datetime | None, *, version: int = 1) -> Cursor:
    return Cursor(version=version, scheduled_at=instant, due_at=instant)


def new_version(
    id_: str = "report-7",
    of: Definition | None = None,
    *,
    number: int = 1,
    effective_from: datetime = OPENS_AT,
    fingerprint: str | None = None,
) -> NewVersion:
    """A version of that schedule; its cadence is one that all with an equal rule and equal zone rules share."""
    of = of or definition()
    fingerprint = fingerprint or digest_of(of.timezone)
    cadence = CadenceRow(
        cadence_id=digest_of(repr((of.recurrence, of.timezone, of.gap, fingerprint))),
        recurrence=of.recurrence,
        timezone=of.timezone,
        gap=of.gap,
        fold="first",
        fingerprint=fingerprint,
    )
    version = Version(
        schedule_id=ScheduleId(id_),
        number=number,
        definition=of,
        cadence_id=cadence.cadence_id,
        fold=cadence.fold,
        period="day",
        tzdata="2026.1",
        fingerprint=fingerprint,
        effective_from=effective_from,
        effective_until=None,
        last_scheduled_at=None,
        created_at=MADE_AT,
    )
    return NewVersion(version=version, cadence=cadence, zone_rules=zone_rules_row(of.timezone, fingerprint))


def zone_rules_row(timezone: str, fingerprint: str, *, tzdata: str = "2026.1") -> ZoneRulesRow:
    offsets = encode_json({"first": 0, "changes": [[0, 3600]]})
    return ZoneRulesRow(timezone=timezone, fingerprint=fingerprint, tzdata=tzdata, offsets=offsets)


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
    """What creating the schedule writes."""
    schedule_id = ScheduleId(id_)
    first = new_version(id_, of)
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
        definition_digest=digest_of(repr(first.version.definition)),
    )
    return NewSchedule(
        schedule=schedule,
        first=first,
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


def change_of(schedule: Schedule, *, at: datetime = NINE) -> ScheduleChange:
    """A change that expects the schedule as given and changes nothing, to be given what it is to do."""
    return ScheduleChange(
        schedule_id=schedule.schedule_id,
        expected_revision=schedule.revision,
        expected_cursor=schedule.cursor,
        at=at,
    )


def status_change(
    schedule: Schedule,
    status: ScheduleStatus,
    *,
    at: datetime,
    cursor: Cursor | None = None,
    status_reason: str | None = None,
) -> ScheduleChange:
    actions: dict[ScheduleStatus, AuditAction] = {
        ScheduleStatus.ACTIVE: "schedule.resume",
        ScheduleStatus.PAUSED: "schedule.pause",
        ScheduleStatus.ERROR: "schedule.error",
        ScheduleStatus.ENDED: "schedule.end",
    }
    return replace(
        change_of(schedule, at=at),
        status=status,
        status_reason=status_reason,
        event=audit_event(schedule.schedule_id, actions[status], at=at),
        cursor=cursor,
    )


def pause(schedule: Schedule, *, at: datetime) -> ScheduleChange:
    opened = Suspension(from_=at, until=None, reason="paused")
    return replace(status_change(schedule, ScheduleStatus.PAUSED, at=at), suspension_opened=opened)


def resume(schedule: Schedule, *, at: datetime, paused_at: datetime) -> ScheduleChange:
    closed = Suspension(from_=paused_at, until=at, reason="paused")
    return replace(status_change(schedule, ScheduleStatus.ACTIVE, at=at), suspension_closed=closed)


def edit(
    schedule: Schedule, new: NewVersion, *, at: datetime = NINE, cursor: Cursor | None = None
) -> ScheduleChange:
    """One that ends the window of the latest version where that of the new one begins."""
    return replace(
        change_of(schedule, at=at),
        versions=(new,),
        windows=((schedule.latest_version, new.version.effective_from),),
        cursor=cursor,
        event=audit_event(schedule.schedule_id, "schedule.edit", at=at),
    )


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


def planned_run_at(
    schedule: Schedule, instant: datetime, *, due: datetime | None = None, period_key: str | None = None
) -> Run:
    """The run of the schedule's occurrence at `instant`, as it is planned ahead; moved where `due` is told."""
    return replace(
        run_at(schedule, instant, period_key=period_key),
        due_at=due or instant,
        state=RunState.PLANNED,
        planned_at=MADE_AT,
        admitted_at=None,
        available_at=None,
    )


def change_to(run: Run, state: RunState, *, at: datetime = NINE, reason: str | None = None) -> RunChange:
    """The change of a run as it is to that state; `at` is its stamp there."""
    changed = replace(run, state=state, reason=reason)
    if state is RunState.QUEUED:
        changed = replace(changed, admitted_at=at, available_at=run.due_at)
    elif state in SETTLED:
        changed = replace(changed, finished_at=at)
    return RunChange(expected_state=run.state, run=changed)


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
        expected_revision=schedule.revision,
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
