"""The relay: takes the due runs of jobs that have a sink, and sends each one's message there, at least once.

One step. Collect the sends that ended and write down what became of them (`settling.py`). Take what is due as far as
its destinations have slots and their breakers let it through (`taking.py`, `destinations.py`). Start those sends. No
step waits for a send, so no destination holds up another.

A delivery is this relay's by a lease that is longer than its send may take. A relay that dies leaves its deliveries
`sending`; when their leases end another one sends them again, under the same attempt, which only one receiver can open
(I5, I6). A send that has not ended when its lease does is written off: it counts as a failure, and its slot is free. A
message that was sent and whose attempt nobody opens in time goes out again too: what a queue loses is late, and not
lost.
"""

import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from queue import Empty, SimpleQueue
from typing import Protocol

from rota.clock import Clock
from rota.delivery.destinations import Destinations
from rota.delivery.outcome import Failed, Outcome, says_of
from rota.delivery.sends import Send
from rota.delivery.settling import Settling
from rota.delivery.sinks import Senders
from rota.delivery.taking import Takes, push_sink_of
from rota.domain.errors import RotaError
from rota.domain.sink import destination_of
from rota.stepping import step_until, step_until_done
from rota.store.port import DeliveryStore, JobStore, Notice, NoticeStore, TakenDelivery, WorkStore, sets
from rota.telemetry import get_logger

UNDER_WAY_MAX = 1_000
"""Messages under way in one relay."""
GATHERED_AFTER_SECONDS = 0.001
"""How long the loop waits for each further answer to write down together with those that have come."""
GATHERED_SHARE = 4
"""Of those under way no more than one in so many is waited for, so that their receivers are not idle meanwhile."""
GATHERED_MAX = 32

WRITTEN_OFF = "The send did not end within its lease, and was given up."

log = get_logger("delivery")


