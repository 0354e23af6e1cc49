"""The SQLite file behind a store, as somebody at a SQL console sees it."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path


def connect(path: Path) -> sqlite3.Connection:
    """A connection that begins no transaction by itself."""
    return sqlite3.connect(path, isolation_level=None)


def execute(path: Path, statement: str, values: Sequence[object] = ()) -> list[tuple[object, ...]]:
    connection = connect(path)
    try:
        return connection.execute(statement, values).fetchall()
    finally:
        connection.close()


def execute_unchecked(path: Path, statement: str) -> None:
    """What not even the constraints of the tables would let in."""
    connection = connect(path)
    try:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(statement)
    finally:
        connection.close()
