"""What Alembic runs for each command: in the transaction of the connection that it was handed."""

from collections.abc import Collection, Mapping

from alembic import context
from alembic.runtime.migration import MigrationContext, MigrationInfo
from alembic.script import Script

from rota.store.sql.migrations.state import write_works_from
from rota.store.sql.schema import metadata


def _keep_works_from(
    ctx: MigrationContext,
    step: MigrationInfo,
    heads: Collection[object],  # noqa: ARG001 - its name is Alembic's
    run_args: Mapping[str, object],  # noqa: ARG001 - the same
) -> None:
    """Beside the revision itself, in the same transaction."""
    revision = step.up_revision
    if ctx.connection is not None and isinstance(revision, Script):
        write_works_from(ctx.connection, revision.module.WORKS_FROM)


context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    on_version_apply=_keep_works_from,
)
with context.begin_transaction():
    context.run_migrations()
