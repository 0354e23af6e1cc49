"""Schedules that cannot be read, planned or computed here stop only themselves (I12)."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from rota.domain.admission import Admission, Skip
from rota.domain.cadence import Cadence
from rota.domain.errors import ZoneRulesDiffer
from rota.domain.identity import ScheduleId
from rota.domain.schedule import CadenceRow, Version
from rota.service.context import Context
from rota.service.schedules import end_schedule, resume_schedule, show_schedule
from rota.store.port import AdmissionOutcome, BeatsOutcome, Fence
from rota.store.sql import SqlStore
from rota.testing.clock import ManualClock
from tests.dispatch.conftest import (
    START,
    NewDispatcher,
    ledger,
    run_instants,
    save,
    skips,
    work_off,
)

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
NINE = datetime(2025, 6, 10, 9, tzinfo=UTC)


def fail_for_zone(context: Context, monkeypatch: pytest.MonkeyPatch, timezone: str, error: Exception) -> None:
    """Cadences of the zone cannot be computed, whether they are asked for by a version or by their own row."""
    of_version, of_row = context.cadences.of_version, context.cadences.of_row

    def of_version_unless_failing(version: Version) -> Cadence:
        if version.definition.timezone == timezone:
            raise error
        return of_version(version)

    def of_row_unless_failing(row: CadenceRow) -> Cadence:
        if row.timezone == timezone:
            raise error
        return of_row(row)

    monkeypatch.setattr(context.cadences, "of_version", of_version_unless_failing)
    monkeypatch.setattr(context.cadences, "of_row", of_row_unless_failing)


def test_b19_a_poisoned_schedule_goes_to_error_alone(
    context: Context, new_dispatcher: NewDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A definition that raises when it is computed; the store's tests put a broken row into the database."""
    save(context, "healthy", "*/5 * * * *")
    save(context, "poisoned", "*/5 * * * *", timezone="Europe/Paris")
    fail_for_zone(context, monkeypatch, "Europe/Paris", ZeroDivisionError("a rule that divides by nothing"))
    dispatcher = new_dispatcher("a")
    for minute in range(11):
        work_off(dispatcher, START + minute * MINUTE)

    assert run_instants(context, "healthy") == [START + 5 * MINUTE, START + 10 * MINUTE]
    shown = show_schedule(context, "poisoned")
    assert (shown["status"], shown["status_reason"]) == (
        "error",
        "ZeroDivisionError: a rule that divides by nothing",
    )
    assert context.store.list_audit(ScheduleId("poisoned"), limit=1)[0].action == "schedule.error"

    monkeypatch.undo()
    clock = context.clock
    assert isinstance(clock, ManualClock)
    clock.set(START + 12 * MINUTE)
    resume_schedule(context, "poisoned")
    work_off(dispatcher, START + 15 * MINUTE)
    assert run_instants(context, "poisoned") == [START + 15 * MINUTE]
    assert skips(context, "poisoned") == [("error", 2)], "08:05, at which it was found, and 08:10"


