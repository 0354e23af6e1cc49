"""Edits that schedulers get wrong, one by one, on every store."""

from datetime import timedelta

import pytest

from rota.domain.errors import Conflict, InvalidRequest, Stale
from rota.service.dry_runs import dry_run_edit
from rota.service.planning import move_occurrence, skip_occurrence
from rota.store.port import Store
from tests.edits.lives import ID, Life, instant, rule

LONDON, NEW_YORK = "Europe/London", "America/New_York"
NINE = {"cron": "0 9 * * *"}


def test_a_time_that_is_edited_after_the_days_run_does_not_run_at_once(store: Store) -> None:
    """B27: the new expression is not evaluated from the last run of the old one."""
    life = Life(store, start="2025-06-09T12:00:00Z", **rule("0 1 * * *", "UTC"), period="instant")
    life.until("2025-06-10T15:00:00Z").edit(recurrence={"cron": "0 2 * * *"})
    life.until("2025-06-11T12:00:00Z")
    assert [(run["version"], run["scheduled_at"]) for run in life.runs()] == [
        (1, "2025-06-10T01:00:00Z"),
        (2, "2025-06-11T02:00:00Z"),
    ]


def test_a_weekly_report_moved_forward_in_its_week_does_not_run_twice_in_it(store: Store) -> None:
    life = Life(store, start="2026-01-05T00:00:00Z", **rule("0 9 * * 1", LONDON))
    life.until("2026-01-14T12:00:00Z").edit(recurrence={"cron": "0 9 * * 5"})
    life.until("2026-01-24T00:00:00Z")
    assert life.kept() == [
        (1, "2026-01-05T09:00:00Z", "week:2026-W02"),
        (1, "2026-01-12T09:00:00Z", "week:2026-W03"),
        (2, "2026-01-23T09:00:00Z", "week:2026-W04"),
    ]
    [skip] = life.skips("period_used")
    assert (skip["version"], skip["from"]) == (2, "2026-01-16T09:00:00Z")


def test_a_weekly_report_moved_back_in_its_week_does_not_lose_the_week(store: Store) -> None:
    life = Life(store, start="2026-01-05T00:00:00Z", **rule("0 9 * * 5", LONDON))
    life.until("2026-01-14T12:00:00Z").edit(recurrence={"cron": "0 9 * * 1"})
    life.until("2026-01-20T00:00:00Z")
    assert life.kept() == [
        (1, "2026-01-09T09:00:00Z", "week:2026-W02"),
        (1, "2026-01-16T09:00:00Z", "week:2026-W03"),
        (2, "2026-01-19T09:00:00Z", "week:2026-W04"),
    ]
    assert life.runs()[1]["carried_by"] == 2


@pytest.mark.parametrize("edited_at", ["2026-10-25T00:45:00Z", "2026-10-25T03:00:00Z"])
def test_both_passes_of_a_fold_run_and_stay_two_through_an_edit(store: Store, edited_at: str) -> None:
    """01:30 occurs at 00:30Z and 01:30Z; both are the 25th, and the second has a key of its own."""
    life = Life(
        store, start="2026-10-24T12:00:00Z", timezone=LONDON, recurrence={"cron": "30 1 * * *"}, period="day"
    )
    life.edit(fold="both")
    life.until(edited_at).edit(params={"report": "new"})
    life.until("2026-10-26T12:00:00Z")
    assert [(run["scheduled_at"], run["period_key"]) for run in life.runs()] == [
        ("2026-10-25T00:30:00Z", "day:2026-10-25"),
        ("2026-10-25T01:30:00Z", "day:2026-10-25/fold"),
        ("2026-10-26T01:30:00Z", "day:2026-10-26"),
    ]
    assert not life.skips("period_used")


@pytest.mark.parametrize(
    "edited_at", [None, "2027-03-27T20:00:00Z", "2027-03-28T00:30:00Z", "2027-03-28T03:00:00Z"]
)
def test_a_time_in_a_gap_at_the_end_of_a_day_is_that_days_though_it_runs_on_the_next(
    store: Store, edited_at: str | None
) -> None:
    """Nuuk goes from Saturday 23:00 to Sunday 00:00: 23:30 is named on Saturday and resolved after midnight."""
    life = Life(
        store,
        start="2027-03-26T12:00:00Z",
        timezone="America/Nuuk",
        recurrence={"cron": "30 23 * * *"},
    )
    life.edit(gap="forward")
    if edited_at is not None:
        life.until(edited_at).edit(params={"report": "new"})
    life.until("2027-03-30T12:00:00Z")
    assert [run["period_key"] for run in life.runs()] == [
        "day:2027-03-26",
        "day:2027-03-27",
        "day:2027-03-28",
        "day:2027-03-29",
    ]
    assert [(run["named_local"], run["local"]) for run in life.runs()][1:3] == [
        ("2027-03-27T23:30", "2027-03-28T00:00"),
        ("2027-03-28T23:30", "2027-03-28T23:30"),
    ]


