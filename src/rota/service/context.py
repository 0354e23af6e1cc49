"""What every use case is given: the store, the clock, the zones, the compiled cadences."""

from dataclasses import dataclass

from rota.cadences import Cadences
from rota.clock import Clock
from rota.store.port import Store
from rota.zones import Zones


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    store: Store
    clock: Clock
    zones: Zones
    cadences: Cadences
    partition_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who asks, and why: kept in the audit event."""

    name: str | None = None
    reason: str | None = None


NOBODY = Actor()
REASON_CHARACTERS_MAX = 1_000
