"""Webhooks against a real HTTP server: what it is sent, and what becomes of what it answers."""

import base64
import re
import socket
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from email.utils import format_datetime

import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_http_event
from standardwebhooks import Webhook

from rota.clock import SystemClock, truncate_to_millis
from rota.delivery.addresses import Networks
from rota.delivery.sends import Sender
from rota.delivery.sinks.webhook import RETRY_AFTER_MAX, Lookup, WebhookSender
from rota.domain.delivery import Delivery, DeliveryState
from rota.domain.identity import RunId
from rota.domain.json_text import load_json
from rota.domain.run import AttemptOutcome, RunState
from rota.domain.sink import PushSink, WebhookSink
from tests.delivery.receiver import Answer, Receiver, receiving
from tests.delivery.scene import DEADLINE_SECONDS, SECOND, START, STEADY, Scene

OLD = "whsec_" + base64.b64encode(b"o" * 32).decode()
NEW = "whsec_" + base64.b64encode(b"n" * 32).decode()
ENVIRONMENT = {"OLD_SECRET": OLD, "NEW_SECRET": NEW}
SHORT = timedelta(milliseconds=300)


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


@pytest.fixture(scope="module")
def server() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def receiver(server: Receiver) -> Receiver:
    server.requests.clear()
    server.answers.clear()
    return server


def post(scene: Scene, receiver: Receiver, answer: Answer, **params: str) -> RunId:
    """A run whose webhook was called once, and got that answer."""
    receiver.answers["/hooks"] = answer
    scene.job("hook", WebhookSink(url=receiver.url()))
    run_id = scene.queue("hook", **params)
    scene.rest(scene.relay(Hooks()))
    assert len(receiver.requests) == 1
    return run_id


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


def test_a_run_is_posted_as_a_cloudevent_with_its_params(scene: Scene, receiver: Receiver) -> None:
    run_id = post(scene, receiver, Answer(status=204), customer="Müller")
    [request] = receiver.requests
    assert (request.method, request.path) == ("POST", "/hooks")
    assert request.headers["idempotency-key"] == run_id
    assert request.headers["webhook-id"] == f"{run_id}/1"
    event = from_http_event(HTTPMessage(dict(request.headers), request.body))
    assert (event.get_id(), event.get_type()) == (f"{run_id}/1", "rota.run.due")
    data = event.get_data()
    assert isinstance(data, dict)
    assert (data["run_id"], data["attempt"], data["params"]) == (run_id, 1, {"customer": "Müller"})


def test_what_is_posted_is_verified_by_either_secret_while_they_are_changed(receiver: Receiver) -> None:
    scene = Scene(now=truncate_to_millis(SystemClock().now()))
    sink = WebhookSink(url=receiver.url(), secrets_from=("NEW_SECRET", "OLD_SECRET"))
    scene.job("hook", sink)
    run_id = scene.queue("hook")
    scene.rest(scene.relay(Hooks()))
    scene.close()
    [request] = receiver.requests
    for secret in (OLD, NEW):
        event = Webhook(secret).verify(request.body, dict(request.headers))
        assert event["data"]["run_id"] == run_id


def test_a_secret_that_the_relay_does_not_have_fails_the_try_and_says_so(
    scene: Scene, receiver: Receiver
) -> None:
    delivery = failed(scene, WebhookSink(url=receiver.url(), secrets_from=("SHOP_SECRET",)))
    assert "SHOP_SECRET is not set in the relay" in error_of(delivery)
    assert receiver.requests == []


def test_an_answer_ends_the_run_with_its_json_as_the_result(scene: Scene, receiver: Receiver) -> None:
    headers = {"content-type": "application/json"}
    run_id = post(scene, receiver, Answer(status=200, body=b'{"rows": 3}', headers=headers))
    detail = scene.detail(run_id)
    assert detail.run.state is RunState.SUCCEEDED
    assert detail.result is not None
    assert load_json(detail.result) == {"rows": 3}
    assert [attempt.outcome for attempt in detail.attempts] == [AttemptOutcome.SUCCEEDED]


