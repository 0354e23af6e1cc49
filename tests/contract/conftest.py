"""The stores that the contract runs on; a store that cannot be opened fails its tests, it does not skip them."""

import pytest

from rota.store.port import Store
from tests.conftest import OpenStore

__all__ = ["STORES", "OpenStore", "store"]

STORES = ("memory", "memory-small", "sqlite", "postgresql")
"""`memory-small` takes two elements a call, as a store with small transactions does."""


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, open_store: OpenStore) -> Store:
    return open_store(request.param)
