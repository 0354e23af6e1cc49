"""What is due and what is lost, in SQL: each read is a few probes of an index, whatever the number of rows."""

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache

from sqlalchemy import RowMapping, bindparam, literal_column, select, tuple_

from rota.domain.due import DueSchedule
from rota.domain.errors import UnreadableRow
from rota.domain.job import Job
from rota.domain.run import RunState
from rota.domain.schedule import CadenceRow
from rota.store.port import ATTEMPT_LEASE_MAX, DueTimes, LostAttempt, Unreadable, ZoneRules
from rota.store.sql import cells, rows
from rota.store.sql.batches import Part
from rota.store.sql.due import read_parked, to_due
from rota.store.sql.jobs import job_or_default
from rota.store.sql.pages import readable
from rota.store.sql.places import read_places
from rota.store.sql.prepared import Lookup, Prepared
from rota.store.sql.records import SELECT_RECORDS, read_beside
from rota.store.sql.schema import (
    attempts,
    cadences,
    is_due_status,
    is_planned,
    jobs,
    runs,
    schedules,
    versions,
)
from rota.store.sql.wanted import partition_parameters, partition_values, wanted_partitions

EARLIEST = datetime.min.replace(tzinfo=UTC)
LATEST = datetime.max.replace(tzinfo=UTC)
DUE_TIMES_KEPT = 64
"""Statements, of so many numbers of partitions: a process holds few different numbers in its life."""
CADENCES_AT_ONCE = 1_000
"""Well below the variables that a statement may have."""


class SqlDispatch(Part):
    def read_due_times(
        self, partitions: Sequence[int], *, after: datetime | None = None
    ) -> dict[int, DueTimes]:
        if not partitions:
            return {}
        arguments = {**partition_values(partitions), "after": cells.millis(after or EARLIEST)}
        with self._database.reading() as connection:
            found = _read_due_times_of(len(partitions)).read(connection, arguments).all()
        return {
            cells.integer(partition): DueTimes(
                schedule=cells.instant_or_none(schedule), planned=cells.instant_or_none(planned)
            )
            for partition, schedule, planned in found
            if schedule is not None or planned is not None
        }

    def read_due(
        self,
        partition: int,
        *,
        now: datetime,
        limit: int,
        after: datetime | None = None,
        excluding: Collection[ZoneRules] = (),
    ) -> list[DueSchedule | Unreadable]:
        statement = _READ_DUE_BUT if excluding else _READ_DUE
        arguments: dict[str, object] = {
            "partition": partition,
            "after": EARLIEST if after is None else after,
            "now": now,
            "limit": limit,
        }
        if excluding:
            arguments["excluding"] = [(rules.timezone, rules.fingerprint) for rules in excluding]
        with self._database.reading() as connection:
            found = connection.execute(statement, arguments).mappings().all()
            beside = read_beside(connection, found)
            beside.places.update(read_places(connection, [row["id"] for row in found]))
            parked = [read_parked(connection, row) for row in found]
        return [to_due(row, beside, runs_) for row, runs_ in zip(found, parked, strict=True)]

    def read_cadences(self, cadence_ids: Iterable[str]) -> list[CadenceRow]:
        """By id, without those whose rows cannot be read (I12)."""
        wanted = sorted(set(cadence_ids))
        found: list[RowMapping] = []
        with self._database.reading() as connection:
            for first in range(0, len(wanted), CADENCES_AT_ONCE):
                ids = wanted[first : first + CADENCES_AT_ONCE]
                found += _READ_CADENCES.read(connection, ids).mappings()
        return list(readable(found, _to_cadence))

    def read_lost(self, partitions: Sequence[int], *, now: datetime, limit: int) -> list[LostAttempt]:
        if not partitions:
            return []
        statement = _read_lost_of(len(partitions))
        wanted = partition_values(partitions)
        with self._database.reading() as connection:
            found: list[RowMapping] = []
            # Those that ran out end before those that a clock which was ahead wrote, so each is a range of the index.
            for after, until in ((EARLIEST, now), (now + ATTEMPT_LEASE_MAX, LATEST)):
                bounds = {
                    "after": cells.millis(after),
                    "until": cells.millis(until),
                    "limit": limit - len(found),
                }
                found += statement.read(connection, {**wanted, **bounds}).mappings()
        return list(readable(found, _to_lost))


