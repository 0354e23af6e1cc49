"""The consumer of a queue: what it deletes and when, what it leaves, how it drains. A real queue: tests/delivery."""

import json
import threading
from collections.abc import Mapping
from datetime import timedelta

import pytest

from rota import RunContext
from rota.contrib.sqs import Consumer
from rota.domain.errors import RotaError
from rota.domain.identity import RunId
from rota.domain.job import RetryPolicy
from rota.domain.run import AttemptOutcome, RunState
from rota.domain.sink import SqsSink
from rota.worker.session import AttemptSession
from tests.worker.scene import DEADLINE_SECONDS, Gate, Scene

URL = "https://sqs.example/1/reports"
AT_ONCE = RetryPolicy(max_attempts=2, initial_delay=timedelta(0), jitter=0)


class Queue:
    """A queue that gives out what is not deleted, as SQS does once the visibility timeout is over."""

    def __init__(self, *bodies: str) -> None:
        self.messages = {f"receipt-{number}": body for number, body in enumerate(bodies)}
        self.asked: list[Mapping[str, object]] = []

    def receive_message(self, **request: object) -> Mapping[str, object]:
        self.asked.append(request)
        number = request["MaxNumberOfMessages"]
        assert isinstance(number, int)
        given = [
            {"MessageId": receipt, "ReceiptHandle": receipt, "Body": body}
            for receipt, body in self.messages.items()
        ]
        return {"Messages": given[:number]} if given else {}

    def delete_message(self, **request: object) -> Mapping[str, object]:
        del self.messages[str(request["ReceiptHandle"])]
        return {}


@pytest.fixture
def scene() -> Scene:
    return Scene()


def message(scene: Scene, job: str = "report") -> dict[str, object]:
    return {"run_id": scene.queue(job, customer="acme"), "attempt": 1, "job": job}


def state_of(scene: Scene, of: dict[str, object]) -> RunState:
    return scene.run(RunId(str(of["run_id"]))).state


def test_it_runs_the_handler_of_the_job_and_deletes_the_message_before(scene: Scene) -> None:
    gate, contexts = Gate(), list[RunContext]()

    @scene.app.job("report", sink=SqsSink(queue_url=URL), guard=lambda ctx: None)
    def report(ctx: RunContext) -> str:
        contexts.append(ctx)
        gate.pass_through()
        return "done"

    of = message(scene)
    queue = Queue(json.dumps(of))
    consumer = Consumer(scene.app, URL, client=queue)
    assert consumer.step(wait_seconds=0) == 1
    gate.wait_arrived()
    assert (queue.messages, consumer.running) == ({}, 1)
    assert state_of(scene, of) is RunState.RUNNING
    gate.open()
    assert consumer.drain(DEADLINE_SECONDS)
    assert state_of(scene, of) is RunState.SUCCEEDED
    assert contexts[0].params == {"customer": "acme"}


def test_an_async_handler_has_a_loop_of_its_own(scene: Scene) -> None:
    async def report(ctx: RunContext) -> object:
        async def send() -> str:
            return "sent"

        return await ctx.once("send", send)

    scene.app.job("report", sink=SqsSink(queue_url=URL))(report)
    of = message(scene)
    consumer = Consumer(scene.app, URL, client=Queue(json.dumps(of)))
    consumer.step(wait_seconds=0)
    assert consumer.drain(DEADLINE_SECONDS)
    assert scene.detail(RunId(str(of["run_id"]))).result == '"sent"'


def test_a_duplicate_is_deleted_and_runs_nothing(scene: Scene) -> None:
    calls: list[str] = []
    scene.app.job("report", sink=SqsSink(queue_url=URL))(lambda ctx: calls.append(ctx.run_id))
    of = message(scene)
    queue = Queue(json.dumps(of), json.dumps(of))
    consumer = Consumer(scene.app, URL, client=queue)
    assert consumer.step(wait_seconds=0) == 1
    assert consumer.drain(DEADLINE_SECONDS)
    assert (queue.messages, calls) == ({}, [of["run_id"]])


def test_a_handler_that_fails_is_settled_as_failed(scene: Scene) -> None:
    def report(ctx: RunContext) -> None:
        raise ValueError("no data")

    scene.app.job("report", sink=SqsSink(queue_url=URL), retry=AT_ONCE)(report)
    of = message(scene)
    consumer = Consumer(scene.app, URL, client=Queue(json.dumps(of)))
    consumer.step(wait_seconds=0)
    assert consumer.drain(DEADLINE_SECONDS)
    assert scene.run(RunId(str(of["run_id"]))).error == "ValueError: no data"


@pytest.mark.parametrize(
    "body",
    [
        "no JSON",
        "[]",
        '{"job": "unknown", "run_id": "r", "attempt": 1}',
        '{"job": "report"}',
        '{"job": "report", "run_id": 1, "attempt": "x"}',
    ],
)
def test_a_poisoned_message_is_left_to_the_queues_own_policy(scene: Scene, body: str) -> None:
    scene.app.job("report", sink=SqsSink(queue_url=URL))(lambda ctx: None)
    of = message(scene)
    queue = Queue(body, json.dumps(of))
    consumer = Consumer(scene.app, URL, client=queue)
    assert consumer.step(wait_seconds=0) == 1
    assert consumer.drain(DEADLINE_SECONDS)
    assert list(queue.messages.values()) == [body]
    assert state_of(scene, of) is RunState.SUCCEEDED