@pytest.mark.parametrize("policy", ["catch_up_all", "latest_only"])
def test_an_edit_while_a_year_is_owed_leaves_the_year_to_the_version_before(
    store: Store, policy: str
) -> None:
    life = Life(store, start="2025-01-01T00:00:00Z", **rule("0 9 * * *", LONDON), overdue={"policy": policy})
    life.world.clock.set(instant("2026-01-01T10:00:00Z"))
    edited = life.edit(timezone=NEW_YORK)
    pending = edited["pending"]
    assert isinstance(pending, dict)
    assert (pending["version"], pending["effective_from"]) == (2, "2026-01-01T10:00:01Z")
    assert pending["timezone"] == NEW_YORK
    life.until("2026-01-03T00:00:00Z")
    days = {str(run["period_key"]) for run in life.runs()}
    assert len(days) == len(life.runs())
    first = [run for run in life.runs() if run["version"] == 1]
    owed = sum(int(str(skip["count"])) for skip in life.skips("superseded"))
    assert len(first) + owed == 366
    assert len(first) == (366 if policy == "catch_up_all" else 1)
    assert life.kept()[-1] == (2, "2026-01-02T14:00:00Z", "day:2026-01-02")
    assert life.world.app.get_schedule(ID)["pending"] is None


def test_one_version_waits_at_a_time_unless_it_is_replaced(store: Store) -> None:
    life = Life(store, start="2026-01-01T12:00:00Z", **rule("0 9 * * *", LONDON))
    life.edit(timezone=NEW_YORK, effective_from="2026-02-01T00:00:00Z")
    with pytest.raises(Conflict, match="Version 2 has not taken over yet"):
        life.edit(timezone="Asia/Tokyo")
    life.edit(timezone="Asia/Tokyo", effective_from="2026-03-01T00:00:00Z", replaces_pending=True)
    life.until("2026-03-03T00:00:00Z")
    assert {run["version"] for run in life.runs()} == {1, 3}
    [third, second, first] = life.versions()
    assert second["effective_from"] == second["effective_until"]
    assert first["effective_until"] == third["effective_from"] == "2026-03-01T00:00:00Z"


def test_a_pending_version_that_was_replaced_in_time_never_governs(store: Store) -> None:
    life = Life(store, start="2026-01-01T12:00:00Z", **rule("0 9 * * *", LONDON))
    life.edit(timezone=NEW_YORK, effective_from="2026-02-01T00:00:00Z")
    life.until("2026-01-10T12:00:00Z").edit(
        params={"x": 1}, timezone=LONDON, replaces_pending=True, at_once=True
    )
    life.until("2026-02-03T00:00:00Z")
    assert [run["version"] for run in life.runs()] == [1] * 9 + [3] * 23


def test_a_version_that_replaces_one_that_waits_waits_as_long(store: Store) -> None:
    life = Life(store, start="2026-01-01T12:00:00Z", **rule("0 9 * * *", LONDON))
    life.edit(timezone=NEW_YORK, effective_from="2026-02-01T00:00:00Z")
    life.until("2026-01-10T12:00:00Z").edit(params={"x": 1}, replaces_pending=True)
    [third, *_] = life.versions()
    assert (third["effective_from"], third["timezone"]) == ("2026-02-01T00:00:00Z", NEW_YORK)
    life.until("2026-02-03T00:00:00Z")
    assert [run["version"] for run in life.runs()] == [1] * 30 + [3] * 2


