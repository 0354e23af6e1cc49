"""A shop that holds seats: its own database, and the few transactions in which everything about a seat is decided.

A reservation is `held` until it is `confirmed`, `cancelled` or `expired`; each of these is decided once, in a
transaction that reads the state again. Whoever comes second changes nothing and is told what was found.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

WAIT_SECONDS = 30.0
"""For another process that writes."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS shows (name TEXT PRIMARY KEY, free INTEGER NOT NULL CHECK (free >= 0)) STRICT;
CREATE TABLE IF NOT EXISTS reservations (
    id TEXT PRIMARY KEY,
    show TEXT NOT NULL REFERENCES shows (name),
    state TEXT NOT NULL CHECK (state IN ('held', 'confirmed', 'cancelled', 'expired')),
    expires_at TEXT NOT NULL
) STRICT;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    id: str
    show: str
    state: str
    expires_at: datetime
    """Held until then (aware)."""


class SoldOut(Exception):
    """No seat of the show is free."""


class Shop:
    """The shop's database. Threads and processes may share it: each call has a connection of its own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._writing() as connection:
            connection.executescript(SCHEMA)

    def open_show(self, name: str, *, seats: int) -> None:
        with self._writing() as connection:
            connection.execute("INSERT INTO shows VALUES (?, ?)", (name, seats))

    def hold(self, reservation_id: str, show: str, *, until: datetime) -> None:
        """Takes a seat. Raises `SoldOut`; a repeated call with the same id changes nothing."""
        with self._writing() as connection:
            if _read(connection, reservation_id) is not None:
                return
            taken = connection.execute(
                "UPDATE shows SET free = free - 1 WHERE name = ? AND free > 0", (show,)
            )
            if taken.rowcount == 0:
                raise SoldOut(show)
            connection.execute(
                "INSERT INTO reservations VALUES (?, ?, 'held', ?)", (reservation_id, show, until.isoformat())
            )

    def extend(self, reservation_id: str, *, until: datetime) -> bool:
        """Whether it was still held, and is so until then now."""
        with self._writing() as connection:
            changed = connection.execute(
                "UPDATE reservations SET expires_at = ? WHERE id = ? AND state = 'held'",
                (until.isoformat(), reservation_id),
            )
            return changed.rowcount == 1

    def confirm(self, reservation_id: str) -> bool:
        """Whether it was still held, and is the customer's now."""
        return self._decide(reservation_id, "confirmed")

    def cancel(self, reservation_id: str) -> bool:
        """Whether it was still held; its seat is free again."""
        return self._decide(reservation_id, "cancelled")

    def expire(self, reservation_id: str, *, now: datetime) -> str | None:
        """Expires what is held longer than it may be; its seat is free again. Else why there is nothing to do.

        The present state is read in the transaction that changes it: a timer knows only what was true when it was set.
        """
        with self._writing() as connection:
            reservation = _read(connection, reservation_id)
            if reservation is None:
                return "there is no such reservation"
            if reservation.state != "held":
                return f"the reservation is {reservation.state}"
            if reservation.expires_at > now:
                return f"the reservation is held until {reservation.expires_at.isoformat()}"
            _end(connection, reservation, "expired")
            return None

    def get(self, reservation_id: str) -> Reservation | None:
        with self._writing() as connection:
            return _read(connection, reservation_id)

    def count(self, show: str) -> dict[str, int]:
        """How many seats are free, and how many reservations there are of each state."""
        with self._writing() as connection:
            [(free,)] = connection.execute("SELECT free FROM shows WHERE name = ?", (show,))
            counted = connection.execute(
                "SELECT state, count(*) FROM reservations WHERE show = ? GROUP BY state", (show,)
            )
            return {"free": free, **dict(counted.fetchall())}

    def _decide(self, reservation_id: str, state: str) -> bool:
        with self._writing() as connection:
            reservation = _read(connection, reservation_id)
            if reservation is None or reservation.state != "held":
                return False
            _end(connection, reservation, state)
            return True

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, which nobody else's runs beside."""
        connection = sqlite3.connect(self._path, timeout=WAIT_SECONDS, isolation_level=None)
        try:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            if connection.in_transaction:
                connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        finally:
            connection.close()


def _read(connection: sqlite3.Connection, reservation_id: str) -> Reservation | None:
    row = connection.execute(
        "SELECT id, show, state, expires_at FROM reservations WHERE id = ?", (reservation_id,)
    ).fetchone()
    if row is None:
        return None
    id_, show, state, expires_at = row
    return Reservation(id=id_, show=show, state=state, expires_at=datetime.fromisoformat(expires_at))


def _end(connection: sqlite3.Connection, reservation: Reservation, state: str) -> None:
    connection.execute("UPDATE reservations SET state = ? WHERE id = ?", (state, reservation.id))
    if state != "confirmed":
        connection.execute("UPDATE shows SET free = free + 1 WHERE name = ?", (reservation.show,))
