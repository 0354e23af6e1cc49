"""Scenes for workers: over both gateways, and on every store where a test asks for `any_scene`."""

from collections.abc import Iterator

import pytest

from rota.config import Settings
from rota.store.memory import MemoryStore
from rota.testing.clock import ManualClock
from rota.wiring import open_context
from tests.conftest import OpenStore
from tests.contract.conftest import STORES
from tests.worker.scene import START, Scene
from tests.worker.served import Served, running_server

HTTP = "http"


@pytest.fixture(scope="session")
def server() -> Iterator[Served]:
    """One server for all tests, each of which gives it its own context."""
    context = open_context(Settings(partitions=4), store=MemoryStore(), clock=ManualClock(START))
    with running_server(context) as served:
        yield served


@pytest.fixture(params=["direct", HTTP])
def scene(request: pytest.FixtureRequest, server: Served) -> Iterator[Scene]:
    scene = Scene(server=server if request.param == HTTP else None)
    yield scene
    scene.close()


@pytest.fixture(params=[*STORES, HTTP])
def any_scene(request: pytest.FixtureRequest, open_store: OpenStore) -> Iterator[Scene]:
    if request.param == HTTP:
        scene = Scene(server=request.getfixturevalue("server"))
    else:
        scene = Scene(open_store(request.param))
    yield scene
    scene.close()


@pytest.fixture
def small_scene() -> Scene:
    """Its store takes two elements a call."""
    return Scene(MemoryStore(elements_max=2))
