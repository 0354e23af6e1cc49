"""Celery against a real worker on a real Redis; and what is told where it is not set up."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import pytest
import redis
from amqp.exceptions import AMQPError, MessageNacked  # type: ignore[import-untyped]  # it has no types
from celery import Celery

from rota.clock import SystemClock, truncate_to_millis
from rota.delivery.sends import Done, Send, Sender, ThreadedSender
from rota.delivery.sinks.celery import IMPATIENT, CeleryMessages, connect
from rota.domain.delivery import Delivery, DeliveryState
from rota.domain.identity import RunId
from rota.domain.run import RunState
from rota.domain.sink import CelerySink, PushSink
from rota.store.sql import open_sql_store
from tests.delivery.scene import DEADLINE_SECONDS, MINUTE, STEADY, Scene

ROOT = Path(__file__).resolve().parent.parent.parent
NOWHERE = "redis+socket:///nowhere/redis.sock"


class Messages:
    """Senders of Celery messages alone, as a relay's."""

    def __init__(self, *, broker_url: str | None = None, app: str | None = None) -> None:
        self._sender = ThreadedSender(CeleryMessages(app=app, broker_url=broker_url), inline=True)

    def of(self, sink: PushSink) -> Sender:
        return self._sender

    def close(self) -> None:
        self._sender.close()


