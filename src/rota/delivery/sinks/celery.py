"""Celery: each message becomes a message of a Celery task, whose one argument it is and whose id is the run's.

Sent through the user's own Celery application where the relay is told of one, with its routes and serializers, else
through a plain one on a broker. Connections are the relay's own: Celery would try for ever to reach a broker that is
away, and a relay has its own patience.
"""

import importlib
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rota.delivery.message import message_of
from rota.delivery.outcome import Accepted, Failed, Outcome, Says, shown
from rota.delivery.sends import Send
from rota.domain.errors import WrongSetting
from rota.domain.sink import CelerySink

if TYPE_CHECKING:
    from celery import Celery
    from kombu.connection import Connection

BROKER_SECONDS = 5
"""How long the broker may take to answer, to anything."""

NOT_SET = (
    "The relay is set to no Celery: set ROTA_CELERY_APP to your application (MODULE:app), "
    "or ROTA_CELERY_BROKER_URL to its broker."
)
NOT_INSTALLED = "Celery is not installed where the relay runs; install rota[celery]."

IMPATIENT = {
    "max_retries": 1,
    "interval_start": 0,
    "interval_step": 0,
    "interval_max": 0,
    "socket_timeout": BROKER_SECONDS,
    "socket_connect_timeout": BROKER_SECONDS,
    "read_timeout": BROKER_SECONDS,
    "write_timeout": BROKER_SECONDS,
}
"""Transport options; each transport takes those that it knows."""


class BrokerConnection(Protocol):
    """What is used of a connection of kombu."""

    def release(self) -> None: ...


class CeleryMessages:
    """Sends through one Celery application. Threads share it."""

    batch_max = 10
    """One after the other, over one connection."""

    def __init__(self, *, app: str | None, broker_url: str | None) -> None:
        self._reference = app
        self._broker_url = broker_url
        self._lock = threading.Lock()
        self._app: Celery | None = None
        self._idle: list[BrokerConnection] = []

    def send(self, batch: Sequence[Send]) -> Sequence[Outcome]:
        try:
            app = self._open_app()
        except WrongSetting as error:
            return [Failed(error=str(error), says=Says.AWAY) for _ in batch]
        idle = self._take_idle()
        if idle is not None:
            outcomes = self._send_over(idle, app, batch)
            # One that was idle may have been closed at its other end, which says nothing of the broker.
            if not _is_brokers(outcomes[0]):
                return outcomes
        return self._send_over(connect(app), app, batch)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.release()

    def _open_app(self) -> "Celery":
        """Raises `WrongSetting`."""
        with self._lock:
            if self._app is None:
                self._app = _load(self._reference, self._broker_url)
            return self._app

    def _take_idle(self) -> BrokerConnection | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _send_over(
        self, connection: BrokerConnection, app: "Celery", batch: Sequence[Send]
    ) -> Sequence[Outcome]:
        """Keeps the connection where it took everything, and closes it else."""
        outcomes: list[Outcome] = []
        is_sound = False
        try:
            for send in batch:
                # Behind one that the broker did not take the others would each wait for it again.
                is_away = bool(outcomes) and _is_brokers(outcomes[-1])
                outcomes.append(outcomes[-1] if is_away else _publish(app, connection, send))
            is_sound = all(isinstance(outcome, Accepted) for outcome in outcomes)
        finally:
            if is_sound:
                with self._lock:
                    self._idle.append(connection)
            else:
                connection.release()
        return outcomes


def connect(app: "Celery") -> "Connection":
    """A connection that is made when it is used."""
    own = app.conf.broker_transport_options or {}
    options = {**IMPATIENT, **own, "max_retries": 1}
    connection: Connection = app.connection_for_write(
        connect_timeout=BROKER_SECONDS, transport_options=options
    )
    if _can_confirm(connection):
        # Else a broker that dies with the message in its socket has never had it, and the relay believes it has.
        connection.transport_options = {"confirm_publish": True, **(connection.transport_options or {})}
    return connection


def _can_confirm(connection: "Connection") -> bool:
    """Whether it is of the one transport that is told by the broker when a message is kept, if it asks for that."""
    from kombu.transport.pyamqp import Transport  # noqa: PLC0415 - loads only where Celery is used

    transport: type[object] = connection.get_transport_cls()  # type: ignore[no-untyped-call]  # kombu has no types
    return issubclass(transport, Transport)


def _is_brokers(outcome: Outcome) -> bool:
    """Whether it failed by the broker, and not by the message."""
    return isinstance(outcome, Failed) and outcome.says is Says.AWAY


def _publish(app: "Celery", connection: BrokerConnection, send: Send) -> Outcome:
    from amqp.exceptions import (  # type: ignore[import-untyped]  # noqa: PLC0415 - no types; loads only where used
        AMQPError,
        MessageNacked,
    )
    from kombu.exceptions import EncodeError, KombuError  # noqa: PLC0415 - loads only where Celery is used

    sink = send.taken.job.sink
    assert isinstance(sink, CelerySink)  # noqa: S101 - what this sink is asked for
    route = {} if sink.queue is None else {"queue": sink.queue}
    try:
        app.send_task(
            sink.task,
            args=[message_of(send.taken)],
            task_id=send.taken.run.run_id,
            connection=connection,
            retry=False,
            # Rota keeps the result. Celery would subscribe to each one, and never let go of it.
            ignore_result=True,
            **route,
        )
    except EncodeError as error:
        return Failed(
            error=shown(f"Celery cannot write the message: {error}"), is_final=True, says=Says.NOTHING
        )
    except (KombuError, OSError, AMQPError, MessageNacked) as error:
        problem = shown(f"The broker did not take the message: {type(error).__name__}: {error}")
        return Failed(error=problem, says=Says.AWAY)
    return Accepted()


def _load(reference: str | None, broker_url: str | None) -> "Celery":
    """Raises `WrongSetting` with what to do."""
    if reference is None and broker_url is None:
        raise WrongSetting(NOT_SET)
    try:
        from celery import Celery  # noqa: PLC0415 - only where it is used, and an extra
    except ImportError:
        raise WrongSetting(NOT_INSTALLED) from None
    if reference is None:
        app = Celery("rota", broker=broker_url, set_as_current=False)
        app.conf.update(task_serializer="json", accept_content=["json"])
        return app
    found = _import(reference)
    if not isinstance(found, Celery):
        raise WrongSetting(
            f"ROTA_CELERY_APP: {reference} is of type {type(found).__name__}; it has to be a Celery."
        )
    return found


def _import(reference: str) -> object:
    """What `MODULE:attribute` names, installed or in the relay's folder."""
    module, _, attribute = reference.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: object = importlib.import_module(module)
        for name in attribute.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError, ValueError, SyntaxError) as error:
        problem = shown(f"{type(error).__name__}: {error}")
        raise WrongSetting(
            f"ROTA_CELERY_APP: {reference!r} cannot be used ({problem}); write MODULE:app, such as shop.celery:app."
        ) from None
    return found
