"""Who did what to schedules, in SQL."""

from sqlalchemy import Connection, RowMapping, bindparam, insert, select

from rota.domain.audit import AuditEvent
from rota.domain.identity import ScheduleId
from rota.store.sql import cells, rows
from rota.store.sql.batches import Part
from rota.store.sql.pages import readable
from rota.store.sql.prepared import Prepared
from rota.store.sql.schema import audit


class SqlAudit(Part):
    def list_audit(self, schedule_id: ScheduleId, *, limit: int) -> list[AuditEvent]:
        with self._database.reading() as connection:
            found = connection.execute(_LIST_AUDIT, {"id": schedule_id, "limit": limit}).mappings().all()
        return list(readable(found, _to_audit_event))


def write_audit(connection: Connection, event: AuditEvent) -> None:
    _WRITE_AUDIT.execute(connection, [rows.audit_values(event)])


def _to_audit_event(row: RowMapping) -> AuditEvent:
    with cells.reading(f"an audit event of schedule {row['schedule_id']}"):
        return rows.to_audit_event(row)


_LIST_AUDIT = (
    select(audit)
    .where(audit.c.schedule_id == bindparam("id"))
    .order_by(audit.c.at.desc(), audit.c.id.desc())
    .limit(bindparam("limit"))
)
_WRITE_AUDIT = Prepared(
    insert(audit).values({column.name: bindparam(column.name) for column in audit.c if column.name != "id"})
)
