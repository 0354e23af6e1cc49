"""SQS against an emulator: standard and FIFO queues, messages that double and get lost; and what cannot be sent."""

import json
import socket
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, cast
from uuid import uuid4

import boto3
import pytest

from rota.contrib.sqs import Consumer, SqsClient
from rota.delivery.sends import Done, Send, Sender, ThreadedSender
from rota.delivery.sinks.sqs import SqsMessages
from rota.domain.delivery import DeliveryState
from rota.domain.identity import RunId
from rota.domain.run import RunState
from rota.domain.sink import PushSink, SqsSink
from rota.worker.context import RunContext
from tests.delivery.receiver import Answer, Receiver, receiving
from tests.delivery.scene import DEADLINE_SECONDS, MINUTE, STEADY, Scene

AWS_QUEUE = "https://sqs.eu-west-1.amazonaws.com/123456789012/due"
BATCHES = replace(STEADY, concurrency=25)


class Messages:
    """Senders of SQS messages alone, as a relay's."""

    batch_max = 10

    def __init__(self, *, tells: bool = True) -> None:
        """Where it does not tell, it is killed before it can say what it has sent."""
        self._sender = ThreadedSender(SqsMessages(), inline=True)
        self._tells = tells

    def of(self, sink: PushSink) -> Sender:
        return self

    def start(self, batch: Sequence[Send], done: Done) -> None:
        self._sender.start(batch, done if self._tells else lambda send, outcome: None)

    def write_off(self, send: Send) -> None:
        self._sender.write_off(send)

    def close(self) -> None:
        self._sender.close()


class Queues(Protocol):
    """What is used of boto3's client."""

    def create_queue(self, **request: object) -> dict[str, str]: ...
    def purge_queue(self, **request: object) -> object: ...
    def receive_message(self, **request: object) -> dict[str, list[dict[str, object]]]: ...
    def close(self) -> None: ...


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of nobody; and nothing of the machine's own."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    for name in ("AWS_ENDPOINT_URL", "AWS_PROFILE", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def queues(credentials: None, ministack: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Queues]:
    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", ministack)
    client = cast("Queues", boto3.client("sqs"))
    yield client
    client.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """A scene, a queue, and the consumer of it."""

    scene: Scene
    queues: Queues
    url: str
    done: list[str]
    """The runs whose work was done, each time that it was."""

    def sink(self) -> SqsSink:
        return SqsSink(queue_url=self.url)

    def consume(self) -> None:
        """Does the work of whatever the queue holds."""
        consumer = Consumer(self.scene.app, self.url, client=cast("SqsClient", self.queues))
        while consumer.step(wait_seconds=0) or self.messages_left():
            assert consumer.drain(DEADLINE_SECONDS)
        consumer.drain(DEADLINE_SECONDS)

    def messages_left(self) -> bool:
        answer = cast("SqsQueue", self.queues).get_queue_attributes(
            QueueUrl=self.url, AttributeNames=["ApproximateNumberOfMessages"]
        )
        return answer["Attributes"]["ApproximateNumberOfMessages"] != "0"


class SqsQueue(Protocol):
    def get_queue_attributes(self, **request: object) -> dict[str, dict[str, str]]: ...


def party_of(scene: Scene, queues: Queues, *, is_fifo: bool = False) -> Party:
    name = f"due-{uuid4().hex[:8]}"
    if is_fifo:
        attributes = {"FifoQueue": "true"}
        url = queues.create_queue(QueueName=f"{name}.fifo", Attributes=attributes)["QueueUrl"]
    else:
        url = queues.create_queue(QueueName=name)["QueueUrl"]
    party = Party(scene=scene, queues=queues, url=url, done=[])

    def work(ctx: RunContext) -> dict[str, object]:
        party.done.append(ctx.run_id)
        return {"customer": ctx.params["customer"]}

    scene.app.job("report", sink=party.sink(), delivery=BATCHES)(work)
    scene.app.register_jobs()
    return party


@pytest.fixture
def standard(scene: Scene, queues: Queues) -> Party:
    return party_of(scene, queues)


@pytest.fixture
def fifo(scene: Scene, queues: Queues) -> Party:
    return party_of(scene, queues, is_fifo=True)


