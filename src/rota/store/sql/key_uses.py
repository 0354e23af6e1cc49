"""Which runs use which periods of a schedule, in SQL."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, Select, bindparam, select

from rota.domain.identity import RunId, ScheduleId
from rota.domain.key_uses import KeyProbe, KeyUse
from rota.domain.run import RunState
from rota.store.sql import cells, rows
from rota.store.sql.batches import Part
from rota.store.sql.columns import DATES
from rota.store.sql.prepared import Prepared
from rota.store.sql.schema import holds_its_key, runs


class SqlKeyUses(Part):
    def read_key_uses(self, schedule_id: ScheduleId, probes: Sequence[KeyProbe]) -> list[KeyUse | None]:
        with self._database.reading() as connection:
            return [_read_use(connection, schedule_id, probe) for probe in probes]

    def get_last_run_time(self, schedule_id: ScheduleId) -> datetime | None:
        with self._database.reading() as connection:
            last = connection.execute(_READ_LAST_RUN, {"schedule_id": schedule_id}).scalar()
        return cells.instant_or_none(last)


def _read_use(connection: Connection, schedule_id: ScheduleId, probe: KeyProbe) -> KeyUse | None:
    row = _READ_BY_ID.read(connection, {"run_id": probe.run_id}).first()
    if row is None and probe.second_pass is None:
        row = _READ_USER.read(connection, _span_values(schedule_id, probe)).first()
    elif row is None:
        values = {**_span_values(schedule_id, probe), "second_pass": probe.second_pass}
        row = _READ_USER_OF_PASS.read(connection, values).first()
    if row is None:
        return None
    run_id, state, reason = row
    return KeyUse(
        run_id=RunId(cells.text(run_id)), state=RunState(cells.text(state)), reason=cells.text_or_none(reason)
    )


def _span_values(schedule_id: ScheduleId, probe: KeyProbe) -> rows.Values:
    return {
        "schedule_id": schedule_id,
        "scheduled_from": cells.millis(probe.scheduled_from),
        "scheduled_until": cells.millis(probe.scheduled_until),
        "named_from": cells.local_millis(probe.named_from),
        "named_until": cells.local_millis(probe.named_until),
        "counts_from": DATES[0] if probe.counts_from is None else cells.millis(probe.counts_from),
    }


_IS_OF_SCHEDULE = runs.c.schedule_id == bindparam("schedule_id")
_IS_NAMED = (runs.c.origin == "schedule") | (runs.c.origin == "backfill")
_READ_BY_ID = Prepared(
    select(runs.c.run_id, runs.c.state, runs.c.reason).where(runs.c.run_id == bindparam("run_id"))
)
_USERS: Select[*tuple[object, ...]] = (
    select(runs.c.run_id, runs.c.state, runs.c.reason)
    .where(
        _IS_OF_SCHEDULE,
        runs.c.scheduled_at >= bindparam("scheduled_from"),
        runs.c.scheduled_at < bindparam("scheduled_until"),
        runs.c.named_local >= bindparam("named_from"),
        runs.c.named_local < bindparam("named_until"),
        (runs.c.scheduled_at >= bindparam("counts_from")) | (runs.c.due_at >= bindparam("counts_from")),
        _IS_NAMED,
        holds_its_key(),
    )
    .order_by(runs.c.scheduled_at, runs.c.run_id)
    .limit(1)
)
_READ_USER = Prepared(_USERS)
_READ_USER_OF_PASS = Prepared(_USERS.where(runs.c.second_pass == bindparam("second_pass")))
_READ_LAST_RUN = (
    select(runs.c.scheduled_at)
    # An instant beyond all dates, of a row that makes no sense, is stepped over (I12).
    .where(_IS_OF_SCHEDULE, runs.c.scheduled_at.between(*DATES), _IS_NAMED)
    .order_by(runs.c.scheduled_at.desc())
    .limit(1)
)
