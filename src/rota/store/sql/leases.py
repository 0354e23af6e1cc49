"""Partitions and their leases in SQL, matched by owner and epoch, never by owner alone; and who is there."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Update,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.exc import IntegrityError

from rota.store.port import LEASE_MAX, Fence, PartitionState
from rota.store.sql import rows
from rota.store.sql.batches import Part
from rota.store.sql.engine import is_unique_violation
from rota.store.sql.schema import dispatchers, partitions


class SqlLeases(Part):
    def ensure_partitions(self, count: int) -> int:
        counted = select(func.count()).select_from(partitions)
        try:
            with self._database.writing() as connection:
                existing = connection.execute(counted).scalar_one()
                if existing or not count:
                    return existing
                made = [{"partition": partition, "epoch": 0} for partition in range(count)]
                connection.execute(insert(partitions), made)
                return count
        except IntegrityError as error:
            if not is_unique_violation(error):
                raise
        # Another process made them in between.
        with self._database.reading() as connection:
            return connection.execute(counted).scalar_one()

    def list_partitions(self) -> list[PartitionState]:
        with self._database.reading() as connection:
            found = connection.execute(select(partitions).order_by(partitions.c.partition)).mappings()
            return [rows.to_partition(row) for row in found]

    def commit_acquisitions(
        self, owner: str, *, held: Sequence[Fence], now: datetime, ttl: timedelta, limit: int
    ) -> list[Fence]:
        with self._database.writing() as connection:
            known = {"owner": owner, "held": [(fence.partition, fence.epoch) for fence in held]}
            free = connection.execute(_READ_FREE, {**_bounds(now), **known, "limit": limit}).all()
            fences = [Fence(partition=partition, epoch=epoch + 1) for partition, epoch in free]
            expiry = {"owner": owner, "expires_at": now + ttl}
            _change_each(connection, _TAKE, [_key_values(fence) | expiry for fence in fences])
            return fences

    def commit_renewals(
        self, owner: str, fences: Sequence[Fence], *, now: datetime, ttl: timedelta
    ) -> list[Fence]:
        with self._database.writing() as connection:
            owned = _owned(connection, owner, fences)
            expiry = {"owner": owner, "expires_at": now + ttl}
            _change_each(connection, _SET_OWNER, [_key_values(fence) | expiry for fence in owned])
            return owned

    def commit_releases(
        self,
        owner: str,
        fences: Sequence[Fence],
        *,
        now: datetime,  # noqa: ARG002  a free partition has no expiry to set
    ) -> None:
        with self._database.writing() as connection:
            owned = _owned(connection, owner, fences)
            free = {"owner": None, "expires_at": None}
            _change_each(connection, _SET_OWNER, [_key_values(fence) | free for fence in owned])

    def commit_checkpoints(self, checkpoints: Iterable[tuple[Fence, datetime]]) -> None:
        in_lock_order = sorted(checkpoints, key=lambda told: told[0].partition)
        values = [_key_values(fence) | {"checkpoint": instant} for fence, instant in in_lock_order]
        with self._database.writing() as connection:
            _change_each(connection, _SET_CHECKPOINT, values)

    def commit_presence(self, owner: str, *, now: datetime, ttl: timedelta) -> list[str]:
        with self._database.writing() as connection:
            values = {"owner": owner, "expires_at": now + ttl}
            if not connection.execute(_PROLONG, {"key_owner": owner, "expires_at": now + ttl}).rowcount:
                connection.execute(insert(dispatchers), values)
            connection.execute(_FORGET_ENDED, _bounds(now))
            return list(connection.execute(_READ_PRESENT, _bounds(now)).scalars())

    def commit_absence(self, owner: str) -> None:
        with self._database.writing() as connection:
            connection.execute(delete(dispatchers).where(dispatchers.c.owner == owner))

    def list_present(self, *, now: datetime) -> list[str]:
        with self._database.reading() as connection:
            return list(connection.execute(_READ_PRESENT, _bounds(now)).scalars())


def _bounds(now: datetime) -> dict[str, object]:
    """Between which a lease ends that goes on at `now`."""
    return {"now": now, "latest": now + LEASE_MAX}


def _has_ended(expires_at: Column[int]) -> ColumnElement[bool]:
    """`lease_has_ended` in SQL's words."""
    return or_(expires_at <= bindparam("now"), expires_at > bindparam("latest"))


def _owned(connection: Connection, owner: str, fences: Sequence[Fence]) -> list[Fence]:
    """Those of `fences` whose epoch is still the owner's, held against change."""
    numbers = [fence.partition for fence in fences]
    owned = connection.execute(_READ_OWNED, {"owner": owner, "partitions": numbers}).all()
    held = {Fence(partition=partition, epoch=epoch) for partition, epoch in owned}
    return [fence for fence in fences if fence in held]


def _change_each(connection: Connection, statement: Update, values: Sequence[rows.Values]) -> None:
    if values:
        connection.execute(statement, values)


def _key_values(fence: Fence) -> dict[str, object]:
    return {"key_partition": fence.partition, "key_epoch": fence.epoch}


# A row that somebody holds is not waited for: its holder is at work, or is cut off by the server and then it is free.
_READ_FREE = (
    select(partitions.c.partition, partitions.c.epoch)
    .where(
        or_(
            partitions.c.owner.is_(None),
            partitions.c.expires_at.is_(None),
            _has_ended(partitions.c.expires_at),
            (partitions.c.owner == bindparam("owner"))
            & tuple_(partitions.c.partition, partitions.c.epoch).not_in(bindparam("held", expanding=True)),
        )
    )
    .order_by(partitions.c.partition)
    .limit(bindparam("limit"))
    .with_for_update(skip_locked=True)
)
_READ_OWNED = (
    select(partitions.c.partition, partitions.c.epoch)
    .where(
        partitions.c.owner == bindparam("owner"),
        partitions.c.partition.in_(bindparam("partitions", expanding=True)),
    )
    .order_by(partitions.c.partition)
    .with_for_update()
)
_IS_FENCE = (partitions.c.partition == bindparam("key_partition")) & (
    partitions.c.epoch == bindparam("key_epoch")
)
_TAKE = (
    update(partitions)
    .where(
        partitions.c.partition == bindparam("key_partition"), partitions.c.epoch == bindparam("key_epoch") - 1
    )
    .values(epoch=bindparam("key_epoch"), owner=bindparam("owner"), expires_at=bindparam("expires_at"))
)
_SET_OWNER = (
    update(partitions).where(_IS_FENCE).values(owner=bindparam("owner"), expires_at=bindparam("expires_at"))
)
# It never goes backwards.
_SET_CHECKPOINT = (
    update(partitions)
    .where(
        _IS_FENCE,
        or_(partitions.c.checkpoint.is_(None), partitions.c.checkpoint < bindparam("checkpoint")),
    )
    .values(checkpoint=bindparam("checkpoint"))
)
_PROLONG = (
    update(dispatchers)
    .where(dispatchers.c.owner == bindparam("key_owner"))
    .values(expires_at=bindparam("expires_at"))
)
# Rows that others hold are left to them: two who forget each other would wait for each other.
_FORGET_ENDED = delete(dispatchers).where(
    dispatchers.c.owner.in_(
        select(dispatchers.c.owner)
        .where(_has_ended(dispatchers.c.expires_at))
        .order_by(dispatchers.c.owner)
        .with_for_update(skip_locked=True)
    )
)
_READ_PRESENT = (
    select(dispatchers.c.owner).where(~_has_ended(dispatchers.c.expires_at)).order_by(dispatchers.c.owner)
)
