"""Rota as a library: edits and their versions, what changes would do, and schedules as one document."""

import tomllib
from datetime import UTC, datetime, timedelta, timezone

import pytest

from rota import CatchUpAll, Expire, Rota
from rota.domain.errors import Conflict, InvalidRequest, Stale
from rota.service.representation import Wire
from rota.testing import World

NOW = datetime(2026, 1, 14, 10, tzinfo=UTC)
NINE = {"cron": "0 9 * * *"}


@pytest.fixture
def world() -> World:
    return World(now=NOW)


@pytest.fixture
def app(world: World) -> Rota:
    """With a report at nine in New York, which is at 14:00 UTC."""
    world.app.create_schedule(
        id="report-7",
        job="echo",
        timezone="America/New_York",
        recurrence=NINE,
        overdue=Expire(deadline=timedelta(minutes=5)),
        max_occurrences=10,
        params={"report": "sales", "pages": {"first": 1, "last": 9}},
        labels={"customer": "acme", "floor": "3"},
    )
    return world.app


def members(answer: Wire, name: str) -> list[Wire]:
    """A list of entries in an answer."""
    entries = answer[name]
    assert isinstance(entries, list)
    return entries


def instants(answer: Wire, name: str) -> list[object]:
    return [entry["scheduled_at"] for entry in members(answer, name)]


# --- edits ---


def test_an_edit_makes_the_next_version_and_keeps_what_it_does_not_name(app: Rota) -> None:
    edited = app.edit("report-7", recurrence={"cron": "30 9 * * *"}, actor="ops", reason="the bank is late")
    assert (edited["version"], edited["recurrence"]) == (2, {"cron": "30 9 * * *"})
    assert (edited["timezone"], edited["max_occurrences"]) == ("America/New_York", 10)
    assert edited["next_due"] == "2026-01-14T14:30:00Z"
    assert app.get_schedule("report-7") == edited
    assert (app.history("report-7")[0]["actor"], app.history("report-7")[0]["reason"]) == (
        "ops",
        "the bank is late",
    )


def test_a_field_that_is_given_as_none_is_back_at_its_default(app: Rota) -> None:
    edited = app.edit("report-7", overdue=None, max_occurrences=None, labels=None, params=None)
    assert (edited["max_occurrences"], edited["labels"], edited["params"]) == (None, {}, {})
    assert edited["overdue"] == {"policy": "latest_only", "grace": "PT1M"}


def test_params_and_labels_are_changed_member_by_member(app: Rota) -> None:
    edited = app.edit("report-7", params={"pages": {"last": None}}, labels={"floor": None, "room": "12"})
    assert edited["params"] == {"report": "sales", "pages": {"first": 1}}
    assert edited["labels"] == {"customer": "acme", "room": "12"}


def test_an_edit_takes_python_values(app: Rota) -> None:
    plus_two = timezone(timedelta(hours=2))
    edited = app.edit(
        "report-7",
        recurrence={"every": timedelta(minutes=90), "anchor": datetime(2026, 1, 14, 2, tzinfo=plus_two)},
        overdue=CatchUpAll(),
        ends_at=datetime(2026, 3, 1, 2, tzinfo=plus_two),
    )
    assert edited["recurrence"] == {"every": "PT1H30M", "anchor": "2026-01-14T00:00:00Z"}
    assert edited["overdue"] == {"policy": "catch_up_all", "max_age": None}
    assert edited["ends_at"] == "2026-03-01T00:00:00Z"


def test_moving_a_daily_report_to_another_zone_neither_doubles_nor_loses_a_day(
    world: World, app: Rota
) -> None:
    world.pass_time(until=datetime(2026, 1, 16, 10, tzinfo=UTC))
    foretold = app.edit("report-7", timezone="Europe/London", dry_run=True)
    assert instants(foretold, "carried") == ["2026-01-16T14:00:00Z"]
    assert app.get_schedule("report-7")["version"] == 1
    app.edit("report-7", timezone="Europe/London")
    world.pass_time(timedelta(days=2))
    assert [(run["version"], run["scheduled_at"]) for run in reversed(app.runs())] == [
        (1, "2026-01-14T14:00:00Z"),
        (1, "2026-01-15T14:00:00Z"),
        (1, "2026-01-16T14:00:00Z"),
        (2, "2026-01-17T09:00:00Z"),
        (2, "2026-01-18T09:00:00Z"),
    ]


