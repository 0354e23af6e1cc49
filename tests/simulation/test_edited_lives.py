"""Seeded lives of schedules that are edited, planned, skipped, moved and asked for while everything else goes wrong.

A witness looks at every schedule after each event (`tests.simulation.witness`), and at the end the ledgers are judged
(`tests.simulation.ledger`). Neither asks the product what it should have done.
"""

from datetime import UTC, datetime
from functools import cache

import pytest

from rota.config import Settings
from rota.domain.run import SETTLED
from rota.domain.schedule import ScheduleStatus
from rota.store.memory import MemoryStore
from rota.store.port import RunFilter, Store
from rota.testing.clock import ManualClock
from rota.wiring import open_context
from tests.conftest import OpenStore
from tests.simulation.edited_life import RULES, STEADY, EditedLife
from tests.simulation.ledger import ALL, LATE, check_days, judge, read_ledger
from tests.simulation.life import JOB

START = datetime(2026, 3, 5, 5, 0, tzinfo=UTC)
"""Before the weeks in which the clocks change on both hemispheres."""

SEEDS = 20


def life_on(store: Store, seed: int, *, events: int = EditedLife.events) -> EditedLife:
    clock = ManualClock(START)
    context = open_context(Settings(partitions=3), store=store, clock=clock)
    life = EditedLife(context, clock, seed)
    life.events = events
    life.live()
    life.heal()
    return life


@cache
def life_in_memory(seed: int) -> EditedLife:
    """Lived once, and judged by several tests."""
    return life_on(MemoryStore(), seed)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_is_edited_every_instant_has_one_outcome_and_no_period_two_runs(seed: int) -> None:
    check_ledgers(life_in_memory(seed))


@pytest.mark.parametrize(
    ("kind", "seed"), [*(("sqlite", n) for n in range(3)), *(("postgresql", n) for n in range(3, 5))]
)
def test_every_instant_has_one_outcome_in_a_database_too(
    open_store: OpenStore,
    kind: str,
    seed: int,
) -> None:
    """Shorter ones: the witness reads every row after each event."""
    check_ledgers(life_on(open_store(kind), seed, events=80))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_run_is_attempted_with_the_params_of_its_version_however_old_its_message_is(seed: int) -> None:
    life = life_in_memory(seed)
    assert life.attempts
    for run_id, params in life.attempts:
        schedule_id, number, *_ = run_id.split(".")
        assert params == life.params[schedule_id, int(number)], run_id


def test_every_kind_of_event_happened() -> None:
    lives = [life_in_memory(seed) for seed in range(4)]
    assert set().union(*(life.happened for life in lives)) == lives[0].possible


def check_ledgers(life: EditedLife) -> None:
    store = life.context.store
    for id_ in life.schedules:
        ledger = read_ledger(store, id_)
        judge(ledger)
        for number, version in ledger.versions.items():
            assert version.period == RULES[ledger.rule(number).cron]
            assert (id_, number) in life.params
        cursor = ledger.record.schedule.cursor.scheduled_at
        if ledger.record.schedule.status is ScheduleStatus.ENDED:
            assert id_ in life.ended_at
            assert cursor is None
            assert {run.state for run in ledger.runs.values()} <= SETTLED
        else:
            assert cursor is not None
            assert cursor > life.true_now, "nothing is owed"
    check_days(read_ledger(store, STEADY))

    for run in store.list_runs(RunFilter(), before=None, limit=ALL):
        assert run.state in SETTLED or run.due_at > life.true_now, run
    assert store.read_intents([JOB], now=LATE, limit=10) == []
