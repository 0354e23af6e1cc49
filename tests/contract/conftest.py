"""The stores that the contract runs on; a store that cannot be opened fails its tests, it does not skip them."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rota.store.memory import MemoryStore
from rota.store.port import Store
from rota.store.sql import open_sql_store

STORES = ("memory", "memory-small", "sqlite", "postgresql")
"""`memory-small` takes two elements a call, as a store with small transactions does."""

MEMORY_DISK = Path("/dev/shm")

OpenStore = Callable[[str], Store]


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with its tables and nothing else: a copy of it is a new store without the time of migrating."""
    path = tmp_path_factory.mktemp("migrated") / "rota.db"
    open_sql_store(f"sqlite:///{path}").close()
    return path


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where there is such a disk: answers are the same, and a real one would take three times as long."""
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None) as name:
        yield Path(name)


@pytest.fixture
def open_store(request: pytest.FixtureRequest, folder: Path) -> Iterator[OpenStore]:
    """Opens empty stores of a kind; they are closed after the test."""
    opened: list[Store] = []
    lent: list[str] = []

    def open_kind(kind: str) -> Store:
        match kind:
            case "memory":
                store: Store = MemoryStore()
            case "memory-small":
                store = MemoryStore(elements_max=2)
            case "sqlite":
                path = folder / f"rota-{len(opened)}.db"
                shutil.copy(request.getfixturevalue("migrated"), path)
                store = open_sql_store(f"sqlite:///{path}")
            case "postgresql":
                url = request.getfixturevalue("postgresql").lend()
                lent.append(url)
                store = open_sql_store(url)
            case _:
                raise ValueError(f"The contract has no store {kind!r}.")
        opened.append(store)
        return store

    yield open_kind
    for store in opened:
        store.close()
    for url in lent:
        request.getfixturevalue("postgresql").give_back(url)


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, open_store: OpenStore) -> Store:
    return open_store(request.param)
