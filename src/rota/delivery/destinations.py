"""How much a relay may send where: slots of each destination, and a breaker that leaves alone what only fails.

**Breaker.** Where the messages of `FAILURES_MAX` runs fail and none gets through between them, the destination is open:
nothing is sent there for a second. Then one message is let through; if that gets there, all others may follow. If not,
the destination is left alone again: for twice as long, up to a minute, where it is away. Where it is there and fails it
is a second as before, since it may be the messages themselves: however many it can never take, those that it would
take do not wait long behind them. A try that says nothing of the destination changes nothing.

**Slots.** Each take may have half of the room that is left. A tenth of all is kept for destinations that have nothing
under way, and each of them gets one of these: however many are slow that have their part, the next one gets through.

**Retries.** Where messages that are sent again were seen, they get no more than half of a destination's slots: what is
new never waits for those that are slow to fail.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import ceil

from rota.delivery.outcome import Says
from rota.domain.identity import RunId
from rota.store.port import TakenDelivery

FAILURES_MAX = 5
OPEN_MIN = timedelta(seconds=1)
OPEN_MAX = timedelta(minutes=1)
WARY_TAKES = 10
"""After one with messages that are sent again, so many others show that there are no more."""
RESERVE = 10
"""One in so many slots of the relay is kept for destinations that have nothing under way."""


@dataclass(slots=True, kw_only=True)
class _Destination:
    under_way: int = 0
    retries: int = 0
    """Of those under way."""
    wary: int = 0
    """For how many takes there may be more of them, though these have none."""
    failed: set[RunId] = field(default_factory=set)
    """Runs whose messages have failed since one got through; no more than it takes to open."""
    opened_at: datetime | None = None
    """None: the breaker is closed."""
    open_for: timedelta = OPEN_MIN

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing to be remembered of it."""
        return self.under_way == 0 and not self.failed and self.opened_at is None and self.wary == 0

    def opens_until(self, now: datetime) -> datetime | None:
        """Until when nothing is let through; None: something is. A clock that went back lets through."""
        if self.opened_at is None or now < self.opened_at or now >= self.opened_at + self.open_for:
            return None
        return self.opened_at + self.open_for


UNKNOWN = _Destination()
"""Never changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What may be started at one destination."""

    slots: int = 0
    retries: int = 0
    """How many of them may be messages that are sent again."""
    is_probe: bool = False
    """It is the one that is let through to see whether the destination is there again."""
    is_mixed: bool = False
    """Messages are sent there again, and are to be counted."""


class Destinations:
    """One thread uses it; time is whatever it is told."""

    def __init__(self, under_way_max: int) -> None:
        self._under_way_max = under_way_max
        self._reserve = ceil(under_way_max / RESERVE)
        self._destinations: dict[str, _Destination] = {}
        self.under_way = 0
        """How many messages have been started and not ended, of all destinations."""

    def bound(self, taken: int = 0) -> int:
        """How many one take may have at most, when `taken` are taken that are not started yet: half of the room."""
        left = self._under_way_max - self.under_way - taken
        common = left - self._reserve
        return max(0, ceil(common / 2) if common > 0 else min(left, ceil(left / 2)))

    def room(self, name: str, *, concurrency: int, now: datetime) -> Room:
        """How many more may be started there."""
        destination = self._destinations.get(name, UNKNOWN)
        if destination.opens_until(now) is not None:
            return Room()
        free = concurrency - destination.under_way
        if self.under_way >= self._under_way_max - self._reserve:
            free = min(free, 1 - destination.under_way)
        if destination.opened_at is not None:
            free = min(free, 1 - destination.under_way)
            return Room(slots=max(0, min(free, self.bound())), is_probe=True)
        return Room(
            slots=max(0, min(free, self.bound())),
            retries=max(0, ceil(concurrency / 2) - destination.retries),
            is_mixed=destination.wary > 0 or destination.retries > 0,
        )

    def reopens_at(self, now: datetime) -> datetime | None:
        """When the first breaker that is open lets one through."""
        times = [destination.opens_until(now) for destination in self._destinations.values()]
        return min((time for time in times if time is not None), default=None)

    def start(self, name: str, taken: Sequence[TakenDelivery]) -> None:
        """So many are under way there now."""
        destination = self._destinations.setdefault(name, _Destination())
        again = sum(_is_retry(each) for each in taken)
        self.under_way += len(taken)
        destination.under_way += len(taken)
        destination.retries += again
        destination.wary = WARY_TAKES if again else max(0, destination.wary - 1)

    def end(self, name: str, taken: TakenDelivery, says: Says, *, now: datetime) -> bool:
        """One is no longer under way there; whether the breaker opened by what it says."""
        destination = self._destinations[name]
        self.under_way -= 1
        destination.under_way -= 1
        destination.retries -= _is_retry(taken)
        has_opened = False
        if says is Says.REACHED:
            destination.failed.clear()
            destination.opened_at, destination.open_for = None, OPEN_MIN
        elif says is not Says.NOTHING:
            has_opened = self._fail(destination, taken, now, is_away=says is Says.AWAY)
        if destination.is_plain:
            del self._destinations[name]
        return has_opened

    @staticmethod
    def _fail(destination: _Destination, taken: TakenDelivery, now: datetime, *, is_away: bool) -> bool:
        if destination.opened_at is None:
            destination.failed.add(taken.delivery.run_id)
            if len(destination.failed) < FAILURES_MAX:
                return False
            destination.opened_at = now
            return True
        if destination.opens_until(now) is not None:
            return False  # It was under way when the breaker opened, and says nothing new.
        destination.opened_at = now
        destination.open_for = min(2 * destination.open_for, OPEN_MAX) if is_away else OPEN_MIN
        return True


def _is_retry(taken: TakenDelivery) -> bool:
    """Whether its message was sent before."""
    return taken.delivery.tries > 1
