"""Places of schedules whose runs may not overlap, in SQL (`rota.domain.overlap`).

Who ends a run holds its row, then the places of its schedule, then the row of the run that waits; who cancels that one
takes the places first as well. An admission holds its schedule, and passes over places that somebody holds. So nobody
waits in a circle.

Places are given by rows that are written anew. Who waited for the old rows finds them gone, and has not seen the new
ones: it looks again until it holds what it finds.

A place whose run is not open counts for nothing: a row that was changed by hand does not keep its schedule from running
for ever (I12).
"""

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import Connection, Row, bindparam, delete, insert, select, update

from rota.domain.identity import RunId
from rota.domain.overlap import Places, free_place
from rota.domain.run import RunEvent, RunState, next_state
from rota.store.sql import cells
from rota.store.sql.batches import has_row_locks
from rota.store.sql.columns import among
from rota.store.sql.outbox import intent_row, write_intent_rows
from rota.store.sql.prepared import Lookup, Prepared
from rota.store.sql.schema import places, runs

OPEN = (RunState.WAITING, RunState.QUEUED, RunState.RUNNING)


def read_places(connection: Connection, schedule_ids: Collection[str]) -> dict[str, Places]:
    """The open runs of the schedules that have some in places."""
    found: dict[str, Places] = {}
    if schedule_ids:
        for schedule_id, run_id in _READ_OPEN.read(connection, sorted(set(schedule_ids))):
            held = found.get(cells.text(schedule_id), ())
            found[cells.text(schedule_id)] = (*held, RunId(cells.text(run_id)))
    return found


def read_places_to_give(connection: Connection, schedule_ids: Collection[str]) -> dict[str, Places | None]:
    """The same of all the schedules, which this transaction has locked, held until the commit; None of those that
    another connection frees at the moment."""
    if not schedule_ids:
        return {}
    ids = sorted(set(schedule_ids))
    locked = set(_LOCK_FREE.read(connection, ids))
    held: set[str] = set()
    if has_row_locks(connection):
        held = {cells.text(row[0]) for row in _READ_ALL.read(connection, ids) if row not in locked}
    found = read_places(connection, ids)
    return {id_: None if id_ in held else found.get(id_, ()) for id_ in ids}


def write_places(connection: Connection, given: Mapping[str, Places]) -> None:
    """Gives the places of these schedules anew."""
    _CLEAR.execute(connection, [{"key_schedule_id": id_} for id_ in sorted(given)])
    _WRITE.execute(
        connection,
        [
            {"schedule_id": id_, "place": place, "run_id": run_id}
            for id_, run_ids in sorted(given.items())
            for place, run_id in enumerate(run_ids)
        ],
    )


def lock_places(connection: Connection, schedule_ids: Collection[str], *, waiting: bool = True) -> set[str]:
    """Holds the places of the schedules until the commit; those of them of which another connection holds some, and is
    not waited for."""
    if not schedule_ids:
        return set()
    ids = sorted(set(schedule_ids))
    if waiting:
        _hold(connection, ids)
        return set()
    locked = set(_LOCK_FREE.read(connection, ids))
    if not has_row_locks(connection):
        return set()
    return {cells.text(row[0]) for row in _READ_ALL.read(connection, ids) if row not in locked}


def free_places(connection: Connection, ended: Mapping[str, int]) -> None:
    """Frees the places of runs that have ended, each at its instant (milliseconds), and queues those that waited for
    them. Whoever calls holds the runs; the places are held by it, or waited for."""
    if not ended:
        return
    found = _READ_OF_RUNS.read(connection, sorted(ended))
    ids = sorted({cells.text(schedule_id) for (schedule_id,) in found})
    if not ids:
        return
    standing: dict[str, Places] = {}
    for cell, _, run_id in _hold(connection, ids):
        schedule_id = cells.text(cell)
        standing[schedule_id] = (*standing.get(schedule_id, ()), RunId(cells.text(run_id)))
    left: dict[str, Places] = {}
    turns: dict[str, int] = {}
    for schedule_id, held in standing.items():
        after = held
        for run_id in held:
            if run_id in ended:
                after, next_id = free_place(after, run_id)
                if next_id is not None:
                    turns[next_id] = ended[run_id]
        left[schedule_id] = after
    write_places(connection, left)
    queue_waiting(connection, turns)


def _hold(connection: Connection, ids: Sequence[str]) -> Sequence[Row[*tuple[object, ...]]]:
    """The places of the schedules, held until the commit, with what those have given for whom it waited."""
    while True:
        locked = _LOCK.read(connection, ids).all()
        if not has_row_locks(connection) or set(locked) == set(_READ_ALL.read(connection, ids)):
            return locked


def queue_waiting(connection: Connection, turns: Mapping[str, int]) -> None:
    """Queues those of the runs that wait, each from its instant on."""
    if not turns:
        return
    waiting = _LOCK_WAITING.read(connection, sorted(turns)).mappings().all()
    values = [{"key_run_id": row["run_id"], "available_at": turns[row["run_id"]]} for row in waiting]
    _QUEUE.change_each(connection, values)
    intents = [intent_row({**row, "available_at": turns[row["run_id"]]}) for row in waiting]
    write_intent_rows(connection, intents)


_ALL = (
    select(places.c.schedule_id, places.c.place, places.c.run_id)
    .where(places.c.schedule_id.in_(bindparam("keys", expanding=True)))
    .order_by(places.c.schedule_id, places.c.place)
)
_READ_ALL = Lookup(_ALL)
_LOCK = Lookup(_ALL.with_for_update())
_LOCK_FREE = Lookup(_ALL.with_for_update(skip_locked=True))
_READ_OPEN = Lookup(
    select(places.c.schedule_id, places.c.run_id)
    .join(runs, runs.c.run_id == places.c.run_id)
    .where(places.c.schedule_id.in_(bindparam("keys", expanding=True)), among(runs.c.state, OPEN))
    .order_by(places.c.schedule_id, places.c.place)
)
_READ_OF_RUNS = Lookup(
    select(places.c.schedule_id).where(places.c.run_id.in_(bindparam("keys", expanding=True)))
)
_CLEAR = Prepared(delete(places).where(places.c.schedule_id == bindparam("key_schedule_id")))
_WRITE = Prepared(insert(places))
_LOCK_WAITING = Lookup(
    select(runs.c.run_id, runs.c.job, runs.c.turn, runs.c.attempt)
    .where(runs.c.run_id.in_(bindparam("keys", expanding=True)), runs.c.state == RunState.WAITING.value)
    .order_by(runs.c.run_id)
    .with_for_update()
)
_QUEUE = Prepared(
    update(runs)
    .where(runs.c.run_id == bindparam("key_run_id"), runs.c.state == RunState.WAITING.value)
    .values(
        state=next_state(RunState.WAITING, RunEvent.TURN_CAME).value, available_at=bindparam("available_at")
    )
)
