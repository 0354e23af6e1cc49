"""Deliveries as people see them, in SQL."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from sqlalchemy import RowMapping, Select, select, update

from rota.domain.audit import AuditEvent
from rota.domain.delivery import Delivery, DeliveryState, redriven
from rota.domain.identity import RunId
from rota.store.port import DeliveryFilter, Notice
from rota.store.sql import cells, sending_rows
from rota.store.sql.audit import write_audit
from rota.store.sql.batches import Part
from rota.store.sql.columns import among
from rota.store.sql.notices import notify
from rota.store.sql.pages import read_page, readable
from rota.store.sql.schema import deliveries


class SqlDeliveryLists(Part):
    def list_deliveries(self, filter_: DeliveryFilter, *, after: RunId | None, limit: int) -> list[Delivery]:
        matching = _matching(filter_)

        def page_after(last: RowMapping | None) -> Select[*tuple[object, ...]]:
            # No id is empty, so all come after the empty text.
            return matching.where(deliveries.c.run_id > (after or "" if last is None else last["run_id"]))

        with self._database.reading() as connection:
            return read_page(connection, page_after, _to_deliveries, limit=limit)

    def commit_redrive(self, run_id: RunId, *, event: AuditEvent, now: datetime) -> Delivery | None:
        is_it = deliveries.c.run_id == run_id
        with self._database.writing() as connection:
            row = connection.execute(select(deliveries).where(is_it).with_for_update()).mappings().first()
            if row is None:
                return None
            delivery = _to_delivery(row)
            if delivery.state is not DeliveryState.DEAD:
                return delivery
            changed = redriven(delivery, now=now)
            values = sending_rows.delivery_values(changed)
            connection.execute(update(deliveries).where(is_it).values(dict(values)))
            write_audit(connection, event)
            notify(connection, Notice.QUEUED)
            return changed


def _matching(filter_: DeliveryFilter) -> Select[*tuple[object, ...]]:
    statement = select(deliveries).order_by(deliveries.c.run_id)
    if filter_.state is not None:
        # In a literal, as the partial index of the dead has it.
        statement = statement.where(among(deliveries.c.state, [filter_.state]))
    if filter_.job is not None:
        statement = statement.where(deliveries.c.job == filter_.job)
    if filter_.schedule_id is not None:
        statement = statement.where(deliveries.c.schedule_id == filter_.schedule_id)
    return statement


def _to_deliveries(found: Sequence[RowMapping]) -> Iterator[Delivery]:
    return readable(found, _to_delivery)


def _to_delivery(row: RowMapping) -> Delivery:
    with cells.reading(f"the delivery of run {row['run_id']}"):
        return sending_rows.to_delivery(row)
