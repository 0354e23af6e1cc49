"""How the memory store gives up old history."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from rota.domain.identity import ScheduleId
from rota.domain.run import SETTLED, Run, RunState
from rota.domain.schedule import Schedule, ScheduleStatus
from rota.store.memory.tables import Tables, key_of
from rota.store.port.retention import KEEPS_ITS_KEY, PRUNED_BEHIND, PruneOutcome
from rota.store.port.runs import LedgerKey

Entry = TypeVar("Entry")
_USES_PERIODS = ("schedule", "backfill")


class MemoryRetention(Tables):
    def prune_history(self, *, before: datetime, after: LedgerKey | None, limit: int) -> PruneOutcome:
        with self._lock:
            looked_at = self._old_runs(before - PRUNED_BEHIND, after)[:limit]
            if not looked_at:
                return PruneOutcome()
            schedules = {
                run.schedule_id: self._raised(self._schedules[run.schedule_id], before) for run in looked_at
            }
            pruned = [run for run in looked_at if self._may_go(run, schedules[run.schedule_id])]
            ids = sorted({run.schedule_id for run in pruned})
            for schedule_id in ids:
                self._schedules[schedule_id] = schedules[schedule_id]
            outcome = PruneOutcome(
                skips=self._forget(self._skips, ids, lambda skip: skip.until, limit),
                suspensions=self._forget(self._suspensions, ids, lambda suspension: suspension.until, limit),
                events=self._forget(self._audit, ids, lambda event: event.at, limit),
            )
            if limit in (outcome.skips, outcome.suspensions, outcome.events):
                return replace(outcome, reached=after)
            for run in pruned:
                self._remove(run)
            last = looked_at[-1]
            is_end = len(looked_at) < limit
            reached = None if is_end else LedgerKey(instant=last.scheduled_at, id_=last.run_id)
            return replace(outcome, runs=len(pruned), reached=reached)

    def _old_runs(self, until: datetime, after: LedgerKey | None) -> list[Run]:
        old = [
            run
            for run in self._runs.values()
            if run.scheduled_at < until
            and (after is None or (run.scheduled_at, run.run_id) > (after.instant, after.id_))
        ]
        return sorted(old, key=lambda run: (run.scheduled_at, run.run_id))

    def _raised(self, schedule: Schedule, before: datetime) -> Schedule:
        """The schedule with its history from `before`, or from what is still to be decided, on."""
        undecided = [before]
        if schedule.cursor.scheduled_at is not None:
            undecided.append(schedule.cursor.scheduled_at)
        for run in self._runs.values():
            if run.schedule_id == schedule.schedule_id and run.state in (RunState.PLANNED, RunState.HELD):
                undecided += [run.scheduled_at, run.due_at]
        return replace(schedule, history_from=max(schedule.history_from, min(undecided)))

    def _may_go(self, run: Run, schedule: Schedule) -> bool:
        """Whether it has ended, so long ago that nothing to come shares its period, and leaves the schedule's life
        used as it was; `schedule` as it is to be."""
        if run.state not in SETTLED or max(run.scheduled_at, run.due_at) >= _end_of(schedule):
            return False
        if run.origin not in _USES_PERIODS or schedule.status is ScheduleStatus.ENDED:
            return True
        stays = max(
            (
                other
                for other in self._runs.values()
                if other.schedule_id == run.schedule_id
                and other.origin in _USES_PERIODS
                and other.state in KEEPS_ITS_KEY
            ),
            key=lambda other: (other.scheduled_at, other.run_id),
            default=run,
        )
        return (
            stays.run_id != run.run_id
            and stays.scheduled_at >= run.scheduled_at
            and stays.due_at >= run.due_at
        )

    def _forget(
        self,
        kept: dict[ScheduleId, list[Entry]],
        ids: list[ScheduleId],
        end_of: Callable[[Entry], datetime | None],
        limit: int,
    ) -> int:
        """Removes what of these schedules ended long enough ago; how many it were, at most `limit`."""
        forgotten = 0
        for schedule_id in ids:
            until, stay = _end_of(self._schedules[schedule_id]), []
            for entry in kept.get(schedule_id, []):
                end = end_of(entry)
                is_old = end is not None and end < until and forgotten < limit
                forgotten += is_old
                if not is_old:
                    stay.append(entry)
            kept[schedule_id] = stay
        return forgotten

    def _remove(self, run: Run) -> None:
        del self._runs[run.run_id]
        self._results.pop(run.run_id, None)
        if self._key_holders.get(key_of(run)) == run.run_id:
            del self._key_holders[key_of(run)]
        for key in [key for key in self._attempts if key[0] == run.run_id]:
            del self._attempts[key]
        for effect in [effect for effect in self._effects if effect[0] == run.run_id]:
            del self._effects[effect]


def _end_of(schedule: Schedule) -> datetime:
    """What lies before this may go."""
    return schedule.history_from - PRUNED_BEHIND
