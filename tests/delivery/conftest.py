"""Scenes on a store in memory, and on each store for what depends on it."""

from collections.abc import Iterator

import pytest

from tests.conftest import OpenStore
from tests.delivery.receiver import Receiver, receiving
from tests.delivery.scene import Scene, ScriptedSenders

STORES = ["memory", "memory-small", "sqlite", "postgresql"]


@pytest.fixture
def scene() -> Iterator[Scene]:
    scene = Scene()
    yield scene
    scene.close()


@pytest.fixture(params=STORES)
def any_scene(request: pytest.FixtureRequest, open_store: OpenStore) -> Iterator[Scene]:
    scene = Scene(open_store(str(request.param)))
    yield scene
    scene.close()


@pytest.fixture
def senders() -> ScriptedSenders:
    return ScriptedSenders()


@pytest.fixture(scope="session")
def server() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def receiver(server: Receiver) -> Receiver:
    server.requests.clear()
    server.answers.clear()
    return server
