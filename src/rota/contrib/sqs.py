"""A consumer of an SQS queue that the relay sends runs to: it receives, opens the attempt, deletes the message, runs
the handler, settles.

::

    app.job("report", sink=SqsSink(queue_url=URL))(report)
    Consumer(app, URL).run(stop)

The message is deleted as soon as its attempt is open, and before the work begins: from then on the attempt's lease and
the job's retries stand for it, however long the work takes, and the queue's visibility timeout is of no account. A
message whose attempt could not be opened, since Rota is out of reach, is left to come again. One that is no message of
Rota's, or of a job without a handler here, is left too, for the queue's own dead-letter policy.
"""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, cast

from rota.application import Rota
from rota.domain.errors import RotaError
from rota.telemetry import get_logger
from rota.worker.registry import RegisteredJob
from rota.worker.session import AttemptSession

RECEIVED_MAX = 10
"""SQS gives out no more at a time."""
LONG_POLL_SECONDS = 10
PAUSE_SECONDS = 1.0
"""After a request to SQS that failed."""

log = get_logger("contrib")

Message = Mapping[str, object]


class SqsClient(Protocol):
    """What is asked of boto3's client."""

    def receive_message(self, **request: object) -> Mapping[str, object]: ...
    def delete_message(self, **request: object) -> Mapping[str, object]: ...


class Consumer:
    """Runs what a queue holds, up to `concurrency` handlers at a time, each in a thread of its own.

    The client is the default one of boto3 where none is given.
    """

    def __init__(
        self, app: Rota, queue_url: str, *, client: SqsClient | None = None, concurrency: int = 10
    ) -> None:
        self._app = app
        self._queue_url = queue_url
        self._client = client
        self._concurrency = concurrency
        self._changed = threading.Condition()
        self._running = 0

    @property
    def running(self) -> int:
        """How many handlers run."""
        return self._running

    def step(self, *, wait_seconds: int = LONG_POLL_SECONDS) -> int:
        """Receives what there is, up to the free places, and starts it; how many attempts were opened.

        Waits for a free place, then for messages. Raises what boto3 raises, and `RotaError` where Rota is out of reach.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._running < self._concurrency, timeout=wait_seconds)
            free = self._concurrency - self._running
        if free <= 0:
            return 0
        answer = self._sqs().receive_message(
            QueueUrl=self._queue_url,
            MaxNumberOfMessages=min(free, RECEIVED_MAX),
            WaitTimeSeconds=wait_seconds,
        )
        messages = cast("Sequence[Message]", answer.get("Messages") or ())
        return sum(self._take(message) for message in messages)

    def run(self, stop: threading.Event) -> None:
        """Steps until `stop` is set, then waits for the handlers that run."""
        while not stop.is_set():
            try:
                self.step()
            except Exception as error:  # noqa: BLE001 - whatever the network or SQS has to say, the loop outlives it
                log.warning("consumer.step_failed", problem=f"{type(error).__name__}: {error}")
                stop.wait(PAUSE_SECONDS)
        self.drain()

    def drain(self, timeout: float | None = None) -> bool:
        """Waits for the handlers that run; whether all have ended."""
        with self._changed:
            return self._changed.wait_for(lambda: self._running == 0, timeout=timeout)

    def _take(self, message: Message) -> bool:
        """Whether the message opened an attempt, which runs from now on."""
        body = _body_of(message)
        entry = None if body is None else self._app.registry.get(str(body.get("job")))
        if body is None or entry is None:
            log.warning(
                "message.left",
                message=str(message.get("MessageId")),
                job=None if body is None else body.get("job"),
            )
            return False
        try:
            attempt = self._app.open_attempt(body)
        except RotaError as error:
            log.warning("message.left", message=str(message.get("MessageId")), problem=str(error))
            return False
        if attempt is not None:
            self._start(attempt, entry)
        self._sqs().delete_message(QueueUrl=self._queue_url, ReceiptHandle=message["ReceiptHandle"])
        return attempt is not None

    def _start(self, attempt: AttemptSession, entry: RegisteredJob) -> None:
        with self._changed:
            self._running += 1

        def work() -> None:
            try:
                attempt.run(entry)
            finally:
                with self._changed:
                    self._running -= 1
                    self._changed.notify_all()

        threading.Thread(target=work, name="rota-consumer", daemon=True).start()

    def _sqs(self) -> SqsClient:
        if self._client is None:
            self._client = _boto3_client()
        return self._client


def _boto3_client() -> SqsClient:
    import boto3  # noqa: PLC0415 - an extra, slow to load

    return cast("SqsClient", cast("Callable[[str], object]", boto3.client)("sqs"))


def _body_of(message: Message) -> dict[str, object] | None:
    """The run's message in it; None where it is none."""
    try:
        found = json.loads(str(message["Body"]))
    except (KeyError, ValueError):
        return None
    return found if isinstance(found, dict) else None
