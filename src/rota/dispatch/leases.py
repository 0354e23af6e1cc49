"""Leases on partitions: who may admit, told by epochs; and how the partitions are shared among those who dispatch.

**The lease.** A partition's row names an owner, an epoch and an expiry. Taking a free or expired partition raises the
epoch by one; renewing needs owner and epoch to be the same still. Every write of a holder names its epoch and holds the
row against change until its transaction ends, so a holder that was taken over while it slept writes nothing, whatever
it believes, and none is taken over in the middle of a write (I6). The holder itself stops trusting its leases a margin
before others see them expire; this saves useless work and is not what safety rests on (I13).

**The share.** Each dispatcher announces that it is there, with every renewal and for as long as a lease. From the names
of those who are there, in order, everybody computes the same shares: the partitions divided by the dispatchers, the
first `count % present` get one more. Whoever holds more than its share gives the rest back, between two steps, when
nothing is under way; whoever holds less takes what is free, up to its share and no further. So nobody takes anything
from anybody, and partitions change hands only when somebody comes or goes.

**When.** Leases are renewed three times in their duration. Between, each dispatcher looks every two seconds who is
there: a read of a few rows, which costs less than one step, so a newcomer is seen within seconds however long the
leases are. Whoever holds less than its share looks each second, until others have given back what is too much with
them. A dispatcher that stops gives up its partitions and its presence at once. One that dies or freezes loses both when
its lease ends, at the same instant, and the others share out what it held at their next look.

**Clocks.** Presence and leases are told by the clocks of different machines. While these differ, one may be thought
dead too early or too late, and shares are other than even for that long. Nothing else comes of it: a partition that is
taken early is taken under a new epoch, and who finds that it was forgotten announces itself again.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from rota.store.port import DispatchStore, Fence
from rota.telemetry import get_logger

RENEWALS_PER_LEASE = 3
TRUST = 0.8
"""The share of a lease for which its holder trusts it without a renewal."""
LOOK = timedelta(seconds=2)
"""Between two looks at who is there. A newcomer waits for one look of the others and one of its own."""
LOOK_WHILE_SHORT = timedelta(seconds=1)

log = get_logger("dispatch")


def share_of(owner: str, present: Sequence[str], *, count: int) -> int:
    """How many of `count` partitions are the owner's, who is one of those that are `present`."""
    each, more = divmod(count, len(present))
    return each + (1 if sorted(present).index(owner) < more else 0)


class Leases:
    """The partitions that this process holds. One thread uses it."""

    def __init__(self, store: DispatchStore, *, owner: str, ttl: timedelta) -> None:
        self.owner = owner
        self._store = store
        self._ttl = ttl
        self._fences: dict[int, Fence] = {}
        self._present: list[str] = []
        self._count = 0
        self._is_short = False
        self._trusted_until: datetime | None = None
        self._renew_at: datetime | None = None
        self._look_at: datetime | None = None

    @property
    def renewal_interval(self) -> timedelta:
        return self._ttl / RENEWALS_PER_LEASE

    def is_renewal_due(self, now: datetime) -> bool:
        return self._is_due(self._renew_at, now)

    def is_look_due(self, now: datetime) -> bool:
        return self._is_due(self._look_at, now)

    def wanted_at(self, now: datetime) -> datetime:
        """When leases next need a step: `now`, or later."""
        return max(now, min((at for at in (self._renew_at, self._look_at) if at is not None), default=now))

    def renew(self, now: datetime) -> None:
        """Tells that it is there, renews what is held, and makes that its share."""
        self._present = self._store.commit_presence(self.owner, now=now, ttl=self._ttl)
        held = self._store.commit_renewals(self.owner, list(self._fences.values()), now=now, ttl=self._ttl)
        lost = self._fences.keys() - {fence.partition for fence in held}
        if lost:
            log.warning("lease.lost", partitions=sorted(lost), owner=self.owner)
        self._fences = {fence.partition: fence for fence in held}
        self._trusted_until = now + self._ttl * TRUST
        self._renew_at = now + self.renewal_interval
        self._balance(now)

    def look(self, now: datetime) -> None:
        """Looks who is there, and makes what is held its share where that has changed."""
        present = self._store.list_present(now=now)
        if self.owner not in present:
            # Forgotten under a clock that was ahead, or its own renewal is late.
            self.renew(now)
        elif self._is_short or present != self._present:
            self._present = present
            self._balance(now)
        else:
            self._look_at = now + min(LOOK, self.renewal_interval)

    def held(self, now: datetime) -> dict[int, Fence]:
        """The fences that may be used at `now`; none where the last renewal is too long ago."""
        if self._trusted_until is None or now >= self._trusted_until:
            return {}
        return dict(self._fences)

    def drop(self, partition: int) -> None:
        """Stops owning at once: a write was refused for its epoch."""
        self._fences.pop(partition, None)
        self._is_short = True
        log.warning("lease.fenced", partition=partition, owner=self.owner)

    def release(self, now: datetime) -> None:
        """Gives everything back and is there no more, so that others need not wait for the expiry."""
        fences, self._fences = list(self._fences.values()), {}
        self._trusted_until = self._renew_at = self._look_at = None
        self._store.commit_releases(self.owner, fences, now=now)
        if fences:
            log.info("lease.release", partitions=len(fences), owner=self.owner)
        self._store.commit_absence(self.owner)

    def _balance(self, now: datetime) -> None:
        """Gives back what is beyond the share, or takes what is free up to it."""
        self._look_at = now  # where this breaks off, the next step begins it again
        self._is_short = True
        # It is fixed once the partitions are made.
        self._count = self._count or len(self._store.list_partitions())
        share = share_of(self.owner, self._present, count=self._count)
        beyond = [self._fences.pop(partition) for partition in sorted(self._fences)[share:]]
        if beyond:
            self._store.commit_releases(self.owner, beyond, now=now)
            log.info("lease.release", partitions=len(beyond), owner=self.owner)
        missing = share - len(self._fences)
        if missing > 0:
            held = list(self._fences.values())
            taken = self._store.commit_acquisitions(
                self.owner, held=held, now=now, ttl=self._ttl, limit=missing
            )
            self._fences |= {fence.partition: fence for fence in taken}
            if taken:
                log.info("lease.acquire", partitions=len(taken), owner=self.owner)
        self._is_short = len(self._fences) < share
        wait = LOOK_WHILE_SHORT if self._is_short else LOOK
        self._look_at = now + min(wait, self.renewal_interval)

    def _is_due(self, at: datetime | None, now: datetime) -> bool:
        """True also where the clock went back behind the last time: no lease outlives its normal interval."""
        return at is None or now >= at or now < at - self._ttl
