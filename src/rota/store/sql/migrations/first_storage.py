"""How PostgreSQL is to store the tables of the first revision. Why so: `rota.store.sql.schema.storage`."""

from alembic import op

STORAGE = {
    "schedules": "autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02",
    "runs": "fillfactor = 90, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_insert_scale_factor = 0.05,"
    " autovacuum_analyze_scale_factor = 0.02",
    "attempts": "autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_insert_scale_factor = 0.05",
    "outbox": "autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,"
    " autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 10000",
    "deliveries": "fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,"
    " autovacuum_vacuum_cost_delay = 0",
    "permits": "autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500",
    "partitions": "fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500",
    "idempotency": "autovacuum_vacuum_scale_factor = 0.05",
}


def set_storage() -> None:
    if op.get_bind().dialect.name == "postgresql":
        for table, options in STORAGE.items():
            op.execute(f"ALTER TABLE {table} SET ({options})")
