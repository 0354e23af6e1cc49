"""What a memory store keeps about the service itself."""

from datetime import datetime

from rota.store.memory.tables import Tables
from rota.store.port import CLOCK_READINGS_MAX, ClockReading, Notice


class MemoryHealth(Tables):
    def ping(self) -> None:
        """Always answers: what cannot be used is gone with its process."""

    def read_time(self) -> datetime | None:
        """It has no clock of its own."""
        return None

    def get_clock_reading(self, boot_id: str | None) -> ClockReading | None:
        with self._lock:
            return None if boot_id is None else self._clock_readings.get(boot_id)

    def commit_clock_reading(self, reading: ClockReading) -> None:
        with self._lock:
            self._write_clock_reading(reading)

    def commit_clock_confirmation(self, reading: ClockReading) -> None:
        with self._lock:
            self._clock_readings.clear()
            self._lock.note(Notice.DUE)
            self._write_clock_reading(reading)

    def prune_idempotency(self, *, now: datetime, limit: int) -> int:
        with self._lock:
            expired = sorted(
                (record.expires_at, record.key)
                for record in self._idempotency.values()
                if record.expires_at <= now
            )
            for _, key in expired[:limit]:
                del self._idempotency[key]
            return len(expired[:limit])

    def _write_clock_reading(self, reading: ClockReading) -> None:
        if reading.boot_id is None:
            return
        if reading.boot_id not in self._clock_readings and len(self._clock_readings) >= CLOCK_READINGS_MAX:
            earliest = min(self._clock_readings.items(), key=lambda item: (item[1].wall, item[0]))
            del self._clock_readings[earliest[0]]
        self._clock_readings[reading.boot_id] = reading

    def close(self) -> None:
        """Nothing to give back; the rows stay readable."""
