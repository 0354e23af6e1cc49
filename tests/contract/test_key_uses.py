"""The key use protocol: which run uses a period, asked for by id or as a span of named local times (I2, I9)."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from rota.domain.identity import RunId, ScheduleId
from rota.domain.key_uses import EARLIEST, LATEST, KeyProbe, KeyUse
from rota.domain.run import Origin, Run, RunState
from rota.store.port import Store
from tests.contract.builders import (
    DAY,
    HOUR,
    NINE,
    SECOND,
    change_of,
    change_to,
    new_schedule,
    planned_run_at,
    run_at,
)
from tests.contract.steps import commit, create, open_attempt, plan, queue_run

ID = ScheduleId("report-7")
UNKNOWN = RunId("report-7.9.20260110T090000Z")
LOCAL = NINE.replace(tzinfo=None)

ANYTHING = KeyProbe(
    run_id=UNKNOWN,
    scheduled_from=EARLIEST,
    scheduled_until=LATEST,
    named_from=EARLIEST.replace(tzinfo=None),
    named_until=LATEST.replace(tzinfo=None),
    second_pass=None,
)
"""Any run that uses a period."""

THAT_DAY = replace(
    ANYTHING, named_from=LOCAL.replace(hour=0), named_until=LOCAL.replace(hour=0) + DAY, second_pass=False
)
"""What a run of that day would ask."""


def create_with(store: Store, *runs: Run) -> None:
    plan(store, create(store), *runs)


def found_by(store: Store, *probes: KeyProbe) -> list[RunId | None]:
    return [use.run_id if use else None for use in store.read_key_uses(ID, probes)]


def at(instant: datetime, *, local: datetime | None = None) -> Run:
    """A planned run; its named local time is told where it is not the instant's in UTC."""
    run = planned_run_at(new_schedule().schedule, instant)
    return replace(run, named_local=local or run.named_local)


def test_a_run_is_found_by_its_id_in_whatever_state(store: Store) -> None:
    run = at(NINE)
    create_with(store, change_to(run, RunState.SKIPPED, reason="expired").run)
    by_id = replace(THAT_DAY, run_id=run.run_id, named_from=LOCAL + DAY, named_until=LOCAL + DAY)
    [use] = store.read_key_uses(ID, [by_id])
    assert use == KeyUse(run_id=run.run_id, state=RunState.SKIPPED, reason="expired")
    assert use.frees_its_period
    assert found_by(store, THAT_DAY) == [None]


def test_the_run_of_the_id_is_told_before_another_that_uses_the_period(store: Store) -> None:
    own, earlier = at(NINE), at(NINE - HOUR)
    create_with(store, change_to(own, RunState.SKIPPED, reason="paused").run, earlier)
    assert found_by(store, replace(THAT_DAY, run_id=own.run_id), THAT_DAY) == [own.run_id, earlier.run_id]


def test_a_use_tells_state_and_reason_of_its_run(store: Store) -> None:
    run = at(NINE)
    create_with(store, change_to(run, RunState.SKIPPED, reason="on_request").run)
    [use] = store.read_key_uses(ID, [THAT_DAY])
    assert use == KeyUse(run_id=run.run_id, state=RunState.SKIPPED, reason="on_request")
    assert not use.frees_its_period


@pytest.mark.parametrize("state", [RunState.PLANNED, RunState.HELD, RunState.QUEUED, RunState.CANCELLED])
def test_a_run_uses_its_period_in_every_state(store: Store, state: RunState) -> None:
    run = at(NINE)
    create_with(store, run if state is RunState.PLANNED else change_to(run, state).run)
    assert store.read_key_uses(ID, [THAT_DAY]) == [KeyUse(run_id=run.run_id, state=state, reason=None)]


def test_a_running_run_uses_its_period(store: Store) -> None:
    run = queue_run(store)
    open_attempt(store, run)
    [use] = store.read_key_uses(ID, [THAT_DAY])
    assert use == KeyUse(run_id=run.run_id, state=RunState.RUNNING, reason=None)


@pytest.mark.parametrize("reason", ["expired", "superseded", "paused", "overlap", "ended", "error"])
def test_an_automatic_skip_uses_no_period(store: Store, reason: str) -> None:
    create_with(store, change_to(at(NINE), RunState.SKIPPED, reason=reason).run)
    assert found_by(store, THAT_DAY, ANYTHING) == [None, None]


