"""What a memory store keeps about the service itself."""

from datetime import datetime

from rota.store.memory.tables import Tables
from rota.store.port import ClockReading


class MemoryHealth(Tables):
    def ping(self) -> None:
        """Always answers: what cannot be used is gone with its process."""

    def get_clock_reading(self) -> ClockReading | None:
        with self._lock:
            return self._clock_reading

    def commit_clock_reading(self, reading: ClockReading) -> None:
        with self._lock:
            self._clock_reading = reading

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

    def close(self) -> None:
        """Nothing to give back; the rows stay readable."""
