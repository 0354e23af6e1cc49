"""Brings a database's tables to the shape that this code uses: the revisions are in `versions`, in Alembic's form."""

from pathlib import Path
from threading import Lock

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
)

from rota.store.port import StoreUnavailable
from rota.store.sql.engine import Database
from rota.store.sql.schema import metadata

REVISIONS = ("0001",)
"""Every revision there is, oldest first. A test compares them with the files."""

HEAD = REVISIONS[-1]
VERSION_TABLE = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""Alembic's own, by which it knows the database's revision."""

_ALEMBIC = Lock()
"""Alembic keeps the migration that is under way in module globals: one at a time in a process."""


def bring_up_to_date(database: Database) -> None:
    """Makes the tables, or runs the revisions that are missing, in one transaction: of several processes one does it.

    Raises `StoreUnavailable` where a newer Rota has written the database.
    """
    with database.reading() as connection:
        if _revision_of(connection) == HEAD:
            return
    with database.writing() as connection:
        revision = _revision_of(connection)  # Again: another process may have been faster.
        if revision is None:
            _make_tables(connection)
        elif revision not in REVISIONS:
            raise StoreUnavailable(
                f"The database was written by a newer Rota (revision {revision}; this one knows {HEAD}). "
                "Run that version, or a newer one."
            )
        elif revision != HEAD:
            upgrade(connection)


def upgrade(connection: Connection, *, to: str = HEAD) -> None:
    """Runs the revisions after the database's own, up to and with `to`."""
    # Imported here: it takes most of a second, which only the first start of a new version has to spend.
    from alembic import command  # noqa: PLC0415 - see above
    from alembic.config import Config  # noqa: PLC0415 - see above

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    with _ALEMBIC:
        command.upgrade(config, to)


def _revision_of(connection: Connection) -> str | None:
    if not inspect(connection).has_table(VERSION_TABLE.name):
        return None
    return connection.execute(select(VERSION_TABLE.c.version_num)).scalar()


def _make_tables(connection: Connection) -> None:
    """At once, as the revisions would have made them (a test compares the two)."""
    metadata.create_all(connection, checkfirst=False)
    VERSION_TABLE.create(connection)
    connection.execute(insert(VERSION_TABLE), {"version_num": HEAD})
