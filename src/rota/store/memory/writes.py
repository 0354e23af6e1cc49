"""What admissions and changes of a memory store share: their runs are judged whole, then written whole."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from rota.domain.identity import ScheduleId
from rota.domain.key_uses import holds_its_key
from rota.domain.run import Run, RunChange
from rota.domain.schedule import Schedule
from rota.store.memory.tables import Tables, key_of


class Writes(Tables):
    def _have_changed(self, changes: Sequence[RunChange]) -> bool:
        """Whether some run is no longer in the state in which its change expects it."""
        runs = [(self._runs.get(change.run.run_id), change.expected_state) for change in changes]
        return any(run is None or run.state is not expected for run, expected in runs)

    def _use_a_key_again(self, runs: Sequence[Run], changes: Sequence[RunChange]) -> bool:
        """Whether an id would exist twice, or a period key be held twice, once all of it was written (I2)."""
        ids = {run.run_id for run in runs}
        if len(ids) < len(runs) or not ids.isdisjoint(self._runs):
            return True
        written = [*(change.run for change in changes), *runs]
        written_ids = {run.run_id for run in written}
        keys = [key_of(run) for run in written if holds_its_key(run.state, run.reason)]
        holders = [self._key_holders[key] for key in keys if key in self._key_holders]
        return len(set(keys)) < len(keys) or any(holder not in written_ids for holder in holders)

    def _write_runs(self, runs: Sequence[Run], changes: Sequence[RunChange]) -> None:
        for change in changes:
            self._write_run(change.run)
        for run in runs:
            self._write_run(run)

    def _end_window(self, schedule_id: ScheduleId, number: int, effective_until: datetime) -> None:
        version = self._versions[schedule_id, number]
        self._versions[schedule_id, number] = replace(version, effective_until=effective_until)


def are_pruned(schedule: Schedule, runs: Sequence[Run]) -> bool:
    return any(run.scheduled_at < schedule.history_from for run in runs)


def later(one: datetime | None, other: datetime | None) -> datetime | None:
    """The later of the two; the one that there is where the other is None."""
    if one is None or other is None:
        return one or other
    return max(one, other)
