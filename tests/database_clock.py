"""A database with a clock of its own, for machines whose clocks a test moves."""

from datetime import datetime, timedelta

from rota.store.port import StoreUnavailable
from rota.testing.clock import ManualClock

HOUR = timedelta(hours=1)


class Server:
    """A database whose clock is some time ahead of its machine's; asking it takes time on the way there and back."""

    def __init__(self, machine: ManualClock, ahead: timedelta = HOUR) -> None:
        self.machine = machine
        self.ahead = ahead
        self.there = self.back = timedelta(0)
        self.is_away = False
        self.asked = 0
        self._began = machine.now() - timedelta(seconds=machine.boot_seconds() or 0.0)

    @property
    def time(self) -> datetime:
        """By the boot clock: nobody sets the wall clock of this one."""
        seconds = self.machine.boot_seconds()
        assert seconds is not None
        return self._began + timedelta(seconds=seconds) + self.ahead

    def read_time(self) -> datetime:
        self.asked += 1
        self.machine.advance(self.there)
        if self.is_away:
            raise StoreUnavailable("The database is restarting.")
        time = self.time
        self.machine.advance(self.back)
        return time
