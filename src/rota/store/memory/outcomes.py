"""What became of the instants of a schedule in a memory store, and which runs use which periods."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from rota.domain.identity import ScheduleId
from rota.domain.key_uses import KeyProbe, KeyUse
from rota.domain.run import Run, RunState
from rota.store.memory.tables import Tables, holds_its_key

PARKED = {RunState.PLANNED, RunState.HELD}
_SECOND = timedelta(seconds=1)


class MemoryOutcomes(Tables):
    def read_key_uses(self, schedule_id: ScheduleId, probes: Sequence[KeyProbe]) -> list[KeyUse | None]:
        with self._lock:
            runs = self._named_runs(schedule_id)
            return [self._key_use(runs, probe) for probe in probes]

    def get_last_run_time(self, schedule_id: ScheduleId) -> datetime | None:
        with self._lock:
            return max((run.scheduled_at for run in self._named_runs(schedule_id)), default=None)

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

    def get_last_decided(self, schedule_id: ScheduleId, *, before: datetime | None) -> datetime | None:
        with self._lock:
            decided = [
                run.scheduled_at
                for run in self._runs_of(schedule_id)
                if run.origin == "schedule"
                and run.state not in PARKED
                and run.state is not RunState.SKIPPED
                and (before is None or run.scheduled_at < before)
            ]
            for skip in self._skips.get(schedule_id, []):
                if before is None:
                    decided.append(skip.until - _SECOND)
                elif skip.from_ < before:
                    decided.append(min(skip.until, before) - _SECOND)
            return max(decided, default=None)

    def _key_use(self, runs: Sequence[Run], probe: KeyProbe) -> KeyUse | None:
        found = self._runs.get(probe.run_id)
        if found is None:
            users = [run for run in runs if _uses(run, probe)]
            found = min(users, key=lambda run: (run.scheduled_at, run.run_id), default=None)
        return None if found is None else KeyUse(run_id=found.run_id, state=found.state, reason=found.reason)

    def _named_runs(self, schedule_id: ScheduleId) -> list[Run]:
        """Runs of instants that the schedule names: those on request and replays use no periods."""
        return [run for run in self._runs_of(schedule_id) if run.origin in {"schedule", "backfill"}]

    def _runs_of(self, schedule_id: ScheduleId) -> list[Run]:
        return [run for run in self._runs.values() if run.schedule_id == schedule_id]


def _uses(run: Run, probe: KeyProbe) -> bool:
    return (
        holds_its_key(run)
        and probe.scheduled_from <= run.scheduled_at < probe.scheduled_until
        and probe.named_from <= run.named_local < probe.named_until
        and probe.second_pass in {None, run.second_pass}
    )
