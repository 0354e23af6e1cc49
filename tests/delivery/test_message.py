"""What is sent: the message that every sink sends, and the event that a webhook posts."""

from datetime import UTC, datetime

from cloudevents.core.bindings.http import HTTPMessage, from_http_event

from rota.delivery.message import event_of, message_of
from rota.store.port import TakenDelivery
from tests.delivery.scene import Scene, ScriptedSenders, queue_sink


def sent(scene: Scene) -> TakenDelivery:
    senders = ScriptedSenders()
    scene.job("report", queue_sink("q"))
    scene.queue("report", zone="Europe/Paris", customer="Müller", secret="told to nobody")
    scene.relay(senders).step(scene.now)
    [[send]] = senders.batches
    return send.taken


def test_a_message_names_the_attempt_and_what_it_is_about(scene: Scene) -> None:
    assert message_of(sent(scene)) == {
        "run_id": "report-001.1.20260110T090001Z",
        "schedule_id": "report-001",
        "version": 1,
        "job": "report",
        "scheduled_at": "2026-01-10T09:00:01Z",
        "due_at": "2026-01-10T09:00:01Z",
        "attempt": 1,
        "origin": "schedule",
        "local": "2026-01-10T10:00:01",
        "timezone": "Europe/Paris",
        "offset": "+01:00",
        "period_key": "once",
        "params_ref": "/schedules/report-001/versions/1",
    }


def test_a_message_has_no_params(scene: Scene) -> None:
    assert "told to nobody" not in str(message_of(sent(scene)))


def test_an_event_is_a_cloudevent_with_the_message_and_the_params(scene: Scene) -> None:
    taken = sent(scene)
    body = event_of(taken, source="/shop/rota").encode()
    event = from_http_event(HTTPMessage({"content-type": "application/cloudevents+json"}, body))
    assert event.get_specversion() == "1.0"
    assert event.get_id() == "report-001.1.20260110T090001Z/1"
    assert event.get_source() == "/shop/rota"
    assert event.get_type() == "rota.run.due"
    assert event.get_subject() == "report-001"
    assert event.get_time() == datetime(2026, 1, 10, 9, 0, 1, tzinfo=UTC)
    assert event.get_datacontenttype() == "application/json"
    params = {"customer": "Müller", "secret": "told to nobody"}
    assert event.get_data() == {**message_of(taken), "params": params}
