"""What a SQL store keeps about the service itself."""

from datetime import datetime

from sqlalchemy import bindparam, delete, insert, select, update

from rota.domain.instants import format_instant, parse_instant
from rota.domain.json_text import JsonText, encode_json, load_json
from rota.store.port import ClockReading
from rota.store.sql import cells
from rota.store.sql.batches import Part
from rota.store.sql.schema import idempotency, settings

CLOCK_READING = "clock_reading"


class SqlHealth(Part):
    def ping(self) -> None:
        self._read_setting(CLOCK_READING)

    def get_clock_reading(self) -> ClockReading | None:
        text = self._read_setting(CLOCK_READING)
        if text is None:
            return None
        with cells.reading(f"setting {CLOCK_READING}"):
            wire = cells.members(load_json(JsonText(text)))
            return ClockReading(
                wall=parse_instant(cells.text(wire["wall"])),
                boot_seconds=cells.optional(wire["boot_seconds"], cells.number),
                boot_id=cells.text_or_none(wire["boot_id"]),
            )

    def commit_clock_reading(self, reading: ClockReading) -> None:
        wire = {
            "wall": format_instant(reading.wall),
            "boot_seconds": reading.boot_seconds,
            "boot_id": reading.boot_id,
        }
        self._write_setting(CLOCK_READING, encode_json(wire))

    def prune_idempotency(self, *, now: datetime, limit: int) -> int:
        with self._database.writing() as connection:
            return connection.execute(_PRUNE_IDEMPOTENCY, {"now": now, "limit": limit}).rowcount

    def close(self) -> None:
        self._database.close()

    def _read_setting(self, name: str) -> str | None:
        with self._database.reading() as connection:
            return connection.execute(select(settings.c.value).where(settings.c.name == name)).scalar()

    def _write_setting(self, name: str, text: JsonText) -> None:
        with self._database.writing() as connection:
            changed = update(settings).where(settings.c.name == name).values(value=text)
            if not connection.execute(changed).rowcount:
                connection.execute(insert(settings), {"name": name, "value": text})


_EXPIRED = (
    select(idempotency.c.key)
    .where(idempotency.c.expires_at <= bindparam("now"))
    .order_by(idempotency.c.expires_at, idempotency.c.key)
    .limit(bindparam("limit"))
)
_PRUNE_IDEMPOTENCY = delete(idempotency).where(idempotency.c.key.in_(_EXPIRED))
