"""How PostgreSQL finds what dispatchers ask for: ranges of indexes, whether or not it knows how large tables are."""

from collections.abc import Iterator, Mapping
from datetime import timedelta

import pytest
from sqlalchemy import Table, case, func, insert, literal, select

from rota.domain.run import Attempt
from rota.store.port import BeatsOutcome
from rota.store.sql import SqlStore, cells, rows
from rota.store.sql.bounds import followed_values
from rota.store.sql.rows import Values
from rota.store.sql.schema import attempts, runs, schedules
from tests.contract.beating import beats_of
from tests.contract.builders import DAY, HOUR, NINE, SECOND, new_schedule, planned_run_at, run_at
from tests.contract.steps import PARTITIONS, fence_of, hold
from tests.postgresql import Databases
from tests.store.postgresql_plans import (
    FOUND_BY_INDEX,
    IN_ORDER,
    asked_by,
    large_store_of,
    plan_of,
    scans_of,
)
from tests.store.watch import Ask, Asked

SCHEDULES = 200_000
OTHERS = 20_000
"""Runs of each kind, and attempts: a table of some megabytes, which it would rather read than probe very often."""
DUE_EVERY = 400
"""Of so many schedules one is due."""
LARGE = {"schedules", "runs", "attempts"}
NEW = new_schedule()
PLANNED = planned_run_at(NEW.schedule, NINE)
RUN = run_at(NEW.schedule, NINE)
ATTEMPT = Attempt(
    run_id=RUN.run_id, number=1, worker="w", opened_at=NINE - HOUR, lease_expires_at=NINE + HOUR
)
BEATS = beats_of(NEW, NINE)
LATE = SECOND / 2


@pytest.fixture(scope="module", params=["never analysed", "analysed"])
def large_store(request: pytest.FixtureRequest, postgresql: Databases) -> Iterator[SqlStore]:
    with large_store_of(
        postgresql, tables=LARGE, fill=fill, is_analysed=request.param == "analysed"
    ) as store:
        yield store


def fill(store: SqlStore) -> None:
    hold(store)
    schedule = {**rows.schedule_values(NEW.schedule), **followed_values(NEW.first.version)}
    multiply(store, schedules, schedule, "s", due=("next_due", "next_scheduled_at"), count=SCHEDULES)
    multiply(store, runs, rows.run_values(RUN), "queued", due=())
    multiply(store, runs, rows.run_values(PLANNED), "planned", due=("due_at",))
    multiply(store, attempts, rows.attempt_values(ATTEMPT, partition=0), "open", due=("lease_expires_at",))


def multiply(
    store: SqlStore, table: Table, values: Values, kind: str, *, due: tuple[str, ...], count: int = OTHERS
) -> None:
    """Writes `count` rows with these values but for ids and partitions; a few are due, all others a day later."""
    number = func.generate_series(0, count - 1).column_valued("number")
    instant = case(
        (number % DUE_EVERY < PARTITIONS, cells.millis(NINE)), else_=cells.millis(NINE + DAY) + number
    )
    made = {
        "id": literal(f"{kind}-").concat(number),
        "run_id": literal(f"{kind}-").concat(number),
        "schedule_id": literal(f"{kind}-").concat(number),
        "partition": number % PARTITIONS,
        **dict.fromkeys(due, instant),
    }
    columns = [made.get(name, literal(value, table.c[name].type)) for name, value in values.items()]
    with store._database.writing() as connection:
        connection.execute(insert(table).from_select(list(values), select(*columns)))


def commit_beats(store: SqlStore) -> None:
    fences = [fence_of(store, partition) for partition in range(PARTITIONS)]
    outcome = store.commit_beats(fences, BEATS, after=NINE - HOUR, now=NINE, each=3)
    assert outcome == BeatsOutcome(admitted=3 * PARTITIONS)


def commit_planned(store: SqlStore) -> None:
    store.commit_planned(fence_of(store, 0), now=NINE + LATE, limit=50)


def renew(store: SqlStore) -> None:
    fences = [fence_of(store, partition) for partition in range(PARTITIONS)]
    store.commit_renewals("node-a", fences, now=NINE, ttl=timedelta(seconds=15))


ASKS: Mapping[str, Ask] = {
    "read_due_times": lambda store: store.read_due_times(range(PARTITIONS)),
    "read_beats": lambda store: store.read_beats(range(PARTITIONS), after=NINE - HOUR, now=NINE, each=50),
    "commit_beats": commit_beats,
    "read_due": lambda store: store.read_due(0, now=NINE, limit=50),
    "commit_planned": commit_planned,
    "commit_freed": lambda store: store.commit_freed(
        [fence_of(store, partition) for partition in range(PARTITIONS)], now=NINE, limit=50
    ),
    "read_planned": lambda store: store.read_planned(0, now=NINE + HOUR, limit=50),
    "read_lost": lambda store: store.read_lost(range(PARTITIONS), now=NINE, limit=50),
    "commit_renewals": renew,
}


@pytest.fixture(scope="module")
def asked(large_store: SqlStore) -> dict[str, list[Asked]]:
    return asked_by(large_store, ASKS)


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("name", ASKS)
def test_what_a_dispatcher_asks_reads_no_large_table_from_end_to_end(
    large_store: SqlStore, asked: Mapping[str, list[Asked]], name: str, mode: str
) -> None:
    assert asked[name]
    for statement, given in asked[name]:
        if statement.startswith("SET LOCAL"):
            continue
        plan = plan_of(large_store, (statement, given), [f"SET LOCAL plan_cache_mode = {mode}"])
        scans = [step for step in scans_of(plan) if step["Relation Name"] in LARGE]
        kinds = {step["Node Type"] for step in scans}
        assert kinds <= FOUND_BY_INDEX, (statement, plan)


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("name", ["read_beats", "commit_beats", "read_due_times"])
def test_what_is_due_is_read_in_the_order_of_its_index(
    large_store: SqlStore, asked: Mapping[str, list[Asked]], name: str, mode: str
) -> None:
    """Were it sorted, each of the many commits of a burst would read all that is left of it."""
    of_schedules = [
        step
        for each in asked[name]
        if not each[0].startswith("SET LOCAL")
        for step in scans_of(plan_of(large_store, each, [f"SET LOCAL plan_cache_mode = {mode}"]))
        if step["Relation Name"] == "schedules"
    ]
    assert {step["Index Name"] for step in of_schedules} <= {"ix_schedules_due", "schedules_pkey"}
    assert {step["Node Type"] for step in of_schedules} <= IN_ORDER