class Forgetful(Messages):
    """Sends, and is killed before it can say so."""

    batch_max = 10

    def of(self, sink: PushSink) -> Sender:
        return self

    def start(self, batch: Sequence[Send], done: Done) -> None:
        self._sender.start(batch, lambda send, outcome: None)

    def write_off(self, send: Send) -> None:
        """It is dead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """A scene, and the Celery worker that does its work."""

    scene: Scene
    broker_url: str
    broker: redis.Redis
    calls: Path

    def wait_for(self, run_id: RunId) -> None:
        """Until the run is no longer open."""
        for _ in range(round(DEADLINE_SECONDS * 50)):
            if self.scene.run(run_id).state not in {RunState.QUEUED, RunState.RUNNING}:
                return
            Event().wait(0.02)
        raise AssertionError(f"{run_id} is {self.scene.run(run_id).state}")

    def calls_of(self, run_id: RunId) -> list[str]:
        lines = self.calls.read_text().splitlines() if self.calls.exists() else []
        return [line for line in lines if f" {run_id} " in line]

    def consume(self, queue: str) -> None:
        """Has the worker take messages from that queue too, from now on."""
        app = Celery("control", broker=self.broker_url, set_as_current=False)
        app.control.add_consumer(queue, reply=True, timeout=DEADLINE_SECONDS, limit=1)
        app.close()


@pytest.fixture(scope="module")
def party(redis_socket: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Party]:
    folder = tmp_path_factory.mktemp("celery")
    broker_url = f"redis+socket://{redis_socket}"
    database = f"sqlite:///{folder / 'rota.db'}"
    store = open_sql_store(database)
    scene = Scene(store, now=truncate_to_millis(SystemClock().now()))
    environment = {
        **os.environ,
        "TEST_BROKER_URL": broker_url,
        "TEST_DATABASE": database,
        "TEST_CALLS": str(folder / "calls"),
    }
    options = ["--pool", "solo", "--without-gossip", "--without-mingle", "--without-heartbeat"]
    with (folder / "worker.log").open("wb") as log:
        worker = subprocess.Popen(
            [sys.executable, "-m", "celery", "-A", "tests.delivery.celery_jobs", "worker", *options],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    with redis.Redis(unix_socket_path=str(redis_socket)) as broker:
        yield Party(scene=scene, broker_url=broker_url, broker=broker, calls=folder / "calls")
    worker.terminate()
    try:
        worker.wait(timeout=DEADLINE_SECONDS)
    except subprocess.TimeoutExpired:
        worker.kill()
        worker.wait(timeout=DEADLINE_SECONDS)
    scene.close()
    store.close()


@pytest.mark.slow
def test_a_celery_worker_does_the_work_of_a_run(party: Party) -> None:
    scene = party.scene
    scene.job("report", CelerySink(task="jobs.report"))
    run_id = scene.queue("report", customer="acme")
    scene.rest(scene.relay(Messages(broker_url=party.broker_url)))
    party.wait_for(run_id)
    detail = scene.detail(run_id)
    assert (detail.run.state, detail.result) == (RunState.SUCCEEDED, '{"customer":"acme"}')
    assert party.calls_of(run_id) == [f"{run_id} {run_id} 1"]


@pytest.mark.slow
def test_a_message_that_the_broker_lost_is_sent_again_and_the_run_completes(party: Party) -> None:
    scene = party.scene
    scene.job("lost", CelerySink(task="jobs.report", queue="lost"), STEADY)
    run_id = scene.queue("lost", customer="acme")
    relay = scene.relay(Messages(broker_url=party.broker_url))
    scene.rest(relay)
    assert party.broker.delete("lost") == 1
    party.consume("lost")
    assert scene.delivery(run_id).state is DeliveryState.SENT
    scene.clock.advance(STEADY.redeliver_after)
    scene.rest(relay)
    party.wait_for(run_id)
    assert scene.run(run_id).state is RunState.SUCCEEDED
    assert party.calls_of(run_id) == [f"{run_id} {run_id} 1"]


@pytest.mark.slow
def test_what_a_relay_that_was_killed_had_sent_is_sent_again_and_done_once(party: Party) -> None:
    scene = party.scene
    scene.job("twice", CelerySink(task="jobs.report", queue="twice"))
    run_id = scene.queue("twice", customer="acme")
    scene.relay(Forgetful(broker_url=party.broker_url), name="killed").step(scene.now)
    scene.clock.advance(3 * MINUTE)
    scene.rest(scene.relay(Messages(broker_url=party.broker_url), name="other"))
    assert party.broker.llen("twice") == 2
    party.consume("twice")
    party.wait_for(run_id)
    behind = scene.queue("twice", customer="behind")
    scene.rest(scene.relay(Messages(broker_url=party.broker_url), name="third"))
    party.wait_for(behind)  # so the second message is through, whatever became of it
    assert party.calls_of(run_id) == [f"{run_id} {run_id} 1"]
    assert [attempt.number for attempt in scene.detail(run_id).attempts] == [1]


@pytest.mark.slow
def test_a_connection_that_was_closed_while_it_was_idle_fails_no_try(party: Party) -> None:
    scene = party.scene
    scene.job("idle", CelerySink(task="jobs.report", queue="idle"))
    relay = scene.relay(Messages(broker_url=party.broker_url))
    before = {client["id"] for client in party.broker.client_list()}
    first = scene.queue("idle")
    scene.rest(relay)
    for client in party.broker.client_list():
        if client["id"] not in before:
            party.broker.client_kill_filter(_id=client["id"])
    second = scene.queue("idle")
    scene.rest(relay)
    assert {scene.delivery(run_id).state for run_id in (first, second)} == {DeliveryState.SENT}
    assert party.broker.llen("idle") == 2


@pytest.mark.slow
def test_a_users_own_application_routes_the_message(
    party: Party, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module = f"from celery import Celery\napp = Celery(broker={party.broker_url!r}, set_as_current=False)\n"
    (tmp_path / "shop_celery.py").write_text(
        module + "app.conf.task_routes = {'jobs.*': {'queue': 'routed'}}\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    scene = party.scene
    scene.job("routed", CelerySink(task="jobs.report"))
    run_id = scene.queue("routed", customer="acme")
    scene.rest(scene.relay(Messages(app="shop_celery:app")))
    assert scene.delivery(run_id).state is DeliveryState.SENT
    assert party.broker.llen("routed") == 1


def failed(scene: Scene, messages: Messages, *, jobs: int = 1) -> Delivery:
    """The delivery of a run whose message could not be sent."""
    scene.job("report", CelerySink(task="jobs.report"))
    run_ids = [scene.queue("report") for _ in range(jobs)]
    scene.rest(scene.relay(messages))
    delivery = scene.delivery(run_ids[0])
    assert delivery.state is DeliveryState.RETRYING
    assert {scene.delivery(run_id).state for run_id in run_ids} == {DeliveryState.RETRYING}
    return delivery


def test_a_broker_that_is_away_fails_the_try(scene: Scene) -> None:
    delivery = failed(scene, Messages(broker_url=NOWHERE), jobs=3)
    assert delivery.error is not None
    assert delivery.error.startswith("The broker did not take the message: ")


def test_a_broker_that_does_not_answer_fails_the_try(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("socket_timeout", "socket_connect_timeout"):
        monkeypatch.setitem(IMPATIENT, name, 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        delivery = failed(scene, Messages(broker_url=f"redis://127.0.0.1:{silent.getsockname()[1]}"), jobs=3)
    assert delivery.error is not None
    assert delivery.error.startswith("The broker did not take the message: ")


@pytest.mark.parametrize(
    ("app", "problem"),
    [
        (None, "set ROTA_CELERY_APP to your application"),
        ("no_such_module:app", "'no_such_module:app' cannot be used .*write MODULE:app"),
        ("tests.delivery.scene:nothing", "cannot be used"),
        ("tests.delivery.scene", "cannot be used"),
        ("tests.delivery.scene:START", "is of type datetime; it has to be a Celery"),
        (":app", "cannot be used"),
    ],
)
def test_a_relay_that_is_set_to_no_celery_fails_the_try_and_says_what_to_do(
    scene: Scene, app: str | None, problem: str
) -> None:
    delivery = failed(scene, Messages(app=app))
    assert delivery.error is not None
    assert re.search(problem, delivery.error)


def test_where_celery_is_not_installed_the_try_fails_and_says_what_to_do(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "celery", None)
    assert "install rota[celery]" in str(failed(scene, Messages(broker_url=NOWHERE)).error)


def test_what_celery_cannot_write_is_dead_at_once(scene: Scene) -> None:
    messages = Messages(app="tests.delivery.celery_unable:app")
    scene.job("report", CelerySink(task="jobs.report"))
    run_id = scene.queue("report")
    scene.rest(scene.relay(messages))
    delivery = scene.delivery(run_id)
    assert delivery.state is DeliveryState.DEAD
    assert delivery.error is not None
    assert delivery.error.startswith("Celery cannot write the message: ")


@pytest.mark.parametrize(
    ("broker_url", "own", "expected"),
    [
        ("amqp://127.0.0.1:9", {}, True),
        ("pyamqp://127.0.0.1:9", {}, True),
        ("amqp://127.0.0.1:9", {"confirm_publish": False}, False),
        (NOWHERE, {}, None),
        ("memory://", {}, None),
    ],
)
def test_a_broker_that_can_confirm_a_message_is_asked_to(
    broker_url: str, own: dict[str, object], expected: bool | None
) -> None:
    """Else a message is lost that is still in a socket when the broker dies."""
    app = Celery("shop", broker=broker_url, set_as_current=False)
    app.conf.broker_transport_options = own
    with connect(app) as connection:
        assert connection.transport_options.get("confirm_publish") is expected
    app.close()


def test_a_broker_of_amqp_that_is_away_fails_the_try(scene: Scene) -> None:
    delivery = failed(scene, Messages(broker_url="amqp://127.0.0.1:9"), jobs=2)
    assert str(delivery.error).startswith("The broker did not take the message: ")


@pytest.mark.parametrize("error", [MessageNacked(), AMQPError("no such exchange")])
def test_a_message_that_a_broker_does_not_keep_fails_the_try_of_that_message(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Celery, "send_task", refuse)
    delivery = failed(scene, Messages(broker_url="memory://"))
    assert type(error).__name__ in str(delivery.error)
    assert str(delivery.error).startswith("The broker did not take the message: ")
