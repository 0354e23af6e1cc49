"""The tables as the code describes them, as the revisions make them, and as an opened database has them."""

import re
import runpy
import subprocess
import sys
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import get_args

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection

from rota.domain.admission import SkipReason
from rota.domain.run import AttemptOutcome, Origin, RunState
from rota.domain.schedule import Boundary, ScheduleStatus
from rota.store.port import StoreUnavailable
from rota.store.sql import migrations, open_sql_store
from rota.store.sql.migrations import HEAD, REVISIONS, WORKS_FROM, upgrade
from rota.store.sql.schema import metadata
from rota.store.sql.sqlite import SqliteDatabase
from tests.store.raw import execute


@pytest.fixture
def migrated(tmp_path: Path) -> Iterator[SqliteDatabase]:
    """A database whose tables the revisions made, one after the other."""
    database = SqliteDatabase(tmp_path / "migrated.db")
    with database.writing() as connection:
        for revision in REVISIONS:
            upgrade(connection, to=revision)
    yield database
    database.close()


def test_the_revisions_make_what_the_code_describes(migrated: SqliteDatabase) -> None:
    with migrated.reading() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_a_new_database_is_the_same_as_a_migrated_one(migrated: SqliteDatabase, path: Path) -> None:
    statement = "SELECT name, sql FROM sqlite_master ORDER BY name"
    with migrated.reading() as connection:
        made_by_revisions = [tuple(row) for row in connection.exec_driver_sql(statement)]
    assert execute(path, statement) == made_by_revisions
    assert execute(path, "SELECT version_num FROM alembic_version") == [(HEAD,)]
    stored = "SELECT value FROM settings WHERE name = 'schema_works_from'"
    with migrated.reading() as connection:
        assert connection.exec_driver_sql(stored).scalar() == WORKS_FROM
    assert execute(path, stored) == [(WORKS_FROM,)]


def test_every_table_of_a_new_database_is_strict(path: Path) -> None:
    lax = "SELECT name FROM pragma_table_list WHERE NOT strict AND name NOT LIKE 'sqlite_%'"
    assert execute(path, lax) == [("alembic_version",)]


def test_every_revision_is_known() -> None:
    assert [file.name.partition("_")[0] for file in revision_files()] == list(REVISIONS)
    assert sorted(REVISIONS) == list(REVISIONS)


def test_every_revision_says_whose_code_works_on_its_tables() -> None:
    modules = [runpy.run_path(str(file)) for file in revision_files()]
    works_from = [module["WORKS_FROM"] for module in modules]
    assert works_from == sorted(works_from), "what no longer works never works again"
    assert all(since <= module["revision"] for since, module in zip(works_from, modules, strict=True))
    assert works_from[-1] == WORKS_FROM
    for before, after, module in zip(works_from, works_from[1:], modules[1:], strict=False):
        # It may end between its last statement and the row that says so.
        assert module.get("IN_TRANSACTION", True) or before == after


def revision_files() -> list[Path]:
    return sorted(Path(migrations.__file__).parent.glob("versions/[0-9]*.py"))


@pytest.mark.parametrize(
    ("table", "column", "names"),
    [
        ("schedules", "status", ScheduleStatus),
        ("runs", "state", RunState),
        ("runs", "origin", get_args(Origin)),
        ("attempts", "outcome", AttemptOutcome),
        ("skips", "reason", get_args(SkipReason)),
        ("versions", "boundary", get_args(Boundary)),
    ],
)
def test_a_check_lists_the_names_of_its_enum(
    migrated: SqliteDatabase, table: str, column: str, names: Iterable[StrEnum | str]
) -> None:
    with migrated.reading() as connection:
        statement = f"SELECT sql FROM sqlite_master WHERE name = '{table}'"
        sql = connection.exec_driver_sql(statement).scalar_one()
    assert re.findall(rf"\b{column} = '(\w+)'", sql) == [str(name) for name in names]


def test_a_database_of_a_newer_version_is_refused_and_left_alone(path: Path) -> None:
    execute(path, "UPDATE alembic_version SET version_num = '9999'")
    execute(path, "UPDATE settings SET value = '9999' WHERE name = 'schema_works_from'")
    with pytest.raises(StoreUnavailable, match=r"newer Rota \(revision 9999"):
        open_sql_store(str(path))
    assert execute(path, "SELECT version_num FROM alembic_version") == [("9999",)]


def test_a_newer_version_that_does_not_say_who_works_with_it_is_refused(path: Path) -> None:
    execute(path, "UPDATE alembic_version SET version_num = '9999'")
    execute(path, "DELETE FROM settings")
    with pytest.raises(StoreUnavailable, match=r"newer Rota \(revision 9999"):
        open_sql_store(str(path))


def test_what_fails_on_the_way_leaves_no_table(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "rota.db")
    with pytest.raises(StoreUnavailable, match="no such table"), database.writing() as connection:
        _upgrade_and_fail(connection)
    database.close()
    assert execute(tmp_path / "rota.db", "SELECT name FROM sqlite_master") == []


def test_alembic_is_not_imported_where_nothing_is_to_be_migrated(tmp_path: Path) -> None:
    script = (
        "import sys; from rota.store.sql import open_sql_store;"
        "open_sql_store(sys.argv[1]).close(); open_sql_store(sys.argv[1]).close();"
        "sys.exit('alembic' in sys.modules)"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "rota.db")]
    assert subprocess.run(command, check=False).returncode == 0


def _upgrade_and_fail(connection: Connection) -> None:
    upgrade(connection)
    connection.exec_driver_sql("INSERT INTO none VALUES (1)")
