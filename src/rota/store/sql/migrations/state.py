"""What a database says of its tables: their revision, and the oldest one whose code works on them."""

from dataclasses import dataclass

from sqlalchemy import (
    Column,
    Connection,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    insert,
    inspect,
    select,
    update,
)

from rota.store.sql.schema import settings

VERSION_TABLE = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""Alembic's own, by which it knows the database's revision."""

WORKS_FROM_SETTING = "schema_works_from"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    revision: str | None
    """None: there are no tables of Rota's."""
    works_from: str | None = None
    """None where nothing says it."""


def read_state(connection: Connection) -> State:
    tables = inspect(connection)
    if not tables.has_table(VERSION_TABLE.name):
        return State(revision=None)
    revision = connection.execute(select(VERSION_TABLE.c.version_num)).scalar()
    if not tables.has_table(settings.name):
        return State(revision=revision)
    stored = select(settings.c.value).where(settings.c.name == WORKS_FROM_SETTING)
    return State(revision=revision, works_from=connection.execute(stored).scalar())


def write_state(connection: Connection, *, revision: str, works_from: str) -> None:
    """Of a database whose tables were just made."""
    VERSION_TABLE.create(connection)
    connection.execute(insert(VERSION_TABLE), {"version_num": revision})
    write_works_from(connection, works_from)


def write_works_from(connection: Connection, works_from: str) -> None:
    written = update(settings).where(settings.c.name == WORKS_FROM_SETTING).values(value=works_from)
    if not connection.execute(written).rowcount:
        connection.execute(insert(settings), {"name": WORKS_FROM_SETTING, "value": works_from})
