"""What a SQL store keeps about the service itself, and whose clock it is that counts."""

from datetime import UTC, datetime

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from rota.domain.errors import UnreadableRow
from rota.domain.instants import format_instant, parse_instant
from rota.domain.json_text import JsonText, encode_json, load_json
from rota.store.port import CLOCK_READINGS_MAX, ClockReading, Heard, Notice, Subscription
from rota.store.sql import cells
from rota.store.sql.batches import Part
from rota.store.sql.engine import is_unique_violation
from rota.store.sql.notices import notify
from rota.store.sql.schema import idempotency, settings

CLOCK_READING = "clock_reading:"
"""How the names of these settings begin; the machine's boot id follows."""


class SqlHealth(Part):
    def ping(self) -> None:
        with self._database.reading() as connection:
            connection.execute(_READ_SETTING, {"name": CLOCK_READING})

    def subscribe(self, heard: Heard) -> Subscription:
        return self._database.audience.subscribe(heard)

    def read_time(self) -> datetime | None:
        with self._database.reading() as connection:
            if connection.dialect.name != "postgresql":
                return None
            # Not now(), which is when the transaction began.
            time: datetime = connection.execute(_READ_TIME).scalar_one()
            return time.astimezone(UTC)

    def get_clock_reading(self, boot_id: str | None) -> ClockReading | None:
        if boot_id is None:
            return None
        name = CLOCK_READING + boot_id
        with self._database.reading() as connection:
            text = connection.execute(_READ_SETTING, {"name": name}).scalar()
        return None if text is None else _to_reading(name, text)

    def commit_clock_reading(self, reading: ClockReading) -> None:
        self._write_clock_reading(reading, is_alone=False)

    def commit_clock_confirmation(self, reading: ClockReading) -> None:
        self._write_clock_reading(reading, is_alone=True)

    def prune_idempotency(self, *, now: datetime, limit: int) -> int:
        with self._database.writing() as connection:
            return connection.execute(_PRUNE_IDEMPOTENCY, {"now": now, "limit": limit}).rowcount

    def close(self) -> None:
        self._database.close()

    def _write_clock_reading(self, reading: ClockReading, *, is_alone: bool) -> None:
        try:
            return self._replace_clock_reading(reading, is_alone=is_alone)
        except IntegrityError as error:
            if not is_unique_violation(error):
                raise
        # Another process of the machine was faster; by now its row can be seen.
        return self._replace_clock_reading(reading, is_alone=is_alone)

    def _replace_clock_reading(self, reading: ClockReading, *, is_alone: bool) -> None:
        with self._database.writing() as connection:
            if is_alone:
                connection.execute(delete(settings).where(_IS_CLOCK_READING))
                notify(connection, Notice.DUE)
            if reading.boot_id is None:
                return
            values = {"key_name": CLOCK_READING + reading.boot_id, "value": _to_text(reading)}
            if not connection.execute(_CHANGE_SETTING, values).rowcount:
                _make_room(connection)
                connection.execute(insert(settings), {"name": values["key_name"], "value": values["value"]})


def _make_room(connection: Connection) -> None:
    """Sends away what is beyond the limit once one more is there, and first what cannot be read."""
    found = connection.execute(select(settings).where(_IS_CLOCK_READING)).all()
    beyond = len(found) + 1 - CLOCK_READINGS_MAX
    if beyond > 0:
        earliest = sorted(found, key=lambda row: (_wall_of(row.name, row.value), row.name))[:beyond]
        names = [row.name for row in earliest]
        connection.execute(delete(settings).where(settings.c.name.in_(names)))


def _wall_of(name: str, text: str) -> datetime:
    try:
        return _to_reading(name, text).wall
    except UnreadableRow:
        return datetime.min.replace(tzinfo=UTC)


def _to_text(reading: ClockReading) -> JsonText:
    wire = {
        "wall": format_instant(reading.wall),
        "boot_seconds": reading.boot_seconds,
        "boot_id": reading.boot_id,
    }
    return encode_json(wire)


def _to_reading(name: str, text: str) -> ClockReading:
    """Raises `UnreadableRow`."""
    with cells.reading(f"setting {name}"):
        wire = cells.members(load_json(JsonText(text)))
        return ClockReading(
            wall=parse_instant(cells.text(wire["wall"])),
            boot_seconds=cells.optional(wire["boot_seconds"], cells.number),
            boot_id=cells.text_or_none(wire["boot_id"]),
        )


_READ_TIME = select(func.clock_timestamp())
_READ_SETTING = select(settings.c.value).where(settings.c.name == bindparam("name"))
_CHANGE_SETTING = (
    update(settings).where(settings.c.name == bindparam("key_name")).values(value=bindparam("value"))
)
_IS_CLOCK_READING = settings.c.name.startswith(CLOCK_READING, autoescape=True)
_EXPIRED = (
    select(idempotency.c.key)
    .where(idempotency.c.expires_at <= bindparam("now"))
    .order_by(idempotency.c.expires_at, idempotency.c.key)
    .limit(bindparam("limit"))
)
_PRUNE_IDEMPOTENCY = delete(idempotency).where(idempotency.c.key.in_(_EXPIRED))
