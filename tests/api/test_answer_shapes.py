"""Answers as they are given, held to the shapes that they are described with.

The shapes refuse unknown members and have no defaults, so a member more or less is found.
"""

from datetime import timedelta
from typing import cast

import pytest
from pydantic import ValidationError
from starlette.testclient import TestClient

from rota.api import answer_shapes, request_shapes
from rota.api.request_shapes import Shape
from rota.service.context import Context
from rota.testing.clock import ManualClock
from tests.api.conftest import JOB, Body, WorkOff, items_of, let_die, report
from tests.api.descriptions import operations_of, references_in

HOURLY = report(recurrence={"cron": "0 * * * *"})
DAILY = report(recurrence={"cron": "0 9 * * *"}, id="daily")
PARTS = {
    "schedule_id": "report-7",
    "name": JOB,
    "run_id": "report-7.1.20260110T130000Z",
    "number": "1",
    "scheduled_at": "2026-01-10T11:00",
}
PUSHED = {"sink": {"type": "webhook", "url": "https://shop.example/hooks"}, "max_running": 3}
EDIT = {"recurrence": {"cron": "0 9 * * *"}, "timezone": "America/Los_Angeles", "labels": {"a": "1"}}
DOCUMENT = {
    "schedules": {
        "new": {"job": JOB, "timezone": "Europe/London", "recurrence": {"cron": "30 1 * * *"}},
        "daily": {"timezone": "UTC", "recurrence": {"cron": "0 9 * * *"}},
        "report-7": {"ended": True},
        "nothing": {"ended": True},
    }
}


class Asker:
    """Asks, and holds every answer to the shape that its operation is described with."""

    def __init__(self, client: TestClient, described: Body) -> None:
        self.asked: list[str] = []
        self._client = client
        self._operations = {(method, path): operation for method, path, operation in operations_of(described)}

    def ask(self, method: str, path: str, body: object = None, **parts: str) -> Body:
        """The answer to an operation, by its path as it is described."""
        route = path.partition("?")[0]
        response = self._client.request(
            method, path.format(**PARTS | parts), json=body, headers={"If-Match": "*"}
        )
        assert response.is_success, (method, path, response.text)
        operation = self._operations[method, route]
        responses = cast("dict[str, dict[str, dict[str, Body]]]", operation["responses"])
        content = responses[str(response.status_code)]["content"]["application/json"]
        errors: list[ValidationError] = []
        for reference in references_in(content):
            shape: type[Shape] = getattr(answer_shapes, reference.rpartition("/")[2])
            try:
                shape.model_validate_json(response.content)
                break
            except ValidationError as error:
                errors.append(error)
        else:
            pytest.fail(f"{method} {path}: {errors}")
        self.asked.append(str(operation["operationId"]))
        return cast("Body", response.json())


