"""How much a relay may send where: slots of each destination, and a breaker that leaves alone what only fails.

A destination that fails `FAILURES_MAX` times in a row is open: nothing is sent there for a second, which doubles with
each further failure up to a minute. Then one message is let through; if that gets there, all others may follow.

No destination takes more than half of what is free of the relay as a whole, so however many there are that are slow,
something is left for the next one.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

FAILURES_MAX = 5
OPEN_MIN = timedelta(seconds=1)
OPEN_MAX = timedelta(minutes=1)


@dataclass(slots=True, kw_only=True)
class _Destination:
    under_way: int = 0
    failures: int = 0
    """In a row."""
    opened_at: datetime | None = None
    """None: the breaker is closed."""
    open_for: timedelta = OPEN_MIN

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing to be remembered of it."""
        return self.under_way == 0 and self.failures == 0 and self.opened_at is None

    def opens_until(self, now: datetime) -> datetime | None:
        """Until when nothing is let through; None: something is. A clock that went back lets through."""
        if self.opened_at is None or now < self.opened_at or now >= self.opened_at + self.open_for:
            return None
        return self.opened_at + self.open_for


class Destinations:
    """One thread uses it; time is whatever it is told."""

    def __init__(self, under_way_max: int) -> None:
        self._under_way_max = under_way_max
        self._destinations: dict[str, _Destination] = {}
        self.under_way = 0
        """How many messages have been started and not ended, of all destinations."""

    @property
    def room(self) -> int:
        """How many more the relay may start in all."""
        return self._under_way_max - self.under_way

    def free(self, name: str, *, concurrency: int, now: datetime) -> int:
        """How many more may be started there."""
        destination = self._destinations.get(name, _Destination())
        room = self.room
        if room <= 0 or destination.opens_until(now) is not None:
            return 0
        if destination.opened_at is not None:
            return max(0, 1 - destination.under_way)
        return max(0, min(concurrency - destination.under_way, max(1, room // 2)))

    def reopens_at(self, now: datetime) -> datetime | None:
        """When the first breaker that is open lets one through."""
        times = [destination.opens_until(now) for destination in self._destinations.values()]
        return min((time for time in times if time is not None), default=None)

    def start(self, name: str) -> None:
        self.under_way += 1
        self._destinations.setdefault(name, _Destination()).under_way += 1

    def end(self, name: str, *, has_failed: bool, now: datetime) -> bool:
        """Whether its breaker opened by that."""
        destination = self._destinations[name]
        self.under_way -= 1
        destination.under_way -= 1
        has_opened = False
        if not has_failed:
            destination.failures, destination.opened_at, destination.open_for = 0, None, OPEN_MIN
        else:
            has_opened = self._fail(destination, now)
        if destination.is_plain:
            del self._destinations[name]
        return has_opened

    @staticmethod
    def _fail(destination: _Destination, now: datetime) -> bool:
        destination.failures += 1
        if destination.opened_at is None:
            if destination.failures < FAILURES_MAX:
                return False
            destination.opened_at = now
            return True
        if destination.opens_until(now) is not None:
            return False  # It was under way when the breaker opened, and says nothing new.
        destination.opened_at, destination.open_for = now, min(2 * destination.open_for, OPEN_MAX)
        return True
