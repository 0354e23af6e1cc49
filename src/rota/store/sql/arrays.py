"""One statement over arrays in place of the same statement for each of many rows, as PostgreSQL takes them fastest.

Each parameter becomes a column of `unnest(array, ...)`: `INSERT ... SELECT FROM unnest`, `UPDATE ... FROM unnest`,
`DELETE ... USING unnest`. The arrays stand in `(SELECT array)`, which hides their length from the planner: it expects
ten rows and probes the index of the key for each, whatever the tables' statistics say, or whether they have any. Were
it to see a thousand, it would rather read a table of some ten thousand rows from end to end.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar
from typing import cast as cast_to

from sqlalchemy import (
    BinaryExpression,
    BindParameter,
    Cast,
    Connection,
    Insert,
    ScalarSelect,
    Select,
    TableValuedAlias,
    Text,
    UpdateBase,
    any_,
    bindparam,
    cast,
    column,
    func,
    insert,
    select,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.sql import operators
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.visitors import ExternallyTraversible, replacement_traverse
from sqlalchemy.types import String, TypeEngine

T = TypeVar("T")

Encode = Callable[[Sequence[object]], str]
"""Makes the text of an array: the driver would ask each element anew what it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayStatement:
    """The statement with one array for each of its parameters, and how each array is written."""

    statement: UpdateBase
    columns: Mapping[str, Encode]


def array_statement(statement: UpdateBase, connection: Connection) -> ArrayStatement:
    """The same statement for all rows at once. What is no parameter, such as a state by its name, stays as it is."""
    # Compiled as it is first: only that tells the type of a parameter that got none, which is its column's.
    binds = statement.compile(dialect=connection.dialect).binds
    types = {name: _type_of(bind, connection) for name, bind in binds.items() if bind.required}
    given = _unnested(types)

    def replace(element: ExternallyTraversible, **_: object) -> ColumnElement[object] | None:
        if isinstance(element, BindParameter) and element.key in types:
            return given.c[element.key]
        return None

    if isinstance(statement, Insert):
        made: UpdateBase = _insert_from(statement, given)
    else:
        made = cast_to("UpdateBase", replacement_traverse(statement, {}, replace))
    return ArrayStatement(
        statement=made,
        columns={
            name: encode_texts if isinstance(type_, String) else encode_numbers
            for name, type_ in types.items()
        },
    )


def lookup_statement(statement: Select[*tuple[object, ...]]) -> Select[*tuple[object, ...]]:
    """The same `SELECT`, with an array of texts in place of each `column IN (a parameter that expands)`."""

    def replace(element: ExternallyTraversible, **_: object) -> ColumnElement[bool] | None:
        match element:
            case BinaryExpression(left=key, operator=operators.in_op, right=BindParameter() as keys):
                # Within a cast: `ANY (SELECT ...)` would take the rows of the query for the elements.
                return key == any_(cast(array_of(keys.key, Text()), ARRAY(Text())))
            case _:
                return None

    return cast_to("Select[*tuple[object, ...]]", replacement_traverse(statement, {}, replace))


def array_of(name: str, type_: TypeEngine[T]) -> ScalarSelect[Sequence[T]]:
    """An array that is a parameter, whose length the planner does not see."""
    element: Cast[Sequence[T]] = cast(bindparam(name, required=True), ARRAY(type_))
    return select(element).scalar_subquery()


def encode_texts(values: Sequence[object]) -> str:
    r"""`{"a","b\"c",NULL}`."""
    plain = "{" + ",".join(["NULL" if value is None else f'"{value}"' for value in values]) + "}"
    if "\\" not in plain and plain.count('"') == 2 * (len(values) - values.count(None)):
        return plain  # No element has what has to be escaped.
    quoted = [
        "NULL" if value is None else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'  # type: ignore[attr-defined]
        for value in values
    ]
    return "{" + ",".join(quoted) + "}"


def encode_numbers(values: Sequence[object]) -> str:
    """`{1,NULL,2.5}`; and `{True,False}`, which PostgreSQL reads too."""
    return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"


def _unnested(types: Mapping[str, TypeEngine[object]]) -> TableValuedAlias:
    arrays = [array_of(name, type_) for name, type_ in types.items()]
    columns = [column(name, type_) for name, type_ in types.items()]
    return func.unnest(*arrays).table_valued(*columns).render_derived(name="given")


def _type_of(bind: BindParameter[object], connection: Connection) -> TypeEngine[object]:
    """As PostgreSQL has it, and without a collation: that is its columns' matter."""
    type_ = bind.type.dialect_impl(connection.dialect)
    return cast_to("TypeEngine[object]", Text()) if isinstance(type_, String) else type_


def _insert_from(statement: Insert, given: TableValuedAlias) -> Insert:
    names = [column.key for column in given.c]
    if not set(names) <= set(statement.table.c.keys()):
        raise TypeError(f"Each parameter of an insert bears the name of its column, unlike one of {names}.")
    return insert(statement.table).from_select(names, select(*given.c))