@pytest.fixture(params=["standard", "fifo"])
def party(request: pytest.FixtureRequest) -> Party:
    found: Party = request.getfixturevalue(request.param)
    return found


def states(scene: Scene, run_ids: Sequence[RunId]) -> set[RunState]:
    return {scene.run(run_id).state for run_id in run_ids}


@pytest.mark.slow
def test_a_consumer_does_the_work_of_all_runs(party: Party) -> None:
    run_ids = [party.scene.queue("report", customer="acme") for _ in range(23)]
    party.scene.rest(party.scene.relay(Messages()))
    assert {delivery.state for delivery in party.scene.deliveries()} == {DeliveryState.SENT}
    party.consume()
    assert sorted(party.done) == run_ids
    assert states(party.scene, run_ids) == {RunState.SUCCEEDED}
    assert party.scene.detail(run_ids[0]).result == '{"customer":"acme"}'


@pytest.mark.slow
def test_what_a_relay_that_was_killed_had_sent_is_sent_again_and_done_once(party: Party) -> None:
    scene = party.scene
    run_ids = [scene.queue("report", customer="acme") for _ in range(3)]
    scene.relay(Messages(tells=False), name="killed").step(scene.now)
    scene.clock.advance(3 * MINUTE)
    scene.rest(scene.relay(Messages(), name="other"))
    assert {delivery.tries for delivery in scene.deliveries()} == {2}
    party.consume()
    assert sorted(party.done) == run_ids
    assert [len(scene.detail(run_id).attempts) for run_id in run_ids] == [1, 1, 1]


@pytest.mark.slow
def test_messages_that_a_queue_lost_are_sent_again_and_the_runs_complete(party: Party) -> None:
    """In a FIFO queue too, where it is the same message within the time in which SQS drops doubles."""
    scene = party.scene
    run_ids = [scene.queue("report", customer="acme") for _ in range(3)]
    relay = scene.relay(Messages())
    scene.rest(relay)
    party.queues.purge_queue(QueueUrl=party.url)
    party.consume()
    assert party.done == []
    scene.clock.advance(BATCHES.redeliver_after)
    scene.rest(relay)
    party.consume()
    assert sorted(party.done) == run_ids
    assert states(scene, run_ids) == {RunState.SUCCEEDED}


@pytest.mark.slow
def test_in_a_fifo_queue_a_schedule_is_a_group(fifo: Party) -> None:
    scene = fifo.scene
    run_ids = [scene.queue("report", customer="acme") for _ in range(2)]
    scene.rest(scene.relay(Messages()))
    answer = fifo.queues.receive_message(
        QueueUrl=fifo.url, MaxNumberOfMessages=10, MessageSystemAttributeNames=["All"]
    )
    found = {
        cast("dict[str, str]", message["Attributes"])["MessageGroupId"]: json.loads(str(message["Body"]))
        for message in answer["Messages"]
    }
    assert {group: body["run_id"] for group, body in found.items()} == {
        "report-001": run_ids[0],
        "report-002": run_ids[1],
    }


@pytest.mark.slow
def test_a_queue_that_does_not_exist_fails_the_try(scene: Scene, queues: Queues, ministack: str) -> None:
    assert "NonExistentQueue" in failed(scene, f"{ministack}/000000000000/nowhere")


def failed(scene: Scene, queue_url: str) -> str:
    """Why the message of a run could not be sent; another try follows."""
    scene.job("report", SqsSink(queue_url=queue_url))
    run_id = scene.queue("report")
    scene.rest(scene.relay(Messages()))
    delivery = scene.delivery(run_id)
    assert delivery.state is DeliveryState.RETRYING
    assert delivery.error is not None
    return delivery.error


