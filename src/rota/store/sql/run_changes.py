"""Runs as an admission or another change of a schedule makes and changes them, with their delivery intents."""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, RowMapping, bindparam, insert, select, update

from rota.domain.run import Run, RunChange, RunState
from rota.store.sql import rows
from rota.store.sql.outbox import clear_intents, write_intents
from rota.store.sql.prepared import Lookup, Prepared
from rota.store.sql.schema import runs

Stored = Mapping[str, RowMapping]
"""Rows of runs as they are before a commit, by id."""

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
        waiting = [change for change in changes if change.expected_state is RunState.QUEUED]
        clear_intents(connection, [stored[change.run.run_id] for change in waiting])
        _CHANGE.change_each(connection, [_change_values(change) for change in changes])
    _WRITE.execute(connection, [rows.run_values(run) for run in made])
    written = [*made, *(change.run for change in changes)]
    write_intents(connection, [run for run in written if run.state is RunState.QUEUED])


def _change_values(change: RunChange) -> rows.Values:
    return {
        **rows.run_values(change.run),
        "key_run_id": change.run.run_id,
        "key_state": change.expected_state.value,
    }


_STORED = (
    select(runs.c.run_id, runs.c.state, runs.c.job, runs.c.available_at, runs.c.attempt)
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
