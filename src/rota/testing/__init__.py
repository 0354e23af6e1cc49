"""What users test their schedules with: a manual clock, and a world in which time passes without sleeping."""

from rota.delivery.outcome import Completed, Failed, Rejected
from rota.testing.clock import ManualClock
from rota.testing.sent import Sent
from rota.testing.world import World

__all__ = ["Completed", "Failed", "ManualClock", "Rejected", "Sent", "World"]
