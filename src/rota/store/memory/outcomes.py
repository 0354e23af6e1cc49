"""Which runs of a schedule use which periods in a memory store, and what was decided ahead of its time."""

from collections.abc import Sequence
from datetime import datetime

from rota.domain.identity import ScheduleId
from rota.domain.key_uses import KeyProbe, KeyUse, is_user
from rota.domain.overlap import Places
from rota.domain.run import Run, RunState
from rota.store.memory.tables import Tables

PARKED = {RunState.PLANNED, RunState.HELD}


class MemoryOutcomes(Tables):
    def read_key_uses(self, schedule_id: ScheduleId, probes: Sequence[KeyProbe]) -> list[KeyUse | None]:
        with self._lock:
            runs = self._named_runs(schedule_id)
            return [self._key_use(runs, probe) for probe in probes]

    def get_last_run_time(self, schedule_id: ScheduleId) -> datetime | None:
        with self._lock:
            return max((run.scheduled_at for run in self._named_runs(schedule_id)), default=None)

    def read_places(self, schedule_id: ScheduleId) -> Places:
        with self._lock:
            return self._places.get(schedule_id, ())

    def list_ahead(self, schedule_id: ScheduleId, *, from_: datetime, limit: int) -> list[Run]:
        with self._lock:
            ahead = [
                run
                for run in self._runs_of(schedule_id)
                if run.state in PARKED
                or (
                    run.state is RunState.SKIPPED and run.reason == "on_request" and run.scheduled_at >= from_
                )
            ]
            return sorted(ahead, key=lambda run: (run.due_at, run.run_id))[:limit]

    def _key_use(self, runs: Sequence[Run], probe: KeyProbe) -> KeyUse | None:
        found = self._runs.get(probe.run_id)
        if found is None:
            users = [run for run in runs if is_user(probe, run)]
            found = min(users, key=lambda run: (run.scheduled_at, run.run_id), default=None)
        return None if found is None else KeyUse(run_id=found.run_id, state=found.state, reason=found.reason)

    def _named_runs(self, schedule_id: ScheduleId) -> list[Run]:
        """Runs of instants that the schedule names: those on request and replays use no periods."""
        return [run for run in self._runs_of(schedule_id) if run.origin in {"schedule", "backfill"}]

    def _runs_of(self, schedule_id: ScheduleId) -> list[Run]:
        return [run for run in self._runs.values() if run.schedule_id == schedule_id]