def test_now_begins_a_fresh_series_of_keys_and_planned_days_still_suppress(store: Store) -> None:
    life = Life(store, start="2026-01-10T12:00:00Z", **rule("0 9 * * *", LONDON))
    life.plan("2026-01-12T09:00:00Z")
    life.until("2026-01-11T10:00:00Z").edit(recurrence={"cron": "0 17 * * *"}, boundary="now")
    life.until("2026-01-14T00:00:00Z")
    assert life.kept() == [
        (1, "2026-01-11T09:00:00Z", "day:2026-01-11"),
        (2, "2026-01-11T17:00:00Z", "day:2026-01-11#2"),
        (1, "2026-01-12T09:00:00Z", "day:2026-01-12"),
        (2, "2026-01-13T17:00:00Z", "day:2026-01-13#2"),
    ]
    [skip] = life.skips("period_used")
    assert skip["from"] == "2026-01-12T17:00:00Z"
    life.edit(timezone=NEW_YORK)
    life.until("2026-01-15T00:00:00Z")
    assert life.kept()[-1] == (3, "2026-01-14T22:00:00Z", "day:2026-01-14#2")


def test_a_skipped_tuesday_stays_skipped_through_an_edit(store: Store) -> None:
    life = Life(store, start="2026-01-11T16:00:00Z", **rule("0 9 * * *", LONDON))
    skip_occurrence(life.context, ID, scheduled_at="2026-01-13T09:00:00Z")
    life.edit(timezone=NEW_YORK)
    life.until("2026-01-15T00:00:00Z")
    assert [(run["version"], run["state"], run["reason"]) for run in life.runs()] == [
        (2, "succeeded", None),
        (1, "skipped", "on_request"),
        (2, "succeeded", None),
    ]
    [skip] = life.skips("period_used")
    assert (skip["from"], skip["note"]) == (
        "2026-01-13T14:00:00Z",
        "day:2026-01-13 is used by run report-7.1.20260113T090000Z, which was skipped on request",
    )


def test_a_moved_tuesday_keeps_its_identity_and_its_day(store: Store) -> None:
    life = Life(store, start="2026-01-12T12:00:00Z", **rule("0 9 * * *", LONDON))
    move_occurrence(life.context, ID, scheduled_at="2026-01-13T09:00", to="2026-01-13T11:00")
    life.until("2026-01-13T10:59:59Z")
    assert [run["state"] for run in life.runs()] == ["planned"]
    life.until("2026-01-15T00:00:00Z")
    assert [(run["scheduled_at"], run["due_at"], run["state"]) for run in life.runs()] == [
        ("2026-01-13T09:00:00Z", "2026-01-13T11:00:00Z", "succeeded"),
        ("2026-01-14T09:00:00Z", "2026-01-14T09:00:00Z", "succeeded"),
    ]


def test_the_last_occurrence_may_be_moved_behind_the_end_of_the_rule(store: Store) -> None:
    life = Life(store, start="2026-01-12T12:00:00Z", **rule("0 9 * * *", LONDON), max_occurrences=1)
    move_occurrence(life.context, ID, scheduled_at="2026-01-13T09:00:00Z", to="2026-01-15T11:00:00Z")
    life.until("2026-01-14T00:00:00Z")
    assert life.world.app.get_schedule(ID)["status"] == "active"
    life.until("2026-01-16T00:00:00Z")
    assert [run["state"] for run in life.runs()] == ["succeeded"]
    assert life.world.app.get_schedule(ID)["status"] == "ended"


def test_an_expired_occurrence_does_not_use_up_its_day(store: Store) -> None:
    life = Life(
        store,
        start="2026-01-13T12:00:00Z",
        **rule("0 9 * * *", LONDON),
        overdue={"policy": "expire", "deadline": "PT5M"},
    )
    life.world.clock.set(instant("2026-01-14T10:00:00Z"))
    life.until("2026-01-14T10:00:00Z").edit(recurrence={"cron": "0 17 * * *"})
    life.until("2026-01-15T00:00:00Z")
    assert life.kept() == [(2, "2026-01-14T17:00:00Z", "day:2026-01-14")]
    assert [skip["from"] for skip in life.skips("expired")] == ["2026-01-14T09:00:00Z"]


def test_a_superseded_occurrence_does_not_use_up_its_day(store: Store) -> None:
    """Of the 13th and the 14th only the 14th ran; the edit moves the zone back, and the 13th comes again."""
    life = Life(store, start="2026-01-12T12:00:00Z", **rule("0 9 * * *", "Pacific/Kiritimati"))
    life.world.clock.set(instant("2026-01-13T20:00:00Z"))
    life.until("2026-01-13T20:00:00Z")
    assert [skip["from"] for skip in life.skips("superseded")] == ["2026-01-12T19:00:00Z"]
    life.edit(timezone="Etc/GMT+12")
    life.until("2026-01-15T12:00:00Z")
    assert life.kept() == [
        (1, "2026-01-13T19:00:00Z", "day:2026-01-14"),
        (2, "2026-01-13T21:00:00Z", "day:2026-01-13"),
    ]
    assert [skip["from"] for skip in life.skips("period_used")] == ["2026-01-14T21:00:00Z"]


