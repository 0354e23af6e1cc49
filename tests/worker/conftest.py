"""Scenes for workers: on the memory store, and on every store where a test asks for `any_scene`."""

from collections.abc import Iterator

import pytest

from rota.store.memory import MemoryStore
from tests.conftest import OpenStore
from tests.contract.conftest import STORES
from tests.worker.scene import Scene


@pytest.fixture
def scene() -> Iterator[Scene]:
    scene = Scene()
    yield scene
    scene.close()


@pytest.fixture(params=STORES)
def any_scene(request: pytest.FixtureRequest, open_store: OpenStore) -> Iterator[Scene]:
    scene = Scene(open_store(request.param))
    yield scene
    scene.close()


@pytest.fixture
def small_scene() -> Scene:
    """Its store takes two elements a call."""
    return Scene(MemoryStore(elements_max=2))
