"""The kinds of columns and constraints of revisions: as they were when a revision was written, so they never change."""

from collections.abc import Iterable

import sqlalchemy as sa
from alembic import op

NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
LONG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
INSTANT = LONG
TRUTH = sa.Boolean().with_variant(sa.Integer(), "sqlite")
FRACTION: sa.types.TypeEngine[float] = sa.Double().with_variant(sa.REAL(), "sqlite")


def one_of(table: str, column: str, names: Iterable[str]) -> sa.CheckConstraint:
    listed = " OR ".join(f"{column} = '{name}'" for name in names)
    return sa.CheckConstraint(listed, name=op.f(f"ck_{table}_{column}"))


def within_dates(table: str, column: str) -> sa.CheckConstraint:
    dates = f"{column} BETWEEN -62135596800000 AND 253402300799999"
    return sa.CheckConstraint(dates, name=op.f(f"ck_{table}_{column}"))
