"""Rota as a library: what may be done before a database is there, and the use cases in process."""

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

import rota
from rota import CatchUpAll, Expire, LatestOnly, Rota, RunContext
from rota.config import Settings
from rota.domain.errors import Conflict, InvalidRequest, NotFound
from rota.domain.identity import ScheduleId
from rota.service.creation import KeyReused
from rota.store.memory import MemoryStore
from rota.testing import ManualClock, World

NOW = datetime(2026, 1, 10, 8, tzinfo=UTC)
DEADLINE_SECONDS = 10.0
DAILY = {"cron": "0 9 * * *"}


class LocalStore(MemoryStore):
    """Knows whether it was closed."""

    is_closed = False

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def world() -> World:
    return World(now=NOW)


@pytest.fixture
def app(world: World) -> Rota:
    return world.app


# --- before the first use ---


def test_an_application_touches_no_disk_before_its_first_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_POLL_SECONDS", "no number")  # would be refused if it were read
    app = Rota("rota.db")

    @app.job("sales_report")
    def handle(context: RunContext) -> None: ...

    assert list(tmp_path.iterdir()) == []
    assert [job.name for job in app.registry.jobs()] == ["echo", "sales_report"]


def test_the_first_use_opens_the_database(tmp_path: Path) -> None:
    path = tmp_path / "rota.db"
    with Rota(path) as app:
        assert app.list_schedules() == []
        assert path.exists()


def test_a_given_database_wins_over_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_DATABASE", "environment.db")
    monkeypatch.setenv("ROTA_CONCURRENCY", "3")
    settings = Settings(database="settings.db", page=7)
    assert Rota().settings.database == "environment.db"
    assert Rota("given.db").settings.database == "given.db"
    assert Rota("given.db").settings.concurrency == 3
    assert Rota(settings=settings).settings == settings
    assert Rota("given.db", settings=settings).settings.page == 7


def test_settings_may_be_replaced_until_the_database_is_open() -> None:
    app = Rota("given.db", store=MemoryStore())
    settings = Settings(database="other.db", partitions=2)
    app.configure(settings)
    assert app.settings == settings
    assert app.context.partition_count == 2
    with pytest.raises(Conflict, match="before its first use"):
        app.configure(settings)


def test_every_application_has_the_job_echo_and_keeps_its_name_for_it() -> None:
    with pytest.raises(Conflict, match="'echo' has a handler already"):
        Rota().job("echo")(lambda context: None)


def test_closing_closes_what_was_opened_and_leaves_what_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    given, opened = LocalStore(), LocalStore()
    with Rota(store=given) as app:
        app.list_schedules()
    monkeypatch.setattr("rota.wiring.open_store", lambda settings: opened)
    with Rota("rota.db") as app:
        app.list_schedules()
        assert not opened.is_closed
    assert (given.is_closed, opened.is_closed) == (False, True)


def test_closing_what_was_never_opened_is_nothing() -> None:
    Rota("rota.db").close()


