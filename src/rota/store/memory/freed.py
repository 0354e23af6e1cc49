"""Runs of a memory store that wait for nobody."""

from collections.abc import Sequence
from datetime import datetime

from rota.domain.identity import RunId
from rota.domain.overlap import turn_came
from rota.domain.run import Run, RunState
from rota.store.memory.tables import Tables
from rota.store.port import Fence

OPEN = {RunState.WAITING, RunState.QUEUED, RunState.RUNNING}


class MemoryFreed(Tables):
    def commit_freed(self, fences: Sequence[Fence], *, now: datetime, limit: int) -> int:
        with self._lock:
            held = {fence.partition for fence in fences if self._holds(fence, fence.partition)}
            waiting = [
                (run.partition, run.run_id, run)
                for run in self._runs.values()
                if run.state is RunState.WAITING and run.partition in held
            ]
            freed = 0
            for _, run_id, run in sorted(waiting, key=lambda entry: entry[:2]):
                if freed < limit and not self._is_behind(run):
                    others = self._places.get(run.schedule_id, ())
                    behind = (other for other in others if other != run_id and self._is_open(other))
                    self._places[run.schedule_id] = (run_id, *behind)
                    self._write_run(turn_came(run, now=now))
                    freed += 1
            return freed

    def _is_behind(self, run: Run) -> bool:
        """Whether an open run has a place of the schedule before it, or any where it has none itself."""
        places = self._places.get(run.schedule_id, ())
        before = places[: places.index(run.run_id)] if run.run_id in places else places
        return any(self._is_open(other) for other in before)

    def _is_open(self, run_id: RunId) -> bool:
        run = self._runs.get(run_id)
        return run is not None and run.state in OPEN
