"""Senders of webhooks as tests use them, and what becomes of a webhook that could not be called."""

import base64

from rota.delivery.addresses import Networks
from rota.delivery.sends import Sender
from rota.delivery.sinks.webhook import Lookup, WebhookSender
from rota.domain.delivery import Delivery, DeliveryState
from rota.domain.sink import PushSink, WebhookSink
from tests.delivery.scene import Scene

OLD = "whsec_" + base64.b64encode(b"o" * 32).decode()
NEW = "whsec_" + base64.b64encode(b"n" * 32).decode()
ENVIRONMENT = {"OLD_SECRET": OLD, "NEW_SECRET": NEW}


class Hooks:
    """Senders of webhooks alone, as a relay's."""

    def __init__(
        self, *, networks: str = "127.0.0.0/8", inline: bool = True, lookup: Lookup | None = None
    ) -> None:
        self._sender = WebhookSender(
            source="/rota",
            networks=Networks(networks),
            environment=ENVIRONMENT,
            inline=inline,
            lookup=lookup,
        )

    def of(self, sink: PushSink) -> Sender:
        return self._sender

    def close(self) -> None:
        self._sender.close()


def failed(scene: Scene, sink: WebhookSink, hooks: Hooks | None = None) -> Delivery:
    """The delivery of a run whose webhook could not be called."""
    scene.job("hook", sink)
    run_id = scene.queue("hook")
    scene.rest(scene.relay(hooks or Hooks()))
    delivery = scene.delivery(run_id)
    assert delivery.state is DeliveryState.RETRYING
    return delivery


def error_of(delivery: Delivery) -> str:
    assert delivery.error is not None
    return delivery.error
