"""`rota relay` and `rota up` as real processes: killed in the middle of a send, and beside each other."""

import signal
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from rota import Rota
from rota.config import Settings
from rota.domain.delivery import DeliveryState
from rota.domain.errors import WrongSetting
from rota.domain.instants import format_instant
from rota.domain.run import RunState
from rota.domain.sink import WebhookSink
from rota.store.memory import MemoryStore
from rota.store.sql import open_sql_store
from tests.cli.processes import Process
from tests.conftest import NewDatabase
from tests.delivery.receiver import Answer, Receiver, receiving
from tests.delivery.scene import MINUTE, Scene


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


class Shop:
    """A database, a receiver of its runs, and a clock that processes share."""

    def __init__(self, url: str, receiver: Receiver, folder: Path) -> None:
        self.url = url
        self.receiver = receiver
        self.folder = folder
        self.store = open_sql_store(url)
        self.scene = Scene(self.store)
        self.scene.job("hook", WebhookSink(url=receiver.url(), timeout=timedelta(minutes=5)))
        self.tell_time(self.scene.now)

    def tell_time(self, now: datetime) -> None:
        """As one step: a process that reads meanwhile sees the one or the other."""
        written = self.folder / "clock.new"
        written.write_text(format_instant(now))
        written.rename(self.folder / "clock")

    def process(self, *arguments: str) -> Process:
        return Process(
            *arguments,
            "--database",
            self.url,
            cwd=self.folder,
            ROTA_CLOCK_FILE=str(self.folder / "clock"),
            ROTA_WEBHOOK_NETWORKS="127.0.0.0/8",
        )


@pytest.fixture
def shop(new_database: NewDatabase, receiver: Receiver, tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(new_database("postgresql"), receiver, tmp_path)
    yield shop
    shop.store.close()


@pytest.mark.slow
def test_what_a_relay_that_was_killed_had_sent_is_sent_again_for_the_same_attempt(shop: Shop) -> None:
    scene, receiver = shop.scene, shop.receiver
    run_id = scene.queue("hook")
    shop.tell_time(scene.now)
    receiver.answers["/hooks"] = Answer(hangs=True)
    with shop.process("relay") as killed:
        receiver.wait()
        killed.stop(signal.SIGKILL)
    assert scene.delivery(run_id).state is DeliveryState.SENDING
    receiver.answers.clear()
    shop.tell_time(scene.now + 10 * MINUTE)
    with shop.process("relay") as other:
        receiver.wait()
        assert other.stop(signal.SIGTERM) == 0
    first, second = receiver.requests
    assert first.headers["webhook-id"] == second.headers["webhook-id"] == f"{run_id}/1"
    detail = scene.detail(run_id)
    assert (detail.run.state, len(detail.attempts)) == (RunState.SUCCEEDED, 1)


@pytest.mark.slow
def test_rota_up_relays_too(shop: Shop) -> None:
    scene, receiver = shop.scene, shop.receiver
    run_id = scene.queue("hook")
    shop.tell_time(scene.now)
    with shop.process("up", "--port", "0") as up:
        receiver.wait()
        assert up.stop(signal.SIGTERM) == 0
    assert scene.run(run_id).state is RunState.SUCCEEDED


def test_a_relay_that_is_told_of_networks_that_are_none_is_not_built() -> None:
    # A copy is not validated: as from whoever builds settings without it.
    settings = Settings().model_copy(update={"webhook_networks": "localhost"})
    app = Rota(settings=settings, store=MemoryStore())
    with pytest.raises(WrongSetting, match="ROTA_WEBHOOK_NETWORKS"):
        app.build_relay()
