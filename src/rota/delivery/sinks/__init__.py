"""Sinks by their kind, each made when something is first sent to it: what nobody uses is not even loaded."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from rota.delivery.addresses import Networks
from rota.delivery.sends import Sender, ThreadedSender
from rota.domain.sink import CelerySink, PushSink, SqsSink, WebhookSink


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSettings:
    """What a relay is set to, for all jobs."""

    event_source: str = "/rota"
    networks: Networks = field(default_factory=Networks)
    celery_app: str | None = None
    celery_broker_url: str | None = None


class Senders(Protocol):
    """Who sends to a sink."""

    def of(self, sink: PushSink) -> Sender: ...
    def close(self) -> None: ...


class SendersByKind:
    """One sender for each kind of sink; one thread asks for them."""

    def __init__(self, settings: SinkSettings, *, inline: bool = False) -> None:
        """Each `inline` send has ended when its start returns, for tests."""
        self._makers: dict[type[PushSink], Callable[[], Sender]] = {
            WebhookSink: lambda: _webhook(settings, inline=inline),
            CelerySink: lambda: _celery(settings, inline=inline),
            SqsSink: lambda: _sqs(inline=inline),
        }
        self._made: dict[type[PushSink], Sender] = {}

    def of(self, sink: PushSink) -> Sender:
        kind = type(sink)
        if kind not in self._made:
            self._made[kind] = self._makers[kind]()
        return self._made[kind]

    def close(self) -> None:
        for sender in self._made.values():
            sender.close()
        self._made.clear()


def _webhook(settings: SinkSettings, *, inline: bool) -> Sender:
    from rota.delivery.sinks.webhook import WebhookSender  # noqa: PLC0415 - the client loads only where it is used

    return WebhookSender(
        source=settings.event_source, networks=settings.networks, environment=os.environ, inline=inline
    )


def _celery(settings: SinkSettings, *, inline: bool) -> Sender:
    from rota.delivery.sinks.celery import CeleryMessages  # noqa: PLC0415 - the same

    sink = CeleryMessages(app=settings.celery_app, broker_url=settings.celery_broker_url)
    return ThreadedSender(sink, inline=inline)


def _sqs(*, inline: bool) -> Sender:
    from rota.delivery.sinks.sqs import SqsMessages  # noqa: PLC0415 - the same

    return ThreadedSender(SqsMessages(), inline=inline)
