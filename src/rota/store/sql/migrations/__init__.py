"""Brings a database's tables to the shape that this code uses: the revisions are in `versions`, in Alembic's form.

Releases overlap: while processes of the new one start, those of the old one go on with the same database. So tables are
first expanded, by what old code does not notice, and contracted a release later, when nobody uses what goes. Each
revision names the oldest one whose code still works on the tables that it leaves (`WORKS_FROM`), and the database keeps
that name. Code that meets a revision which it does not know goes on, if its own newest one is not older than that.

Of several processes that open an old or empty database at once, one migrates it while the others wait, and then go on:
SQLite has one writer anyway; PostgreSQL is told in `turns`. docs/migrations.md says how a revision is written.
"""

from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from sqlalchemy import Connection

from rota.store.port import StoreUnavailable
from rota.store.sql.engine import Database
from rota.store.sql.migrations.state import State, read_state, write_state
from rota.store.sql.migrations.turns import in_transaction, outside_transactions, turn
from rota.store.sql.schema import metadata

REVISIONS = ("0001",)
"""Every revision there is, oldest first. A test compares them with the files."""

WORKS_FROM = "0001"
"""As the newest revision's file says it: a new database is made without reading the files."""

HEAD = REVISIONS[-1]

_ALEMBIC = Lock()
"""Alembic keeps the migration that is under way in module globals: one at a time in a process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revisions:
    """The revisions that some code knows, and where their files are."""

    names: tuple[str, ...] = REVISIONS
    """Oldest first; their order is that of their texts."""
    works_from: str = WORKS_FROM
    folder: Path = Path(__file__).parent / "versions"

    @property
    def head(self) -> str:
        return self.names[-1]

    def after(self, revision: str) -> tuple[str, ...]:
        return self.names[self.names.index(revision) + 1 :]


OURS = Revisions()


def bring_up_to_date(database: Database, revisions: Revisions = OURS) -> None:
    """Makes the tables, or runs the revisions that are missing; leaves alone what a newer Rota has expanded.

    Raises `StoreUnavailable` where this code does not work on the tables that a newer Rota has left, or they could not
    be changed because others hold them.
    """
    with database.reading() as connection:
        if is_usable(read_state(connection), revisions):
            return
        is_postgresql = connection.dialect.name == "postgresql"
    if is_postgresql:
        _migrate_in_turn(database, revisions)
        return
    with database.writing() as connection:
        state = read_state(connection)  # Again: another process may have been faster.
        if state.revision is None:
            _make_tables(connection, revisions)
        elif not is_usable(state, revisions):
            upgrade(connection, to=revisions.head, revisions=revisions)


def check_up_to_date(database: Database) -> None:
    """That a PostgreSQL database has its tables as this code uses them: who only reads makes and migrates none.

    A file is brought up to date: nobody else has it under way. Raises `StoreUnavailable`.
    """
    with database.reading() as connection:
        is_postgresql = connection.dialect.name == "postgresql"
        state = read_state(connection)
    if not is_postgresql:
        bring_up_to_date(database)
    elif state.revision is None:
        raise StoreUnavailable(f"There is no Rota database at {database.name}: make it by `rota init`.")
    elif not is_usable(state):
        raise StoreUnavailable(
            f"The database {database.name} is behind (revision {state.revision}; this Rota uses {HEAD}): bring it "
            "up to date by `rota init`, or by a start of a process."
        )


def is_usable(state: State, revisions: Revisions = OURS) -> bool:
    """Whether the code works on the tables as they are; False: once they are migrated. Raises `StoreUnavailable`."""
    if state.revision is None or state.revision in revisions.names:
        return state.revision == revisions.head
    if state.works_from is not None and state.works_from <= revisions.head:
        return True
    raise StoreUnavailable(
        f"The database was written by a newer Rota (revision {state.revision}; this one knows {revisions.head}). "
        "Run that version, or a newer one."
    )


def upgrade(connection: Connection, *, to: str = HEAD, revisions: Revisions = OURS) -> None:
    """Runs the revisions after the database's own, up to and with `to`."""
    # Imported here: it takes most of a second, which only the first start of a new version has to spend.
    from alembic import command  # noqa: PLC0415 - see above
    from alembic.config import Config  # noqa: PLC0415 - see above

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", _escaped(Path(__file__).parent))
    config.set_main_option("path_separator", "newline")
    config.set_main_option("version_locations", _escaped(revisions.folder))
    with _ALEMBIC:
        command.upgrade(config, to)


def _migrate_in_turn(database: Database, revisions: Revisions) -> None:
    with turn(database) as connection:
        with in_transaction(connection):
            state = read_state(connection)  # Again: another process may have been faster.
            if state.revision is None:
                _make_tables(connection, revisions)
        if state.revision is None or is_usable(state, revisions):
            return
        for name in revisions.after(state.revision):
            step = in_transaction if _is_transactional(name, revisions) else outside_transactions
            with step(connection):
                upgrade(connection, to=name, revisions=revisions)


def _is_transactional(name: str, revisions: Revisions) -> bool:
    """What a revision's file says of itself."""
    from alembic.script import ScriptDirectory  # noqa: PLC0415 - as in `upgrade`

    scripts = ScriptDirectory(str(Path(__file__).parent), version_locations=[str(revisions.folder)])
    module = scripts.get_revision(name).module
    return bool(getattr(module, "IN_TRANSACTION", True))


def _make_tables(connection: Connection, revisions: Revisions) -> None:
    """At once, as the revisions would have made them (a test compares the two)."""
    metadata.create_all(connection, checkfirst=False)
    write_state(connection, revision=revisions.head, works_from=revisions.works_from)


def _escaped(path: Path) -> str:
    return str(path).replace("%", "%%")


__all__ = [
    "HEAD",
    "OURS",
    "REVISIONS",
    "WORKS_FROM",
    "Revisions",
    "bring_up_to_date",
    "check_up_to_date",
    "is_usable",
    "upgrade",
]
