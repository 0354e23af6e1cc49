"""Seeded lives of schedules whose runs may not overlap, and of spread ones, judged after every event."""

from collections import Counter
from datetime import timedelta

import pytest

from rota.config import Settings
from rota.domain.admission import Skip
from rota.domain.identity import RunId, ScheduleId
from rota.domain.run import SETTLED, Run, RunState
from rota.store.port import RunFilter
from rota.testing.clock import ManualClock
from rota.wiring import open_context
from tests.conftest import OpenStore
from tests.simulation.life import Life
from tests.simulation.test_lives import START, minutes_between, outcomes_of

SECOND = timedelta(seconds=1)
OPEN = {RunState.QUEUED, RunState.RUNNING}
LIMITS: dict[str, dict[str, object]] = {
    "skipping": {"overlap": "skip", "overdue": {"policy": "catch_up_all"}},
    "queueing": {"overlap": "queue", "overdue": {"policy": "latest_only"}},
    "spread": {"spread": "PT5M", "overdue": {"policy": "catch_up_all", "max_age": "PT10M"}},
    "spread-queueing": {"spread": "PT20M", "overlap": "queue", "overdue": {"policy": "catch_up_all"}},
}


class OverlappingLife(Life):
    """Schedules that name every minute, some of which may not overlap, some of which are spread."""

    def schedules_to_be(self) -> list[dict[str, object]]:
        every_minute = {"timezone": "America/New_York", "recurrence": {"cron": "* * * * *"}}
        return [{"id": id_, **every_minute, **limits} for id_, limits in LIMITS.items()]

    def look(self, event: str) -> None:
        for id_, limits in LIMITS.items():
            runs = self.runs_of(id_)
            for run in runs:
                assert run.due_at == run.scheduled_at + self.delay_of(id_), (event, run)
                if run.admitted_at is not None:
                    # A clock that was set back may show an earlier time now, but none earlier than that.
                    assert run.admitted_at >= run.due_at, (event, run)
            if limits.get("overlap", "allow") == "allow":
                assert not [run for run in runs if run.state is RunState.WAITING]
                continue
            is_open = [run.run_id for run in runs if run.state in OPEN]
            waits = [run.run_id for run in runs if run.state is RunState.WAITING]
            assert len(is_open) <= 1, (event, is_open)
            assert len(waits) <= (limits["overlap"] == "queue"), (event, waits)
            assert is_open or not waits, (event, waits)
            assert self.context.store.read_places(ScheduleId(id_)) == (*is_open, *waits), event

    def runs_of(self, id_: str) -> list[Run]:
        asked = RunFilter(schedule_id=ScheduleId(id_))
        return self.context.store.list_runs(asked, before=None, limit=100_000)

    def delay_of(self, id_: str) -> timedelta:
        record = self.context.store.get_schedule(ScheduleId(id_))
        assert record is not None
        return record.version.delay


def check_overlap_skips(life: OverlappingLife, id_: str) -> None:
    """Each names a run of its schedule that was admitted before it and was not done then."""
    runs = {run.run_id: run for run in life.runs_of(id_)}
    for entry in life.context.store.list_ledger(ScheduleId(id_), before=None, limit=100_000):
        if isinstance(entry, Skip) and entry.reason == "overlap":
            assert entry.note is not None
            in_the_way = runs[RunId(entry.note.split()[1].rstrip(","))]
            assert in_the_way.scheduled_at < entry.from_, entry


@pytest.mark.parametrize(
    ("kind", "seed"),
    [*(("memory", n) for n in range(6)), *(("sqlite", n) for n in range(2)), ("postgresql", 2)],
)
def test_no_two_runs_overlap_and_after_the_storm_every_minute_has_one_outcome(
    open_store: OpenStore, kind: str, seed: int
) -> None:
    clock = ManualClock(START)
    context = open_context(Settings(partitions=3), store=open_store(kind), clock=clock)
    life = OverlappingLife(context, clock, seed)
    life.live()
    life.heal()

    reasons: Counter[str] = Counter()
    for id_ in life.schedules:
        record = context.store.get_schedule(ScheduleId(id_))
        assert record is not None
        cursor = record.schedule.cursor
        if id_ not in life.ended_at:
            assert cursor.scheduled_at is not None
            assert cursor.due_at == cursor.scheduled_at + record.version.delay > life.true_now
            last = cursor.scheduled_at - SECOND
        else:
            assert cursor.scheduled_at is None
            assert record.version.effective_until is not None
            last = record.version.effective_until - SECOND
        assert outcomes_of(life, id_) == Counter(minutes_between(START + SECOND, last)), id_
        check_overlap_skips(life, id_)
        assert [run.run_id for run in life.runs_of(id_) if run.state not in SETTLED] == []
        assert context.store.read_places(ScheduleId(id_)) == ()
        entries = context.store.list_ledger(ScheduleId(id_), before=None, limit=100_000)
        reasons.update(entry.reason for entry in entries if isinstance(entry, Skip))
    assert reasons["overlap"] > 0
