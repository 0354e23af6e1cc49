"""The ledger of effects in SQL: written under the lock of the run, whose attempt has to be the current one (I6)."""

from datetime import datetime

from sqlalchemy import Connection, RowMapping, bindparam, func, insert, select, update

from rota.domain.effect import EFFECTS_MAX, Effect, EffectBegin, EffectState
from rota.domain.identity import RunId
from rota.domain.json_text import JsonText
from rota.domain.run import RunState
from rota.store.port import OfAttempt
from rota.store.sql import cells, sending_rows
from rota.store.sql.batches import Part
from rota.store.sql.prepared import Prepared
from rota.store.sql.schema import effects, runs


class SqlEffects(Part):
    def commit_effect_begin(self, attempt: OfAttempt, name: str, *, now: datetime) -> EffectBegin:
        with self._database.writing() as connection:
            if not _is_current(connection, attempt):
                return EffectBegin(state=EffectState.STALE)
            before = _read(connection, attempt.run_id, name)
            if before is not None and before["recorded_at"] is not None:
                result = None if before["result"] is None else JsonText(cells.text(before["result"]))
                return EffectBegin(state=EffectState.RECORDED, result=result)
            if before is not None:
                return EffectBegin(state=EffectState.IN_DOUBT)
            [(count,)] = _COUNT.read(connection, {"run_id": attempt.run_id})
            if cells.integer(count) >= EFFECTS_MAX:
                return EffectBegin(state=EffectState.FULL)
            effect = Effect(run_id=attempt.run_id, name=name, begun_by=attempt.attempt, begun_at=now)
            _WRITE.execute(connection, [sending_rows.effect_values(effect)])
            return EffectBegin(state=EffectState.NEW)

    def commit_effect(self, attempt: OfAttempt, name: str, *, result: JsonText | None, now: datetime) -> bool:
        with self._database.writing() as connection:
            if not _is_current(connection, attempt):
                return False
            before = _read(connection, attempt.run_id, name)
            if before is None:
                return False
            values = {
                "key_run_id": attempt.run_id,
                "key_name": name,
                "result": result,
                "recorded_at": cells.millis(now),
            }
            if before["recorded_at"] is None:
                _RECORD.change_each(connection, [values])
            return True


def _is_current(connection: Connection, attempt: OfAttempt) -> bool:
    """Whether it is its run's current, open attempt, which then stays so until the commit."""
    row = _LOCK_RUN.read(connection, {"run_id": attempt.run_id}).first()
    return row is not None and row[0] == RunState.RUNNING.value and row[1] == attempt.attempt


def _read(connection: Connection, run_id: RunId, name: str) -> RowMapping | None:
    return _READ.read(connection, {"run_id": run_id, "name": name}).mappings().first()


_LOCK_RUN = Prepared(
    select(runs.c.state, runs.c.attempt)
    .where(runs.c.run_id == bindparam("run_id"))
    .with_for_update(key_share=True)
)
_READ = Prepared(
    select(effects).where(effects.c.run_id == bindparam("run_id"), effects.c.name == bindparam("name"))
)
_COUNT = Prepared(select(func.count()).select_from(effects).where(effects.c.run_id == bindparam("run_id")))
_IS_EFFECT = (effects.c.run_id == bindparam("key_run_id")) & (effects.c.name == bindparam("key_name"))
_WRITE = Prepared(insert(effects))
_RECORD = Prepared(
    update(effects).where(_IS_EFFECT).values(recorded_at=bindparam("recorded_at"), result=bindparam("result"))
)