def _to_cadence(row: RowMapping) -> CadenceRow:
    with cells.reading(f"cadence {row['id']}"):
        return rows.to_cadence(row)


def _to_lost(row: RowMapping) -> LostAttempt:
    with cells.reading(f"attempt {row['number']} of run {row['run_id']}"):
        return LostAttempt(
            attempt=rows.to_attempt(row),
            job=_job_or_default_of(row),
            cancel_requested=row["cancel_requested_at"] is not None,
        )


def _job_or_default_of(row: RowMapping) -> Job:
    """The job of a lost attempt: where its row cannot be read, its run is settled by the defaults (I12)."""
    try:
        return job_or_default(row["job"], row["job_spec"])
    except UnreadableRow:
        return Job(name=row["job"])


_OWES = (schedules.c.next_due.is_not(None), is_due_status())


@lru_cache(maxsize=DUE_TIMES_KEPT)
def _read_due_times_of(count: int) -> Prepared:
    """The earliest of the schedules and of the planned runs of each of `count` partitions.

    Each is one probe of its index: a grouped minimum would read every entry of it.
    """
    wanted = wanted_partitions(count)
    earliest = (
        select(schedules.c.next_due)
        .where(schedules.c.partition == wanted.c.partition, schedules.c.next_due > bindparam("after"), *_OWES)
        .order_by(schedules.c.next_due)
        .limit(literal_column("1"))
    )
    planned = (
        select(runs.c.due_at)
        .where(runs.c.partition == wanted.c.partition, runs.c.due_at > bindparam("after"), is_planned())
        .order_by(runs.c.due_at)
        .limit(literal_column("1"))
    )
    return Prepared(select(wanted.c.partition, earliest.scalar_subquery(), planned.scalar_subquery()))


_READ_DUE = (
    SELECT_RECORDS.where(
        schedules.c.partition == bindparam("partition"),
        schedules.c.next_due > bindparam("after"),
        schedules.c.next_due <= bindparam("now"),
        *_OWES,
    )
    .order_by(schedules.c.next_due, schedules.c.id)
    .limit(bindparam("limit"))
)
_LATEST = versions.alias("latest")
# The rules of the version that is to take over count where the cursor stands at its boundary.
_IS_TO_FOLLOW_EXCLUDED = (
    select(_LATEST.c.number)
    .where(
        _LATEST.c.schedule_id == schedules.c.id,
        _LATEST.c.number == schedules.c.latest_version,
        schedules.c.version != schedules.c.latest_version,
        schedules.c.next_scheduled_at == versions.c.effective_until,
        tuple_(_LATEST.c.timezone, _LATEST.c.fingerprint).in_(bindparam("excluding", expanding=True)),
    )
    .exists()
)
# A schedule that lost its version is computed with no rules: it is not excluded, and stops only itself (I12).
_READ_DUE_BUT = _READ_DUE.where(
    versions.c.number.is_(None)
    | (
        tuple_(versions.c.timezone, versions.c.fingerprint).not_in(bindparam("excluding", expanding=True))
        & ~_IS_TO_FOLLOW_EXCLUDED
    )
)
_READ_CADENCES = Lookup(
    select(cadences).where(cadences.c.id.in_(bindparam("keys", expanding=True))).order_by(cadences.c.id)
)


@lru_cache(maxsize=DUE_TIMES_KEPT)
def _read_lost_of(count: int) -> Prepared:
    """Each step asks: with a list that expands, SQLAlchemy would compose the statement anew each time."""
    return Prepared(
        select(attempts, runs.c.job, runs.c.cancel_requested_at, jobs.c.spec.label("job_spec"))
        .join(runs, runs.c.run_id == attempts.c.run_id)
        .outerjoin(jobs, jobs.c.name == runs.c.job)
        .where(
            attempts.c.partition.in_(partition_parameters(count)),
            attempts.c.finished_at.is_(None),
            attempts.c.lease_expires_at > bindparam("after"),
            attempts.c.lease_expires_at <= bindparam("until"),
            runs.c.state == RunState.RUNNING.value,
            runs.c.attempt == attempts.c.number,
        )
        .order_by(attempts.c.lease_expires_at, attempts.c.run_id)
        .limit(bindparam("limit"))
    )
