"""SQS: messages go to a queue in batches of ten, by boto3 with the credentials and region of its environment.

In a FIFO queue a schedule is a group, so that its messages keep their order; each try has a deduplication id of its
own, since a message that is sent again was not opened in time, and must not be swallowed as a double of the lost one.
What may double is told apart when the attempt is opened.
"""

import re
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from rota.delivery.message import message_of
from rota.delivery.outcome import Accepted, Failed, Outcome, Says, shown
from rota.delivery.sends import Send
from rota.domain.identity import digest_of
from rota.domain.json_text import encode_json
from rota.domain.sink import SqsSink

if TYPE_CHECKING:
    from botocore.client import BaseClient

CONNECT_SECONDS = 5
READ_SECONDS = 10
ID_CHARACTERS_MAX = 128
NOT_INSTALLED = "boto3 is not installed where the relay runs; install rota[aws]."

REGION = re.compile(r"(?:^|\.)sqs(?:-fips)?\.([a-z0-9-]+)\.")
"""In the host of a queue's URL."""

TOO_LONG = "BatchRequestTooLong"
POISONED = frozenset({"InvalidMessageContents", "MessageTooLong", "InvalidParameterValue"})
"""Codes that speak of the message itself: it will never be taken."""


class SqsMessages:
    """Sends to queues. Threads share it."""

    batch_max = 10

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clients: dict[str | None, BaseClient] = {}

    def send(self, batch: Sequence[Send]) -> Sequence[Outcome]:
        try:
            from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - an extra
        except ImportError:
            return [Failed(error=NOT_INSTALLED, says=Says.AWAY) for _ in batch]
        sink = batch[0].taken.job.sink
        assert isinstance(sink, SqsSink)  # noqa: S101 - what this sink is asked for
        url = sink.queue_url
        entries = [_entry(number, send, is_fifo=url.endswith(".fifo")) for number, send in enumerate(batch)]
        try:
            answer = self._client(url).send_message_batch(QueueUrl=url, Entries=entries)
        except ClientError as error:
            code, message = error.response["Error"]["Code"], error.response["Error"]["Message"]
            is_too_long = code.endswith(TOO_LONG)
            if is_too_long and len(batch) > 1:
                return [outcome for send in batch for outcome in self.send([send])]
            problem = shown(f"SQS did not take the message: {code}: {message}")
            says = Says.REACHED if is_too_long else Says.AWAY
            return [Failed(error=problem, is_final=is_too_long, says=says)] * len(batch)
        except BotoCoreError as error:
            return [Failed(error=shown(f"SQS cannot be used: {error}"), says=Says.AWAY)] * len(batch)
        taken = {entry["Id"] for entry in answer.get("Successful", ())}
        refused = {entry["Id"]: entry for entry in answer.get("Failed", ())}
        return [
            Accepted() if entry["Id"] in taken else _failure(refused.get(entry["Id"], {}))
            for entry in entries
        ]

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

    def _client(self, queue_url: str) -> "BaseClient":
        """Of the queue's region. It is asked at the endpoint that boto3 has for that, never at the URL's own host: who
        declares a job is not to have the relay's credentials signed for a host of his choice."""
        import boto3  # noqa: PLC0415 - an extra, and slow to load
        from botocore.config import Config  # noqa: PLC0415 - the same

        found = REGION.search(urlsplit(queue_url).hostname or "")
        region = found[1] if found else None
        with self._lock:
            if region not in self._clients:
                config = Config(
                    connect_timeout=CONNECT_SECONDS,
                    read_timeout=READ_SECONDS,
                    retries={"mode": "standard", "total_max_attempts": 1},
                    max_pool_connections=64,
                )
                self._clients[region] = boto3.session.Session().client(
                    "sqs", region_name=region, config=config
                )
            return self._clients[region]


def _entry(number: int, send: Send, *, is_fifo: bool) -> dict[str, str]:
    entry = {"Id": str(number), "MessageBody": str(encode_json(message_of(send.taken)))}
    if is_fifo:
        delivery = send.taken.delivery
        entry["MessageGroupId"] = delivery.schedule_id
        id_ = f"{delivery.run_id}/{delivery.attempt}/{delivery.tries}"
        entry["MessageDeduplicationId"] = id_ if len(id_) <= ID_CHARACTERS_MAX else digest_of(id_)
    return entry


def _failure(refused: Mapping[str, object]) -> Failed:
    code = str(refused.get("Code", "it is neither among those taken nor among those refused"))
    is_final = refused.get("SenderFault") is True and code.rpartition(".")[2] in POISONED
    problem = shown(f"SQS did not take the message: {code}: {refused.get('Message', '')}")
    return Failed(error=problem, is_final=is_final, says=Says.REACHED if is_final else Says.FAILED)
