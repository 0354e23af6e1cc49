"""How property tests run everywhere, the stores that tests use, and the one PostgreSQL server of a test process."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings

from rota.store.memory import MemoryStore
from rota.store.port import Store
from rota.store.sql import open_sql_store
from tests.ministack import running_ministack
from tests.postgresql import URL_VARIABLE, Databases, running_server
from tests.redis import running_redis

# A machine that is busy is no fault of what is tested.
settings.register_profile("shared machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared machine")

MEMORY_DISK = Path("/dev/shm")

NewDatabase = Callable[[str], str]
OpenStore = Callable[[str], Store]


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Databases]:
    """Databases of a real server. Where none can be had its tests fail: they do not skip."""
    prefix = f"rota_test_{uuid4().hex[:8]}"
    url = os.environ.get(URL_VARIABLE)
    if url is None:
        with running_server() as server:
            yield Databases(server.url(), prefix=prefix)
    else:
        databases = Databases(url, prefix=prefix)
        yield databases
        databases.drop_all()


@pytest.fixture(scope="session")
def redis_socket() -> Iterator[Path]:
    """The socket of a real Redis. Where none can be had its tests fail: they do not skip."""
    with running_redis() as socket:
        yield socket


@pytest.fixture(scope="session")
def ministack() -> Iterator[str]:
    """The address of an emulator of AWS. Where none can be had its tests fail: they do not skip."""
    with running_ministack() as url:
        yield url


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with its tables and nothing else: a copy of it is a new one without the time of migrating."""
    path = tmp_path_factory.mktemp("migrated") / "rota.db"
    open_sql_store(f"sqlite:///{path}").close()
    return path


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where there is such a disk: answers are the same, and a real one would take three times as long."""
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None) as name:
        yield Path(name)


@pytest.fixture
def new_database(request: pytest.FixtureRequest, folder: Path) -> Iterator[NewDatabase]:
    """Addresses of databases of a kind, each with Rota's tables and nothing in them."""
    lent: list[str] = []

    def make(kind: str) -> str:
        match kind:
            case "sqlite":
                path = folder / f"rota-{uuid4().hex[:8]}.db"
                shutil.copy(request.getfixturevalue("migrated"), path)
                return f"sqlite:///{path}"
            case "postgresql":
                url: str = request.getfixturevalue("postgresql").lend()
                lent.append(url)
                return url
            case _:
                raise ValueError(f"There is no database {kind!r} for tests.")

    yield make
    for url in lent:
        request.getfixturevalue("postgresql").give_back(url)


@pytest.fixture
def open_store(new_database: NewDatabase) -> Iterator[OpenStore]:
    """Opens empty stores of a kind; they are closed after the test."""
    opened: list[Store] = []

    def open_kind(kind: str) -> Store:
        match kind:
            case "memory":
                store: Store = MemoryStore()
            case "memory-small":
                store = MemoryStore(elements_max=2)
            case _:
                store = open_sql_store(new_database(kind))
        opened.append(store)
        return store

    yield open_kind
    for store in opened:
        store.close()
