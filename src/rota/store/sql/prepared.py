"""Statements that are executed for many rows, or have many parts: compiled once, after which only the driver works.

SQLAlchemy prepares the parameters of each row anew, which costs as much as SQLite needs to write the row.
"""

from collections.abc import Callable, Sequence
from operator import itemgetter

from sqlalchemy import Connection, CursorResult, SelectBase, UpdateBase

from rota.domain.errors import Stale
from rota.store.sql.rows import Values


class Prepared:
    """A statement with named parameters; each row of values has these names."""

    def __init__(self, statement: SelectBase | UpdateBase) -> None:
        self._statement = statement
        self._forms: dict[str, _Form] = {}

    def execute(self, connection: Connection, rows: Sequence[Values]) -> int:
        """How many rows of the table it inserted or changed."""
        if not rows:
            return 0
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

    def _form(self, connection: Connection) -> "_Form":
        form = self._forms.get(connection.dialect.name)
        if form is None:
            form = self._forms[connection.dialect.name] = _Form(self._statement, connection)
        return form


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
