"""What Alembic runs for each command: in the transaction of the connection that it was handed."""

from alembic import context

from rota.store.sql.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
