"""Planned runs that cannot be judged stop only their schedule, and no partition keeps others from their turn (I12)."""

from datetime import UTC, datetime, timedelta

import pytest

from rota.domain.cadence import Cadence
from rota.domain.errors import UnreadableRow
from rota.domain.identity import ScheduleId
from rota.domain.schedule import Version
from rota.service.context import Context
from rota.service.planning import plan_occurrences
from rota.service.schedules import show_schedule
from rota.store.port import Fence, PlannedOutcome, StoreUnavailable
from rota.store.sql import SqlStore
from rota.testing.clock import ManualClock
from tests.dispatch.conftest import START, NewDispatcher, ledger, run_instants, save, work_off

NINE = datetime(2025, 6, 10, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)
OTHERS = [f"other-{number}" for number in range(8)]


def save_planned(context: Context) -> None:
    """A schedule with a planned run at nine, among others that are due at nine in all partitions."""
    save(context, "planned", "0 9 * * *")
    assert plan_occurrences(context, ScheduleId("planned"), until="2025-06-10T09:00:00Z")["created"] == 1
    for id_ in OTHERS:
        save(context, id_, "0 9 * * *")


def fail(_version: Version) -> Cadence:
    raise ZeroDivisionError("a rule that divides by nothing")


def test_a_late_planned_run_that_cannot_be_judged_puts_its_schedule_into_error_alone(
    context: Context, new_dispatcher: NewDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_planned(context)
    of_version = context.cadences.of_version
    monkeypatch.setattr(
        context.cadences,
        "of_version",
        lambda version: (fail if version.schedule_id == "planned" else of_version)(version),
    )
    work_off(new_dispatcher("a"), NINE + HOUR)
    assert [run_instants(context, id_) for id_ in OTHERS] == [[NINE]] * len(OTHERS)
    shown = show_schedule(context, "planned")
    assert (shown["status"], shown["status_reason"]) == (
        "error",
        "ZeroDivisionError: a rule that divides by nothing",
    )
    assert [run.state for run in ledger(context, "planned")] == ["held"]  # type: ignore[union-attr]


@pytest.mark.parametrize("context", ["sqlite"], indirect=True)
def test_a_late_planned_run_in_a_zone_that_this_process_lacks_stops_nobody(
    context: Context, new_dispatcher: NewDispatcher
) -> None:
    """As in a process with older tz data than the one that saved the schedule."""
    assert isinstance(context.store, SqlStore)
    save_planned(context)
    with context.store._database.writing() as connection:
        connection.exec_driver_sql(
            "UPDATE versions SET timezone = 'Mars/Phobos',"
            " definition = replace(definition, '\"UTC\"', '\"Mars/Phobos\"') WHERE schedule_id = 'planned'"
        )
    work_off(new_dispatcher("a"), NINE + 48 * HOUR)
    assert [run_instants(context, id_)[-1] for id_ in OTHERS] == [NINE + 48 * HOUR] * len(OTHERS)
    assert run_instants(context, "planned") == [NINE], (
        "nothing newer is known here, and nothing else computed"
    )
    assert show_schedule(context, "planned")["status"] == "active"


def test_a_store_that_fails_for_a_moment_puts_no_schedule_into_error(
    context: Context, new_dispatcher: NewDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_planned(context)
    dispatcher = new_dispatcher("a")
    work_off(dispatcher, START)

    def be_away(*_: object) -> None:
        raise StoreUnavailable("The database is locked.")

    monkeypatch.setattr(context.store, "read_key_uses", be_away)
    with pytest.raises(StoreUnavailable):
        work_off(dispatcher, NINE + HOUR)
    monkeypatch.undo()
    work_off(dispatcher, NINE + HOUR)
    assert {show_schedule(context, id_)["status"] for id_ in ("planned", *OTHERS)} == {"active"}
    assert run_instants(context, "planned") == [NINE]


def test_a_partition_whose_step_fails_lets_the_others_be_served(
    context: Context, new_dispatcher: NewDispatcher, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_planned(context)
    dispatcher = new_dispatcher("a")
    work_off(dispatcher, START)
    commit_planned = context.store.commit_planned
    record = context.store.get_schedule(ScheduleId("planned"))
    broken = None if record is None else record.schedule.partition

    def fail_for_one(fence: Fence, *, now: datetime, limit: int) -> PlannedOutcome:
        if fence.partition == broken:
            raise UnreadableRow("A row of the partition makes no sense.")
        return commit_planned(fence, now=now, limit=limit)

    monkeypatch.setattr(context.store, "commit_planned", fail_for_one)
    clock.set(NINE)
    with pytest.raises(UnreadableRow):
        dispatcher.step(NINE)
    assert [run_instants(context, id_) for id_ in OTHERS] == [[NINE]] * len(OTHERS)
