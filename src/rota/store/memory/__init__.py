"""The memory store: every rule of the port in obvious code, against which the other stores are compared."""

from rota.store.memory.admission import MemoryAdmission
from rota.store.memory.beats import MemoryBeats
from rota.store.memory.changes import MemoryChanges
from rota.store.memory.deliveries import MemoryDeliveries
from rota.store.memory.due import MemoryDue
from rota.store.memory.effects import MemoryEffects
from rota.store.memory.freed import MemoryFreed
from rota.store.memory.health import MemoryHealth
from rota.store.memory.leases import MemoryLeases
from rota.store.memory.outcomes import MemoryOutcomes
from rota.store.memory.planned import MemoryPlanned
from rota.store.memory.retention import MemoryRetention
from rota.store.memory.runs import MemoryJobs, MemoryRuns
from rota.store.memory.schedules import MemorySchedules
from rota.store.memory.zone_rules import MemoryZoneRules


class MemoryStore(
    MemorySchedules,
    MemoryChanges,
    MemoryZoneRules,
    MemoryRuns,
    MemoryJobs,
    MemoryLeases,
    MemoryDue,
    MemoryPlanned,
    MemoryFreed,
    MemoryOutcomes,
    MemoryAdmission,
    MemoryBeats,
    MemoryDeliveries,
    MemoryEffects,
    MemoryHealth,
    MemoryRetention,
):
    """A whole store in this process, safe to share between threads, gone when the process ends.

    A small `elements_max` makes it refuse what a store with small transactions refuses.
    """


__all__ = ["MemoryStore"]
