"""What a revision outside of transactions does (`IN_TRANSACTION = False`): repeatable when it was interrupted."""

from collections.abc import Sequence

from alembic import op
from sqlalchemy import text

_IS_INVALID = text("SELECT true FROM pg_index WHERE indexrelid = to_regclass(:name) AND NOT indisvalid")


def make_index(
    name: str, table: str, columns: Sequence[str], *, unique: bool = False, where: str | None = None
) -> None:
    """While others write: on PostgreSQL concurrently. An index that an interruption left invalid is made anew."""
    condition = None if where is None else text(where)
    is_postgresql = op.get_bind().dialect.name == "postgresql"
    if is_postgresql and op.get_bind().execute(_IS_INVALID, {"name": name}).scalar():
        op.drop_index(name, postgresql_concurrently=True, if_exists=True)
    op.create_index(
        name,
        table,
        list(columns),
        unique=unique,
        if_not_exists=True,
        postgresql_concurrently=is_postgresql,
        postgresql_where=condition,
        sqlite_where=condition,
    )


def drop_index(name: str) -> None:
    is_postgresql = op.get_bind().dialect.name == "postgresql"
    op.drop_index(name, if_exists=True, postgresql_concurrently=is_postgresql)
