"""Real SQLite files for the tests of the SQL store, and what several of those tests do with them."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from rota.store.sql import SqlStore, open_sql_store
from tests.conftest import NewDatabase


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with its tables and nothing in them: a copy of it is opened faster than one is made."""
    path = tmp_path_factory.mktemp("empty") / "rota.db"
    open_sql_store(str(path)).close()
    return path


@pytest.fixture
def path(empty_database: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(empty_database, tmp_path / "rota.db"))


@pytest.fixture
def url(new_database: NewDatabase) -> str:
    """Of a PostgreSQL database with nothing in its tables."""
    return new_database("postgresql")


@pytest.fixture
def store(path: Path) -> Iterator[SqlStore]:
    opened = open_sql_store(str(path))
    yield opened
    opened.close()
