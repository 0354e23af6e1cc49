"""A consumer of an SQS queue that the relay sends runs to: it receives, opens the attempt, deletes the message, runs
the handler, settles.

::

    app.job("report", sink=SqsSink(queue_url=URL))(report)
    Consumer(app, URL).run(stop)

The message is deleted as soon as its attempt is open, and before the work begins: from then on the attempt's lease and
the job's retries stand for it, however long the work takes, and the queue's visibility timeout is of no account. A
message whose attempt could not be opened, since Rota is out of reach, is left to come again. One that is no message of
Rota's, or of a job without a handler here, is left too, for the queue's own dead-letter policy.

Which handler runs is decided by the run's job, as Rota has it, and never by what a message says: by that it is only
judged whether to open the attempt. Where it turns out to be another job's, without a handler or a free place here, the
attempt is given back. A message of a job whose handlers are as many as its `concurrency` is kept until one of them has
ended; where the queue gives it to another consumer meanwhile, one of the two opens the attempt.
"""

import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from rota.application import Rota
from rota.domain.errors import RotaError
from rota.telemetry import get_logger
from rota.worker.registry import RegisteredJob
from rota.worker.session import AttemptSession

RECEIVED_MAX = 10
"""SQS gives out no more at a time."""
LONG_POLL_SECONDS = 10
KEPT_MAX = 100
"""So many messages of jobs without a free place are kept; then nothing more is received."""
KEPT_POLL_SECONDS = 1
"""How long it waits for messages where some are kept, whose handlers may end meanwhile."""
PAUSE_SECONDS = 1.0
"""After a request to SQS that failed."""

log = get_logger("contrib")

Message = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A message that is kept for a place."""

    body: Mapping[str, object]
    message_id: str
    receipt: object

    @property
    def job(self) -> str:
        """As the message says."""
        return str(self.body.get("job"))


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
        self._running: Counter[str] = Counter()
        """Handlers by job."""
        self._kept: dict[str, Received] = {}
        """By message id: one that comes once more is the same."""

    @property
    def running(self) -> int:
        """How many handlers run."""
        return self._running.total()

    def step(self, *, wait_seconds: int = LONG_POLL_SECONDS) -> int:
        """Receives what there is, up to the free places, and starts it; how many attempts were opened.

        Waits for a free place, then for messages. Raises what boto3 raises, and `RotaError` where Rota is out of reach.
        """
        with self._changed:
            self._changed.wait_for(self._can_go_on, timeout=wait_seconds)
        opened = self._take_kept()
        free = min(self._concurrency - self.running, KEPT_MAX - len(self._kept))
        if free <= 0:
            return opened
        answer = self._sqs().receive_message(
            QueueUrl=self._queue_url,
            MaxNumberOfMessages=min(free, RECEIVED_MAX),
            WaitTimeSeconds=min(wait_seconds, KEPT_POLL_SECONDS) if self._kept else wait_seconds,
        )
        self._keep(cast("Sequence[Message]", answer.get("Messages") or ()))
        return opened + self._take_kept()

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
            return self._changed.wait_for(lambda: self.running == 0, timeout=timeout)

    def _can_go_on(self) -> bool:
        """Whether there is a place for a message more, or for one that is kept."""
        if self.running >= self._concurrency:
            return False
        return len(self._kept) < KEPT_MAX or any(self._has_place(each.job) for each in self._kept.values())

    def _has_place(self, job: str) -> bool:
        entry = self._app.registry.get(job)
        limit = None if entry is None else entry.concurrency
        return limit is None or self._running[job] < limit

    def _keep(self, messages: Sequence[Message]) -> None:
        for message in messages:
            body, message_id = _body_of(message), str(message.get("MessageId"))
            job = None if body is None else body.get("job")
            if body is None or self._app.registry.get(str(job)) is None:
                log.warning("message.left", message=message_id, job=job)
            else:
                receipt = message["ReceiptHandle"]
                self._kept[message_id] = Received(body=body, message_id=message_id, receipt=receipt)

    def _take_kept(self) -> int:
        """Those that have a place, in their order; how many attempts were opened."""
        opened = 0
        for received in list(self._kept.values()):
            if self.running < self._concurrency and self._has_place(received.job):
                del self._kept[received.message_id]
                opened += self._take(received)
        return opened

    def _take(self, received: Received) -> bool:
        """Whether the message opened an attempt, which runs from now on."""
        try:
            attempt = self._app.open_attempt(received.body)
        except RotaError as error:
            log.warning("message.left", message=received.message_id, problem=str(error))
            return False
        if attempt is not None:
            job = attempt.context.job
            entry = self._app.registry.get(job)
            if entry is None or not self._has_place(job):
                attempt.give_back(f"The consumer of {self._queue_url} has no place for the job {job!r}.")
                log.warning("message.left", message=received.message_id, job=job)
                return False
            self._start(attempt, entry)
        self._sqs().delete_message(QueueUrl=self._queue_url, ReceiptHandle=received.receipt)
        return attempt is not None

    def _start(self, attempt: AttemptSession, entry: RegisteredJob) -> None:
        job = entry.job.name
        with self._changed:
            self._running[job] += 1

        def work() -> None:
            try:
                attempt.run(entry)
            finally:
                with self._changed:
                    self._running[job] -= 1
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
