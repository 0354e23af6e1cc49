"""Every store, for lives with edits: the stores of the contract."""

import pytest

from rota.store.memory import MemoryStore
from rota.store.port import Store
from tests.contract.conftest import store

__all__ = ["memory_store", "store"]


@pytest.fixture
def memory_store() -> Store:
    """For tests of so many lives that one store has to do."""
    return MemoryStore()