def test_schedules_of_a_zone_with_other_rules_are_left_alone_and_keep_nobodys_place(
    context: Context, new_dispatcher: NewDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        save(context, f"elsewhere-{number}", "* * * * *", timezone="Europe/Paris")
    save(context, "healthy", "*/5 * * * *")
    differ = ZoneRulesDiffer("The rules of Europe/Paris differ.")
    fail_for_zone(context, monkeypatch, "Europe/Paris", differ)
    dispatcher = new_dispatcher("a", page=1)
    for minute in range(11):
        work_off(dispatcher, START + minute * MINUTE)
    assert run_instants(context, "healthy") == [START + 5 * MINUTE, START + 10 * MINUTE]
    assert dispatcher.step(START + 10 * MINUTE).wake_at == START + 10 * MINUTE + SECOND, "no busy loop"
    assert show_schedule(context, "elsewhere-0")["status"] == "active"

    monkeypatch.undo()
    work_off(new_dispatcher("updated"), START + 11 * MINUTE)
    assert run_instants(context, "elsewhere-0") == [START + 10 * MINUTE, START + 11 * MINUTE], "within grace"


def test_what_an_ended_schedule_owed_and_can_no_longer_be_named_is_recorded(
    context: Context, new_dispatcher: NewDispatcher, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(context, "poisoned", "* * * * *")

    fail_for_zone(context, monkeypatch, "UTC", ZeroDivisionError("a rule that divides by nothing"))
    dispatcher = new_dispatcher("a")
    work_off(dispatcher, START + 3 * MINUTE)
    assert show_schedule(context, "poisoned")["status"] == "error"
    end_schedule(context, "poisoned")
    work_off(dispatcher, START + timedelta(hours=5))

    shown = show_schedule(context, "poisoned")
    assert (shown["status"], shown["status_reason"], shown["next_due"]) == ("ended", "deleted", None)
    [skip] = ledger(context, "poisoned")
    assert isinstance(skip, Skip)
    assert (skip.reason, skip.from_) == ("error", START + MINUTE)
    assert skip.until == START + 3 * MINUTE + SECOND, (
        "the end of the window, however late the dispatcher comes"
    )


@pytest.mark.parametrize("context", ["sqlite"], indirect=True)
def test_b19_a_row_that_no_date_matches_goes_to_error_and_the_healthy_one_runs(
    new_dispatcher: NewDispatcher, context: Context, clock: ManualClock
) -> None:
    """The input of the case: the row is put straight into the database, behind the back of every check."""
    assert isinstance(context.store, SqlStore)
    clock.set(datetime(2025, 6, 10, 10, 2, tzinfo=UTC))
    save(context, "healthy", "*/5 * * * *")
    save(context, "poisoned", "*/5 * * * *")
    with context.store._database.writing() as connection:
        changed = connection.exec_driver_sql(
            "UPDATE versions SET definition = replace(definition, '*/5 * * * *', '0 0 30 2 *')"
            " WHERE schedule_id = 'poisoned'"
        )
        assert changed.rowcount == 1
        connection.exec_driver_sql("UPDATE schedules SET cadence_id = 'poisoned' WHERE id = 'poisoned'")
    dispatcher = new_dispatcher("a")
    for minute in range(2, 12):
        work_off(dispatcher, datetime(2025, 6, 10, 10, minute, tzinfo=UTC))
    ten = datetime(2025, 6, 10, 10, tzinfo=UTC)
    assert run_instants(context, "healthy") == [ten + 5 * MINUTE, ten + 10 * MINUTE]
    assert show_schedule(context, "poisoned")["status"] == "error"


@pytest.mark.parametrize(
    ("late", "named"),
    [
        (0 * MINUTE, "The run report.1.20250610T080100Z"),
        (2 * MINUTE, "One of the 3 runs from report.1.20250610T080100Z to report.1.20250610T080300Z"),
    ],
    ids=str,
)
def test_a_refusal_that_nothing_explains_names_the_runs(
    context: Context,
    new_dispatcher: NewDispatcher,
    monkeypatch: pytest.MonkeyPatch,
    late: timedelta,
    named: str,
) -> None:
    save(context, "report", "* * * * *", overdue={"policy": "catch_up_all"})

    def refuse(_fence: Fence, admissions: Sequence[Admission], *, now: datetime) -> list[AdmissionOutcome]:
        return [AdmissionOutcome.KEY_USED for _ in admissions]

    monkeypatch.setattr(context.store, "commit_beats", lambda *_, **__: BeatsOutcome(is_key_used=True))
    monkeypatch.setattr(context.store, "commit_admissions", refuse)
    work_off(new_dispatcher("a"), START + MINUTE + late)
    assert show_schedule(context, "report")["status_reason"] == (
        f"{named} or its period key exists already, though nobody was found to use it."
    )