def test_what_replaces_a_version_that_waits_takes_over_when_that_was_to_or_at_once(app: Rota) -> None:
    app.edit("report-7", timezone="Europe/London", effective_from="2026-01-17T00:00:00Z")
    for at_once, instant in ((False, "2026-01-17T00:00:00Z"), (True, "2026-01-14T10:00:02Z")):
        told = app.edit("report-7", timezone="UTC", replaces_pending=True, at_once=at_once, dry_run=True)
        assert told["effective_from"] == instant


def test_an_edit_may_begin_a_fresh_series_of_periods(app: Rota) -> None:
    foretold = app.edit("report-7", timezone="Europe/London", boundary="now", dry_run=True)
    assert (foretold["boundary"], instants(foretold, "carried")) == ("now", [])


@pytest.mark.parametrize(
    "instant", [datetime(2026, 1, 17, 1, tzinfo=timezone(timedelta(hours=1))), "2026-01-17T00:00:00Z"]
)
def test_an_edit_may_take_over_at_a_later_instant(world: World, app: Rota, instant: datetime | str) -> None:
    edited = app.edit("report-7", timezone="Europe/London", effective_from=instant)
    assert (edited["version"], edited["timezone"]) == (1, "America/New_York")
    assert app.version("report-7", 2)["effective_from"] == "2026-01-17T00:00:00Z"
    with pytest.raises(Conflict, match="has not taken over yet"):
        app.edit("report-7", timezone="Europe/Paris")
    app.edit("report-7", timezone="Europe/Paris", effective_from=instant, replaces_pending=True)
    world.pass_time(until=datetime(2026, 1, 18, tzinfo=UTC))
    assert [(run["version"], run["scheduled_at"]) for run in reversed(app.runs())] == [
        (1, "2026-01-14T14:00:00Z"),
        (1, "2026-01-15T14:00:00Z"),
        (1, "2026-01-16T14:00:00Z"),
        (3, "2026-01-17T08:00:00Z"),
    ]


def test_an_edit_for_an_older_version_changes_nothing(app: Rota) -> None:
    app.edit("report-7", timezone="Europe/London", expected_version=1)
    for dry_run in (True, False):
        with pytest.raises(Stale, match="is 2, not 1"):
            app.edit("report-7", timezone="Europe/Paris", expected_version=1, dry_run=dry_run)
    assert app.get_schedule("report-7")["timezone"] == "Europe/London"


def test_an_edit_that_means_nothing_certain_is_refused_with_its_field(app: Rota) -> None:
    with pytest.raises(InvalidRequest, match=r"effective_from: .* has no zone"):
        app.edit("report-7", effective_from=datetime(2026, 1, 17))
    with pytest.raises(InvalidRequest, match="effective_from: Say from which instant on"):
        app.edit("report-7", boundary="effective_from", timezone="Europe/London")
    with pytest.raises(InvalidRequest, match="boundary: Give one of"):
        app.edit("report-7", boundary="soon")
    with pytest.raises(InvalidRequest, match="timezone: Give an IANA zone name"):
        app.edit("report-7", timezone=None)  # type: ignore[arg-type]  # what is tested: it has no default
    with pytest.raises(InvalidRequest, match="crontab: This field is not known"):
        app.edit("report-7", crontab="* * * * *")  # type: ignore[call-arg]  # what is tested
    with pytest.raises(InvalidRequest, match="The job of a schedule cannot be changed"):
        app.edit("report-7", job="sales_report")  # type: ignore[call-arg]  # what is tested


def test_every_version_stays_to_be_seen(app: Rota) -> None:
    app.edit("report-7", timezone="Europe/London", reason="we moved")
    app.edit("report-7", timezone="Europe/Paris")
    versions = app.versions("report-7")
    assert [(version["version"], version["timezone"]) for version in versions] == [
        (3, "Europe/Paris"),
        (2, "Europe/London"),
        (1, "America/New_York"),
    ]
    assert app.versions("report-7", limit=1) == versions[:1]
    assert app.versions("report-7", before=3, limit=1) == versions[1:2]
    assert app.version("report-7", 2) == versions[1]
    assert versions[1]["reason"] == "we moved"


# --- dry runs of a pause ---


