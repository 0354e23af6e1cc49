"""Settling: what became of sends is written down, and kept until it is.

A message that was taken or failed ends its try (`commit_delivery_ends`). One whose receiver has done the work, or never
wants it, is more: the relay itself opens the attempt, as of when the request began, and settles it. Where the receiver
has opened it meanwhile, its own settlement counts and nothing is left to do.

What the store could not be told is told by a later step. Should the process die before that, the try's lease ends and
the message is sent again; should it die between opening and settling, the attempt is lost and the run gets another.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from rota.delivery.outcome import Accepted, Completed, Failed, Outcome, Rejected
from rota.delivery.sends import Send
from rota.domain.delivery import Delivery, DeliveryEnd, DeliveryState, failed, sent
from rota.domain.job import RetryPolicy
from rota.domain.run import AttemptOutcome, Run
from rota.domain.settlement import AttemptEnd, Settlement, settle_attempt
from rota.store.port import AttemptKey, DeliveryStore, OfAttempt, TakenDelivery, WorkStore
from rota.telemetry import get_logger

TOGETHER = timedelta(milliseconds=100)
"""Requests that began within so short a time are opened in one call, as if they had begun with the last of them."""

log = get_logger("delivery")


class SettlingStore(DeliveryStore, WorkStore, Protocol):
    """What settling needs of a store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Finished:
    """An attempt whose receiver has ended it, and that is to be opened and settled."""

    send: Send
    end: AttemptEnd
    settled_at: datetime

    @property
    def key(self) -> AttemptKey:
        delivery = self.send.taken.delivery
        return AttemptKey(run_id=delivery.run_id, attempt=delivery.attempt)

    @property
    def opened_at(self) -> datetime:
        """When the request began; no earlier than half a lease ago, so that it is not lost before it is settled."""
        return max(self.send.began, self.settled_at - self.send.taken.job.lease / 2)


class Settling:
    """One thread uses it."""

    def __init__(self, store: SettlingStore, *, name: str) -> None:
        """`name` is the worker of the attempts that are opened."""
        self._store = store
        self._name = name
        self._finished: list[_Finished] = []
        self._in_doubt: set[AttemptKey] = set()
        """Attempts that a call may have opened which failed."""
        self._settlements: list[Settlement] = []
        self._ends: list[DeliveryEnd] = []

    @property
    def is_empty(self) -> bool:
        return not (self._finished or self._settlements or self._ends)

    def add(self, send: Send, outcome: Outcome, *, now: datetime) -> None:
        """Notes what became of a send at `now`; `commit` tells the store."""
        delivery, policy = send.taken.delivery, send.taken.job.delivery
        logger = log.bind(
            run_id=delivery.run_id,
            attempt=delivery.attempt,
            tries=delivery.tries,
            destination=send.destination,
        )
        match outcome:
            case Accepted():
                logger.info("delivery.sent")
                self._end(send.taken, sent(delivery, policy, now=now))
            case Failed(error=error):
                becomes = failed(
                    delivery,
                    policy,
                    error=error,
                    now=now,
                    retry_after=outcome.retry_after,
                    is_final=outcome.is_final,
                )
                if becomes.state is DeliveryState.DEAD:
                    logger.error("delivery.dead", problem=error)
                else:
                    logger.warning("delivery.failed", problem=error, next_at=becomes.next_at)
                self._end(send.taken, becomes)
            case Completed(result=result):
                logger.info("delivery.completed")
                end = AttemptEnd(outcome=AttemptOutcome.SUCCEEDED, result=result)
                self._finished.append(_Finished(send=send, end=end, settled_at=now))
            case Rejected(error=error):
                logger.warning("delivery.rejected", problem=error)
                end = AttemptEnd(outcome=AttemptOutcome.FAILED, error=error, retryable=False)
                self._finished.append(_Finished(send=send, end=end, settled_at=now))

    def give_back(self, taken: TakenDelivery) -> None:
        """For a delivery whose job's runs are not sent any more: it becomes an intent for the job's workers."""
        log.info("delivery.given_back", run_id=taken.delivery.run_id, job=taken.job.name)
        self._end(taken, None)

    def commit(self, *, now: datetime) -> None:
        """Tells the store everything. Raises what that raises; what was not told is kept."""
        while self._finished:
            self._open(self._next_to_open())
        while self._settlements:
            batch = self._settlements[: self._store.elements_max]
            answers = self._store.commit_settlements(batch)
            del self._settlements[: len(batch)]
            _log_stale(batch, answers)
        while self._ends:
            ends = self._ends[: self._store.elements_max]
            answers = self._store.commit_delivery_ends(ends, now=now)
            del self._ends[: len(ends)]
            _log_stale(ends, answers)

    def _end(self, taken: TakenDelivery, becomes: Delivery | None) -> None:
        delivery = taken.delivery
        end = DeliveryEnd(
            run_id=delivery.run_id, attempt=delivery.attempt, tries=delivery.tries, becomes=becomes
        )
        self._ends.append(end)

    def _next_to_open(self) -> list[_Finished]:
        """As many as go into one call, which names one instant for all: the last of them."""
        self._finished.sort(key=lambda each: each.opened_at)
        until = self._finished[0].opened_at + TOGETHER
        together = [each for each in self._finished if each.opened_at <= until]
        return together[: self._store.elements_max]

    def _open(self, batch: Sequence[_Finished]) -> None:
        keys = [each.key for each in batch]
        doubted = self._in_doubt.intersection(keys)
        self._in_doubt.update(keys)
        opened = self._store.commit_openings(self._name, keys, now=batch[-1].opened_at)
        for each, answer in zip(batch, opened, strict=True):
            if answer is not None:
                self._settle(each, answer.run, answer.job.retry)
            elif each.key in doubted:
                [row] = self._store.read_open_attempts([each.key])
                if row is not None:
                    self._settle(each, row.run, row.job.retry)
        self._in_doubt.difference_update(keys)
        told = {id(each) for each in batch}
        self._finished = [each for each in self._finished if id(each) not in told]

    def _settle(self, finished: _Finished, run: Run, retry: RetryPolicy) -> None:
        self._settlements.append(
            settle_attempt(
                run_id=run.run_id,
                attempt=run.attempt,
                end=finished.end,
                retry=retry,
                cancel_requested=run.cancel_requested_at is not None,
                now=finished.settled_at,
            )
        )


def _log_stale(told: Sequence[OfAttempt], answers: Sequence[bool]) -> None:
    """What came too late: its attempt was opened or settled, its run cancelled, or another try has begun."""
    for each, was_current in zip(told, answers, strict=True):
        if not was_current:
            log.info("delivery.stale", run_id=each.run_id, attempt=each.attempt)
