"""Schedules with the version that owns their cursor and their suspensions: what every reader of schedules joins."""

from collections.abc import Sequence

from sqlalchemy import Connection, Label, RowMapping, bindparam, or_, select

from rota.domain.run import Run
from rota.domain.schedule import Suspension, Version
from rota.store.port import ScheduleRecord
from rota.store.sql import cells, rows
from rota.store.sql.schema import jobs, schedules, suspensions, versions

Suspended = dict[str, list[RowMapping]]
"""Rows of suspensions by schedule, oldest first."""


def version_columns() -> list[Label[object]]:
    """The columns of a version under names that collide with no other table's."""
    return [column.label(f"version_{column.name}") for column in versions.c]


def version_of(row: RowMapping) -> Version:
    """The version of `version_columns`. Raises `ValueError` where it was joined and not found."""
    if row["version_number"] is None:
        raise ValueError(f"its version {row['version']} does not exist")
    return rows.to_version(row)


SELECT_RECORDS = (
    select(
        *schedules.c,
        *version_columns(),
        jobs.c.spec.label("job_spec"),
    )
    .select_from(schedules)
    # Outer joins: a schedule that lost its version is found, and stops only itself (I12).
    .outerjoin(
        versions, (versions.c.schedule_id == schedules.c.id) & (versions.c.number == schedules.c.version)
    )
    .outerjoin(jobs, jobs.c.name == schedules.c.job)
)


def read_suspensions(connection: Connection, records: Sequence[RowMapping]) -> Suspended:
    """Those that last or reach past the cursor of their schedule: they can still skip an instant."""
    suspended: Suspended = {}
    if records:
        for row in connection.execute(_READ_SUSPENSIONS, {"ids": [row["id"] for row in records]}).mappings():
            suspended.setdefault(row["schedule_id"], []).append(row)
    return suspended


def to_record(row: RowMapping, suspended: Suspended) -> ScheduleRecord:
    """Raises `UnreadableRow`."""
    with cells.reading(f"schedule {row['id']}"):
        return ScheduleRecord(
            schedule=rows.to_schedule(row),
            version=version_of(row),
            suspensions=suspensions_of(row, suspended),
        )


def suspensions_of(row: RowMapping, suspended: Suspended) -> tuple[Suspension, ...]:
    return tuple(rows.to_suspension(suspension) for suspension in suspended.get(row["id"], ()))


def to_run(row: RowMapping) -> Run:
    """Raises `UnreadableRow`."""
    with cells.reading(f"run {row['run_id']}"):
        return rows.to_run(row)


_READ_SUSPENSIONS = (
    select(suspensions)
    .join(schedules, schedules.c.id == suspensions.c.schedule_id)
    .where(
        suspensions.c.schedule_id.in_(bindparam("ids", expanding=True)),
        or_(suspensions.c.until_at.is_(None), suspensions.c.until_at > schedules.c.next_scheduled_at),
    )
    .order_by(suspensions.c.schedule_id, suspensions.c.from_at)
)
