"""Runs that wait for nobody, in SQL: whatever has left them so, they are found and queued (I5, I12).

The commit that ends a run queues the one behind it. Where that was undone by hand, or a row of it was lost, nobody else
would ever ask for the run that waits. Who looks holds the schedule, then the places, then the run; what others hold is
left for the next look.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache

from sqlalchemy import Connection, RowMapping, bindparam, func, literal_column, select

from rota.domain.identity import RunId
from rota.store.port import Fence
from rota.store.sql import cells
from rota.store.sql.batches import Part, holds
from rota.store.sql.columns import among
from rota.store.sql.places import OPEN, lock_places, queue_waiting, read_places, write_places
from rota.store.sql.prepared import Lookup, Prepared
from rota.store.sql.schema import is_waiting, places, runs, schedules
from rota.store.sql.wanted import partition_parameters, partition_values

COUNTS_KEPT = 64
"""Statements, of so many numbers of partitions."""


class SqlFreed(Part):
    def commit_freed(self, fences: Sequence[Fence], *, now: datetime, limit: int) -> int:
        if not fences:
            return 0
        with self._database.writing() as connection:
            found = _read_freed(connection, fences, limit)
            if not found:
                return 0
            partitions = {row["partition"] for row in found}
            asked = sorted(set(fences), key=lambda fence: (fence.partition, fence.epoch))
            held = [fence for fence in asked if fence.partition in partitions and holds(connection, fence)]
            ids = [cells.text(id_) for (id_,) in _LOCK_SCHEDULES.read(connection, _schedule_ids(found))]
            if not held or not ids:
                return 0
            free = set(ids) - lock_places(connection, ids, waiting=False)
            freed: dict[str, RunId] = {}
            for row in _read_freed(connection, held, limit):
                if row["schedule_id"] in free:
                    freed.setdefault(row["schedule_id"], RunId(row["run_id"]))
            standing = read_places(connection, freed)
            given = {
                id_: (run_id, *(other for other in standing.get(id_, ()) if other != run_id))
                for id_, run_id in freed.items()
            }
            write_places(connection, given)
            queue_waiting(connection, dict.fromkeys(freed.values(), cells.millis(now)))
            return len(freed)


def _schedule_ids(found: Sequence[RowMapping]) -> list[str]:
    return sorted({cells.text(row["schedule_id"]) for row in found})


def _read_freed(connection: Connection, fences: Sequence[Fence], limit: int) -> Sequence[RowMapping]:
    partitions = sorted({fence.partition for fence in fences})
    values = {**partition_values(partitions), "limit": limit}
    return _read_freed_of(len(partitions)).read(connection, values).mappings().all()


@lru_cache(maxsize=COUNTS_KEPT)
def _read_freed_of(count: int) -> Prepared:
    """Of the runs that wait, which are few, those before which no open run has a place of their schedule."""
    before, open_run = places.alias("before"), runs.alias("open_run")
    own_place = func.coalesce(places.c.place, literal_column("2"))
    is_behind = (
        select(before.c.place)
        .join(open_run, open_run.c.run_id == before.c.run_id)
        .where(
            before.c.schedule_id == runs.c.schedule_id,
            before.c.place < own_place,
            before.c.run_id != runs.c.run_id,
            among(open_run.c.state, OPEN),
        )
        .correlate(runs, places)
        .exists()
    )
    return Prepared(
        select(runs.c.run_id, runs.c.schedule_id, runs.c.partition)
        .outerjoin(places, (places.c.run_id == runs.c.run_id) & (places.c.schedule_id == runs.c.schedule_id))
        .where(runs.c.partition.in_(partition_parameters(count)), is_waiting(), ~is_behind)
        .order_by(runs.c.partition, runs.c.run_id)
        .limit(bindparam("limit"))
    )


# As an admission does: none is decided meanwhile by other places.
_LOCK_SCHEDULES = Lookup(
    select(schedules.c.id)
    .where(schedules.c.id.in_(bindparam("keys", expanding=True)))
    .order_by(schedules.c.id)
    .with_for_update(key_share=True, skip_locked=True)
)
