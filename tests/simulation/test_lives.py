"""Seeded lives of schedules that name every minute, through whatever befalls those who work on them.

After the storm everything heals, time goes on, and the ledger is judged by a checker of its own: every minute that a
schedule named while it lived has one outcome, every run is settled, and no delivery intent is left.
"""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from rota.config import Settings
from rota.domain.admission import Skip
from rota.domain.identity import ScheduleId
from rota.domain.run import SETTLED, Run
from rota.store.memory import MemoryStore
from rota.store.port import RunFilter
from rota.testing.clock import ManualClock
from rota.wiring import open_context
from tests.conftest import OpenStore
from tests.simulation.life import JOB, Life

START = datetime(2026, 3, 8, 5, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
POLICIES: list[dict[str, object]] = [
    {"policy": "catch_up_all"},
    {"policy": "catch_up_all", "max_age": "PT10M"},
    {"policy": "latest_only"},
    {"policy": "expire", "deadline": "PT3M"},
]


class LifeByMinutes(Life):
    """Four schedules that name every minute, one for each overdue policy."""

    def schedules_to_be(self) -> list[dict[str, object]]:
        every_minute = {"timezone": "America/New_York", "recurrence": {"cron": "* * * * *"}}
        return [
            {"id": f"report-{number}", "overdue": overdue, **every_minute}
            for number, overdue in enumerate(POLICIES)
        ]


def outcomes_of(life: Life, id_: str) -> Counter[datetime]:
    """How many outcomes each instant has, by the stored rows alone."""
    entries: list[Run | Skip] = life.context.store.list_ledger(ScheduleId(id_), before=None, limit=100_000)
    outcomes: Counter[datetime] = Counter()
    for entry in entries:
        if isinstance(entry, Run):
            outcomes[entry.scheduled_at] += 1
            continue
        inside = minutes_between(entry.from_, entry.until - timedelta(seconds=1))
        assert len(inside) == entry.count
        outcomes.update(inside)
    return outcomes


def minutes_between(first: datetime, last: datetime) -> list[datetime]:
    """Whole minutes from `first` to `last`: what `* * * * *` names in any zone with whole-minute offsets."""
    minute = first.replace(second=0, microsecond=0)
    minute += MINUTE if minute < first else timedelta(0)
    return [minute + n * MINUTE for n in range(int((last - minute) / MINUTE) + 1)] if minute <= last else []


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        *(("memory", n) for n in range(8)),
        *(("sqlite", n) for n in range(3)),
        *(("postgresql", n) for n in range(3, 4)),
    ],
)
def test_after_the_storm_every_minute_has_one_outcome(
    open_store: OpenStore,
    kind: str,
    seed: int,
) -> None:
    clock = ManualClock(START)
    context = open_context(Settings(partitions=3), store=open_store(kind), clock=clock)
    life = LifeByMinutes(context, clock, seed)
    life.live()
    life.heal()

    for id_ in life.schedules:
        record = context.store.get_schedule(ScheduleId(id_))
        assert record is not None
        cursor = record.schedule.cursor.scheduled_at
        ended_at = life.ended_at.get(id_)
        if ended_at is None:
            assert cursor is not None
            last = cursor - timedelta(seconds=1)
            assert cursor > life.true_now, "nothing is owed"
        else:
            assert cursor is None
            assert record.version.effective_until is not None
            last = record.version.effective_until - timedelta(seconds=1)
        expected = Counter(minutes_between(START + timedelta(seconds=1), last))
        assert outcomes_of(life, id_) == expected, id_

    runs = context.store.list_runs(RunFilter(), before=None, limit=100_000)
    later = max(life.clock.now(), life.true_now) + timedelta(days=1)
    assert [run.run_id for run in runs if run.state not in SETTLED] == []
    assert context.store.read_intents([JOB], now=later, limit=10) == []
    keys = Counter((run.schedule_id, run.period_key) for run in runs)
    assert max(keys.values(), default=1) == 1


def test_every_kind_of_event_happened() -> None:
    happened: set[str] = set()
    for seed in range(8):
        clock = ManualClock(START)
        life = LifeByMinutes(
            open_context(Settings(partitions=3), store=MemoryStore(), clock=clock), clock, seed
        )
        life.live()
        happened |= set(life.happened)
    assert happened == life.possible
