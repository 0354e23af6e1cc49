"""The partitions in the library: who holds them, and what waits in them."""

from rota.application.connection import Connection
from rota.service.partitions import show_partitions
from rota.service.representation import Wire


class Partitions(Connection):
    """What is asked of those who dispatch."""

    def partitions(self) -> Wire:
        """Every partition with its holder and how much of it is due, all together, and who dispatches."""
        return show_partitions(self.context)
