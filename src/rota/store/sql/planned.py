"""Runs ahead of their time in SQL: what becomes of many of them at once when they fall due, in a statement each.

The runs that a statement changes are chosen within it, under row locks, and those that it queues come back as the keys
of their delivery intents: so a run is never queued without its intent, whatever others do meanwhile.
"""

from datetime import datetime

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, bindparam, select, tuple_, update
from sqlalchemy.exc import IntegrityError

from rota.domain.due import DueSchedule
from rota.domain.errors import UnreadableRow
from rota.domain.identity import ScheduleId
from rota.domain.planned import IN_TIME
from rota.domain.run import Run, RunState
from rota.domain.schedule import ScheduleStatus
from rota.store.port import Fence, PlannedDue, PlannedOutcome, Unreadable
from rota.store.sql import cells, rows
from rota.store.sql.batches import Part, holds
from rota.store.sql.columns import Instant, Name
from rota.store.sql.due import read_by_due, to_due_alone
from rota.store.sql.engine import is_unique_violation
from rota.store.sql.outbox import drop_intent_rows, write_intent_rows
from rota.store.sql.prepared import Prepared
from rota.store.sql.records import SELECT_RECORDS, Beside, read_suspended, to_run, version_columns
from rota.store.sql.schema import is_parked, is_planned, runs, schedules, suspensions, versions

PASSED_OVER_MAX = 4_000
"""Due runs, beside as many as it may take, that one call looks at: else each would look at all that is left of a burst.

What is due is either for `commit_planned` or for `read_planned`, so whoever calls both comes on.
"""


class SqlPlanned(Part):
    def commit_planned(self, fence: Fence, *, now: datetime, limit: int) -> PlannedOutcome:
        try:
            return self._fall_due(fence, now=now, limit=limit)
        except IntegrityError as error:
            if not is_unique_violation(error):
                raise
        # One of them has an intent already, which belongs to nothing: it gives way, and stops no other run (I12).
        return self._fall_due(fence, now=now, limit=limit, replacing=True)

    def _fall_due(
        self, fence: Fence, *, now: datetime, limit: int, replacing: bool = False
    ) -> PlannedOutcome:
        values = {**_due_values(fence.partition, now=now), "limit": limit}
        with self._database.writing() as connection:
            if not holds(connection, fence):
                return PlannedOutcome()
            values |= _read_end(connection, values)
            queued = [dict(row) for row in _QUEUE_BACKFILL.read(connection, values).mappings()]
            left = {**values, "limit": limit - len(queued)}
            queued += [dict(row) for row in _QUEUE_IN_TIME.read(connection, left).mappings()]
            if replacing:
                drop_intent_rows(connection, queued)
            write_intent_rows(connection, queued)
            return PlannedOutcome(
                queued=len(queued),
                held=_HOLD.execute(connection, [values]),
                dropped=_DROP.execute(connection, [values]),
            )

    def read_planned(self, partition: int, *, now: datetime, limit: int) -> list[PlannedDue | Unreadable]:
        values = {**_due_values(partition, now=now), "limit": limit}
        with self._database.reading() as connection:
            values |= _read_end(connection, values)
            found = _READ_LATE.read(connection, values).mappings().all()
            if not found:
                return []
            ids = {"ids": list({row["schedule_id"] for row in found})}
            records = {row["id"]: row for row in connection.execute(_READ_SCHEDULES, ids).mappings()}
            beside = read_suspended(
                connection, list(records), after=min(_earlier_instant(row) for row in found)
            )
            keys = {"keys": list({(row["schedule_id"], row["version"]) for row in found})}
            own = {
                (row["version_schedule_id"], row["version_number"]): row
                for row in connection.execute(_READ_VERSIONS, keys).mappings()
            }
        return [
            _to_planned(
                row,
                to_due_alone(
                    records[row["schedule_id"]],
                    own.get((row["schedule_id"], row["version"])),
                    row["version"],
                    _after(beside, row),
                ),
            )
            for row in found
        ]

    def list_ahead(self, schedule_id: ScheduleId, *, from_: datetime, limit: int) -> list[Run]:
        of_schedule = select(runs).where(runs.c.schedule_id == schedule_id)
        parked = of_schedule.where(is_parked())
        on_request = of_schedule.where(
            runs.c.scheduled_at >= from_,
            runs.c.state == RunState.SKIPPED.value,
            runs.c.reason == "on_request",
        )
        with self._database.reading() as connection:
            ahead = [
                *read_by_due(connection, parked, limit=limit),
                *read_by_due(connection, on_request, limit=limit),
            ]
        return sorted(ahead, key=lambda run: (run.due_at, run.run_id))[:limit]


