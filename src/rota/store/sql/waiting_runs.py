"""Runs that wait for their next attempt: read under row locks with all that the attempt needs, and failed where that
makes no sense."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    bindparam,
    func,
    literal_column,
    select,
    update,
)

from rota.domain.run import RunEvent, RunState, next_state
from rota.domain.settlement import ERROR_CHARACTERS_MAX
from rota.store.port import OfAttempt
from rota.store.sql import cells
from rota.store.sql.columns import Instant
from rota.store.sql.demands import drop_permits
from rota.store.sql.places import free_places
from rota.store.sql.prepared import Lookup, Prepared
from rota.store.sql.records import version_columns
from rota.store.sql.run_changes import drop_deliveries
from rota.store.sql.schema import jobs, runs, versions


def read_to_open(
    connection: Connection, attempts: Sequence[OfAttempt], *, now: datetime, waiting: bool
) -> dict[str, RowMapping]:
    """The rows of the runs, by id, each as it becomes where its attempt opens now; without those that another
    connection holds, unless it is `waiting` for them."""
    lookup = _READ_TO_OPEN if waiting else _READ_TO_OPEN_FREE
    ids = list({attempt.run_id for attempt in attempts})
    return {row["run_id"]: row for row in lookup.read(connection, ids, {"now": cells.millis(now)}).mappings()}


def read_to_send(connection: Connection, run_ids: Collection[str]) -> dict[str, RowMapping]:
    """The rows of the runs, by id, as they are; without those that another connection holds."""
    found = _READ_TO_SEND_FREE.read(connection, list(run_ids)).mappings() if run_ids else ()
    return {row["run_id"]: row for row in found}


def held_by_others(
    connection: Connection, run_ids: Collection[str], found: Mapping[str, RowMapping]
) -> set[str]:
    """Of runs that were not read, those that exist; what asks for others is nobody's, and goes (I12)."""
    missed = [run_id for run_id in run_ids if run_id not in found]
    return {cells.text(run_id) for (run_id,) in _READ_EXISTING.read(connection, missed)} if missed else set()


def fail_unreadable(
    connection: Connection, unreadable: Sequence[tuple[OfAttempt, str]], *, now: datetime
) -> None:
    """Fails the runs, each with what is wrong with it: left waiting it would be delivered again for ever."""
    if not unreadable:
        return
    _FAIL.change_each(
        connection,
        [
            {
                "key_run_id": attempt.run_id,
                "key_attempt": attempt.attempt - 1,
                "state": next_state(RunState.QUEUED, RunEvent.FOUND_UNREADABLE).value,
                "error": problem[:ERROR_CHARACTERS_MAX],
                "finished_at": cells.millis(now),
            }
            for attempt, problem in unreadable
        ],
    )
    ids = [attempt.run_id for attempt, _ in unreadable]
    drop_deliveries(connection, ids)
    drop_permits(connection, ids)
    free_places(connection, dict.fromkeys(ids, cells.millis(now)))


# The row is read as it becomes: a run is made of it once, where else one would be made and then changed.
_OPENED: dict[str, ColumnElement[object]] = {
    "state": literal_column(f"'{next_state(RunState.QUEUED, RunEvent.ATTEMPT_OPENED).value}'"),
    "attempt": runs.c.attempt + literal_column("1"),
    "started_at": func.coalesce(runs.c.started_at, bindparam("now", type_=Instant)),
}


def with_version_and_job(become: Mapping[str, ColumnElement[object]]) -> Select[*tuple[object, ...]]:
    """The runs that `keys` name, by id, with these columns in place of their own."""
    return (
        select(
            *(become.get(column.name, column).label(column.name) for column in runs.c),
            runs.c.state.label("state_before"),
            runs.c.attempt.label("attempt_before"),
            *version_columns(),
            jobs.c.spec.label("job_spec"),
        )
        .outerjoin(
            versions, (versions.c.schedule_id == runs.c.schedule_id) & (versions.c.number == runs.c.version)
        )
        .outerjoin(jobs, jobs.c.name == runs.c.job)
        .where(runs.c.run_id.in_(bindparam("keys", expanding=True)))
        .order_by(runs.c.run_id)
    )


_READ_TO_OPEN = Lookup(with_version_and_job(_OPENED).with_for_update(of=runs))
_READ_TO_OPEN_FREE = Lookup(with_version_and_job(_OPENED).with_for_update(of=runs, skip_locked=True))
_READ_TO_SEND_FREE = Lookup(with_version_and_job({}).with_for_update(of=runs, skip_locked=True))
_READ_EXISTING = Lookup(select(runs.c.run_id).where(runs.c.run_id.in_(bindparam("keys", expanding=True))))
_FAIL = Prepared(
    update(runs)
    .where(
        runs.c.run_id == bindparam("key_run_id"),
        runs.c.state == RunState.QUEUED.value,
        runs.c.attempt == bindparam("key_attempt"),
    )
    .values(state=bindparam("state"), error=bindparam("error"), finished_at=bindparam("finished_at"))
)
