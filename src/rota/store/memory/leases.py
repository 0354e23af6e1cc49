"""Partitions of a memory store, who holds them, and who is there to."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from rota.store.memory.tables import Tables
from rota.store.port import LEASE_MAX, Fence, PartitionState, is_held, lease_has_ended


class MemoryLeases(Tables):
    def ensure_partitions(self, count: int) -> int:
        with self._lock:
            if not self._partitions:
                for partition in range(count):
                    self._partitions[partition] = PartitionState(
                        partition=partition, owner=None, epoch=0, expires_at=None, checkpoint=None
                    )
            return len(self._partitions)

    def list_partitions(self) -> list[PartitionState]:
        with self._lock:
            return [self._partitions[partition] for partition in sorted(self._partitions)]

    def commit_acquisitions(
        self, owner: str, *, held: Sequence[Fence], now: datetime, ttl: timedelta, limit: int
    ) -> list[Fence]:
        with self._lock:
            known = set(held)
            free = [
                state
                for _, state in sorted(self._partitions.items())
                if not is_held(state, now=now) or (state.owner == owner and _fence_of(state) not in known)
            ]
            fences = []
            for state in free[:limit]:
                taken = replace(state, owner=owner, epoch=state.epoch + 1, expires_at=now + ttl)
                self._partitions[state.partition] = taken
                fences.append(Fence(partition=state.partition, epoch=taken.epoch))
            return fences

    def commit_renewals(
        self, owner: str, fences: Sequence[Fence], *, now: datetime, ttl: timedelta
    ) -> list[Fence]:
        with self._lock:
            renewed = [fence for fence in fences if self._owns(owner, fence)]
            for fence in renewed:
                self._partitions[fence.partition] = replace(
                    self._partitions[fence.partition], expires_at=now + ttl
                )
            return renewed

    def commit_releases(
        self,
        owner: str,
        fences: Sequence[Fence],
        *,
        now: datetime,  # noqa: ARG002  a free partition has no expiry to set
    ) -> None:
        with self._lock:
            for fence in fences:
                if self._owns(owner, fence):
                    self._partitions[fence.partition] = replace(
                        self._partitions[fence.partition], owner=None, expires_at=None
                    )

    def commit_checkpoints(self, checkpoints: Iterable[tuple[Fence, datetime]]) -> None:
        with self._lock:
            for fence, instant in checkpoints:
                if self._holds(fence, fence.partition):
                    state = self._partitions[fence.partition]
                    if state.checkpoint is None or state.checkpoint < instant:
                        self._partitions[fence.partition] = replace(state, checkpoint=instant)

    def commit_presence(self, owner: str, *, now: datetime, ttl: timedelta) -> list[str]:
        with self._lock:
            self._presence[owner] = now + ttl
            for ended in self._presence.keys() - set(self._present(now)):
                del self._presence[ended]
            return self._present(now)

    def commit_absence(self, owner: str) -> None:
        with self._lock:
            self._presence.pop(owner, None)

    def list_present(self, *, now: datetime) -> list[str]:
        with self._lock:
            return self._present(now)

    def _present(self, now: datetime) -> list[str]:
        return sorted(
            owner
            for owner, expires_at in self._presence.items()
            if not lease_has_ended(expires_at, now=now, longest=LEASE_MAX)
        )

    def _owns(self, owner: str, fence: Fence) -> bool:
        return self._holds(fence, fence.partition) and self._partitions[fence.partition].owner == owner


def _fence_of(state: PartitionState) -> Fence:
    return Fence(partition=state.partition, epoch=state.epoch)
