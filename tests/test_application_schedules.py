"""Rota as a library: saving schedules with Python values, listing them, and who did what to them."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest

from rota import CatchUpAll, Expire, LatestOnly, Rota
from rota.domain.errors import InvalidRequest, NotFound
from rota.service.idempotency import KeyReused
from rota.store.memory import MemoryStore
from rota.testing import ManualClock, World

NOW = datetime(2026, 1, 10, 8, tzinfo=UTC)
DAILY = {"cron": "0 9 * * *"}


@pytest.fixture
def world() -> World:
    return World(now=NOW)


@pytest.fixture
def app(world: World) -> Rota:
    return world.app


def test_a_schedule_is_created_with_the_fields_of_the_wire_and_answered_in_wire_form(app: Rota) -> None:
    created = app.create_schedule(
        id="report-7",
        job="echo",
        timezone="America/New_York",
        recurrence=DAILY,
        params={"report": "sales"},
        labels={"customer": "acme"},
    )
    expected = {
        "id": "report-7",
        "job": "echo",
        "version": 1,
        "status": "active",
        "next_due": "2026-01-10T14:00:00Z",
        "params": {"report": "sales"},
        "labels": {"customer": "acme"},
        "gap": "skip",
    }
    assert {name: created[name] for name in expected} == expected
    assert app.get_schedule("report-7") == created


def test_a_job_is_known_to_the_service_before_any_worker_has_run() -> None:
    app = Rota(store=MemoryStore(), clock=ManualClock(NOW))
    app.job("sales_report")(lambda context: None)
    assert app.create_schedule(job="sales_report", timezone="UTC", recurrence=DAILY)["job"] == "sales_report"
    app.job("later")(lambda context: None)
    assert app.create_schedule(job="later", timezone="UTC", recurrence=DAILY)["job"] == "later"
    with pytest.raises(InvalidRequest, match="There is no job 'unknown'"):
        app.create_schedule(job="unknown", timezone="UTC", recurrence=DAILY)


def test_instants_durations_and_policies_may_be_python_values(app: Rota) -> None:
    plus_two = timezone(timedelta(hours=2))
    created = app.create_schedule(
        job="echo",
        timezone="UTC",
        recurrence={
            "every": timedelta(days=1, minutes=30),
            "anchor": datetime(2026, 1, 10, 2, tzinfo=plus_two),
        },
        overdue=Expire(deadline=timedelta(minutes=5)),
        starts_at=datetime(2026, 2, 1, 2, tzinfo=plus_two),
        ends_at="2026-03-01T00:00:00Z",
    )
    assert created["recurrence"] == {"every": "PT24H30M", "anchor": "2026-01-10T00:00:00Z"}
    assert created["overdue"] == {"policy": "expire", "deadline": "PT5M"}
    assert (created["starts_at"], created["ends_at"]) == ("2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z")


@pytest.mark.parametrize(
    ("policy", "shown"),
    [
        (CatchUpAll(), {"policy": "catch_up_all", "max_age": None}),
        (LatestOnly(grace=timedelta(seconds=5)), {"policy": "latest_only", "grace": "PT5S"}),
        ({"policy": "expire", "deadline": timedelta(hours=1)}, {"policy": "expire", "deadline": "PT1H"}),
    ],
)
def test_every_overdue_policy_may_be_given(
    app: Rota, policy: CatchUpAll | LatestOnly | dict[str, object], shown: dict[str, object]
) -> None:
    created = app.create_schedule(job="echo", timezone="UTC", recurrence=DAILY, overdue=policy)
    assert created["overdue"] == shown


def test_one_instant_may_be_given_as_an_aware_datetime(app: Rota) -> None:
    at = datetime(2026, 1, 10, 10, tzinfo=timezone(timedelta(hours=1)))
    created = app.create_schedule(job="echo", timezone="Europe/Paris", recurrence={"at": at})
    assert created["next_due"] == "2026-01-10T09:00:00Z"


@pytest.mark.parametrize(
    ("create", "field", "sentence"),
    [
        (
            lambda app: app.create_schedule(
                job="echo", timezone="UTC", recurrence=DAILY, starts_at=datetime(2026, 2, 1)
            ),
            "starts_at",
            "2026-02-01T00:00:00 has no zone; give an aware datetime",
        ),
        (
            lambda app: app.create_schedule(
                job="echo", timezone="UTC", recurrence={"at": datetime(2026, 2, 1, 9)}
            ),
            "recurrence.at",
            'or a local time as text, such as "2026-01-14T09:00"',
        ),
        (
            lambda app: app.preview(timezone="UTC", recurrence=DAILY, after=datetime(2026, 2, 1)),
            "after",
            "has no zone",
        ),
        (
            lambda app: app.create_schedule(
                job="echo", timezone="UTC", recurrence={"every": timedelta(seconds=-1)}
            ),
            "recurrence.every",
            "not negative",
        ),
    ],
)
def test_a_value_that_means_nothing_certain_is_refused_with_its_field(
    app: Rota, create: Callable[[Rota], object], field: str, sentence: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        create(app)
    [error] = refused.value.errors
    assert error.field == field
    assert sentence in error.message


def test_an_unknown_field_is_refused(app: Rota) -> None:
    with pytest.raises(InvalidRequest, match="crontab: This field is not known"):
        app.create_schedule(job="echo", timezone="UTC", recurrence=DAILY, crontab="* * * * *")  # type: ignore[call-arg]  # what is tested


def test_the_same_request_answers_with_the_same_schedule(app: Rota) -> None:
    def create(idempotency_key: str | None = None, **fields: str) -> object:
        created = app.create_schedule(
            job="echo",
            timezone="UTC",
            recurrence=DAILY,
            idempotency_key=idempotency_key,
            **fields,  # type: ignore[arg-type]  # an id, or nothing
        )
        return created["id"]

    assert create(id="report-7") == create(id="report-7") == "report-7"
    assert create() != create()
    assert create("key-1") == create("key-1")
    with pytest.raises(KeyReused):
        create("key-1", id="report-8")


def test_who_asked_and_why_is_kept(app: Rota) -> None:
    app.create_schedule(
        id="report-7", job="echo", timezone="UTC", recurrence=DAILY, actor="ops", reason="asked for"
    )
    app.pause("report-7", actor="ops", reason="maintenance")
    app.resume("report-7", actor="ops")
    app.end("report-7", reason="no longer needed")
    events = app.history("report-7")
    assert [(event["action"], event["actor"], event["reason"]) for event in events] == [
        ("schedule.end", None, "no longer needed"),
        ("schedule.resume", "ops", None),
        ("schedule.pause", "ops", "maintenance"),
        ("schedule.create", "ops", "asked for"),
    ]
    assert app.history("report-7", limit=1) == events[:1]


def test_a_preview_is_what_the_wire_answers(app: Rota) -> None:
    shown = app.preview(timezone="UTC", recurrence=DAILY, after=NOW + timedelta(days=1), count=2)
    assert isinstance(shown["occurrences"], list)
    assert [occurrence["scheduled_at"] for occurrence in shown["occurrences"]] == [
        "2026-01-11T09:00:00Z",
        "2026-01-12T09:00:00Z",
    ]


def test_schedules_are_listed_by_id_in_pages(app: Rota) -> None:
    for number in range(3):
        app.create_schedule(
            id=f"report-{number}",
            job="echo",
            timezone="UTC",
            recurrence=DAILY,
            labels={"customer": "acme" if number else "other"},
        )
    app.pause("report-2")

    def listed(page: list[dict[str, object]]) -> list[object]:
        return [schedule["id"] for schedule in page]

    assert listed(app.list_schedules(limit=2)) == ["report-0", "report-1"]
    assert listed(app.list_schedules(after="report-1")) == ["report-2"]
    assert listed(app.list_schedules(status="paused")) == ["report-2"]
    assert listed(app.list_schedules(label="customer=acme")) == ["report-1", "report-2"]
    assert listed(app.list_schedules(job="sales")) == []
    with pytest.raises(InvalidRequest, match="status"):
        app.list_schedules(status="asleep")


@pytest.mark.parametrize("limit", [0, 201])
def test_a_list_has_a_limit(app: Rota, limit: int) -> None:
    lists: list[Callable[[], object]] = [
        lambda: app.list_schedules(limit=limit),
        lambda: app.runs(limit=limit),
        lambda: app.occurrences("report-7", limit=limit),
        lambda: app.versions("report-7", limit=limit),
        lambda: app.history("report-7", limit=limit),
    ]
    for ask in lists:
        with pytest.raises(InvalidRequest, match="limit: Give a whole number from 1 to 200"):
            ask()


@pytest.mark.parametrize(
    "ask",
    [
        lambda app: app.get_schedule("report-7"),
        lambda app: app.edit("report-7", timezone="UTC"),
        lambda app: app.edit("report-7", timezone="UTC", dry_run=True),
        lambda app: app.pause("report-7"),
        lambda app: app.pause("report-7", dry_run=True),
        lambda app: app.resume("report-7"),
        lambda app: app.resume("report-7", dry_run=True),
        lambda app: app.end("report-7"),
        lambda app: app.versions("report-7"),
        lambda app: app.version("report-7", 1),
        lambda app: app.history("report-7"),
        lambda app: app.upcoming("report-7"),
        lambda app: app.occurrences("report-7"),
        lambda app: app.plan("report-7", NOW + timedelta(days=1)),
        lambda app: app.skip("report-7", NOW + timedelta(days=1)),
        lambda app: app.move("report-7", NOW + timedelta(days=1), NOW + timedelta(days=2)),
        lambda app: app.run_now("report-7"),
        lambda app: app.backfill("report-7", NOW - timedelta(days=1), NOW),
        lambda app: app.replay("report-7.1.20260110T090000Z", reason="asked for"),
        lambda app: app.get_run("report-7.1.20260110T090000Z"),
    ],
)
def test_a_schedule_that_is_not_there_is_not_found(app: Rota, ask: Callable[[Rota], object]) -> None:
    with pytest.raises(NotFound):
        ask(app)
