"""Sinks in a world: what its relay sends goes nowhere, and a test looks at it, or receives it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rota.delivery.message import message_of
from rota.delivery.outcome import Accepted, Outcome
from rota.delivery.sends import Send, Sender, ThreadedSender
from rota.domain.json_text import load_json
from rota.domain.sink import PushSink, WebhookSink
from rota.store.port import TakenDelivery


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A message of a run, as its receiver gets it: `world.app.open_attempt(sent.message)` opens its attempt."""

    sink: PushSink
    message: dict[str, object]
    """For a webhook the `data` of its event, params included."""


Receive = Callable[[Sent], Outcome | None]
"""Stands for whatever is behind the sinks. None: it was taken, and somebody opens its attempt. What it raises, as every
`Failed`, is a try that failed."""


class RecordingSenders:
    """Stands for every sink: notes down what is sent, and asks `receive` what becomes of it."""

    batch_max = 1

    def __init__(self, receive: Receive | None = None) -> None:
        self.sent: list[Sent] = []
        self._receive = receive
        self._sender = ThreadedSender(self, inline=True)

    def of(self, sink: PushSink) -> Sender:  # noqa: ARG002  the same for all
        return self._sender

    def send(self, batch: Sequence[Send]) -> Sequence[Outcome]:
        outcomes: list[Outcome] = []
        for each in batch:
            sent = _sent_of(each.taken)
            self.sent.append(sent)
            outcomes.append((self._receive and self._receive(sent)) or Accepted())
        return outcomes

    def close(self) -> None:
        """Nothing is open."""


def _sent_of(taken: TakenDelivery) -> Sent:
    sink, message = taken.job.sink, message_of(taken)
    assert isinstance(sink, PushSink)  # noqa: S101 - a relay sends nothing else
    if isinstance(sink, WebhookSink):
        message["params"] = load_json(taken.version.definition.params)
    return Sent(sink=sink, message=message)
