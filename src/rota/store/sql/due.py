"""Due schedules as their rows tell of them; one whose rows make no sense stops only itself (I12)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, RowMapping, Select, literal, select, tuple_

from rota.domain.due import DueSchedule
from rota.domain.errors import UnreadableRow
from rota.domain.identity import ScheduleId
from rota.domain.planned import PARKED_PER_ADMISSION_MAX
from rota.domain.run import Run, RunState
from rota.domain.schedule import ScheduleStatus
from rota.store.port import Unreadable
from rota.store.sql import cells, rows, texts
from rota.store.sql.columns import Instant
from rota.store.sql.jobs import job_or_default
from rota.store.sql.pages import read_page, readable
from rota.store.sql.records import Beside, pending_of, suspensions_of, to_run, version_of
from rota.store.sql.schema import is_parked, runs


def to_due(row: RowMapping, beside: Beside, parked: Sequence[Run] = ()) -> DueSchedule | Unreadable:
    """The schedule with the version of its cursor, and the one that is to follow it."""
    due = to_due_alone(row, row, row["version"], beside)
    try:
        with cells.reading(f"schedule {row['id']}"):
            successor = pending_of(row, beside)
            if successor is not None:
                texts.check_definition(beside.latest[row["id"]]["version_definition"])
    except UnreadableRow as error:
        return due if isinstance(due, Unreadable) else _unreadable(row, row, error)
    return due if isinstance(due, Unreadable) else replace(due, successor=successor, parked=tuple(parked))


def to_due_alone(
    row: RowMapping, version: RowMapping | None, number: int, beside: Beside
) -> DueSchedule | Unreadable:
    """The schedule of `row` with its version `number`, of which `version` is the row, if there is one."""
    try:
        with cells.reading(f"schedule {row['id']}"):
            due = DueSchedule(
                schedule=rows.to_schedule(row),
                version=version_of(version, number),
                suspensions=suspensions_of(row, beside),
                job_overdue=job_or_default(row["job"], row["job_spec"]).overdue,
                places=beside.places.get(row["id"], ()),
            )
            if version is not None:
                texts.check_definition(version["version_definition"])
            return due
    except UnreadableRow as error:
        return _unreadable(row, version, error)


def _unreadable(row: RowMapping, version: RowMapping | None, error: UnreadableRow) -> Unreadable:
    return Unreadable(
        schedule_id=ScheduleId(row["id"]),
        status=ScheduleStatus(row["status"]),
        cursor=rows.to_cursor(row),
        revision=row["revision"] if isinstance(row["revision"], int) else 0,
        problem=str(error),
        window_until=None if version is None else _window_until(version),
    )


def read_parked(connection: Connection, row: RowMapping) -> list[Run]:
    """The runs that wait for the end or the resumption of the due schedule of the row; none where its cursor is due."""
    scheduled_at, due_at = row["next_scheduled_at"], row["next_due"]
    if scheduled_at is not None and due_at >= scheduled_at:
        return []
    waiting = select(runs).where(runs.c.schedule_id == row["id"], is_parked())
    if row["status"] != ScheduleStatus.ENDED.value:
        waiting = waiting.where(runs.c.state == RunState.HELD.value)
    return read_by_due(connection, waiting, limit=PARKED_PER_ADMISSION_MAX)


def read_by_due(connection: Connection, wanted: Select[*tuple[object, ...]], *, limit: int) -> list[Run]:
    """The first of the runs, by (due_at, run id); what cannot be read is left out, and keeps nobody's place (I12)."""
    in_order = wanted.order_by(runs.c.due_at, runs.c.run_id)

    def runs_after(last: RowMapping | None) -> Select[*tuple[object, ...]]:
        if last is None:
            return in_order
        place = tuple_(literal(last["due_at"], Instant), literal(last["run_id"]))
        return in_order.where(tuple_(runs.c.due_at, runs.c.run_id) > place)

    return read_page(connection, runs_after, _to_runs, limit=limit)


def _to_runs(found: Sequence[RowMapping]) -> Iterator[Run]:
    return readable(found, to_run)


def _window_until(row: RowMapping) -> datetime | None:
    """The end of the version's window, where at least that can be read."""
    try:
        with cells.reading("a version's window"):
            return cells.instant_or_none(row["version_effective_until"])
    except UnreadableRow:
        return None
