"""Notices of a SQL store: noted while a transaction writes, sent when it commits, and told to nobody if it does not.

PostgreSQL has them sent by the commit itself, one statement for a transaction, to every process that listens
(`listener.py`); it holds a lock of the whole server from that statement to the end of the commit. A SQLite file has no
way to wake others: what this store commits is told in this process, once it is committed.
"""

from sqlalchemy import Connection

from rota.store.port import Notice

CHANNEL = "rota_{}"
"""Channels belong to a database, so two Rotas on one server do not hear each other."""

_NOTED = "rota_notices"


def channel_of(notice: Notice) -> str:
    return CHANNEL.format(notice.value)


def notify(connection: Connection, notice: Notice) -> None:
    """Notes that this transaction gives cause for the notice; once is as good as often."""
    connection.info.setdefault(_NOTED, set()).add(notice)


def forget_notices(connection: Connection) -> None:
    """At a beginning: what a transaction that was rolled back has noted is still with its connection."""
    connection.info.pop(_NOTED, None)


def send_notices(connection: Connection) -> set[Notice]:
    """At the end, before the commit: sends what was noted. Answers with what is to be told here, after the commit."""
    noted: set[Notice] = connection.info.pop(_NOTED, set())
    if not noted or connection.dialect.name != "postgresql":
        return noted
    names = sorted(channel_of(notice) for notice in noted)
    calls = ", ".join(f"pg_notify('{name}', '')" for name in names)
    connection.exec_driver_sql(f"SELECT {calls}")
    return set()
