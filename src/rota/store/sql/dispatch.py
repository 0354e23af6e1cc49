"""What is due and what is lost, in SQL: each read is a few probes of an index, whatever the number of rows."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache

from sqlalchemy import Integer, RowMapping, bindparam, column, literal_column, select, values

from rota.domain.admission import DueSchedule
from rota.domain.errors import UnreadableRow
from rota.domain.identity import ScheduleId
from rota.domain.run import RunState
from rota.domain.schedule import CadenceRow, ScheduleStatus
from rota.store.port import LostAttempt, Unreadable
from rota.store.sql import cells, rows, texts
from rota.store.sql.batches import Part
from rota.store.sql.jobs import job_or_default
from rota.store.sql.prepared import Prepared
from rota.store.sql.records import SELECT_RECORDS, Suspended, read_suspensions, suspensions_of, version_of
from rota.store.sql.schema import attempts, cadences, is_due_status, jobs, runs, schedules

DUE_TIMES_KEPT = 64
"""Statements, of so many numbers of partitions: a process holds few different numbers in its life."""


class SqlDispatch(Part):
    def read_due_times(self, partitions: Sequence[int]) -> dict[int, datetime]:
        if not partitions:
            return {}
        arguments = {f"partition_{place}": partition for place, partition in enumerate(partitions)}
        with self._database.reading() as connection:
            found = _read_due_times_of(len(partitions)).read(connection, arguments).all()
        return {cells.integer(partition): cells.instant(due) for partition, due in found if due is not None}

    def read_due(self, partition: int, *, now: datetime, limit: int) -> list[DueSchedule | Unreadable]:
        with self._database.reading() as connection:
            arguments = {"partition": partition, "now": now, "limit": limit}
            found = connection.execute(_READ_DUE, arguments).mappings().all()
            suspended = read_suspensions(connection, found)
        return [_to_due(row, suspended) for row in found]

    def read_cadences(self, cadence_ids: Iterable[str]) -> list[CadenceRow]:
        """By id, without those whose rows cannot be read (I12)."""
        found: list[CadenceRow] = []
        with self._database.reading() as connection:
            wanted = {"ids": list(set(cadence_ids))}
            for row in connection.execute(_READ_CADENCES, wanted).mappings():
                try:
                    with cells.reading(f"cadence {row['id']}"):
                        found.append(rows.to_cadence(row))
                except UnreadableRow:
                    continue
        return found

    def read_lost(self, partitions: Sequence[int], *, now: datetime, limit: int) -> list[LostAttempt]:
        """Without those whose job cannot be read (I12)."""
        arguments = {"partitions": list(partitions), "now": now, "limit": limit}
        lost: list[LostAttempt] = []
        with self._database.reading() as connection:
            for row in connection.execute(_READ_LOST, arguments).mappings():
                try:
                    lost.append(_to_lost(row))
                except UnreadableRow:
                    continue
        return lost


def _to_due(row: RowMapping, suspended: Suspended) -> DueSchedule | Unreadable:
    try:
        with cells.reading(f"schedule {row['id']}"):
            due = DueSchedule(
                schedule=rows.to_schedule(row),
                version=version_of(row),
                suspensions=suspensions_of(row, suspended),
                job_overdue=job_or_default(row["job"], row["job_spec"]).overdue,
            )
            texts.check_definition(row["version_definition"])
            return due
    except UnreadableRow as error:
        return Unreadable(
            schedule_id=ScheduleId(row["id"]),
            status=ScheduleStatus(row["status"]),
            cursor=rows.to_cursor(row),
            problem=str(error),
        )


def _to_lost(row: RowMapping) -> LostAttempt:
    with cells.reading(f"attempt {row['number']} of run {row['run_id']}"):
        return LostAttempt(
            attempt=rows.to_attempt(row),
            job=job_or_default(row["job"], row["job_spec"]),
            cancel_requested=row["cancel_requested_at"] is not None,
        )


_OWES = (schedules.c.next_due.is_not(None), is_due_status())


@lru_cache(maxsize=DUE_TIMES_KEPT)
def _read_due_times_of(count: int) -> Prepared:
    """One probe of the due index for each of `count` partitions: a grouped minimum would read every entry of it."""
    places = [(bindparam(f"partition_{place}", type_=Integer),) for place in range(count)]
    wanted = values(column("partition", Integer), name="wanted").data(places).cte()
    earliest = (
        select(schedules.c.next_due)
        .where(schedules.c.partition == wanted.c.partition, *_OWES)
        .order_by(schedules.c.next_due)
        .limit(literal_column("1"))
    )
    return Prepared(select(wanted.c.partition, earliest.scalar_subquery()))


_READ_DUE = (
    SELECT_RECORDS.where(
        schedules.c.partition == bindparam("partition"), schedules.c.next_due <= bindparam("now"), *_OWES
    )
    .order_by(schedules.c.next_due, schedules.c.id)
    .limit(bindparam("limit"))
)
_READ_CADENCES = (
    select(cadences).where(cadences.c.id.in_(bindparam("ids", expanding=True))).order_by(cadences.c.id)
)
_READ_LOST = (
    select(attempts, runs.c.job, runs.c.cancel_requested_at, jobs.c.spec.label("job_spec"))
    .join(runs, runs.c.run_id == attempts.c.run_id)
    .outerjoin(jobs, jobs.c.name == runs.c.job)
    .where(
        attempts.c.partition.in_(bindparam("partitions", expanding=True)),
        attempts.c.finished_at.is_(None),
        attempts.c.lease_expires_at <= bindparam("now"),
        runs.c.state == RunState.RUNNING.value,
        runs.c.attempt == attempts.c.number,
    )
    .order_by(attempts.c.lease_expires_at, attempts.c.run_id)
    .limit(bindparam("limit"))
)
