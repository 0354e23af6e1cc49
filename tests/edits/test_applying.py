"""Schedules as code: a document makes schedules what it says, and applying it again changes nothing."""

import tomllib

import pytest

from rota.domain.errors import InvalidRequest
from rota.service.applying import apply_document
from rota.service.schedules import list_history
from rota.store.port import Store
from tests.edits.lives import ID, Life, entries_of, rule

DOCUMENT = """
reason = "spring review"

[schedules.report-7]
job = "sales_report"
timezone = "Europe/London"
recurrence = { cron = "0 9 * * *" }
gap = "skip"
fold = "first"
params = { report = "sales" }
labels = { customer = "acme" }

[schedules.every-quarter]
job = "sales_report"
timezone = "UTC"
recurrence = { every = "PT15M" }
starts_at = 2026-02-01T00:00:00Z

[schedules.once]
job = "sales_report"
timezone = "Asia/Tokyo"
recurrence = { at = 2026-03-01T09:00:00 }

[schedules.gone]
ended = true
"""


def document(text: str = DOCUMENT) -> dict[str, object]:
    return tomllib.loads(text)


def life_in(store: Store) -> Life:
    return Life(store, start="2026-01-10T12:00:00Z", **rule("0 9 * * *", "America/New_York"))


def outcomes(told: dict[str, object]) -> dict[object, object]:
    return {entry["schedule_id"]: entry["outcome"] for entry in entries_of(told, "schedules")}


def test_a_document_creates_edits_and_ends_and_the_second_time_changes_nothing(store: Store) -> None:
    life = life_in(store)
    app = life.world.app
    app.create_schedule(id="gone", job="sales_report", timezone="UTC", recurrence={"cron": "0 9 * * *"})
    first = apply_document(life.context, document())
    assert outcomes(first) == {
        ID: "edited",
        "every-quarter": "created",
        "once": "created",
        "gone": "ended",
    }
    before = {schedule_id: app.get_schedule(str(schedule_id)) for schedule_id in outcomes(first)}
    life.until("2026-01-10T13:30:00Z")
    second = apply_document(life.context, document())
    assert set(outcomes(second).values()) == {"unchanged"}
    after = {schedule_id: app.get_schedule(str(schedule_id)) for schedule_id in outcomes(first)}
    assert {key: value["latest_version"] for key, value in after.items()} == {
        key: value["latest_version"] for key, value in before.items()
    }
    assert after[ID]["labels"] == {"customer": "acme"}
    assert after["once"]["recurrence"] == {"at": "2026-03-01T09:00"}
    assert list_history(life.context, ID, limit=1)[0]["reason"] == "spring review"


def test_what_the_document_does_not_say_goes_back_to_its_default(store: Store) -> None:
    life = life_in(store)
    apply_document(life.context, document())
    shorter = document(DOCUMENT.replace('params = { report = "sales" }\n', "").replace('gap = "skip"\n', ""))
    assert outcomes(apply_document(life.context, shorter))[ID] == "edited"
    assert life.world.app.get_schedule(ID)["params"] == {}


def test_a_dry_run_tells_the_same_and_writes_nothing(store: Store) -> None:
    life = life_in(store)
    before = life.world.app.list_schedules()
    told = apply_document(life.context, document(), dry_run=True)
    assert life.world.app.list_schedules() == before
    [edited, created, *_] = entries_of(told, "schedules")
    assert edited["changed"] == {
        "timezone": {"from": "America/New_York", "to": "Europe/London"},
        "params": {"from": {}, "to": {"report": "sales"}},
        "labels": {"from": {}, "to": {"customer": "acme"}},
    }
    assert len(entries_of(edited, "next")) == len(entries_of(created, "next")) == 5


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (('cron = "0 9 * * *"', 'cron = "0 25 * * *"'), "schedules.report-7.recurrence.cron"),
        (("Asia/Tokyo", "Asia/Tokio"), "schedules.once.timezone"),
        (('gap = "skip"', 'gasp = "skip"'), "schedules.report-7.gasp"),
        (('job = "sales_report"\ntimezone = "UTC"', 'timezone = "UTC"'), "schedules.every-quarter.job"),
        (("[schedules.once]", "[schedules.Once]"), "schedules.Once"),
        (("ended = true", 'ended = "yes"'), "schedules.gone.ended"),
        (('reason = "spring review"', "reason = 7"), "reason"),
    ],
)
def test_one_wrong_schedule_and_nothing_is_done(store: Store, change: tuple[str, str], field: str) -> None:
    life = life_in(store)
    before = life.world.app.list_schedules()
    with pytest.raises(InvalidRequest) as refused:
        apply_document(life.context, document(DOCUMENT.replace(*change)))
    assert [error.field for error in refused.value.errors] == [field]
    assert life.world.app.list_schedules() == before


def test_a_schedule_that_has_ended_cannot_come_back(store: Store) -> None:
    life = life_in(store)
    life.world.app.end(ID)
    with pytest.raises(InvalidRequest, match=r"schedules\.report-7: It has ended"):
        apply_document(life.context, document())


def test_an_instant_in_the_document_that_has_passed_means_at_once(store: Store) -> None:
    life = life_in(store)
    text = DOCUMENT.replace(
        "[schedules.report-7]", "[schedules.report-7]\neffective_from = 2026-01-12T00:00:00Z"
    )
    apply_document(life.context, document(text))
    life.until("2026-01-13T12:00:00Z")
    changed = text.replace('report = "sales"', 'report = "all"')
    assert outcomes(apply_document(life.context, document(changed)))[ID] == "edited"
    assert life.versions()[0]["effective_from"] == "2026-01-13T12:00:01Z"


def test_a_new_schedule_of_a_document_takes_over_at_once(store: Store) -> None:
    life = life_in(store)
    text = DOCUMENT.replace("[schedules.once]", "[schedules.once]\neffective_from = 2026-01-12T00:00:00Z")
    with pytest.raises(InvalidRequest, match="give starts_at instead"):
        apply_document(life.context, document(text))


def test_a_boundary_in_the_document_counts_only_where_something_changes(store: Store) -> None:
    life = life_in(store)
    anew = document(DOCUMENT.replace("[schedules.report-7]", '[schedules.report-7]\nboundary = "now"'))
    assert outcomes(apply_document(life.context, anew))[ID] == "edited"
    assert life.versions()[0]["boundary"] == "now"
    assert outcomes(apply_document(life.context, anew))[ID] == "unchanged"