@pytest.mark.parametrize(
    ("origin", "uses"), [("schedule", True), ("backfill", True), ("manual", False), ("replay", False)]
)
def test_runs_on_request_use_no_period(store: Store, origin: Origin, uses: bool) -> None:
    run = replace(at(NINE), origin=origin)
    create_with(store, run)
    assert found_by(store, THAT_DAY) == [run.run_id if uses else None]
    assert found_by(store, replace(THAT_DAY, run_id=run.run_id)) == [run.run_id]
    assert store.get_last_run_time(ID) == (NINE if uses else None)


def test_a_period_is_a_half_open_span_of_named_local_times(store: Store) -> None:
    midnight = LOCAL.replace(hour=0)
    runs = [
        at(NINE - 3 * HOUR, local=midnight - SECOND),
        at(NINE, local=midnight + DAY),
    ]
    create_with(store, *runs)
    assert found_by(store, THAT_DAY) == [None]
    spans = [
        replace(ANYTHING, named_from=midnight - SECOND, named_until=midnight),
        replace(ANYTHING, named_from=midnight - SECOND, named_until=midnight - SECOND),
        replace(ANYTHING, named_from=midnight + DAY),
    ]
    assert found_by(store, *spans) == [runs[0].run_id, None, runs[1].run_id]


def test_a_user_is_scheduled_in_a_half_open_span(store: Store) -> None:
    run = at(NINE)
    create_with(store, run)
    spans = [
        replace(THAT_DAY, scheduled_from=NINE, scheduled_until=NINE + SECOND),
        replace(THAT_DAY, scheduled_from=NINE + SECOND),
        replace(THAT_DAY, scheduled_until=NINE),
        replace(THAT_DAY, scheduled_from=NINE - SECOND, scheduled_until=NINE),
    ]
    assert found_by(store, *spans) == [run.run_id, None, None, None]


def test_a_user_is_of_the_same_pass_where_that_is_asked(store: Store) -> None:
    first, second = at(NINE), replace(at(NINE + HOUR, local=LOCAL), second_pass=True)
    create_with(store, first, second)
    both = [replace(THAT_DAY, second_pass=of) for of in (False, True, None)]
    assert found_by(store, *both) == [first.run_id, second.run_id, first.run_id]


def test_the_first_of_several_users_is_told(store: Store) -> None:
    later = at(NINE + HOUR)
    tied = [
        replace(at(NINE), run_id=RunId(f"report-7.{number}.x"), period_key=str(number)) for number in (2, 10)
    ]
    create_with(store, later, *tied)
    assert found_by(store, THAT_DAY) == ["report-7.10.x"]
    assert found_by(store, replace(THAT_DAY, scheduled_from=NINE + SECOND)) == [later.run_id]


def test_users_are_the_schedules_own(store: Store) -> None:
    create_with(store)
    other = create(store, new_schedule("report-70"))
    plan(store, other, planned_run_at(other, NINE), run_at(other, NINE + DAY))
    assert found_by(store, THAT_DAY) == [None]
    assert store.get_last_run_time(ID) is None


def test_probes_are_answered_in_their_order_however_many(store: Store) -> None:
    runs = [at(NINE + number * DAY) for number in range(150)]
    create_with(store, *runs)
    probes = [replace(ANYTHING, run_id=run.run_id) for run in reversed(runs)]
    probes += [
        replace(ANYTHING, named_from=run.named_local, named_until=run.named_local + SECOND) for run in runs
    ]
    probes += [replace(ANYTHING, named_until=LOCAL)]
    assert found_by(store, *probes) == [*(run.run_id for run in [*reversed(runs), *runs]), None]
    assert store.read_key_uses(ID, []) == []
    assert found_by(store, probes[0], probes[0]) == [runs[-1].run_id] * 2


def test_a_named_local_time_is_compared_as_local_time(store: Store) -> None:
    """Far east of UTC the named day begins before the instant's."""
    run = replace(at(NINE - 11 * HOUR, local=LOCAL.replace(hour=12)), offset=timedelta(hours=14))
    create_with(store, run)
    assert found_by(store, THAT_DAY) == [run.run_id]


def test_an_unknown_schedule_uses_nothing(store: Store) -> None:
    assert found_by(store, ANYTHING) == [None]
    assert store.get_last_run_time(ID) is None


def test_the_last_run_time_is_the_latest_instant_in_whatever_state(store: Store) -> None:
    """A skipped run too: its instant is decided, though its period is free."""
    schedule = create(store)
    run, last = planned_run_at(schedule, NINE), planned_run_at(schedule, NINE + DAY, due=NINE - HOUR)
    schedule = plan(store, schedule, last, run)
    assert store.get_last_run_time(ID) == NINE + DAY
    change = change_to(last, RunState.SKIPPED, reason="expired")
    commit(store, replace(change_of(schedule), run_changes=(change,)))
    assert store.get_last_run_time(ID) == NINE + DAY
