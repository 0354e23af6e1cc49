"""How much is due in each partition, in SQL: a few index entries of each, counted up to a limit, in one statement."""

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache

from sqlalchemy import (
    Column,
    ColumnElement,
    Integer,
    ScalarSelect,
    bindparam,
    func,
    literal_column,
    select,
)
from sqlalchemy.sql.selectable import CTE

from rota.store.port import DueCount
from rota.store.sql import cells
from rota.store.sql.batches import Part
from rota.store.sql.prepared import Prepared
from rota.store.sql.schema import is_due_status, is_planned, runs, schedules
from rota.store.sql.wanted import partition_values, wanted_partitions

STATEMENTS_KEPT = 4
"""Of so many numbers of partitions: they are asked for together, or one alone."""


class SqlDueCounts(Part):
    def count_due(self, partitions: Sequence[int], *, now: datetime, limit: int) -> dict[int, DueCount]:
        if not partitions:
            return {}
        arguments = {**partition_values(partitions), "now": cells.millis(now), "limit": limit}
        with self._database.reading() as connection:
            found = _count_due_of(len(partitions)).read(connection, arguments).all()
        return {
            cells.integer(partition): DueCount(
                schedules=cells.integer(of_schedules), planned=cells.integer(of_runs)
            )
            for partition, of_schedules, of_runs in sorted(found)
            if of_schedules or of_runs
        }


@lru_cache(maxsize=STATEMENTS_KEPT)
def _count_due_of(count: int) -> Prepared:
    wanted = wanted_partitions(count)
    due = _counted(
        wanted, schedules.c.next_due, (schedules.c.partition == wanted.c.partition) & is_due_status()
    )
    planned = _counted(wanted, runs.c.due_at, (runs.c.partition == wanted.c.partition) & is_planned())
    return Prepared(select(wanted.c.partition, due, planned))


def _counted(wanted: CTE, due: Column[int], condition: ColumnElement[bool]) -> ScalarSelect[int]:
    """How many rows that meet the condition, which names a partition that is wanted, are due; `limit` at most.

    In the order of the index: PostgreSQL would else expect to meet as many soon wherever it begins to read the table.
    """
    first = (
        select(literal_column("1", Integer))
        .where(condition, due <= bindparam("now"))
        .order_by(due)
        .limit(bindparam("limit"))
        .correlate(wanted)
    )
    return select(func.count()).select_from(first.subquery()).scalar_subquery()