def test_where_nobody_answers_the_try_fails(
    scene: Scene, credentials: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", f"http://127.0.0.1:{port}")
    assert failed(scene, AWS_QUEUE).startswith("SQS cannot be used: Could not connect")


def test_where_boto3_is_not_installed_the_try_fails_and_says_what_to_do(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "botocore.exceptions", None)
    assert "install rota[aws]" in failed(scene, AWS_QUEUE)


def test_without_credentials_the_try_fails_and_says_so(
    scene: Scene, credentials: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    assert "Unable to locate credentials" in failed(scene, AWS_QUEUE)


@pytest.fixture(scope="module")
def server() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def sqs(server: Receiver, credentials: None, monkeypatch: pytest.MonkeyPatch) -> Receiver:
    """Stands for SQS where a test says what it answers."""
    server.requests.clear()
    server.answers.clear()
    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", server.url(""))
    return server


def answer_of(status: int, body: object) -> Answer:
    headers = {"content-type": "application/x-amz-json-1.0"}
    return Answer(status=status, body=json.dumps(body).encode(), headers=headers)


def test_messages_that_a_batch_did_not_take_are_told_apart(scene: Scene, sqs: Receiver) -> None:
    scene.job("report", SqsSink(queue_url=AWS_QUEUE), BATCHES)
    run_ids = [scene.queue("report") for _ in range(4)]
    poisoned = {"Code": "InvalidMessageContents", "SenderFault": True, "Message": "not allowed"}
    busy = {"Code": "InternalError", "SenderFault": False, "Message": "later"}
    sqs.answers["/"] = answer_of(
        200,
        {
            "Successful": [
                {"Id": number, "MessageId": number, "MD5OfMessageBody": ""} for number in ("0", "3")
            ],
            "Failed": [{"Id": "1", **poisoned}, {"Id": "2", **busy}],
        },
    )
    scene.rest(scene.relay(Messages()))
    assert len(sqs.requests) == 1
    assert [scene.delivery(run_id).state for run_id in run_ids] == [
        DeliveryState.SENT,
        DeliveryState.DEAD,
        DeliveryState.RETRYING,
        DeliveryState.SENT,
    ]
    assert scene.delivery(run_ids[1]).error == (
        "SQS did not take the message: InvalidMessageContents: not allowed"
    )


def test_a_message_of_which_the_answer_says_nothing_is_tried_again(scene: Scene, sqs: Receiver) -> None:
    sqs.answers["/"] = answer_of(200, {"Successful": [], "Failed": []})
    assert "neither among those taken nor among those refused" in failed(scene, AWS_QUEUE)


def test_a_batch_that_is_too_long_is_sent_one_by_one_and_what_is_too_long_alone_is_dead(
    scene: Scene, sqs: Receiver
) -> None:
    scene.job("report", SqsSink(queue_url=AWS_QUEUE), BATCHES)
    run_ids = [scene.queue("report") for _ in range(3)]
    sqs.answers["/"] = answer_of(
        400, {"__type": "com.amazonaws.sqs#BatchRequestTooLong", "message": "longer than 262144 bytes"}
    )
    scene.rest(scene.relay(Messages()))
    assert len(sqs.requests) == 1 + len(run_ids)
    assert {scene.delivery(run_id).state for run_id in run_ids} == {DeliveryState.DEAD}


def test_credentials_are_never_used_at_the_host_that_a_queue_url_names(
    scene: Scene, sqs: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", f"http://127.0.0.1:{taken.getsockname()[1]}")
    failed(scene, sqs.url("/123456789012/due"))
    assert sqs.requests == []


@pytest.mark.parametrize(
    ("queue_url", "region"),
    [
        (AWS_QUEUE, "eu-west-1"),
        ("https://sqs-fips.us-gov-west-1.amazonaws.com/123456789012/due", "us-gov-west-1"),
        ("https://vpce-1-2.sqs.eu-central-1.vpce.amazonaws.com/123456789012/due", "eu-central-1"),
        ("http://localhost:4566/000000000000/due", "us-east-1"),
    ],
)
def test_a_queue_is_asked_for_in_its_own_region(
    scene: Scene, sqs: Receiver, queue_url: str, region: str
) -> None:
    sqs.answers["/"] = answer_of(200, {"Successful": [], "Failed": []})
    scene.job("report", SqsSink(queue_url=queue_url))
    scene.queue("report")
    scene.rest(scene.relay(Messages()))
    [request] = sqs.requests
    assert f"/{region}/sqs/aws4_request" in request.headers["authorization"]
    assert json.loads(request.body)["QueueUrl"] == queue_url
