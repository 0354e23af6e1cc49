"""The memory store: every rule of the port in obvious code, against which the other stores are compared."""

from rota.store.memory.dispatch import MemoryAdmission, MemoryLeases
from rota.store.memory.health import MemoryHealth
from rota.store.memory.runs import MemoryJobs, MemoryRuns
from rota.store.memory.schedules import MemorySchedules
from rota.store.memory.work import MemoryWork


class MemoryStore(
    MemorySchedules, MemoryRuns, MemoryJobs, MemoryLeases, MemoryAdmission, MemoryWork, MemoryHealth
):
    """A whole store in this process, safe to share between threads, gone when the process ends.

    A small `elements_max` makes it refuse what a store with small transactions refuses.
    """


__all__ = ["MemoryStore"]
