"""Answers kept for repeated requests, in SQL: each written in the commit whose effect it tells of."""

from datetime import datetime

from sqlalchemy import Connection, delete, insert, select
from sqlalchemy.exc import IntegrityError

from rota.store.port import IdempotencyRecord
from rota.store.sql import cells, rows
from rota.store.sql.batches import Part
from rota.store.sql.engine import is_unique_violation
from rota.store.sql.prepared import Prepared
from rota.store.sql.schema import idempotency


class SqlIdempotency(Part):
    def commit_idempotency(self, record: IdempotencyRecord, *, now: datetime) -> bool:
        try:
            with self._database.writing() as connection:
                if is_in_use(connection, record, now=now):
                    return False
                write_idempotency(connection, record, now=now)
                return True
        except IntegrityError as error:
            if not is_unique_violation(error):
                raise
            return False

    def get_idempotency(self, key: str, *, now: datetime) -> IdempotencyRecord | None:
        with self._database.reading() as connection:
            return _read_idempotency(connection, key, now=now)


def is_in_use(connection: Connection, record: IdempotencyRecord | None, *, now: datetime) -> bool:
    """Whether the record's key, where there is one, has an answer that has not expired."""
    return record is not None and _read_idempotency(connection, record.key, now=now) is not None


def write_idempotency(connection: Connection, record: IdempotencyRecord | None, *, now: datetime) -> None:
    """Writes it in place of one that has expired. Raises `IntegrityError` where another writer was faster."""
    if record is not None:
        has_expired = (idempotency.c.key == record.key) & (idempotency.c.expires_at <= now)
        connection.execute(delete(idempotency).where(has_expired))
        _WRITE_IDEMPOTENCY.execute(connection, [rows.idempotency_values(record)])


def _read_idempotency(connection: Connection, key: str, *, now: datetime) -> IdempotencyRecord | None:
    statement = select(idempotency).where(idempotency.c.key == key, idempotency.c.expires_at > now)
    row = connection.execute(statement).mappings().first()
    if row is None:
        return None
    with cells.reading(f"idempotency key {key}"):
        return rows.to_idempotency(row)


_WRITE_IDEMPOTENCY = Prepared(insert(idempotency))
