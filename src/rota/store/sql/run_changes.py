"""Runs as an admission or another change of a schedule makes and changes them, with their delivery intents."""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, RowMapping, bindparam, delete, insert, select, update

from rota.domain.run import SETTLED, Run, RunChange, RunState
from rota.store.sql import cells, rows
from rota.store.sql.demands import drop_permits
from rota.store.sql.outbox import intent_row, withdraw_intent_rows, write_intents
from rota.store.sql.places import free_places
from rota.store.sql.prepared import Lookup, Prepared
from rota.store.sql.schema import deliveries, runs

Stored = Mapping[str, RowMapping]
"""Rows of runs as they are before a commit, by id."""

WITH_PLACES = frozenset({RunState.QUEUED, RunState.WAITING})
"""States of runs that may hold places, of those that are changed here."""

IDENTITY = frozenset({"run_id", "schedule_id", "version", "scheduled_at"})
"""What no change of a run touches (I1)."""


def read_stored(connection: Connection, changes: Sequence[RunChange], *, waiting: bool = True) -> Stored:
    """The runs that are to change, held against others until the commit; without those that another connection holds,
    unless it is `waiting` for them.
    """
    if not changes:
        return {}
    ids = list({change.run.run_id for change in changes})
    lookup = _READ_STORED if waiting else _READ_STORED_FREE
    return {row["run_id"]: row for row in lookup.read(connection, ids).mappings()}


def are_stale(changes: Sequence[RunChange], stored: Stored) -> bool:
    """Whether some run is not, or is no longer, in the state in which its change expects it."""
    found = ((stored.get(change.run.run_id), change.expected_state) for change in changes)
    return any(row is None or row["state"] != expected.value for row, expected in found)


def write_runs(
    connection: Connection, made: Sequence[Run], changes: Sequence[RunChange], stored: Stored
) -> None:
    """Changes runs, then makes others: a change may free the key that one of those takes.

    Raises `IntegrityError` where an id or a key is used already, and `Stale` where a run is not as it was `stored`.
    """
    if changes:
        queued = [change.run.run_id for change in changes if change.expected_state is RunState.QUEUED]
        withdraw_messages(connection, [stored[run_id] for run_id in queued])
        _CHANGE.change_each(connection, [_change_values(change) for change in changes])
    _WRITE.execute(connection, [rows.run_values(run) for run in made])
    written = [*made, *(change.run for change in changes)]
    write_intents(connection, [run for run in written if run.state is RunState.QUEUED])
    free_places(
        connection,
        {
            change.run.run_id: cells.millis(change.run.finished_at)
            for change in changes
            if change.expected_state in WITH_PLACES
            and change.run.state in SETTLED
            and change.run.finished_at is not None
        },
    )


def withdraw_messages(connection: Connection, queued: Sequence[RowMapping]) -> None:
    """Takes away what asks for the next attempt of these runs, told by their rows: its intent, or its delivery."""
    if queued:
        withdraw_intent_rows(connection, [intent_row(row) for row in queued])
        ids = [row["run_id"] for row in queued]
        if drop_deliveries(connection, ids):
            drop_permits(connection, ids)


def drop_deliveries(connection: Connection, run_ids: Sequence[str]) -> int:
    return _DROP_DELIVERY.execute(connection, [{"key_run_id": run_id} for run_id in run_ids])


def _change_values(change: RunChange) -> rows.Values:
    return {
        **rows.run_values(change.run),
        "key_run_id": change.run.run_id,
        "key_state": change.expected_state.value,
    }


_STORED = (
    select(runs.c.run_id, runs.c.state, runs.c.job, runs.c.turn, runs.c.available_at, runs.c.attempt)
    .where(runs.c.run_id.in_(bindparam("keys", expanding=True)))
    .order_by(runs.c.run_id)
)
_READ_STORED = Lookup(_STORED.with_for_update())
_READ_STORED_FREE = Lookup(_STORED.with_for_update(skip_locked=True))
_WRITE = Prepared(insert(runs))
_CHANGE = Prepared(
    update(runs)
    .where(runs.c.run_id == bindparam("key_run_id"), runs.c.state == bindparam("key_state"))
    .values({column.name: bindparam(column.name) for column in runs.c if column.name not in IDENTITY})
)
_DROP_DELIVERY = Prepared(delete(deliveries).where(deliveries.c.run_id == bindparam("key_run_id")))
