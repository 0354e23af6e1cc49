"""Admissions: a batch of elements in one transaction, each of them applied whole or not at all (I3).

1. The partition's row is read under a share lock: the epoch must be the fence's, and stays it until the commit (I6).
2. The schedules are read under row locks and compared with what each element expects; a stale element drops out.
3. Schedules are advanced, runs, delivery intents and skips are written, each table by one statement for the batch. The
   condition is repeated in the update: should it ever find another state, the batch is undone.
4. A key that exists already (the net under I2) undoes the batch as well. It is then done again element by element, so
   that only the offender is told `KEY_USED`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, insert, select, update
from sqlalchemy.exc import IntegrityError

from rota.domain.admission import Admission
from rota.domain.schedule import Cursor, ScheduleStatus
from rota.store.port import AdmissionOutcome, Fence
from rota.store.sql import cells, rows
from rota.store.sql.batches import Part, holds
from rota.store.sql.engine import is_unique_violation
from rota.store.sql.outbox import write_intents
from rota.store.sql.prepared import Prepared
from rota.store.sql.schema import runs, schedules
from rota.store.sql.skips import write_skips

_State = tuple[str, int, int | None, int | None]
"""What an admission expects of a schedule's row, and what it makes of it: status and cursor, as stored."""


@dataclass(slots=True)
class _Standing:
    """How a schedule stands: as its row says, then as the elements before in the batch have left it."""

    partition: int
    state: _State
    history_from: int


class SqlAdmissions(Part):
    def commit_admissions(
        self, fence: Fence, admissions: Sequence[Admission], *, now: datetime
    ) -> list[AdmissionOutcome]:
        self._check_count(admissions)
        try:
            with self._database.writing() as connection:
                return _admit(connection, fence, admissions, now=now)
        except IntegrityError as error:
            if not is_unique_violation(error):
                raise
        with self._database.writing() as connection:
            return [_admit_alone(connection, fence, admission, now=now) for admission in admissions]


def _admit_alone(
    connection: Connection, fence: Fence, admission: Admission, *, now: datetime
) -> AdmissionOutcome:
    try:
        with connection.begin_nested():
            [outcome] = _admit(connection, fence, [admission], now=now)
    except IntegrityError as error:
        if not is_unique_violation(error):
            raise
        return AdmissionOutcome.KEY_USED
    return outcome


def _admit(
    connection: Connection, fence: Fence, admissions: Sequence[Admission], *, now: datetime
) -> list[AdmissionOutcome]:
    if not admissions:
        return []
    if not holds(connection, fence):
        return [AdmissionOutcome.FENCED] * len(admissions)
    standings = _read_standings(connection, admissions)
    outcomes: list[AdmissionOutcome] = []
    accepted: list[Admission] = []
    advances: list[rows.Values] = []
    for admission in admissions:
        standing = standings.get(admission.schedule_id)
        outcome = _judge(standing, fence, admission)
        outcomes.append(outcome)
        if standing is not None and outcome is AdmissionOutcome.ADMITTED:
            accepted.append(admission)
            advances.append(_advance(standing, admission, now=now))
    _ADVANCE.change_each(connection, advances)
    admitted = [run for admission in accepted for run in admission.runs]
    _WRITE_RUN.execute(connection, [rows.run_values(run) for run in admitted])
    write_intents(connection, admitted)
    write_skips(connection, [skip for admission in accepted for skip in admission.skips])
    return outcomes


def _read_standings(connection: Connection, admissions: Sequence[Admission]) -> dict[str, _Standing]:
    ids = {"ids": list({admission.schedule_id for admission in admissions})}
    return {
        id_: _Standing(partition, (status, version, scheduled_at, due), history_from)
        for id_, partition, status, version, scheduled_at, due, history_from in connection.execute(
            _READ_STANDINGS, ids
        )
    }


def _judge(standing: _Standing | None, fence: Fence, admission: Admission) -> AdmissionOutcome:
    if standing is None:
        return AdmissionOutcome.STALE
    if standing.partition != fence.partition:
        return AdmissionOutcome.FENCED
    if standing.state != _state_of(admission.expected_status, admission.expected_cursor):
        return AdmissionOutcome.STALE
    for run in admission.runs:
        if cells.millis(run.scheduled_at) < standing.history_from:
            return AdmissionOutcome.PRUNED
    return AdmissionOutcome.ADMITTED


def _advance(standing: _Standing, admission: Admission, *, now: datetime) -> rows.Values:
    """What the schedule's row becomes, where it still is as it stands; the element after this one meets the new one."""
    expected = standing.state
    standing.state = made = _state_of(admission.status, admission.cursor)
    return {
        "schedule_id": admission.schedule_id,
        "expected_status": expected[0],
        "expected_version": expected[1],
        "expected_scheduled_at": expected[2],
        "expected_due": expected[3],
        "status": made[0],
        "status_reason": admission.status_reason,
        "version": made[1],
        "next_scheduled_at": made[2],
        "next_due": made[3],
        "updated_at": cells.millis(now),
    }


def _state_of(status: ScheduleStatus, cursor: Cursor) -> _State:
    return (
        status.value,
        cursor.version,
        cells.millis_or_none(cursor.scheduled_at),
        cells.millis_or_none(cursor.due_at),
    )


_READ_STANDINGS = (
    select(
        schedules.c.id,
        schedules.c.partition,
        schedules.c.status,
        schedules.c.version,
        schedules.c.next_scheduled_at,
        schedules.c.next_due,
        schedules.c.history_from,
    )
    .where(schedules.c.id.in_(bindparam("ids", expanding=True)))
    .order_by(schedules.c.id)
    .with_for_update()
)
_ADVANCE = Prepared(
    update(schedules)
    .where(
        schedules.c.id == bindparam("schedule_id"),
        schedules.c.status == bindparam("expected_status"),
        schedules.c.version == bindparam("expected_version"),
        schedules.c.next_scheduled_at.is_not_distinct_from(bindparam("expected_scheduled_at")),
        schedules.c.next_due.is_not_distinct_from(bindparam("expected_due")),
    )
    .values(
        status=bindparam("status"),
        status_reason=bindparam("status_reason"),
        version=bindparam("version"),
        next_scheduled_at=bindparam("next_scheduled_at"),
        next_due=bindparam("next_due"),
        updated_at=bindparam("updated_at"),
    )
)
_WRITE_RUN = Prepared(insert(runs))