@pytest.mark.parametrize(
    "answer",
    [
        Answer(status=204),
        Answer(status=201, body=b"made", headers={"content-type": "text/plain"}),
        Answer(status=200, headers={"content-type": "application/json"}),
        Answer(status=200, body=b"{not json", headers={"content-type": "application/json"}),
        Answer(status=200, body=b"[" * 5_000, headers={"content-type": "application/json"}),
        Answer(status=200, body=b'"\\u0000"', headers={"content-type": "application/json"}),
        Answer(status=200, body=b"1" * 300_000, headers={"content-type": "application/json"}),
        Answer(status=200, body=b"1", headers={"content-type": "nonsense"}),
        Answer(
            status=200,
            body=b"\x1f\x8b",
            headers={"content-type": "application/json", "content-encoding": "gzip"},
        ),
    ],
)
def test_an_answer_without_a_result_that_can_be_kept_ends_the_run_all_the_same(
    scene: Scene, receiver: Receiver, answer: Answer
) -> None:
    detail = scene.detail(post(scene, receiver, answer))
    assert (detail.run.state, detail.result) == (RunState.SUCCEEDED, None)


def test_no_more_of_an_answer_is_read_than_could_be_kept(scene: Scene, receiver: Receiver) -> None:
    """One that never ends would be read for ever."""
    headers = {"content-type": "application/json"}
    run_id = post(scene, receiver, Answer(status=200, body=b"1" * 300_000, headers=headers, trickles=True))
    assert scene.run(run_id).state is RunState.SUCCEEDED
    receiver.requests.clear()
    post(scene, receiver, Answer(status=500, body=b"x" * 10_000, trickles=True))


def test_202_leaves_the_attempt_to_the_receiver(scene: Scene, receiver: Receiver) -> None:
    run_id = post(scene, receiver, Answer(status=202))
    assert scene.delivery(run_id).state is DeliveryState.SENT
    assert scene.open(run_id, worker="receiver") is not None
    assert scene.deliveries() == []


def test_410_fails_the_run_for_good(scene: Scene, receiver: Receiver) -> None:
    run_id = post(scene, receiver, Answer(status=410, body=b"no such shop"))
    run = scene.run(run_id)
    assert (run.state, run.error) == (RunState.FAILED, "The receiver answered 410: no such shop")


def test_413_makes_the_message_dead_at_once(scene: Scene, receiver: Receiver) -> None:
    run_id = post(scene, receiver, Answer(status=413), blob="x" * 50_000)
    delivery = scene.delivery(run_id)
    assert (delivery.state, delivery.error) == (DeliveryState.DEAD, "The receiver answered 413.")


@pytest.mark.parametrize("status", [400, 401, 404, 409, 422, 500, 502, 504])
def test_any_other_answer_fails_the_try(scene: Scene, receiver: Receiver, status: int) -> None:
    run_id = post(scene, receiver, Answer(status=status, body="kaputt \u2028\x00 now".encode()))
    delivery = scene.delivery(run_id)
    assert (delivery.state, delivery.tries) == (DeliveryState.RETRYING, 1)
    assert delivery.error == f"The receiver answered {status}: kaputt    now"
    assert scene.run(run_id).state is RunState.QUEUED


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(scene: Scene, receiver: Receiver, status: int) -> None:
    place = receiver.url("/elsewhere")
    run_id = post(scene, receiver, Answer(status=status, headers={"location": place}))
    assert [request.path for request in receiver.requests] == ["/hooks"]
    assert f"a redirect to {place}; redirects are not followed" in error_of(scene.delivery(run_id))