def test_importing_rota_loads_no_library() -> None:
    script = (
        "import sys, rota\n"
        "heavy = {'sqlalchemy', 'pydantic', 'fastapi', 'structlog', 'asyncio'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "from rota import Rota, RunContext, Moot\n"
        "assert Rota('rota.db').registry.jobs()[0].name == 'echo'\n"
        "assert 'sqlalchemy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_everything_that_rota_names_is_there() -> None:
    assert set(rota.__all__) <= set(dir(rota))
    assert [name for name in rota.__all__ if getattr(rota, name).__name__ != name] == []
    with pytest.raises(AttributeError, match="no attribute 'Scheduler'"):
        rota.Scheduler  # noqa: B018 - the look is what is tested


# --- schedules ---


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
    events = app.context.store.list_audit(ScheduleId("report-7"), limit=10)
    assert {(event.action, event.actor, event.reason) for event in events} == {
        ("schedule.create", "ops", "asked for"),
        ("schedule.pause", "ops", "maintenance"),
        ("schedule.resume", "ops", None),
        ("schedule.end", None, "no longer needed"),
    }


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
    with pytest.raises(InvalidRequest, match="limit: Give a whole number from 1 to 200"):
        app.list_schedules(limit=limit)
    with pytest.raises(InvalidRequest, match="limit: Give a whole number from 1 to 200"):
        app.runs(limit=limit)


def test_a_schedule_that_is_not_there_is_not_found(app: Rota) -> None:
    for ask in (app.get_schedule, app.pause, app.resume, app.end, app.upcoming, app.occurrences, app.get_run):
        with pytest.raises(NotFound):
            ask("report-7")


# --- occurrences and runs ---


def test_what_came_and_what_comes_is_told_in_pages(world: World, app: Rota) -> None:
    app.create_schedule(id="report-7", job="echo", timezone="UTC", recurrence=DAILY, params={"n": 1})
    world.pass_time(timedelta(days=2))
    app.pause("report-7")
    world.pass_time(timedelta(days=2))
    app.resume("report-7")
    world.pass_time(timedelta(days=1))
    ledger = app.occurrences("report-7")
    assert [(entry["kind"], entry.get("scheduled_at", entry.get("from"))) for entry in ledger] == [
        ("run", "2026-01-14T09:00:00Z"),
        ("skip", "2026-01-12T09:00:00Z"),
        ("run", "2026-01-11T09:00:00Z"),
        ("run", "2026-01-10T09:00:00Z"),
    ]
    assert (ledger[1]["reason"], ledger[1]["count"]) == ("paused", 2)
    for place in range(4):
        assert app.occurrences("report-7", before=ledger[place], limit=1) == ledger[place + 1 : place + 2]
    runs = app.runs(schedule="report-7", state="succeeded", job="echo", origin="schedule")
    assert runs == [entry for entry in ledger if entry["kind"] == "run"]
    assert app.runs(before=runs[0], limit=1) == [runs[1]]
    assert app.get_run("report-7.1.20260114T090000Z")["result"] == {"n": 1}
    upcoming = app.upcoming("report-7", count=1)
    assert isinstance(upcoming["occurrences"], list)
    assert upcoming["occurrences"][0]["scheduled_at"] == "2026-01-15T09:00:00Z"
    with pytest.raises(InvalidRequest, match="before"):
        app.runs(before={"id": "report-7"})
    with pytest.raises(InvalidRequest, match="state"):
        app.runs(state="asleep")


def test_iterating_leaves_nothing_out(world: World, app: Rota) -> None:
    minutely = {"every": timedelta(minutes=1)}
    app.create_schedule(id="report-7", job="echo", timezone="UTC", recurrence=minutely, overdue=CatchUpAll())
    app.create_schedule(id="report-8", job="echo", timezone="UTC", recurrence=DAILY)
    world.pass_time(timedelta(minutes=404))
    assert len(app.runs()) == 50
    runs = list(app.iterate_runs(schedule="report-7"))
    assert [run["scheduled_at"] for run in runs] == sorted({str(run["scheduled_at"]) for run in runs})[::-1]
    assert len(runs) >= 404
    assert list(app.iterate_occurrences("report-7")) == runs
    assert list(app.iterate_runs(job="echo", state="failed")) == []
    with pytest.raises(NotFound):
        next(app.iterate_occurrences("report-9"))


def test_iterating_walks_schedules_beyond_one_page(app: Rota) -> None:
    for number in range(201):
        app.create_schedule(id=f"report-{number:03}", job="echo", timezone="UTC", recurrence=DAILY)
    ids = [schedule["id"] for schedule in app.iterate_schedules(status="active")]
    assert ids == [f"report-{number:03}" for number in range(201)]


def test_a_run_that_waits_is_cancelled(world: World, app: Rota) -> None:
    app.create_schedule(id="report-7", job="echo", timezone="UTC", recurrence=DAILY)
    world.clock.advance(timedelta(hours=1))
    world.dispatcher.step(world.now)
    assert app.cancel_run("report-7.1.20260110T090000Z", actor="ops")["state"] == "cancelled"
    world.settle()
    assert app.get_run("report-7.1.20260110T090000Z")["attempts"] == []
