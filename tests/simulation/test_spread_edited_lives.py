"""Seeded lives in which edits change overlap and spread too, each judged as any edited life is."""

import pytest

from rota.config import Settings
from rota.domain.run import SETTLED
from rota.domain.schedule import ScheduleStatus
from rota.store.memory import MemoryStore
from rota.store.port import RunFilter
from rota.testing.clock import ManualClock
from rota.wiring import open_context
from tests.simulation.edited_life import STEADY, EditedLife
from tests.simulation.ledger import ALL, check_days, judge, read_ledger
from tests.simulation.test_edited_lives import START

SPREADS = [None, None, "PT20M", "PT3H", "PT23H"]


class SpreadEditedLife(EditedLife):
    """Now and then an edit spreads the schedule over another window, or has another rule of overlap."""

    events = 150

    def _patch(self, id_: str) -> tuple[dict[str, object], dict[str, object]]:
        patch, params = super()._patch(id_)
        if self.random.random() < 0.6:
            patch["spread"] = self.random.choice(SPREADS)
        if id_ != STEADY and self.random.random() < 0.4:  # of the steady one every day is to run
            patch["overlap"] = self.random.choice(["allow", "skip", "queue"])
        return patch, params


@pytest.mark.parametrize("seed", range(8))
def test_whatever_is_spread_every_instant_has_one_outcome_and_no_period_two_runs(seed: int) -> None:
    clock = ManualClock(START)
    context = open_context(Settings(partitions=3), store=MemoryStore(), clock=clock)
    life = SpreadEditedLife(context, clock, seed)
    life.live()
    life.heal()
    for id_ in life.schedules:
        ledger = read_ledger(context.store, id_)
        judge(ledger)
        schedule, version = ledger.record.schedule, ledger.record.version
        cursor = schedule.cursor.scheduled_at
        if schedule.status is ScheduleStatus.ENDED:
            assert (cursor, schedule.cursor.due_at) == (None, None)
            continue
        assert cursor is not None
        is_at_boundary = cursor == version.effective_until
        assert cursor + (0 if is_at_boundary else 1) * version.delay > life.true_now, "nothing is owed"
        for run in ledger.occurrences:
            is_moved = run.planned_at is not None
            assert is_moved or run.due_at == run.scheduled_at + ledger.versions[run.version].delay, run
    check_days(read_ledger(context.store, STEADY))
    for run in context.store.list_runs(RunFilter(), before=None, limit=ALL):
        assert run.state in SETTLED or run.due_at > life.true_now, run