@pytest.mark.parametrize(
    ("status", "value", "wait"),
    [
        (429, "90", timedelta(seconds=90)),
        (503, "90", timedelta(seconds=90)),
        (503, format_datetime(START + SECOND + timedelta(minutes=3), usegmt=True), timedelta(minutes=3)),
        (503, format_datetime(START - timedelta(minutes=3), usegmt=True), STEADY.initial_delay),
        (503, "5", STEADY.initial_delay),
        (503, "soon", STEADY.initial_delay),
        (503, "-5", STEADY.initial_delay),
        (500, "90", STEADY.initial_delay),
        (429, "9" * 5_000, None),
    ],
)
def test_retry_after_is_honoured_of_a_receiver_that_is_busy(
    scene: Scene, receiver: Receiver, status: int, value: str, wait: timedelta | None
) -> None:
    run_id = post(scene, receiver, Answer(status=status, headers={"retry-after": value}))
    delivery = scene.delivery(run_id)
    if wait is None:
        assert (delivery.next_at, delivery.state) == (scene.now + RETRY_AFTER_MAX, DeliveryState.RETRYING)
    else:
        assert delivery.next_at == scene.now + wait


@pytest.mark.parametrize(
    "answer", [Answer(hangs=True), Answer(status=200, trickles=True, headers={"content-type": "text/json"})]
)
def test_a_receiver_that_does_not_answer_in_time_fails_the_try(
    scene: Scene, receiver: Receiver, answer: Answer
) -> None:
    json = {"content-type": "application/json"}
    receiver.answers["/hooks"] = replace(answer, headers=json)
    delivery = failed(scene, WebhookSink(url=receiver.url(), timeout=SHORT))
    assert error_of(delivery) == "There was no whole answer within 0.3 seconds."


def test_an_answer_that_breaks_off_fails_the_try(scene: Scene, receiver: Receiver) -> None:
    headers = {"content-type": "application/json"}
    receiver.answers["/hooks"] = Answer(status=200, body=b'{"a":', headers=headers, breaks=True)
    assert "The request failed: " in error_of(failed(scene, WebhookSink(url=receiver.url())))


def test_where_nobody_listens_the_try_fails(scene: Scene) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    delivery = failed(scene, WebhookSink(url=f"http://127.0.0.1:{port}/"))
    assert error_of(delivery).startswith("The receiver cannot be reached: ")


def test_what_is_no_http_server_fails_the_try(scene: Scene) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sink = WebhookSink(url=f"https://127.0.0.1:{listener.getsockname()[1]}/", timeout=SHORT)
        assert failed(scene, sink).error


class Names:
    """A resolution that answers with the next address each time."""

    def __init__(self, *addresses: str) -> None:
        self._addresses = iter(addresses)
        self.asked: list[str] = []

    def __call__(self, host: str, port: int) -> Sequence[tuple[int, int, int, str, tuple[str, int]]]:
        self.asked.append(host)
        place = (next(self._addresses), port)
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", place)]


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f.1", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]"],
)
def test_an_address_that_is_not_public_is_never_connected_to(
    scene: Scene, receiver: Receiver, host: str
) -> None:
    delivery = failed(scene, WebhookSink(url=receiver.url(host=host)), Hooks(networks=""))
    problem = error_of(delivery)
    assert re.search("is not a public address|cannot be resolved|is not a canonical IPv4 address", problem)
    assert receiver.requests == []


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254"])
def test_a_name_that_resolves_to_an_inner_address_is_not_connected_to(
    scene: Scene, receiver: Receiver, address: str
) -> None:
    hooks = Hooks(networks="", lookup=Names(address))
    delivery = failed(scene, WebhookSink(url=receiver.url(host="shop.example")), hooks)
    assert f"{address} is not a public address" in error_of(delivery)
    assert receiver.requests == []


def test_the_address_that_was_looked_at_is_the_one_that_is_connected_to(
    scene: Scene, receiver: Receiver
) -> None:
    """A name that resolves to an allowed address when it is judged, and to another one when it is used."""
    names = Names("127.0.0.2", "127.0.0.1")
    hooks = Hooks(networks="127.0.0.2/32", lookup=names)
    delivery = failed(scene, WebhookSink(url=receiver.url(host="shop.example"), timeout=SECOND), hooks)
    assert "is not a public address" not in error_of(delivery)
    assert (names.asked, receiver.requests) == (["shop.example"], [])