def test_a_pause_and_a_resumption_tell_first_what_they_would_do(world: World, app: Rota) -> None:
    held_back = app.pause("report-7", dry_run=True)
    assert instants(held_back, "skipped")[:2] == ["2026-01-14T14:00:00Z", "2026-01-15T14:00:00Z"]
    assert app.get_schedule("report-7")["status"] == "active"
    app.pause("report-7")
    world.pass_time(timedelta(days=1))
    skipped = app.resume("report-7", dry_run=True)
    assert [entry["reason"] for entry in members(skipped, "skipped")] == ["paused"]
    assert app.get_schedule("report-7")["status"] == "paused"
    app.resume("report-7")
    world.settle()
    assert [entry["reason"] for entry in app.occurrences("report-7")] == ["paused"]


# --- documents ---

DOCUMENT = """
reason = "as agreed"

[schedules.report-7]
job = "echo"
timezone = "Europe/London"
recurrence = {cron = "0 9 * * *"}
starts_at = 2026-02-01T01:00:00+01:00

[schedules.report-8]
job = "sales_report"
timezone = "Europe/London"
recurrence = {at = 2026-02-01T09:00:00}
"""


def outcomes(answer: Wire) -> list[tuple[object, object]]:
    return [(schedule["schedule_id"], schedule["outcome"]) for schedule in members(answer, "schedules")]


def test_a_document_makes_schedules_as_it_says(app: Rota) -> None:
    app.job("sales_report")(lambda context: None)
    document = tomllib.loads(DOCUMENT)
    expected = [("report-7", "edited"), ("report-8", "created")]
    assert outcomes(app.apply(document, dry_run=True)) == expected
    assert [schedule["version"] for schedule in app.list_schedules()] == [1]
    assert outcomes(app.apply(document, actor="ops")) == expected
    edited, created = app.list_schedules()
    assert (edited["timezone"], edited["starts_at"]) == ("Europe/London", "2026-02-01T00:00:00Z")
    assert (created["recurrence"], created["next_due"]) == (
        {"at": "2026-02-01T09:00"},
        "2026-02-01T09:00:00Z",
    )
    assert app.history("report-8")[0]["reason"] == "as agreed"
    assert {outcome for _, outcome in outcomes(app.apply(document))} == {"unchanged"}
    assert outcomes(app.apply({"schedules": {"report-8": {"ended": True}}})) == [("report-8", "ended")]


def test_a_document_takes_python_values(app: Rota) -> None:
    params = {"for": "acme"}
    entry = {
        "job": "echo",
        "timezone": "UTC",
        "recurrence": {"every": timedelta(minutes=90), "anchor": datetime(2026, 1, 14, tzinfo=UTC)},
        "overdue": Expire(deadline=timedelta(minutes=5)),
        "params": params,
    }
    app.apply({"schedules": {"report-8": entry}}, reason="as agreed")
    made = app.get_schedule("report-8")
    assert made["recurrence"] == {"every": "PT1H30M", "anchor": "2026-01-14T00:00:00Z"}
    assert (made["overdue"], made["params"]) == ({"policy": "expire", "deadline": "PT5M"}, params)
    assert app.history("report-8")[0]["reason"] == "as agreed"


def test_of_a_document_with_an_error_nothing_is_done(app: Rota) -> None:
    good = {"job": "echo", "timezone": "UTC", "recurrence": NINE}
    with pytest.raises(InvalidRequest) as refused:
        app.apply({"schedules": {"a": good, "b": {**good, "timezone": "Mars"}, "c": "daily", "D": good}})
    assert [error.field for error in refused.value.errors] == ["schedules.c", "schedules.D"]
    with pytest.raises(InvalidRequest) as refused:
        app.apply({"schedules": {"a": good, "b": {**good, "timezone": "Mars"}}})
    assert [error.field for error in refused.value.errors] == ["schedules.b.timezone"]
    with pytest.raises(InvalidRequest, match=r"schedules\.b\.overdue: Give a duration that is not negative"):
        app.apply({"schedules": {"b": {**good, "overdue": timedelta(-1)}}})
    with pytest.raises(InvalidRequest, match="schedules: Give a table"):
        app.apply({"schedules": ["a"]})
    assert [schedule["id"] for schedule in app.list_schedules()] == ["report-7"]