def _due_values(partition: int, *, now: datetime) -> dict[str, object]:
    return {"partition": partition, "now": cells.millis(now), "late": cells.millis(now - IN_TIME)}


def _read_end(connection: Connection, values: rows.Values) -> rows.Values:
    """The place before which runs are looked at."""
    looked_at = {**values, "looked_at": cells.integer(values["limit"]) + PASSED_OVER_MAX}
    beyond = _READ_BEYOND.read(connection, looked_at).first()
    end = (cells.integer(values["now"]) + 1, "") if beyond is None else tuple(beyond)
    return dict(zip(("end_due_at", "end_run_id"), end, strict=True))


def _to_planned(row: RowMapping, due: DueSchedule | Unreadable) -> PlannedDue | Unreadable:
    """A run that cannot be read stops its schedule: left out it would be due for ever."""
    if isinstance(due, Unreadable):
        return due
    try:
        return PlannedDue(run=to_run(row), due=due)
    except UnreadableRow as error:
        return Unreadable(
            schedule_id=due.schedule.schedule_id,
            status=due.schedule.status,
            cursor=due.schedule.cursor,
            revision=due.schedule.revision,
            problem=str(error),
            window_until=due.version.effective_until,
        )


def _after(beside: Beside, run: RowMapping) -> Beside:
    """The suspensions of the run's schedule that last or end after it is scheduled, or due."""
    of_schedule = beside.suspended.get(run["schedule_id"], [])
    instant = _earlier_instant(run)
    mattering = [row for row in of_schedule if row["until_at"] is None or row["until_at"] > instant]
    return Beside(suspended={run["schedule_id"]: mattering}, places=beside.places)


def _earlier_instant(run: RowMapping) -> int:
    """The instant by which a suspension may skip the run (`rota.domain.planned`), or one before it."""
    return min(cells.integer(run["scheduled_at"]), cells.integer(run["due_at"]))


def _chosen(*conditions: ColumnElement[bool]) -> Select[*tuple[str]]:
    """The ids of the first planned runs of a partition of which the conditions are true."""
    return (
        select(runs.c.run_id)
        .where(_IS_PLANNED_THERE, *conditions)
        .order_by(runs.c.due_at, runs.c.run_id)
        .limit(bindparam("limit"))
        .correlate(None)
    )


def _queue(chosen: Select[*tuple[str]]) -> Prepared:
    """Queues them, and answers with the rows of their intents."""
    return Prepared(
        update(runs)
        .where(runs.c.run_id.in_(chosen))
        .values(state=RunState.QUEUED.value, admitted_at=bindparam("now"), available_at=runs.c.due_at)
        .returning(
            runs.c.job,
            runs.c.turn,
            runs.c.due_at.label("available_at"),
            runs.c.run_id,
            (runs.c.attempt + 1).label("attempt"),
        )
    )


