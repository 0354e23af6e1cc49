"""The kinds of columns and constraints that the tables are made of, in the words of SQLite and PostgreSQL."""

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import (
    REAL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ColumnElement,
    Dialect,
    Double,
    Integer,
    Text,
    TypeDecorator,
    literal_column,
)
from sqlalchemy.types import TypeEngine

from rota.domain.instants import to_millis

DATES = (-62_135_596_800_000, 253_402_300_799_999)
"""The years 1 to 9999, all that a Python datetime can say: a cursor outside them could not even be reported."""


Long = BigInteger().with_variant(Integer(), "sqlite")
"""Of 64 bits, as SQLite's INTEGER is: its STRICT tables know no other name."""


class Instant(TypeDecorator[int]):
    """Milliseconds since 1970 in UTC; a condition may name them by an aware datetime.

    They come back as a number: `rows` reads it where a value out of range concerns a single row.
    """

    impl = BigInteger
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[int]:
        return dialect.type_descriptor(Long)

    def process_bind_param(self, value: object, dialect: Dialect) -> int | None:  # noqa: ARG002  its signature
        if isinstance(value, datetime):
            return to_millis(value)
        if value is None or isinstance(value, int):
            return value
        raise TypeError(f"{value!r} is not an instant")


Name = Text().with_variant(Text(collation="C"), "postgresql")
"""Ids, keys and names: ordered by code point, as SQLite's BINARY and Python's `<` do."""

Truth = Boolean().with_variant(Integer(), "sqlite")
Fraction: TypeEngine[float] = Double().with_variant(REAL(), "sqlite")


def instant(name: str) -> Column[int]:
    return Column(name, Instant, nullable=False)


def instant_or_null(name: str) -> Column[int]:
    return Column(name, Instant)


def one_of(column: str, names: Iterable[str]) -> CheckConstraint:
    """The constraint that `column` holds one of `names`, or nothing where it may be null.

    Not as `IN (...)`: SQLite would make a temporary table of the list for each row, a third of the cost of a run.
    """
    return CheckConstraint(" OR ".join(f"{column} = '{name}'" for name in names), name=column)


def within_dates(column: str) -> CheckConstraint:
    return CheckConstraint(f"{column} BETWEEN {DATES[0]} AND {DATES[1]}", name=column)


def among(column: Column[str], names: Iterable[str]) -> ColumnElement[bool]:
    """That the column has one of `names`, of a partial index and of those who search it.

    In literals: SQLite uses a partial index only for a query that repeats its condition word for word.
    """
    return column.in_([literal_column(f"'{name}'") for name in names])
