"""What batched commits share: their limit and the fence that they hold."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, select

from rota.store.port import Fence, TooManyElements
from rota.store.sql.engine import Database, tried_again
from rota.store.sql.schema import partitions

ELEMENTS_MAX = 1_000
"""Elements a call: a transaction of some tens of milliseconds, and well below the variables a statement may have."""


WRITING = ("commit_", "ensure_", "prune_")
"""How the names of methods begin that write."""


class Part:
    """One part of a SQL store: the database, and how many elements a commit takes.

    What it commits is tried again where the database gives it up for the sake of others.
    """

    elements_max: int = ELEMENTS_MAX

    def __init_subclass__(cls) -> None:
        for name, method in list(vars(cls).items()):
            if name.startswith(WRITING):
                setattr(cls, name, tried_again(method))

    def __init__(self, database: Database) -> None:
        self._database = database

    def _check_count(self, elements: Sequence[object]) -> None:
        if len(elements) > self.elements_max:
            raise TooManyElements(
                f"{len(elements)} elements in one call, where this store takes {self.elements_max}. "
                "Hand over smaller batches."
            )


def has_row_locks(connection: Connection) -> bool:
    """Whether other connections may hold rows: then `SKIP LOCKED` may have passed over what was not found. SQLite has
    one writer, and ignores those words."""
    return connection.dialect.name == "postgresql"


def holds(connection: Connection, fence: Fence) -> bool:
    """Whether the fence names its partition's present epoch, which then cannot change before the commit (I6)."""
    epoch: int | None = connection.execute(_READ_EPOCH, {"partition": fence.partition}).scalar()
    return epoch == fence.epoch


# A share lock: a condition on the epoch in each statement would see an old snapshot on PostgreSQL.
_READ_EPOCH = (
    select(partitions.c.epoch)
    .where(partitions.c.partition == bindparam("partition"))
    .with_for_update(read=True)
)
