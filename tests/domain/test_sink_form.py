"""Sinks and delivery policies in wire form."""

from collections.abc import Mapping
from datetime import timedelta

import pytest

from rota.domain.errors import InvalidRequest
from rota.domain.sink import (
    CelerySink,
    DeliveryPolicy,
    PushSink,
    Sink,
    SqsSink,
    WebhookSink,
    WorkerSink,
    destination_of,
)
from rota.domain.sink_form import delivery_to_wire, parse_delivery, parse_sink, sink_to_wire

POLICY = DeliveryPolicy(
    initial_delay=timedelta(seconds=1),
    factor=1.5,
    max_delay=timedelta(minutes=7),
    jitter=0,
    max_age=timedelta(hours=3),
    redeliver_after=timedelta(minutes=2),
    concurrency=3,
)


def problems(parse: object) -> dict[str, str]:
    assert callable(parse)
    with pytest.raises(InvalidRequest) as caught:
        parse()
    return {error.field: error.message for error in caught.value.errors}


@pytest.mark.parametrize(
    "sink",
    [
        WorkerSink(),
        WebhookSink(url="https://shop.example/hooks?a=1"),
        WebhookSink(
            url="http://[2001:db8::1]:8080/x", secrets_from=("NEW", "OLD"), timeout=timedelta(seconds=3)
        ),
        CelerySink(task="tasks.report"),
        CelerySink(task="tasks.report", queue="reports"),
        SqsSink(queue_url="https://sqs.eu-west-1.amazonaws.com/123456789012/due.fifo"),
    ],
)
def test_a_sink_is_read_back_as_it_was_written(sink: Sink) -> None:
    assert parse_sink(sink_to_wire(sink)) == sink


@pytest.mark.parametrize("value", [None, "webhook", {}, {"type": "smtp"}, {"type": ["sqs"]}])
def test_a_sink_without_a_type_that_exists_is_refused(value: object) -> None:
    assert list(problems(lambda: parse_sink(value))) == ["sink.type"]


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({"type": "worker", "url": "https://a.example"}, "sink.url"),
        ({"type": "webhook"}, "sink.url"),
        ({"type": "webhook", "url": 7}, "sink.url"),
        ({"type": "webhook", "url": "shop.example/hooks"}, "sink.url"),
        ({"type": "webhook", "url": "ftp://shop.example"}, "sink.url"),
        ({"type": "webhook", "url": "https://"}, "sink.url"),
        ({"type": "webhook", "url": "https:///hooks"}, "sink.url"),
        ({"type": "webhook", "url": "https://shop.example:0/"}, "sink.url"),
        ({"type": "webhook", "url": "https://shop.example:65536/"}, "sink.url"),
        ({"type": "webhook", "url": "https://shop.example:x/"}, "sink.url"),
        ({"type": "webhook", "url": "https://[::1/"}, "sink.url"),
        ({"type": "webhook", "url": "https://shop.example/a b"}, "sink.url"),
        ({"type": "webhook", "url": "https://shop.example/\x7f"}, "sink.url"),
        ({"type": "webhook", "url": "https://ü.example/"}, "sink.url"),
        ({"type": "webhook", "url": "https://shop.example\\@evil.example/"}, "sink.url"),
        ({"type": "webhook", "url": "https://user:pass@shop.example/"}, "sink.url"),
        ({"type": "webhook", "url": "https://user@shop.example/"}, "sink.url"),
        ({"type": "webhook", "url": "https://shop.example/#top"}, "sink.url"),
        ({"type": "webhook", "url": "https://shop.example/" + "a" * 2000}, "sink.url"),
        ({"type": "webhook", "url": "https://a.example", "secrets_from": "KEY"}, "sink.secrets_from"),
        ({"type": "webhook", "url": "https://a.example", "secrets_from": ["whsec_x="]}, "sink.secrets_from"),
        (
            {"type": "webhook", "url": "https://a.example", "secrets_from": ["whsec_MfKQ9r8GKYqr"]},
            "sink.secrets_from",
        ),
        ({"type": "webhook", "url": "https://a.example", "secrets_from": ["A"] * 6}, "sink.secrets_from"),
        ({"type": "webhook", "url": "https://a.example", "timeout": "PT0S"}, "sink.timeout"),
        ({"type": "webhook", "url": "https://a.example", "timeout": "PT6M"}, "sink.timeout"),
        ({"type": "webhook", "url": "https://a.example", "timeout": "soon"}, "sink.timeout"),
        ({"type": "celery"}, "sink.task"),
        ({"type": "celery", "task": ""}, "sink.task"),
        ({"type": "celery", "task": "a", "queue": "x\n"}, "sink.queue"),
        ({"type": "sqs", "queue_url": "due-runs"}, "sink.queue_url"),
    ],
)
def test_a_sink_that_cannot_be_is_refused_by_the_field_that_is_wrong(
    value: Mapping[str, object], field: str
) -> None:
    assert list(problems(lambda: parse_sink(value))) == [field]


def test_a_password_in_a_url_is_not_repeated() -> None:
    given = {"type": "webhook", "url": "https://user:hunter2@shop.example/"}
    assert "hunter2" not in str(problems(lambda: parse_sink(given)))


@pytest.mark.parametrize("policy", [POLICY, DeliveryPolicy()])
def test_a_policy_is_read_back_as_it_was_written(policy: DeliveryPolicy) -> None:
    assert parse_delivery(delivery_to_wire(policy)) == policy


def test_what_a_policy_leaves_out_is_as_by_default() -> None:
    assert parse_delivery(None) == DeliveryPolicy()
    assert parse_delivery({"concurrency": 2}) == DeliveryPolicy(concurrency=2)


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ("patient", "delivery"),
        ({"retries": 5}, "delivery.retries"),
        ({"concurrency": 0}, "delivery.concurrency"),
        ({"concurrency": 1_001}, "delivery.concurrency"),
        ({"concurrency": 1.5}, "delivery.concurrency"),
        ({"factor": 0.5}, "delivery.factor"),
        ({"jitter": 2}, "delivery.jitter"),
        ({"initial_delay": "P2D"}, "delivery.initial_delay"),
        ({"max_delay": "later"}, "delivery.max_delay"),
        ({"max_age": "PT0S"}, "delivery.max_age"),
        ({"redeliver_after": "PT1S"}, "delivery.redeliver_after"),
    ],
)
def test_a_policy_that_cannot_be_is_refused_by_the_field_that_is_wrong(value: object, field: str) -> None:
    assert list(problems(lambda: parse_delivery(value))) == [field]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            WebhookSink(url="https://Shop.example:8443/a?x=//y"),
            WebhookSink(url="HTTPS://shop.example:8443?b"),
        ),
        (CelerySink(task="a", queue="q"), CelerySink(task="b", queue="q")),
        (SqsSink(queue_url="https://sqs.a/1/q"), SqsSink(queue_url="https://sqs.a/1/q")),
    ],
)
def test_sinks_that_fail_as_one_are_one_destination(one: PushSink, other: PushSink) -> None:
    assert destination_of(one) == destination_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (WebhookSink(url="https://a.example/x"), WebhookSink(url="http://a.example/x")),
        (WebhookSink(url="https://a.example/x"), WebhookSink(url="https://a.example:8443/x")),
        (CelerySink(task="a", queue="q"), CelerySink(task="a")),
        (SqsSink(queue_url="https://sqs.a/1/q"), SqsSink(queue_url="https://sqs.a/1/r")),
    ],
)
def test_sinks_that_fail_apart_are_destinations_of_their_own(one: PushSink, other: PushSink) -> None:
    assert destination_of(one) != destination_of(other)
