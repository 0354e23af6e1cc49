"""Sinks: where the due runs of a job go, and how patiently they are sent there."""

import re
from dataclasses import dataclass
from datetime import timedelta

from rota.domain.backoff import Backoff

WEBHOOK_TIMEOUT = timedelta(seconds=15)

ORIGIN = re.compile(r"([^/]*//[^/?#]*).*", re.DOTALL)
"""Of a URL: its scheme, host and port."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSink:
    """Rota's own workers fetch them; nothing is sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSink:
    """They are posted to a URL, as signed CloudEvents."""

    url: str
    secrets_from: tuple[str, ...] = ()
    """Names of environment variables of the relay that hold Standard Webhooks secrets, the newest first. Each signs, so
    that a receiver may know either while they are changed. Secrets themselves are never stored."""
    timeout: timedelta = WEBHOOK_TIMEOUT
    """For a whole request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CelerySink:
    """They become messages of the Celery that the relay is set to; the run's id is the id of the Celery task."""

    task: str
    queue: str | None = None
    """None: the one that Celery's own routing chooses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqsSink:
    """They become messages of an SQS queue. A name that ends in `.fifo` is a FIFO queue, its groups the schedules."""

    queue_url: str


Sink = WorkerSink | WebhookSink | CelerySink | SqsSink
PushSink = WebhookSink | CelerySink | SqsSink


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryPolicy(Backoff):
    """How patiently messages are sent to a sink: how long it waits after a try that failed, and how long in all."""

    initial_delay: timedelta = timedelta(seconds=5)
    max_delay: timedelta = timedelta(minutes=15)
    max_age: timedelta = timedelta(hours=24)
    """A message that could not be sent for so long is dead, once it was tried then."""
    redeliver_after: timedelta = timedelta(minutes=5)
    """A message that was sent and whose attempt nobody opened for so long is sent again; each time after twice as long,
    up to an hour."""
    concurrency: int = 10
    """How many messages a relay has under way to the job's destination at once."""


def destination_of(sink: PushSink) -> str:
    """What fails and is slow as one: jobs that share it share its limits in a relay."""
    match sink:
        case WebhookSink(url=url):
            return ORIGIN.sub(r"\1", url).lower()
        case CelerySink(queue=queue):
            return "celery" if queue is None else f"celery:{queue}"
        case SqsSink(queue_url=queue_url):
            return queue_url
