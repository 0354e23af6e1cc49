"""Leases on partitions: who may admit, told by epochs.

The protocol. A partition's row names an owner, an epoch and an expiry. Taking a free or expired partition raises the
epoch by one; renewing needs owner and epoch to be the same still. Every write of a holder names its epoch and holds the
row against change in the same transaction, so a holder that was taken over while it slept writes nothing, whatever it
believes (I6). The holder itself stops trusting its leases a margin before others see them expire; this saves
useless work and is not what safety rests on (I13).
"""

from datetime import datetime, timedelta

from rota.store.port import DispatchStore, Fence
from rota.telemetry import get_logger

RENEWALS_PER_LEASE = 3
TRUST = 0.8
"""The share of a lease for which its holder trusts it without a renewal."""

log = get_logger("dispatch")


class Leases:
    """The partitions that this process holds. One thread uses it."""

    def __init__(self, store: DispatchStore, *, owner: str, ttl: timedelta) -> None:
        self.owner = owner
        self._store = store
        self._ttl = ttl
        self._fences: dict[int, Fence] = {}
        self._trusted_until: datetime | None = None
        self._renew_at: datetime | None = None

    def is_renewal_due(self, now: datetime) -> bool:
        """True also where the clock went back behind the last renewal: no lease outlives its normal interval."""
        renew_at = self._renew_at
        return renew_at is None or now >= renew_at or now < renew_at - self._ttl

    def renew(self, now: datetime) -> None:
        """Renews what is held and takes what is free."""
        held = self._store.commit_renewals(self.owner, list(self._fences.values()), now=now, ttl=self._ttl)
        lost = self._fences.keys() - {fence.partition for fence in held}
        if lost:
            log.warning("lease.lost", partitions=sorted(lost), owner=self.owner)
        taken = self._store.commit_acquisitions(self.owner, now=now, ttl=self._ttl, limit=4096)
        if taken:
            log.info("lease.acquire", partitions=len(taken), owner=self.owner)
        self._fences = {fence.partition: fence for fence in [*held, *taken]}
        self._trusted_until = now + self._ttl * TRUST
        self._renew_at = min([now + self._ttl / RENEWALS_PER_LEASE, *self._expiries_of_others(now)])

    def _expiries_of_others(self, now: datetime) -> list[datetime]:
        """When the leases end that others hold: if one of them is dead, its partitions wait for nothing but that."""
        states = self._store.list_partitions()
        return [
            state.expires_at
            for state in states
            if state.partition not in self._fences and state.expires_at is not None and state.expires_at > now
        ]

    def held(self, now: datetime) -> dict[int, Fence]:
        """The fences that may be used at `now`; none where the last renewal is too long ago."""
        if self._trusted_until is None or now >= self._trusted_until:
            return {}
        return dict(self._fences)

    def drop(self, partition: int) -> None:
        """Stops owning at once: a write was refused for its epoch."""
        self._fences.pop(partition, None)
        log.warning("lease.fenced", partition=partition, owner=self.owner)

    def release(self, now: datetime) -> None:
        """Gives everything back, so that others need not wait for the expiry."""
        self._store.commit_releases(self.owner, list(self._fences.values()), now=now)
        self._fences = {}
        self._trusted_until = None
