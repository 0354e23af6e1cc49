"""Statements that are executed for many rows, or have many parts: compiled once, after which only the driver works.

SQLAlchemy prepares the parameters of each row anew, which costs as much as SQLite needs to write the row. PostgreSQL
takes a batch as one statement over arrays (`arrays.py`), three times as fast as row after row.
"""

from collections.abc import Callable, Sequence
from operator import itemgetter
from types import MappingProxyType

from sqlalchemy import Connection, CursorResult, Select, SelectBase, UpdateBase

from rota.domain.errors import Stale
from rota.store.sql.arrays import ArrayStatement, array_statement, encode_texts, lookup_statement
from rota.store.sql.rows import Values

ROWS_ONE_BY_ONE = 1
"""So few rows PostgreSQL takes faster as they are; two are faster as arrays already."""


class Prepared:
    """A statement with named parameters; each row of values has these names.

    A batch is to change each row of the table once: of keys that repeat, PostgreSQL takes one row of values.
    """

    def __init__(self, statement: SelectBase | UpdateBase) -> None:
        self._statement = statement
        self._forms: dict[str, _Form] = {}
        self._over_arrays: _ArrayForm | None = None

    def execute(self, connection: Connection, rows: Sequence[Values]) -> int:
        """How many rows of the table it inserted or changed."""
        if not rows:
            return 0
        if len(rows) > ROWS_ONE_BY_ONE and connection.dialect.name == "postgresql":
            return self._execute_over_arrays(connection, rows)
        form = self._form(connection)
        return connection.exec_driver_sql(form.sql, [form.parameters_of(row) for row in rows]).rowcount

    def change_each(self, connection: Connection, rows: Sequence[Values]) -> None:
        """Raises `Stale` unless each of `rows` changed a row of the table.

        Those were read and locked before, so this is a net: the whole transaction has to be given up.
        """
        changed = self.execute(connection, rows)
        if changed != len(rows):
            raise Stale(f"{len(rows)} rows were to change and {changed} did; nothing was written.")

    def read(self, connection: Connection, row: Values) -> CursorResult[*tuple[object, ...]]:
        form = self._form(connection)
        return connection.exec_driver_sql(form.sql, form.parameters_of(row))

    def _execute_over_arrays(self, connection: Connection, rows: Sequence[Values]) -> int:
        form = self._over_arrays
        if form is None:
            if not isinstance(self._statement, UpdateBase):
                raise TypeError("Only a statement that writes is executed for many rows.")
            form = self._over_arrays = _ArrayForm(array_statement(self._statement, connection), connection)
        return connection.exec_driver_sql(form.sql, form.parameters_of(rows)).rowcount

    def _form(self, connection: Connection) -> "_Form":
        form = self._forms.get(connection.dialect.name)
        if form is None:
            form = self._forms[connection.dialect.name] = _Form(self._statement, connection)
        return form


class Lookup:
    """A `SELECT` of what many keys name, by a parameter that expands: `in_(bindparam("keys", expanding=True))`."""

    def __init__(self, statement: Select[*tuple[object, ...]]) -> None:
        self._statement = statement
        self._form: _Form | None = None

    def read(
        self, connection: Connection, keys: Sequence[str], more: Values = MappingProxyType({})
    ) -> CursorResult[*tuple[object, ...]]:
        """`more` are the values of its other parameters."""
        if connection.dialect.name != "postgresql":
            return connection.execute(self._statement, {"keys": keys, **more})
        form = self._form
        if form is None:
            # As one array: it is the same statement however many they are, which the server then need not plan anew.
            form = self._form = _Form(lookup_statement(self._statement), connection)
        return connection.exec_driver_sql(form.sql, form.parameters_of({"keys": encode_texts(keys), **more}))


class _Form:
    """The statement in one dialect, and the order in which it takes its parameters."""

    def __init__(self, statement: SelectBase | UpdateBase, connection: Connection) -> None:
        compiled = statement.compile(dialect=connection.dialect)
        names = compiled.positiontup
        if names is None:
            raise TypeError(f"{connection.dialect.name} must be opened with a positional parameter style.")
        self.sql = compiled.string
        # Of more than one name it gets a tuple; what has many rows has more than one.
        self._get: Callable[[Values], tuple[object, ...]] = (
            itemgetter(*names) if len(names) > 1 else lambda row: (row[names[0]],)
        )
        self._constants = {name: bind.value for name, bind in compiled.binds.items() if not bind.required}

    def parameters_of(self, row: Values) -> tuple[object, ...]:
        return self._get({**self._constants, **row} if self._constants else row)


class _ArrayForm:
    """The statement over arrays, and how rows become its parameters."""

    def __init__(self, made: ArrayStatement, connection: Connection) -> None:
        self._form = _Form(made.statement, connection)
        self._columns = made.columns
        self.sql = self._form.sql

    def parameters_of(self, rows: Sequence[Values]) -> tuple[object, ...]:
        return self._form.parameters_of(
            {name: encode([row[name] for row in rows]) for name, encode in self._columns.items()}
        )
