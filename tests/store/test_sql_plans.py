"""How SQLite finds what the hot calls ask for: by an index, at a cost that the size of the store does not change."""

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import insert, update

from rota.domain.delivery import DeliveryState
from rota.domain.identity import run_id_of
from rota.domain.key_uses import KeyProbe
from rota.domain.schedule import Schedule
from rota.store.port import (
    AdmissionOutcome,
    AttemptKey,
    DeliveryFilter,
    Fence,
    LedgerKey,
    RunFilter,
    ScheduleFilter,
    ZoneRules,
)
from rota.store.sql import SqlStore, planned, rows
from rota.store.sql.schema import metadata, runs, schedules, skips
from tests.contract.builders import (
    DAY,
    HOUR,
    MINUTE,
    NINE,
    SECOND,
    admission,
    new_schedule,
    planned_run_at,
    skip_at,
)
from tests.contract.steps import PARTITIONS, create, fence_of, hold
from tests.store.watch import Ask, asked_of, fill, machine_steps, plan_of, schedule_of

JOBS = ["sales_report", "mail"]
RULES = new_schedule().first.zone_rules
USED_RULES = ZoneRules(timezone=RULES.timezone, fingerprint=RULES.fingerprint)
OTHER_RULES = ZoneRules(timezone="Asia/Tokyo", fingerprint="other")
BEFORE = LedgerKey(instant=NINE + DAY, id_="x")
ONE = schedule_of(1).schedule_id
PROBE = KeyProbe(
    run_id=run_id_of(ONE, 1, NINE),
    scheduled_from=NINE,
    scheduled_until=NINE + DAY,
    named_from=NINE.replace(tzinfo=None),
    named_until=(NINE + DAY).replace(tzinfo=None),
    second_pass=False,
)
DEAD = DeliveryFilter(state=DeliveryState.DEAD)
LOOKS_AT_ALL_ZONE_RULES = {"list_zone_rules"}
SORTS_FEW = {
    "read_lost": "the few rows of several partitions",
    "list_ahead": "what was skipped on request ahead of its time",
    "list_computed_with": "one page of two lists of ids",
    "list_zone_rules": "the few rules that are in use",
}
LOOKS_AT_ALL_THAT_AWAIT = {"list_computed_with"}
"""A version that waits to take over is rare, and only an update of the tz data asks."""

HOT_READS: dict[str, Ask] = {
    "read_due_times": lambda store: store.read_due_times(range(PARTITIONS)),
    "read_due": lambda store: store.read_due(0, now=NINE, limit=3),
    "read_due but some": lambda store: store.read_due(0, now=NINE, limit=3, excluding=[OTHER_RULES]),
    "read_planned": lambda store: store.read_planned(1, now=NINE, limit=3),
    "read_intents": lambda store: store.read_intents(JOBS, now=NINE, limit=3),
    "read_next_intent_time": lambda store: store.read_next_intent_time(JOBS),
    "read_next_delivery_time": lambda store: store.read_next_delivery_time(JOBS),
    "list_deliveries": lambda store: store.list_deliveries(DEAD, after=None, limit=3),
    "read_places": lambda store: store.read_places(ONE),
    "read_open_attempts": lambda store: store.read_open_attempts(
        [AttemptKey(run_id=PROBE.run_id, attempt=1)]
    ),
    "read_lost": lambda store: store.read_lost([0, 1], now=NINE, limit=3),
    "read_key_uses": lambda store: store.read_key_uses(ONE, [PROBE, replace(PROBE, second_pass=None)]),
    "get_last_run_time": lambda store: store.get_last_run_time(ONE),
    "list_ahead": lambda store: store.list_ahead(ONE, from_=NINE, limit=3),
    "list_runs": lambda store: store.list_runs(RunFilter(), before=BEFORE, limit=3),
    "list_ledger": lambda store: store.list_ledger(ONE, before=BEFORE, limit=3),
    "list_schedules": lambda store: store.list_schedules(ScheduleFilter(), after=ONE, limit=3),
    "list_versions": lambda store: store.list_versions(ONE, before=2, limit=3),
    "list_zone_rules": lambda store: store.list_zone_rules(),
    "get_zone_rules": lambda store: store.get_zone_rules(RULES.timezone, RULES.fingerprint),
    "list_computed_with": lambda store: store.list_computed_with(USED_RULES, after=ONE, limit=3),
    "get_schedule": lambda store: store.get_schedule(ONE),
}
INDEXES = {
    "read_due_times": {"ix_schedules_due", "ix_runs_planned"},
    "read_due": {"ix_schedules_due", "ix_runs_parked"},
    "read_due but some": {"ix_schedules_due", "ix_runs_parked"},
    "read_planned": {"ix_runs_planned"},
    "list_ahead": {"ix_runs_parked", "ix_runs_schedule_id_scheduled_at_run_id"},
    "list_zone_rules": {"ix_versions_lasting", "ix_schedules_awaiting"},
    "list_computed_with": {"ix_versions_lasting", "ix_schedules_awaiting"},
}


@pytest.mark.parametrize("name", HOT_READS)
def test_a_hot_read_scans_no_table_and_sorts_no_table(store: SqlStore, name: str) -> None:
    steps = steps_of(store, HOT_READS[name])
    # Of the schedules it scans the partial index of those whose next version waits.
    # Of the versions it takes the first one of the partial index.
    looked_at = {"zone_rules", "schedules", "versions"} if name in LOOKS_AT_ALL_ZONE_RULES else set()
    assert scanned_in(steps) == looked_at
    assert any(step.startswith("SEARCH") for step in steps)
    assert bool(sorted_in(steps)) == (name in SORTS_FEW)


