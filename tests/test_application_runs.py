"""Rota as a library: what became of occurrences, what is decided ahead of their time, and runs that are asked for."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest

from rota import CatchUpAll, Rota
from rota.domain.errors import Conflict, InvalidRequest, NotFound
from rota.service.idempotency import KeyReused
from rota.service.representation import Wire
from rota.testing import World

NOW = datetime(2026, 1, 10, 8, tzinfo=UTC)
DAILY = {"cron": "0 9 * * *"}


@pytest.fixture
def world() -> World:
    return World(now=NOW)


@pytest.fixture
def app(world: World) -> Rota:
    return world.app


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


# --- ahead of their time ---


def outcomes(app: Rota) -> dict[object, object]:
    """The state of every run of the schedule by its instant, oldest first."""
    return {run["scheduled_at"]: run["state"] for run in reversed(app.runs(schedule="report-7"))}


def member(answer: Wire, name: str) -> list[Wire]:
    """A list of entries in an answer."""
    entries = answer[name]
    assert isinstance(entries, list)
    return entries


@pytest.mark.parametrize(
    "until",
    [
        datetime(2026, 1, 12, 8, tzinfo=UTC),
        datetime(2026, 1, 12, 9, tzinfo=timezone(timedelta(hours=1))),
        "2026-01-12T08:00:00Z",
        "2026-01-12T09:00",  # as the clocks of Paris show it
    ],
)
def test_what_is_planned_exists_ahead_of_its_time(app: Rota, until: datetime | str) -> None:
    app.create_schedule(id="report-7", job="echo", timezone="Europe/Paris", recurrence=DAILY)
    foretold = app.plan("report-7", until, dry_run=True)
    assert (foretold["created"], foretold["dry_run"]) == (2, True)
    assert app.runs() == []
    planned = app.plan("report-7", until, actor="ops", reason="the printer wants to know")
    assert (planned["created"], planned["existing"], planned["until"]) == (2, 0, "2026-01-12T08:00:00Z")
    assert [run["run_id"] for run in member(planned, "runs")] == [
        run["run_id"] for run in member(foretold, "runs")
    ]
    assert outcomes(app) == {"2026-01-11T08:00:00Z": "planned", "2026-01-12T08:00:00Z": "planned"}
    again = app.plan("report-7", until)
    assert (again["created"], again["existing"]) == (0, 2)
    assert app.history("report-7")[0]["reason"] == "the printer wants to know"


def test_what_was_planned_runs_in_its_time(world: World, app: Rota) -> None:
    app.create_schedule(id="report-7", job="echo", timezone="UTC", recurrence=DAILY)
    app.plan("report-7", "2026-01-11T09:00:00Z")
    world.pass_time(timedelta(days=1))
    assert outcomes(app) == {"2026-01-10T09:00:00Z": "succeeded", "2026-01-11T09:00:00Z": "planned"}


@pytest.mark.parametrize("occurrence", [datetime(2026, 1, 13, 8, tzinfo=UTC), "2026-01-13T09:00"])
def test_one_occurrence_is_skipped_and_the_others_run(
    world: World, app: Rota, occurrence: datetime | str
) -> None:
    app.create_schedule(id="report-7", job="echo", timezone="Europe/Paris", recurrence=DAILY)
    skipped = app.skip("report-7", occurrence, actor="ops", reason="a holiday")
    assert (skipped["state"], skipped["reason"]) == ("skipped", "on_request")
    assert app.skip("report-7", occurrence) == skipped
    world.pass_time(timedelta(days=4))
    assert outcomes(app) == {
        "2026-01-11T08:00:00Z": "succeeded",
        "2026-01-12T08:00:00Z": "succeeded",
        "2026-01-13T08:00:00Z": "skipped",
        "2026-01-14T08:00:00Z": "succeeded",
    }


def test_one_occurrence_is_moved_and_stays_the_one_it_is(world: World, app: Rota) -> None:
    app.create_schedule(id="report-7", job="echo", timezone="Europe/Paris", recurrence=DAILY)
    moved = app.move("report-7", "2026-01-13T09:00", "2026-01-13T11:00", reason="the office opens late")
    assert (moved["scheduled_at"], moved["due_at"]) == ("2026-01-13T08:00:00Z", "2026-01-13T10:00:00Z")
    moved = app.move("report-7", datetime(2026, 1, 13, 8, tzinfo=UTC), datetime(2026, 1, 13, 9, tzinfo=UTC))
    assert moved["due_at"] == "2026-01-13T09:00:00Z"
    world.pass_time(until=datetime(2026, 1, 13, 8, 59, tzinfo=UTC))
    assert outcomes(app)["2026-01-13T08:00:00Z"] == "planned"
    world.pass_time(timedelta(minutes=1))
    assert outcomes(app)["2026-01-13T08:00:00Z"] == "succeeded"
    world.pass_time(timedelta(days=1))
    assert list(outcomes(app)) == [f"2026-01-{day}T08:00:00Z" for day in range(11, 15)]


def test_what_comes_is_told_with_what_was_decided_of_it(app: Rota) -> None:
    app.create_schedule(id="report-7", job="echo", timezone="UTC", recurrence=DAILY)
    app.skip("report-7", "2026-01-11T09:00:00Z")
    app.move("report-7", "2026-01-12T09:00:00Z", "2026-01-12T11:00:00Z")
    told = app.upcoming("report-7", count=3)
    assert [(entry["scheduled_at"], entry["due_at"]) for entry in member(told, "occurrences")] == [
        ("2026-01-10T09:00:00Z", "2026-01-10T09:00:00Z"),
        ("2026-01-12T09:00:00Z", "2026-01-12T11:00:00Z"),
        ("2026-01-13T09:00:00Z", "2026-01-13T09:00:00Z"),
    ]
    assert [entry["scheduled_at"] for entry in member(told, "skipped")] == ["2026-01-11T09:00:00Z"]


@pytest.mark.parametrize(
    ("ask", "field", "sentence"),
    [
        (
            lambda app: app.plan("report-7", datetime(2026, 1, 12)),
            "until",
            'local time as text, such as "2026',
        ),
        (lambda app: app.plan("report-7", NOW), "until", "has passed"),
        (lambda app: app.plan("report-7", "next week"), "until", "next week"),
        (lambda app: app.skip("report-7", datetime(2026, 1, 12)), "scheduled_at", "has no zone"),
        (lambda app: app.move("report-7", datetime(2026, 1, 12), NOW), "scheduled_at", "has no zone"),
        (lambda app: app.move("report-7", "2026-01-12T09:00", datetime(2026, 1, 12)), "to", "has no zone"),
        (lambda app: app.move("report-7", "2026-01-12T09:00", NOW), "to", "has passed"),
        (lambda app: app.backfill("report-7", datetime(2026, 1, 1), NOW), "from", "has no zone"),
        (lambda app: app.backfill("report-7", NOW, datetime(2026, 1, 1)), "until", "has no zone"),
        (lambda app: app.backfill("report-7", NOW, NOW, spacing="a while"), "spacing", "a while"),
        (lambda app: app.backfill("report-7", NOW, NOW, spacing=timedelta(0)), "spacing", "PT1S"),
        (lambda app: app.replay("report-7.1.20260110T090000Z", reason=""), "reason", "Say why"),
    ],
)
def test_a_moment_that_means_nothing_certain_is_refused_with_its_field(
    app: Rota, ask: Callable[[Rota], object], field: str, sentence: str
) -> None:
    app.create_schedule(id="report-7", job="echo", timezone="UTC", recurrence=DAILY)
    with pytest.raises(InvalidRequest) as refused:
        ask(app)
    [error] = refused.value.errors
    assert error.field == field
    assert sentence in error.message


def test_what_the_rule_does_not_name_is_neither_skipped_nor_moved(world: World, app: Rota) -> None:
    app.create_schedule(id="report-7", job="echo", timezone="UTC", recurrence=DAILY)
    world.pass_time(timedelta(hours=2))
    with pytest.raises(NotFound):
        app.skip("report-7", "2026-01-11T10:00:00Z")
    with pytest.raises(NotFound):
        app.move("report-7", "2026-01-11T10:00:00Z", "2026-01-11T11:00:00Z")
    with pytest.raises(Conflict, match="can no longer be skipped"):
        app.skip("report-7", "2026-01-10T09:00:00Z")


# --- on request ---


def test_a_run_is_asked_for_also_in_a_pause(world: World, app: Rota) -> None:
    app.create_schedule(id="report-7", job="echo", timezone="UTC", recurrence=DAILY, params={"n": 1})
    app.pause("report-7")
    run = app.run_now("report-7", idempotency_key="order-1", actor="ops", reason="the customer waits")
    assert (run["origin"], run["state"], run["scheduled_at"]) == ("manual", "queued", "2026-01-10T08:00:01Z")
    assert app.run_now("report-7", idempotency_key="order-1") == run
    assert app.run_now("report-7")["run_id"] != run["run_id"]
    world.settle()
    assert app.get_run(str(run["run_id"]))["result"] == {"n": 1}
    with pytest.raises(KeyReused):
        app.replay(str(run["run_id"]), reason="asked for", idempotency_key="order-1")


def test_a_run_that_has_ended_is_replayed_as_another_run(world: World, app: Rota) -> None:
    app.create_schedule(id="report-7", job="echo", timezone="UTC", recurrence=DAILY, params={"n": 1})
    world.pass_time(timedelta(hours=1))
    first = "report-7.1.20260110T090000Z"
    replayed = app.replay(first, reason="the mail was lost", idempotency_key="order-1", actor="ops")
    assert (replayed["run_id"], replayed["origin"]) == (f"{first}.r1", "replay")
    with pytest.raises(Conflict, match="only one that has ended"):
        app.replay(f"{first}.r1", reason="once more")
    world.settle()
    again = app.replay(first, reason="the mail was lost", idempotency_key="order-1")
    assert (again["run_id"], again["state"]) == (f"{first}.r1", "succeeded")
    assert app.history("report-7")[0]["reason"] == "the mail was lost"


@pytest.mark.parametrize("spacing", [timedelta(minutes=5), "PT5M"])
def test_a_backfill_runs_what_lies_before_the_schedule(
    world: World, app: Rota, spacing: timedelta | str
) -> None:
    app.create_schedule(id="report-7", job="echo", timezone="Europe/Paris", recurrence=DAILY)
    from_, until = "2026-01-07T09:00", datetime(2026, 1, 9, 8, tzinfo=UTC)
    foretold = app.backfill("report-7", from_, until, spacing=spacing, dry_run=True)
    assert (foretold["created"], app.runs()) == (3, [])
    made = app.backfill("report-7", from_, until, spacing=spacing, reason="a new report")
    assert [(run["scheduled_at"], run["due_at"]) for run in member(made, "runs")] == [
        ("2026-01-07T08:00:00Z", "2026-01-10T08:00:01Z"),
        ("2026-01-08T08:00:00Z", "2026-01-10T08:05:01Z"),
        ("2026-01-09T08:00:00Z", "2026-01-10T08:10:01Z"),
    ]
    world.pass_time(timedelta(minutes=11))
    assert list(outcomes(app).values()) == ["succeeded"] * 3
    assert app.backfill("report-7", from_, until)["created"] == 0


def test_the_runs_of_a_backfill_fall_due_a_second_apart_unless_told(app: Rota) -> None:
    app.create_schedule(id="report-7", job="echo", timezone="UTC", recurrence=DAILY)
    made = app.backfill("report-7", NOW - timedelta(days=2), NOW)
    assert [run["due_at"] for run in member(made, "runs")] == ["2026-01-10T08:00:01Z", "2026-01-10T08:00:02Z"]
