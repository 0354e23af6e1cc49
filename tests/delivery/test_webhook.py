"""Webhooks against a real HTTP server: what it is sent, and what becomes of what it answers."""

import socket
import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from email.utils import format_datetime
from types import MappingProxyType

import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_http_event
from standardwebhooks import Webhook

from rota.clock import SystemClock, truncate_to_millis
from rota.delivery.outcome import Outcome, Says, says_of
from rota.delivery.sends import Send
from rota.delivery.sinks.webhook import RETRY_AFTER_MAX
from rota.domain.delivery import DeliveryState
from rota.domain.identity import RunId
from rota.domain.json_text import load_json
from rota.domain.run import AttemptOutcome, RunState
from rota.domain.sink import WebhookSink
from rota.store.port import Wanted
from tests.delivery.hooks import NEW, OLD, Hooks, error_of, failed
from tests.delivery.receiver import Answer, Receiver
from tests.delivery.scene import DEADLINE_SECONDS, SECOND, START, STEADY, Scene

SHORT = timedelta(milliseconds=300)


def post(scene: Scene, receiver: Receiver, answer: Answer, **params: str) -> RunId:
    """A run whose webhook was called once, and got that answer."""
    receiver.answers["/hooks"] = answer
    scene.job("hook", WebhookSink(url=receiver.url()))
    run_id = scene.queue("hook", **params)
    scene.rest(scene.relay(Hooks()))
    assert len(receiver.requests) == 1
    return run_id


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
        (503, "Mon, 01 Jan 99999999999999999999 00:00:00 GMT", STEADY.initial_delay),
        (503, "Mon, 01 Jan 2026 00:00:00 +999999", STEADY.initial_delay),
        (503, "Mon, 01 Jan 0001 00:00:00 +2359", STEADY.initial_delay),
        (503, "Mon, 31 Dec 9999 23:59:59 -2359", None),
        (503, "1e3", STEADY.initial_delay),
        (503, ",", STEADY.initial_delay),
        (503, "", STEADY.initial_delay),
    ],
)
def test_retry_after_is_honoured_of_a_receiver_that_is_busy(
    scene: Scene, receiver: Receiver, status: int, value: str, wait: timedelta | None
) -> None:
    run_id = post(scene, receiver, Answer(status=status, headers={"retry-after": value}))
    delivery = scene.delivery(run_id)
    assert error_of(delivery) == f"The receiver answered {status}."
    if wait is None:
        assert (delivery.next_at, delivery.state) == (scene.now + RETRY_AFTER_MAX, DeliveryState.RETRYING)
    else:
        assert delivery.next_at == scene.now + wait


def test_a_receiver_that_does_not_answer_in_time_fails_the_try(scene: Scene, receiver: Receiver) -> None:
    receiver.answers["/hooks"] = Answer(hangs=True)
    delivery = failed(scene, WebhookSink(url=receiver.url(), timeout=SHORT))
    assert error_of(delivery) == "There was no whole answer within 0.3 seconds."


JSON = MappingProxyType({"content-type": "application/json"})
BODIES_THAT_NEVER_END = [
    Answer(body=b'{"a":', headers=JSON, breaks=True),
    Answer(body=b'{"a":', headers=JSON, trickles=True),
    Answer(headers=JSON, trickles=True),
    Answer(body=b"<html>", trickles=True),
]


def answered(scene: Scene, receiver: Receiver, answer: Answer) -> RunId:
    receiver.answers["/hooks"] = answer
    scene.job("hook", WebhookSink(url=receiver.url(), timeout=SHORT))
    run_id = scene.queue("hook")
    scene.rest(scene.relay(Hooks()))
    return run_id


@pytest.mark.parametrize("answer", BODIES_THAT_NEVER_END)
@pytest.mark.parametrize("status", [200, 201])
def test_no_body_undoes_a_success(scene: Scene, receiver: Receiver, answer: Answer, status: int) -> None:
    """The work is done: to ask for it again would be to do it twice."""
    run_id = answered(scene, receiver, replace(answer, status=status))
    detail = scene.detail(run_id)
    assert (detail.run.state, detail.result) == (RunState.SUCCEEDED, None)


@pytest.mark.parametrize("answer", BODIES_THAT_NEVER_END)
def test_no_body_undoes_what_another_status_says(scene: Scene, receiver: Receiver, answer: Answer) -> None:
    accepted = answered(scene, receiver, replace(answer, status=202))
    assert scene.delivery(accepted).state is DeliveryState.SENT
    rejected = answered(scene, receiver, replace(answer, status=410))
    assert scene.run(rejected).state is RunState.FAILED
    too_large = answered(scene, receiver, replace(answer, status=413))
    assert scene.delivery(too_large).state is DeliveryState.DEAD
    busy = answered(scene, receiver, replace(answer, status=503, headers={"retry-after": "90"}))
    assert scene.delivery(busy).next_at == scene.now + 90 * SECOND


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Answer(status=204), Says.REACHED),
        (Answer(status=404), Says.REACHED),
        (Answer(status=302), Says.REACHED),
        (Answer(status=500), Says.FAILED),
        (Answer(hangs=True), Says.FAILED),
        (Answer(status=502), Says.AWAY),
        (Answer(status=503), Says.AWAY),
        (Answer(status=429), Says.AWAY),
    ],
)
def test_what_an_answer_says_of_the_receiver(
    scene: Scene, receiver: Receiver, answer: Answer, says: Says
) -> None:
    receiver.answers["/hooks"] = answer
    assert said(scene, WebhookSink(url=receiver.url(), timeout=SHORT)) is says


def test_what_was_never_asked_says_nothing_of_the_receiver(scene: Scene, receiver: Receiver) -> None:
    sink = WebhookSink(url=receiver.url(), secrets_from=("SHOP_SECRET",))
    assert said(scene, sink) is Says.NOTHING


def test_where_nobody_listens_the_receiver_is_away(scene: Scene) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert said(scene, WebhookSink(url=f"http://127.0.0.1:{port}/")) is Says.AWAY


def said(scene: Scene, sink: WebhookSink) -> Says:
    """What a try there says of the receiver."""
    scene.job("hook", sink)
    scene.queue("hook")
    [taken] = scene.store.commit_takes([Wanted(job="hook")], now=scene.now, lease=SECOND, limit=1)
    outcomes: list[Outcome] = []
    hooks = Hooks()
    send = Send(taken=taken, destination="there", began=scene.now)
    hooks.of(sink).start([send], lambda _, outcome: outcomes.append(outcome))
    hooks.close()
    [outcome] = outcomes
    return says_of(outcome)


def test_where_nobody_listens_the_try_fails(scene: Scene) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    delivery = failed(scene, WebhookSink(url=f"http://127.0.0.1:{port}/"))
    assert error_of(delivery).startswith("The receiver cannot be reached: ")


def test_what_is_no_http_server_fails_the_try(scene: Scene) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sink = WebhookSink(url=f"https://127.0.0.1:{listener.getsockname()[1]}/", timeout=SHORT)
        assert failed(scene, sink).error


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