def test_a_name_is_judged_anew_by_each_address_that_it_resolves_to(scene: Scene, receiver: Receiver) -> None:
    names = Names("127.0.0.2", "127.0.0.1")
    scene.job("hook", WebhookSink(url=receiver.url(host="shop.example"), timeout=SECOND))
    run_id = scene.queue("hook")
    for _ in range(2):
        scene.rest(scene.relay(Hooks(networks="127.0.0.2/32", lookup=names)))
        scene.clock.advance(timedelta(minutes=1))
    assert "127.0.0.1 is not a public address" in error_of(scene.delivery(run_id))
    assert (len(names.asked), receiver.requests) == (2, [])


def test_a_name_that_cannot_be_resolved_fails_the_try(scene: Scene) -> None:
    def lookup(host: str, port: int) -> Sequence[tuple[int, int, int, str, tuple[str, int]]]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    delivery = failed(scene, WebhookSink(url="http://shop.example/"), Hooks(lookup=lookup))
    assert "the name shop.example cannot be resolved" in error_of(delivery)


def test_proxies_of_the_environment_are_not_used(
    scene: Scene, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    run_id = post(scene, receiver, Answer(status=204))
    assert scene.run(run_id).state is RunState.SUCCEEDED


def test_a_receiver_that_hangs_holds_up_no_other(scene: Scene, receiver: Receiver) -> None:
    receiver.answers["/slow"] = Answer(hangs=True)
    scene.job("slow", WebhookSink(url=receiver.url("/slow"), timeout=timedelta(minutes=5)))
    scene.job("fast", WebhookSink(url=receiver.url("/fast", host="127.0.0.2")))
    scene.job("fast", WebhookSink(url=receiver.url("/fast").replace("127.0.0.1", "localhost")))
    slow = [scene.queue("slow") for _ in range(15)]
    fast = [scene.queue("fast") for _ in range(15)]
    relay = scene.relay(Hooks(inline=False), inline=False)
    scene.step_until(relay, lambda: all(scene.run(run_id).state is RunState.SUCCEEDED for run_id in fast))
    paths = [request.path for request in receiver.requests]
    assert (paths.count("/slow"), paths.count("/fast")) == (STEADY.concurrency, 15)
    assert {scene.run(run_id).state for run_id in slow} == {RunState.QUEUED}


def test_a_name_that_hangs_when_it_is_looked_up_holds_up_no_other(scene: Scene, receiver: Receiver) -> None:
    is_over = threading.Event()

    def lookup(host: str, port: int) -> Sequence[tuple[int, int, int, str, tuple[str, int]]]:
        if host.startswith("dead"):
            is_over.wait(DEADLINE_SECONDS)
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", port))]

    for number in range(40):
        scene.job(f"dead{number}", WebhookSink(url=f"http://dead{number}.example/"))
        scene.queue(f"dead{number}")
    scene.job("fast", WebhookSink(url=receiver.url(host="shop.example")))
    fast = scene.queue("fast")
    relay = scene.relay(Hooks(inline=False, lookup=lookup), inline=False)
    scene.step_until(relay, lambda: scene.run(fast).state is RunState.SUCCEEDED)
    is_over.set()


def test_a_relay_that_is_closed_gives_up_what_is_under_way(scene: Scene, receiver: Receiver) -> None:
    receiver.answers["/hooks"] = Answer(hangs=True)
    scene.job("hook", WebhookSink(url=receiver.url(), timeout=timedelta(minutes=5)))
    scene.queue("hook")
    relay = scene.relay(Hooks(inline=False), inline=False)
    relay.step(scene.now)
    receiver.wait()
    relay.close()