def test_daily_to_hourly_and_back_compares_under_the_new_versions_period(store: Store) -> None:
    life = Life(store, start="2026-01-13T12:00:00Z", **rule("0 9 * * *", "UTC"))
    life.until("2026-01-14T09:30:00Z").edit(recurrence={"cron": "0 * * * *"})
    life.until("2026-01-14T11:30:00Z").edit(recurrence={"cron": "0 17 * * *"})
    life.until("2026-01-16T00:00:00Z")
    assert life.kept() == [
        (1, "2026-01-14T09:00:00Z", "day:2026-01-14"),
        (2, "2026-01-14T10:00:00Z", "instant:2026-01-14T10:00:00Z"),
        (2, "2026-01-14T11:00:00Z", "instant:2026-01-14T11:00:00Z"),
        (3, "2026-01-15T17:00:00Z", "day:2026-01-15"),
    ]
    [skip] = life.skips("period_used")
    assert skip["from"] == "2026-01-14T17:00:00Z"


def test_weekly_to_daily_goes_on_with_the_next_day(store: Store) -> None:
    life = Life(store, start="2026-01-11T12:00:00Z", **rule("0 9 * * 1", "UTC"))
    life.until("2026-01-12T10:00:00Z").edit(recurrence={"cron": "0 17 * * *"})
    life.until("2026-01-14T00:00:00Z")
    assert life.kept() == [
        (1, "2026-01-12T09:00:00Z", "week:2026-W03"),
        (2, "2026-01-13T17:00:00Z", "day:2026-01-13"),
    ]


def test_daily_to_weekly_runs_no_second_time_in_a_week_that_has_a_run(store: Store) -> None:
    life = Life(store, start="2026-01-11T12:00:00Z", **rule("0 9 * * *", "UTC"))
    life.until("2026-01-13T10:00:00Z").edit(recurrence={"cron": "0 9 * * 5"})
    life.until("2026-01-24T00:00:00Z")
    assert life.kept()[-1] == (2, "2026-01-23T09:00:00Z", "week:2026-W04")
    assert [skip["from"] for skip in life.skips("period_used")] == ["2026-01-16T09:00:00Z"]


def test_a_one_time_schedule_is_moved_by_an_edit_until_it_was_planned_or_ran(store: Store) -> None:
    life = Life(store, start="2026-01-10T12:00:00Z", timezone=LONDON, recurrence={"at": "2026-01-14T09:00"})
    life.edit(recurrence={"at": "2026-01-13T09:00"})
    life.plan("2026-01-13T09:00:00Z")
    with pytest.raises(Conflict, match=r"POST /schedules/report-7/occurrences/20260113T090000Z/move"):
        life.edit(recurrence={"at": "2026-01-15T09:00"})
    life.until("2026-01-14T00:00:00Z")
    with pytest.raises(Conflict, match=r"is succeeded .*occurrences/20260113T090000Z/move"):
        life.edit(recurrence={"at": "2026-01-16T09:00"})
    assert life.kept() == [(2, "2026-01-13T09:00:00Z", "once")]


def test_a_daily_schedule_becomes_a_one_time_one_only_with_a_fresh_series(store: Store) -> None:
    life = Life(store, start="2026-01-10T12:00:00Z", **rule("0 9 * * *", LONDON)).until(
        "2026-01-12T00:00:00Z"
    )
    with pytest.raises(Conflict, match='"boundary": "now"'):
        life.edit(recurrence={"at": "2026-01-15T09:00"})
    life.edit(recurrence={"at": "2026-01-15T09:00"}, boundary="now")
    life.until("2026-01-17T00:00:00Z")
    assert life.kept()[-1] == (2, "2026-01-15T09:00:00Z", "once#2")


def test_a_later_version_takes_over_at_its_instant_which_is_its_own(store: Store) -> None:
    life = Life(store, start="2026-01-10T12:00:00Z", **rule("0 9 * * *", "UTC"))
    life.edit(recurrence={"cron": "0 9 * * *"}, params={"x": 1}, effective_from="2026-01-12T09:00:00Z")
    life.until("2026-01-14T00:00:00Z")
    assert [(run["version"], run["scheduled_at"]) for run in life.runs()] == [
        (1, "2026-01-11T09:00:00Z"),
        (2, "2026-01-12T09:00:00Z"),
        (2, "2026-01-13T09:00:00Z"),
    ]


