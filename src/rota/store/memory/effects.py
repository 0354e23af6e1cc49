"""The ledger of effects of a memory store."""

from dataclasses import replace
from datetime import datetime

from rota.domain.effect import EFFECTS_MAX, Effect, EffectBegin, EffectState
from rota.domain.json_text import JsonText
from rota.domain.run import RunState
from rota.store.memory.tables import Tables
from rota.store.port import OfAttempt


class MemoryEffects(Tables):
    def commit_effect_begin(self, attempt: OfAttempt, name: str, *, now: datetime) -> EffectBegin:
        with self._lock:
            if not self._is_current(attempt):
                return EffectBegin(state=EffectState.STALE)
            before = self._effects.get((attempt.run_id, name))
            if before is not None and before.recorded_at is not None:
                return EffectBegin(state=EffectState.RECORDED, result=before.result)
            if before is not None:
                return EffectBegin(state=EffectState.IN_DOUBT)
            if self._count(attempt) >= EFFECTS_MAX:
                return EffectBegin(state=EffectState.FULL)
            self._effects[attempt.run_id, name] = Effect(
                run_id=attempt.run_id, name=name, begun_by=attempt.attempt, begun_at=now
            )
            return EffectBegin(state=EffectState.NEW)

    def commit_effect(self, attempt: OfAttempt, name: str, *, result: JsonText | None, now: datetime) -> bool:
        with self._lock:
            effect = self._effects.get((attempt.run_id, name))
            if effect is None or not self._is_current(attempt):
                return False
            if effect.recorded_at is None:
                self._effects[attempt.run_id, name] = replace(effect, recorded_at=now, result=result)
            return True

    def _is_current(self, attempt: OfAttempt) -> bool:
        run = self._runs.get(attempt.run_id)
        return run is not None and run.state is RunState.RUNNING and run.attempt == attempt.attempt

    def _count(self, attempt: OfAttempt) -> int:
        return sum(effect.run_id == attempt.run_id for effect in self._effects.values())
