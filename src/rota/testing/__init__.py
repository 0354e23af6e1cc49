"""What users test their schedules with: a manual clock, and a world in which time passes without sleeping."""

from rota.testing.clock import ManualClock
from rota.testing.world import World

__all__ = ["ManualClock", "World"]
