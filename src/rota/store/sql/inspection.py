"""What a SQLite database is, found out without changing it: its driver, its journal, the revision of its tables."""

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from rota.store.port import StoreUnavailable
from rota.store.sql.migrations import HEAD, REVISIONS
from rota.store.sql.migrations.state import WORKS_FROM_SETTING
from rota.store.sql.sqlite import SqliteDatabase, sqlite_driver

BUSY_TIMEOUT_SECONDS = 2.0
SYNCHRONOUS_NAMES = {0: "off", 1: "normal", 2: "full", 3: "extra"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TablesReport:
    revision: str | None
    """Of the tables; None: there are none of Rota's."""
    newest_revision: str
    """The one that this Rota brings a database to when it opens it."""
    works_from: str | None = None
    """The oldest revision whose code works on these tables; None where nothing says it."""

    @property
    def is_up_to_date(self) -> bool:
        """Whether this Rota uses it as it is: a newer one may have expanded it."""
        return self.revision == self.newest_revision or (self._is_unknown and not self.is_newer)

    @property
    def is_newer(self) -> bool:
        """A newer Rota has written it, and this one does not work on it."""
        works = self.works_from is not None and self.works_from <= self.newest_revision
        return self._is_unknown and not works

    @property
    def _is_unknown(self) -> bool:
        return self.revision is not None and self.revision not in REVISIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteReport(TablesReport):
    journal_mode: str
    synchronous: str | None
    """Of a connection that writes; None where none was opened, because opening it would change the database."""


def sqlite_in_use() -> tuple[str, str]:
    """The driver that Rota uses here, and the version of its SQLite."""
    driver = sqlite_driver()
    return driver.__name__, driver.sqlite_version


def database_file(database: str) -> Path | None:
    """The file that the setting names; None where it is an address of another kind, or none at all."""
    if "://" not in database:
        return Path(database)
    try:
        url = make_url(database)
    except (ArgumentError, ValueError):
        return None
    is_file = url.get_backend_name() == "sqlite" and url.database and not url.query
    return Path(str(url.database)) if is_file else None


def inspect_sqlite(path: Path) -> SqliteReport:
    """Raises `StoreUnavailable` where there is no such file, or it cannot be read as a database."""
    if not path.is_file():
        raise StoreUnavailable(f"There is no database {path}.")
    driver = sqlite_driver()
    try:
        connection = driver.connect(
            f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_TIMEOUT_SECONDS
        )
        try:
            (journal_mode,) = connection.execute("PRAGMA journal_mode").fetchone()
            tables = "SELECT count(*) FROM sqlite_master WHERE name = 'alembic_version'"
            (is_migrated,) = connection.execute(tables).fetchone()
            row, works_from = None, None
            if is_migrated:
                row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
                stored = "SELECT value FROM settings WHERE name = ?"
                works_from = connection.execute(stored, (WORKS_FROM_SETTING,)).fetchone()
        finally:
            connection.close()
    except driver.Error as error:
        raise StoreUnavailable(f"The database {path} cannot be read: {error}.") from error
    return SqliteReport(
        journal_mode=str(journal_mode),
        synchronous=_synchronous_of_writers(path) if journal_mode == "wal" else None,
        revision=None if row is None else str(row[0]),
        newest_revision=HEAD,
        works_from=None if works_from is None else str(works_from[0]),
    )


def _synchronous_of_writers(path: Path) -> str:
    """Waits for the writer's turn, so it shows too that the database can be written."""
    database = SqliteDatabase(path)
    try:
        with database.writing() as connection:
            level = connection.exec_driver_sql("PRAGMA synchronous").scalar()
    finally:
        database.close()
    return SYNCHRONOUS_NAMES.get(level, str(level)) if isinstance(level, int) else str(level)
