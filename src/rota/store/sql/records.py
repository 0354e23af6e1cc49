"""Schedules with the version that owns their cursor, the one that is to follow it, and their suspensions: what every
reader of schedules joins."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, Label, RowMapping, bindparam, or_, select

from rota.domain.overlap import Places
from rota.domain.run import Run
from rota.domain.schedule import Suspension, Version
from rota.store.port import ScheduleRecord
from rota.store.sql import cells, rows
from rota.store.sql.places import read_places
from rota.store.sql.schema import jobs, schedules, suspensions, versions


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What is read beside rows of schedules, by schedule."""

    suspended: dict[str, list[RowMapping]] = field(default_factory=dict)
    """Suspensions that last or reach past where the schedule stands, oldest first."""
    latest: dict[str, RowMapping] = field(default_factory=dict)
    """Latest versions, of the schedules whose cursor is another's."""
    places: dict[str, Places] = field(default_factory=dict)
    """Open runs of those whose runs may not overlap."""


def version_columns() -> list[Label[object]]:
    """The columns of a version under names that collide with no other table's."""
    return [column.label(f"version_{column.name}") for column in versions.c]


def version_of(row: RowMapping | None, number: int) -> Version:
    """The version `number` of `version_columns`. Raises `ValueError` where it was sought and not found."""
    if row is None or row["version_number"] is None:
        raise ValueError(f"its version {number} does not exist")
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


def read_beside(connection: Connection, records: Sequence[RowMapping]) -> Beside:
    beside = Beside()
    if records:
        for row in connection.execute(_READ_SUSPENSIONS, {"ids": [row["id"] for row in records]}).mappings():
            beside.suspended.setdefault(row["schedule_id"], []).append(row)
    awaiting = [row["id"] for row in records if row["latest_version"] != row["version"]]
    if awaiting:
        for row in connection.execute(_READ_LATEST, {"ids": awaiting}).mappings():
            beside.latest[row["version_schedule_id"]] = row
    return beside


def read_suspended(connection: Connection, ids: Sequence[str], *, after: int) -> Beside:
    """Suspensions of the schedules that last, or end after the instant (milliseconds), and their places."""
    beside = Beside(places=read_places(connection, ids))
    for row in connection.execute(_READ_SUSPENSIONS_AFTER, {"ids": ids, "after": after}).mappings():
        beside.suspended.setdefault(row["schedule_id"], []).append(row)
    return beside


def to_record(row: RowMapping, beside: Beside) -> ScheduleRecord:
    """Raises `UnreadableRow`."""
    with cells.reading(f"schedule {row['id']}"):
        return ScheduleRecord(
            schedule=rows.to_schedule(row),
            version=version_of(row, row["version"]),
            suspensions=suspensions_of(row, beside),
            pending=pending_of(row, beside),
        )


def suspensions_of(row: RowMapping, beside: Beside) -> tuple[Suspension, ...]:
    return tuple(rows.to_suspension(suspension) for suspension in beside.suspended.get(row["id"], ()))


def pending_of(row: RowMapping, beside: Beside) -> Version | None:
    """The schedule's latest version, where it is not the cursor's. Raises `ValueError` where there is none."""
    if row["latest_version"] == row["version"]:
        return None
    latest = beside.latest.get(row["id"])
    if latest is None:
        raise ValueError(f"its version {row['latest_version']} does not exist")
    return rows.to_version(latest)


def to_run(row: RowMapping) -> Run:
    """Raises `UnreadableRow`."""
    with cells.reading(f"run {row['run_id']}"):
        return rows.to_run(row)


# Past the earlier of the two instants at which its schedule stands: it may skip an instant, or drop a parked run.
_READ_SUSPENSIONS = (
    select(suspensions)
    .join(schedules, schedules.c.id == suspensions.c.schedule_id)
    .where(
        suspensions.c.schedule_id.in_(bindparam("ids", expanding=True)),
        or_(
            suspensions.c.until_at.is_(None),
            suspensions.c.until_at > schedules.c.next_scheduled_at,
            suspensions.c.until_at > schedules.c.next_due,
        ),
    )
    .order_by(suspensions.c.schedule_id, suspensions.c.from_at)
)
_READ_SUSPENSIONS_AFTER = (
    select(suspensions)
    .where(
        suspensions.c.schedule_id.in_(bindparam("ids", expanding=True)),
        or_(suspensions.c.until_at.is_(None), suspensions.c.until_at > bindparam("after")),
    )
    .order_by(suspensions.c.schedule_id, suspensions.c.from_at)
)
_READ_LATEST = (
    select(*version_columns())
    .join(
        schedules,
        (schedules.c.id == versions.c.schedule_id) & (schedules.c.latest_version == versions.c.number),
    )
    .where(schedules.c.id.in_(bindparam("ids", expanding=True)))
)