_IS_PLANNED_THERE = (runs.c.partition == bindparam("partition")) & is_planned()
_IS_DUE = runs.c.due_at <= bindparam("now")
_IS_LOOKED_AT = tuple_(runs.c.due_at, runs.c.run_id) < tuple_(
    bindparam("end_due_at", type_=Instant), bindparam("end_run_id", type_=Name)
)
_WAS_DUE_BEFORE = runs.c.due_at <= bindparam("late")
_IS_BACKFILL = runs.c.origin == "backfill"
_OF_SCHEDULE = schedules.c.id == runs.c.schedule_id
_IS_ACTIVE = schedules.c.status == ScheduleStatus.ACTIVE.value
_HAS_ENDED = schedules.c.status == ScheduleStatus.ENDED.value
_CURSOR_IS_BEHIND = schedules.c.next_due < runs.c.due_at
_MAY_NOT_OVERLAP = (
    select(versions.c.number)
    .where(
        versions.c.schedule_id == runs.c.schedule_id,
        versions.c.number == runs.c.version,
        versions.c.overlap != "allow",
    )
    .correlate(runs)
    .exists()
)
# Of one that falls due later than it is scheduled, as its schedule is spread or it was moved.
_MAY_BE_SUSPENDED = (runs.c.due_at > runs.c.scheduled_at) & (
    select(suspensions.c.from_at)
    .where(
        suspensions.c.schedule_id == runs.c.schedule_id,
        suspensions.c.from_at <= runs.c.scheduled_at,
        suspensions.c.until_at.is_(None) | (suspensions.c.until_at > runs.c.scheduled_at),
        ~suspensions.c.apply_overdue,
    )
    .correlate(runs)
    .exists()
)
_HAS_SCHEDULE = select(schedules.c.id).where(_OF_SCHEDULE, ~_HAS_ENDED).correlate(runs).exists()

# Schedules are locked with their runs: none is paused between the choice and the commit. What was due before is chosen
# before what is in time, and both together are in the order of the index.
_QUEUE_BACKFILL = _queue(
    _chosen(_IS_LOOKED_AT, _WAS_DUE_BEFORE, _OF_SCHEDULE, _IS_BACKFILL, ~_HAS_ENDED).with_for_update(
        of=[schedules, runs]
    )
)
_QUEUE_IN_TIME = _queue(
    _chosen(
        _IS_DUE,
        ~_WAS_DUE_BEFORE,
        _OF_SCHEDULE,
        (_IS_BACKFILL & ~_HAS_ENDED)
        | (
            _IS_ACTIVE
            & (schedules.c.next_due.is_(None) | ~_CURSOR_IS_BEHIND)
            & ~_MAY_NOT_OVERLAP
            & ~_MAY_BE_SUSPENDED
        ),
    ).with_for_update(of=[schedules, runs])
)
_TO_HOLD = _chosen(_IS_LOOKED_AT, _OF_SCHEDULE, ~_IS_BACKFILL, ~_IS_ACTIVE, ~_HAS_ENDED).with_for_update(
    of=[schedules, runs]
)
_HOLD = Prepared(update(runs).where(runs.c.run_id.in_(_TO_HOLD)).values(state=RunState.HELD.value))
# One whose schedule is not there is dropped as well: nobody would ever decide it (I12).
_TO_DROP = _chosen(_IS_LOOKED_AT, ~_HAS_SCHEDULE).with_for_update()
_DROP = Prepared(
    update(runs)
    .where(runs.c.run_id.in_(_TO_DROP))
    .values(state=RunState.SKIPPED.value, reason="ended", finished_at=bindparam("now"))
)
_READ_BEYOND = Prepared(
    select(runs.c.due_at, runs.c.run_id)
    .where(_IS_PLANNED_THERE, _IS_DUE)
    .order_by(runs.c.due_at, runs.c.run_id)
    .limit(1)
    .offset(bindparam("looked_at"))
)
_READ_LATE = Prepared(
    select(runs)
    .join(schedules, _OF_SCHEDULE)
    .where(
        _IS_PLANNED_THERE,
        _IS_LOOKED_AT,
        _IS_ACTIVE,
        ~_IS_BACKFILL,
        _WAS_DUE_BEFORE | _CURSOR_IS_BEHIND | _MAY_NOT_OVERLAP | _MAY_BE_SUSPENDED,
    )
    .order_by(runs.c.due_at, runs.c.run_id)
    .limit(bindparam("limit"))
)
_READ_SCHEDULES = SELECT_RECORDS.where(schedules.c.id.in_(bindparam("ids", expanding=True)))
_READ_VERSIONS = select(*version_columns()).where(
    tuple_(versions.c.schedule_id, versions.c.number).in_(bindparam("keys", expanding=True))
)