def test_a_message_that_cannot_be_opened_now_comes_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.app.job("report", sink=SqsSink(queue_url=URL))(lambda ctx: None)
    of = message(scene)
    queue = Queue(json.dumps(of))
    consumer = Consumer(scene.app, URL, client=queue)

    def away(_message: object) -> AttemptSession | None:
        raise RotaError("The server is away.")

    with monkeypatch.context() as patched:
        patched.setattr(scene.app, "open_attempt", away)
        assert consumer.step(wait_seconds=0) == 0
    assert len(queue.messages) == 1
    assert consumer.step(wait_seconds=0) == 1
    assert consumer.drain(DEADLINE_SECONDS)
    assert state_of(scene, of) is RunState.SUCCEEDED


def test_it_takes_no_more_than_it_has_places_for_and_drains_when_it_is_stopped(scene: Scene) -> None:
    gate, stop = Gate(), threading.Event()
    scene.app.job("report", sink=SqsSink(queue_url=URL))(lambda ctx: gate.pass_through())
    messages = [message(scene) for _ in range(3)]
    queue = Queue(*map(json.dumps, messages))
    consumer = Consumer(scene.app, URL, client=queue, concurrency=2)
    assert consumer.step(wait_seconds=0) == 2
    assert consumer.step(wait_seconds=0) == 0
    assert [request["MaxNumberOfMessages"] for request in queue.asked] == [2]
    stop.set()
    loop = threading.Thread(target=consumer.run, args=(stop,))
    loop.start()
    gate.open()
    loop.join(DEADLINE_SECONDS)
    assert not loop.is_alive()
    assert [state_of(scene, each) for each in messages] == [
        RunState.SUCCEEDED,
        RunState.SUCCEEDED,
        RunState.QUEUED,
    ]


def test_the_runs_own_job_chooses_the_handler_whatever_the_message_says(scene: Scene) -> None:
    called: list[str] = []
    for name in ("report", "refund"):
        scene.app.job(name, sink=SqsSink(queue_url=URL))(lambda ctx, name=name: called.append(name))
    of = message(scene)
    consumer = Consumer(scene.app, URL, client=Queue(json.dumps(of | {"job": "refund"})))
    assert consumer.step(wait_seconds=0) == 1
    assert consumer.drain(DEADLINE_SECONDS)
    assert called == ["report"]


def test_a_run_of_a_job_without_a_handler_here_is_given_back_and_its_message_left(scene: Scene) -> None:
    called: list[str] = []
    scene.app.job("refund", sink=SqsSink(queue_url=URL))(lambda ctx: called.append(ctx.run_id))
    scene.app.declare("report", sink=SqsSink(queue_url=URL))
    scene.app.register_jobs()
    of = message(scene)
    queue = Queue(json.dumps(of | {"job": "refund"}))
    assert Consumer(scene.app, URL, client=queue).step(wait_seconds=0) == 0
    detail = scene.detail(RunId(str(of["run_id"])))
    assert (called, len(queue.messages), detail.run.state) == ([], 1, RunState.QUEUED)
    assert [attempt.outcome for attempt in detail.attempts] == [AttemptOutcome.INTERRUPTED]


def test_a_run_that_was_asked_to_stop_before_is_not_worked(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[str] = []
    scene.app.job("report", sink=SqsSink(queue_url=URL))(lambda ctx: called.append(ctx.run_id))
    of = message(scene)
    scene.ask_to_stop_ahead(monkeypatch)
    queue = Queue(json.dumps(of))
    assert Consumer(scene.app, URL, client=queue).step(wait_seconds=0) == 0
    assert (called, queue.messages, state_of(scene, of)) == ([], {}, RunState.CANCELLED)


def test_no_more_handlers_of_a_job_run_than_its_concurrency_and_other_jobs_go_on(scene: Scene) -> None:
    gate, at_once, most = Gate(), list[str](), list[int]()

    def heavy(ctx: RunContext) -> None:
        at_once.append(ctx.run_id)
        most.append(len(at_once))
        gate.pass_through()
        at_once.remove(ctx.run_id)

    scene.app.job("heavy", sink=SqsSink(queue_url=URL), concurrency=1)(heavy)
    scene.app.job("light", sink=SqsSink(queue_url=URL))(lambda ctx: None)
    of_heavy, of_light = [message(scene, "heavy") for _ in range(3)], message(scene, "light")
    queue = Queue(*map(json.dumps, [*of_heavy, of_light]))
    consumer = Consumer(scene.app, URL, client=queue, concurrency=5)
    assert consumer.step(wait_seconds=0) == 2
    gate.wait_arrived()
    # What it keeps is neither opened nor deleted, also where the queue gives it out once more.
    assert consumer.step(wait_seconds=0) == 0
    assert [state_of(scene, each) for each in of_heavy] == [
        RunState.RUNNING,
        RunState.QUEUED,
        RunState.QUEUED,
    ]
    assert len(queue.messages) == 2
    gate.open()
    for _ in range(2):
        assert consumer.drain(DEADLINE_SECONDS)
        assert consumer.step(wait_seconds=0) == 1
    assert consumer.drain(DEADLINE_SECONDS)
    assert {state_of(scene, each) for each in [*of_heavy, of_light]} == {RunState.SUCCEEDED}
    assert (queue.messages, max(most)) == ({}, 1)