def test_max_occurrences_counts_through_all_versions(store: Store) -> None:
    life = Life(store, start="2026-01-10T12:00:00Z", **rule("0 9 * * *", "UTC"), max_occurrences=5)
    life.until("2026-01-12T12:00:00Z").edit(recurrence={"cron": "0 17 * * *"}, period="instant")
    life.until("2026-01-20T00:00:00Z")
    assert [(run["version"], run["scheduled_at"]) for run in life.runs()] == [
        (1, "2026-01-11T09:00:00Z"),
        (1, "2026-01-12T09:00:00Z"),
        (2, "2026-01-12T17:00:00Z"),
        (2, "2026-01-13T17:00:00Z"),
        (2, "2026-01-14T17:00:00Z"),
    ]
    assert life.world.app.get_schedule(ID)["status"] == "ended"


def test_an_edit_that_changes_nothing_makes_no_version(store: Store) -> None:
    life = Life(store, start="2026-01-10T12:00:00Z", **rule("0 9 * * *", "UTC"))
    assert life.edit(timezone="UTC", recurrence=NINE)["latest_version"] == 1
    assert life.edit(labels={"customer": "acme"})["latest_version"] == 1
    assert life.world.app.get_schedule(ID)["labels"] == {"customer": "acme"}


def test_an_edit_of_another_version_than_the_latest_changes_nothing(store: Store) -> None:
    from rota.domain.edit_form import parse_edit
    from rota.service.editing import edit_schedule

    life = Life(store, start="2026-01-10T12:00:00Z", **rule("0 9 * * *", "UTC"))
    life.edit(timezone=LONDON)
    with pytest.raises(Stale, match="is 2, not 1"):
        edit_schedule(life.context, ID, parse_edit({"timezone": NEW_YORK}), expected_version=1)
    assert life.world.app.get_schedule(ID)["timezone"] == LONDON


@pytest.mark.parametrize(
    ("patch", "field"),
    [
        ({"timezone": "Europe/Atlantis"}, "timezone"),
        ({"recurrence": {"cron": "0 0 30 2 *"}}, "recurrence.cron"),
        ({"recurrence": {"at": "2020-01-01T09:00"}}, "recurrence.at"),
        ({"period": "month"}, "period"),
        ({"ends_at": "2026-01-10T13:00:00Z"}, "ends_at"),
        ({"effective_from": "2026-01-01T00:00:00Z", "timezone": LONDON}, "effective_from"),
    ],
)
def test_an_edit_that_can_never_run_is_refused_whole(
    store: Store, patch: dict[str, object], field: str
) -> None:
    life = Life(store, start="2026-01-10T12:00:00Z", **rule("0 9 * * *", "UTC"))
    before = life.world.app.get_schedule(ID)
    with pytest.raises(InvalidRequest) as refused:
        life.edit(**patch)
    assert [error.field for error in refused.value.errors] == [field]
    assert life.world.app.get_schedule(ID) == before


def test_a_dry_run_tells_what_the_edit_then_does(store: Store) -> None:
    from rota.domain.edit_form import parse_edit

    life = Life(store, start="2026-01-10T12:00:00Z", **rule("0 9 * * *", NEW_YORK))
    life.plan("2026-01-11T14:00:00Z")
    life.until("2026-01-10T13:00:00Z")
    before = life.world.app.get_schedule(ID)
    told = dry_run_edit(life.context, ID, parse_edit({"timezone": LONDON}))
    assert life.world.app.get_schedule(ID) == before
    assert told["effective_from"] == "2026-01-10T13:00:01Z"
    assert told["changed"] == {"timezone": {"from": NEW_YORK, "to": LONDON}}
    life.edit(timezone=LONDON)
    life.until(life.world.now + timedelta(days=8))
    happened = [(run["version"], run["scheduled_at"], run["period_key"]) for run in life.runs()]
    following = [(entry["version"], entry["scheduled_at"], entry["period_key"]) for entry in told["next"]]  # type: ignore[attr-defined]
    assert happened[:5] == following
    suppressed = [(entry["version"], entry["scheduled_at"]) for entry in told["suppressed"]]  # type: ignore[attr-defined]
    assert [(skip["version"], skip["from"]) for skip in life.skips("period_used")] == suppressed != []