class RelayStore(JobStore, DeliveryStore, WorkStore, NoticeStore, Protocol):
    """What a relay needs of a store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayReport:
    """What one step did, and when the next one is wanted (never later than the poll interval)."""

    taken: int
    ended: int
    """Sends whose outcome was written down."""
    under_way: int
    wake_at: datetime


class Relay:
    """Sends what is due to the sinks of its jobs. One thread runs it.

    `poll` is the longest it leaves the store alone, `drain` how long it waits for its sends when it is stopped. With
    `inline`, for senders that are too, a step also writes down what it has sent itself.
    """

    def __init__(
        self,
        store: RelayStore,
        senders: Senders,
        *,
        clock: Clock,
        name: str,
        poll: timedelta,
        drain: timedelta,
        inline: bool = False,
        under_way_max: int = UNDER_WAY_MAX,
    ) -> None:
        self.name = name
        self._store = store
        self._senders = senders
        self._clock = clock
        self._poll = poll
        self._drain_time = drain
        self._is_inline = inline
        self._destinations = Destinations(under_way_max)
        self._takes = Takes(store, self._destinations)
        self._settling = Settling(store, name=name)
        self._ended: SimpleQueue[tuple[Send, Outcome]] = SimpleQueue()
        self._collected: list[tuple[Send, Outcome]] = []
        """Taken from the queue, and not written down yet."""
        self._under_way: dict[int, Send] = {}
        """By their identity."""
        self.wake = threading.Event()
        """Set where there is something to do before the time that a step named."""
        self._is_stopping = False

    def step(self, now: datetime) -> RelayReport:
        """One bounded piece of work at `now`. Raises what the store raises; nothing that was sent is forgotten."""
        ended = self._settle(now)
        taken: Sequence[TakenDelivery] = ()
        wanted = [now + self._poll]
        if not self._is_stopping:
            take = self._takes.take(now)
            taken = take.taken
            self._start(taken, now)
            if take.may_be_more:
                wanted.append(now)
            wanted += [
                time for time in (take.next_at, self._destinations.reopens_at(now)) if time is not None
            ]
        if self._is_inline or not self._settling.is_empty:
            ended += self._settle(now)
        return RelayReport(
            taken=len(taken), ended=ended, under_way=self._destinations.under_way, wake_at=min(wanted)
        )

    def run(self, stop: threading.Event, wake: threading.Event) -> None:
        """Steps until `stop` is set (set `wake` too, to end a wait), then takes nothing more and waits for its sends,
        as long as `drain`. What is under way then is sent again when its lease has ended.
        """
        self.wake = wake
        log.info("relay.start", relay=self.name)
        with closing(self._store.subscribe(sets(wake, Notice.QUEUED))):
            step_until(stop, wake, clock=self._clock, step=self._try_step)
        self._drain(wake)
        log.info("relay.stop", relay=self.name)

    def close(self) -> None:
        """Ends its senders; what is under way stays so until its lease ends."""
        self._is_stopping = True
        self._senders.close()

    def _drain(self, wake: threading.Event) -> None:
        self._is_stopping = True
        is_done = step_until_done(
            lambda: self._destinations.under_way == 0 and self._settling.is_empty,
            wake,
            clock=self._clock,
            step=self._try_step,
            within=self._drain_time,
        )
        if not is_done:
            log.warning("relay.sends_left", under_way=self._destinations.under_way)
        self.close()

    def _try_step(self) -> float:
        """A step that the loop outlives; how many seconds it may wait now."""
        seconds = self._poll.total_seconds()
        self._gather()
        try:
            report = self.step(self._clock.now())
            seconds = min(seconds, max(0.0, (report.wake_at - self._clock.now()).total_seconds()))
        except RotaError as error:
            log.warning("relay.step_failed", problem=f"{type(error).__name__}: {error}")
        return seconds

    def _gather(self) -> None:
        """Waits a moment for further answers where one has come, so that several are written down in one commit."""
        self._collect()
        enough = min(len(self._under_way) // GATHERED_SHARE, GATHERED_MAX)
        while 0 < len(self._collected) < enough:
            try:
                self._collected.append(self._ended.get(timeout=GATHERED_AFTER_SECONDS))
            except Empty:
                return

    def _settle(self, now: datetime) -> int:
        """Writes down what became of the sends that ended; how many there were."""
        self._collect()
        ended, self._collected = self._collected, []
        for send, outcome in ended:
            # One that was written off has no slot any more, but what became of it is news all the same.
            if self._under_way.pop(id(send), None) is not None:
                self._end(send, outcome, now)
            self._settling.add(send, outcome, now=now)
        self._write_off(now)
        self._settling.commit(now=now)
        return len(ended)

    def _collect(self) -> None:
        """Takes over what senders have told."""
        while True:
            try:
                self._collected.append(self._ended.get_nowait())
            except Empty:
                return

    def _end(self, send: Send, outcome: Outcome, now: datetime) -> None:
        if self._destinations.end(send.destination, send.taken, says_of(outcome), now=now):
            log.warning("destination.left_alone", destination=send.destination)

    def _write_off(self, now: datetime) -> None:
        """Gives up sends that should have ended long ago: from now on anybody may send their messages again."""
        for send in [send for send in self._under_way.values() if send.lease_ends_at <= now]:
            del self._under_way[id(send)]
            delivery = send.taken.delivery
            log.warning("delivery.written_off", run_id=delivery.run_id, destination=send.destination)
            outcome = Failed(error=WRITTEN_OFF)
            self._end(send, outcome, now)
            self._settling.add(send, outcome, now=now)
            sink = push_sink_of(send.taken)
            if sink is not None:
                self._senders.of(sink).write_off(send)

    def _start(self, taken: Sequence[TakenDelivery], now: datetime) -> None:
        """Sends each to where its job's runs are to go now, in batches as the sink takes them."""
        sends = []
        for each in taken:
            sink = push_sink_of(each)
            if sink is None:
                self._settling.give_back(each)
            else:
                sends.append(Send(taken=each, destination=destination_of(sink), began=now))
        # The sort is stable: within a destination they stay in their order.
        for (destination, _), group in groupby(sorted(sends, key=_place_of), _place_of):
            batch = list(group)
            sink = push_sink_of(batch[0].taken)
            assert sink is not None  # noqa: S101 - none was put among the sends
            sender = self._senders.of(sink)
            for start in range(0, len(batch), sender.batch_max):
                part = batch[start : start + sender.batch_max]
                self._destinations.start(destination, [send.taken for send in part])
                self._under_way.update((id(send), send) for send in part)
                sender.start(part, self._done)

    def _done(self, send: Send, outcome: Outcome) -> None:
        """Called from a sender's thread."""
        self._ended.put((send, outcome))
        self.wake.set()


def _place_of(send: Send) -> tuple[str, str]:
    """What may be handed to one sender in one batch."""
    return send.destination, type(send.taken.job.sink).__name__