def test_every_answer_has_the_shape_that_it_is_described_with(
    client: TestClient, clock: ManualClock, context: Context, described: Body, work_off: WorkOff
) -> None:
    asker = Asker(client, described)
    ask = asker.ask
    for body in (HOURLY, HOURLY, DAILY):
        ask("POST", "/schedules", body)
    ask("PUT", "/jobs/{name}", {}, name="other")
    ask("POST", "/preview", {"timezone": "Europe/London", "recurrence": {"cron": "30 1 * * *"}, "count": 200})
    for query in ("?dry_run=true", ""):
        body = {"until": "2026-01-10T16:00:00Z"}
        ask("POST", f"/schedules/{{schedule_id}}/plan{query}", body)
        body = {"from": "2026-01-10T03:00", "until": "2026-01-10T06:00"}
        ask("POST", f"/schedules/{{schedule_id}}/backfill{query}", body)
    ask("POST", "/schedules/{schedule_id}/occurrences/{scheduled_at}/skip")
    ask(
        "POST",
        "/schedules/{schedule_id}/occurrences/{scheduled_at}/move",
        {"to": "2026-01-10T12:30"},
        scheduled_at="2026-01-10T12:00",
    )
    clock.advance(timedelta(hours=1))
    work_off()
    deliveries = context.store.read_intents([JOB], now=clock.now(), limit=1)
    context.store.commit_openings("w1", deliveries, now=clock.now())
    ask_for_work(asker, context, clock)
    manual = str(ask("POST", "/schedules/{schedule_id}/run")["run_id"])
    ask("POST", "/runs/{run_id}/cancel", run_id=manual)
    ask("POST", "/runs/{run_id}/replay", {"reason": "x"}, run_id=manual)
    for query in ("?dry_run=true", ""):
        ask("POST", f"/runs/replay{query}", {"schedule": "daily", "reason": "x"})
        ask("POST", f"/runs/cancel{query}", {"schedule": "daily"})
    ask("PUT", "/jobs/{name}", PUSHED, name="pushed")
    ask("POST", "/schedules", report(id="pushed", job="pushed"))
    sent = str(ask("POST", "/schedules/{schedule_id}/run", schedule_id="pushed")["run_id"])
    let_die(context, "pushed")
    assert ask("GET", "/runs/{run_id}", run_id=sent)["delivery"] is not None
    assert ask("GET", "/deliveries")["items"] != []
    for query in ("?dry_run=true", ""):
        ask("POST", f"/deliveries/redrive{query}", {"job": "pushed"})
    ask("POST", "/deliveries/{run_id}/redrive", run_id=sent)
    ask("POST", "/schedules/{schedule_id}/pause?dry_run=true")
    ask("POST", "/schedules/{schedule_id}/pause", {"reason": "x"})
    clock.advance(timedelta(hours=6, minutes=1))
    work_off()
    told = ask("POST", "/schedules/{schedule_id}/resume?dry_run=true")
    assert {entry.get("kind") for entry in cast("list[Body]", told["skipped"])} == {None, "skip"}
    ask("POST", "/schedules/{schedule_id}/resume")
    work_off()
    for patch in (
        EDIT,
        EDIT | {"effective_from": "2026-03-01T00:00:00Z", "recurrence": {"cron": "0 2 * * *"}},
        {},
    ):
        for query in ("?dry_run=true", ""):
            ask("PATCH", f"/schedules/{{schedule_id}}{query}", patch)
    ask("POST", "/schedules/{schedule_id}/occurrences/{scheduled_at}/skip", scheduled_at="2026-01-12T09:00")
    for method, path, _ in operations_of(described):
        if method == "GET":
            ask(method, path)
    ledger = items_of(client.get("/schedules/report-7/occurrences"))
    assert {item["kind"] for item in ledger} == {"skip", "run"}
    for query in ("?dry_run=true", ""):
        applied = cast("list[Body]", ask("POST", f"/apply{query}", DOCUMENT)["schedules"])
        assert [item["outcome"] for item in applied] == ["created", "edited", "ended", "unchanged"]
        ask("POST", f"/zones/apply{query}")
    ask("DELETE", "/schedules/{schedule_id}", schedule_id="daily")
    assert set(asker.asked) == {operation["operationId"] for _, _, operation in operations_of(described)}


def ask_for_work(asker: Asker, context: Context, clock: ManualClock) -> None:
    """What a worker asks, of two of the runs that wait."""
    first, second = context.store.read_intents([JOB], now=clock.now(), limit=2)
    for _ in range(2):
        of_message = {"worker": "w2", "run_id": first.run_id, "attempt": first.attempt}
        asker.ask("POST", "/attempts/open", of_message)
    [claimed] = cast(
        "list[Body]", asker.ask("POST", "/attempts/claim", {"worker": "w2", "jobs": [JOB]})["attempts"]
    )
    attempt: Body = {"run_id": claimed["run_id"], "attempt": claimed["attempt"]}
    assert attempt["run_id"] == second.run_id
    asker.ask("POST", "/attempts/heartbeat", {"attempts": [attempt]})
    for _ in range(2):
        asker.ask("POST", "/effects/begin", attempt | {"name": "send-mail"})
        asker.ask("POST", "/effects/record", attempt | {"name": "send-mail", "result": {"id": 7}})
    for _ in range(2):
        asker.ask(
            "POST", "/attempts/settle", {"attempts": [attempt | {"outcome": "succeeded", "result": [1]}]}
        )
    asker.ask("POST", "/attempts/heartbeat", {"attempts": [attempt]})


def test_no_member_of_an_answer_is_left_out() -> None:
    told = [
        shape
        for shape in vars(answer_shapes).values()
        if isinstance(shape, type) and issubclass(shape, Shape)
    ]
    own = [shape for shape in told if shape.__name__ not in vars(request_shapes)]
    assert len(own) > 20
    for shape in own:
        assert [name for name, field in shape.model_fields.items() if not field.is_required()] == []
