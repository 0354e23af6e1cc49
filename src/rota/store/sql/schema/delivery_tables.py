"""Messages on their way to sinks, and the permits of runs that are in hand."""

from sqlalchemy import Column, Index, Integer, Table, Text

from rota.domain.delivery import DeliveryState
from rota.store.sql.columns import Name, among, instant, instant_or_null, one_of, within_dates
from rota.store.sql.schema import storage
from rota.store.sql.schema.naming import metadata

deliveries = Table(
    "deliveries",
    metadata,
    Column("run_id", Name, primary_key=True),
    Column("attempt", Integer, nullable=False),
    Column("schedule_id", Name, nullable=False),
    Column("job", Name, nullable=False),
    Column("state", Name, nullable=False),
    Column("tries", Integer, nullable=False),
    instant("first_at"),
    instant_or_null("next_at"),
    instant_or_null("sent_at"),
    Column("error", Text),
    Column("failures", Integer, nullable=False),
    Column("sends", Integer, nullable=False),
    one_of("state", DeliveryState),
    within_dates("first_at"),
    within_dates("next_at"),
    within_dates("sent_at"),
    postgresql_with=storage.DELIVERIES,
    sqlite_strict=True,
)
# The state is in it because of a job that is full only those are taken that are in hand already.
Index(
    "ix_deliveries_to_take",
    deliveries.c.job,
    deliveries.c.state,
    deliveries.c.next_at,
    deliveries.c.run_id,
    sqlite_where=deliveries.c.next_at.is_not(None),
    postgresql_where=deliveries.c.next_at.is_not(None),
)
_dead = among(deliveries.c.state, [DeliveryState.DEAD])
Index("ix_deliveries_dead", deliveries.c.run_id, sqlite_where=_dead, postgresql_where=_dead)

# One for each run in hand of a job with a `max_running`; of other jobs there may be some left.
permits = Table(
    "permits",
    metadata,
    Column("run_id", Name, primary_key=True),
    Column("job", Name, nullable=False),
    postgresql_with=storage.PERMITS,
    sqlite_with_rowid=False,
    sqlite_strict=True,
)
Index(None, permits.c.job)