@pytest.mark.parametrize("name", INDEXES)
def test_what_few_rows_have_is_found_by_its_partial_index(store: SqlStore, name: str) -> None:
    create(store, new_schedule("resumed"))
    with store._database.writing() as connection:
        connection.execute(update(schedules).values(next_due=NINE - HOUR))
    found = {index for step in steps_of(store, HOT_READS[name]) for index in re.findall(r"\b[iu]x_\w+", step)}
    assert found == INDEXES[name]


@pytest.mark.parametrize("name", sorted(HOT_READS.keys() - LOOKS_AT_ALL_THAT_AWAIT))
def test_a_hot_read_costs_the_same_in_a_large_store(store: SqlStore, name: str) -> None:
    create(store, new_schedule("first"))
    fill(store, range(20))
    HOT_READS[name](store)  # For what is done at a connection's first use.
    small = machine_steps(store, HOT_READS[name])
    fill(store, range(20, 1_000))
    assert machine_steps(store, HOT_READS[name]) <= small * 1.5


def test_a_skip_costs_the_same_however_many_its_schedule_has(store: SqlStore) -> None:
    [fence, *_] = hold(store)
    fill(store, range(20))
    first, few, many = (schedule_of(number * PARTITIONS) for number in range(3))
    outcomes: list[AdmissionOutcome] = []
    with store._database.writing() as connection:
        for number in range(1_000):
            from_ = NINE - DAY + number * MINUTE
            connection.execute(insert(skips), [rows.skip_values(skip_at(many, from_, from_ + SECOND))])

    def admit(schedule: Schedule) -> Ask:
        skipped = admission(schedule, runs=[], skips=[skip_at(schedule, NINE, NINE + HOUR, note="why")])
        return lambda store: outcomes.extend(store.commit_admissions(fence, [skipped], now=NINE))

    admit(first)(store)
    steps = machine_steps(store, admit(few))
    assert machine_steps(store, admit(many)) <= steps * 1.5
    assert outcomes == [AdmissionOutcome.ADMITTED] * 3


@pytest.mark.parametrize("size", [1, 40])
def test_an_ordinary_batch_of_admissions_is_one_statement_for_each_table(store: SqlStore, size: int) -> None:
    fence = fence_of(store, 0)
    batch = [admission(create(store, new_schedule(f"s{number}"))) for number in range(size)]
    with asked_of(store) as asked:
        assert set(store.commit_admissions(fence, batch, now=NINE)) == {AdmissionOutcome.ADMITTED}
    words = [" ".join(statement.split()[:3]) for statement, _ in asked]
    assert words == [
        "SELECT partitions.epoch FROM",
        "SELECT schedules.id, schedules.partition,",
        "UPDATE schedules SET",
        "INSERT INTO runs",
        "INSERT INTO outbox",
    ]


def test_planned_runs_that_fall_due_are_found_by_their_partial_index(store: SqlStore) -> None:
    steps = steps_of(store, fall_due(fence_of(store, 0)))
    assert scanned_in(steps) == set()
    assert sorted_in(steps) == []
    assert len([step for step in steps if "ix_runs_planned" in step]) == 5


def test_planned_runs_that_are_not_due_cost_nothing_when_others_fall_due(store: SqlStore) -> None:
    ask = fall_due(fence_of(store, 1))
    fill(store, range(20))
    ask(store)
    small = machine_steps(store, ask)
    fill(store, range(20, 1_000))
    assert machine_steps(store, ask) <= small * 1.5


@pytest.mark.parametrize("late", [SECOND / 2, HOUR])
@pytest.mark.parametrize("method", ["commit_planned", "read_planned"])
def test_a_call_looks_at_the_beginning_of_a_burst_and_not_at_all_of_it(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch, method: str, late: timedelta
) -> None:
    monkeypatch.setattr(planned, "PASSED_OVER_MAX", 10)
    fence = fence_of(store, 0)
    asks: dict[str, Ask] = {
        "commit_planned": fall_due(fence, late=late),
        "read_planned": lambda store: store.read_planned(0, now=NINE + late, limit=3),
    }
    plan_burst(store, range(50))
    asks[method](store)
    small = machine_steps(store, asks[method])
    plan_burst(store, range(50, 1_000))
    assert machine_steps(store, asks[method]) <= small * 1.5


def plan_burst(store: SqlStore, numbers: range) -> None:
    made = [new_schedule(f"burst-{number:04d}", due=NINE + DAY).schedule for number in numbers]
    with store._database.writing() as connection:
        connection.execute(insert(schedules), [rows.schedule_values(schedule) for schedule in made])
        connection.execute(insert(runs), [rows.run_values(planned_run_at(each, NINE)) for each in made])


def fall_due(fence: Fence, *, late: timedelta = SECOND / 2) -> Ask:
    return lambda store: store.commit_planned(fence, now=NINE + late, limit=3)


def steps_of(store: SqlStore, ask: Ask) -> list[str]:
    """The steps of all that is asked for it."""
    with asked_of(store) as asked:
        ask(store)
    return [step for each in asked for step in plan_of(store, each)]


def scanned_in(steps: Iterable[str]) -> set[str]:
    """The tables that are read from one end to the other."""
    return {match[1] for step in steps if (match := re.match(r"SCAN (\w+)", step))} & set(metadata.tables)


def sorted_in(steps: Iterable[str]) -> list[str]:
    return [step for step in steps if "TEMP B-TREE" in step]
