"""Settling: what became of sends is written down, and kept until it is.

A message that was taken or failed ends its try (`commit_delivery_ends`). One whose receiver has done the work, or never
wants it, is more: the attempt is opened as of when the request began, and settled, in one commit (`commit_answers`).
Where the receiver has opened it meanwhile, its own settlement counts and nothing is left to do.

What the store could not be told is told by a later step, and may be told twice. Should the process die before that, the
try's lease ends and the message is sent again.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from rota.delivery.outcome import Accepted, Completed, Failed, Outcome, Rejected
from rota.delivery.sends import Send
from rota.domain.delivery import Delivery, DeliveryEnd, DeliveryState, failed, sent
from rota.domain.run import AttemptOutcome
from rota.domain.settlement import AttemptEnd, settle_attempt
from rota.store.port import Answer, DeliveryStore, OfAttempt, TakenDelivery, WorkStore
from rota.telemetry import get_logger

log = get_logger("delivery")


class SettlingStore(DeliveryStore, WorkStore, Protocol):
    """What settling needs of a store."""


class Settling:
    """One thread uses it."""

    def __init__(self, store: SettlingStore, *, name: str) -> None:
        """`name` is the worker of the attempts that are opened."""
        self._store = store
        self._name = name
        self._answers: list[Answer] = []
        self._ends: list[DeliveryEnd] = []

    @property
    def is_empty(self) -> bool:
        return not (self._answers or self._ends)

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
                becomes = sent(delivery, policy, now=now)
                if becomes.error is None:
                    logger.info("delivery.sent")
                else:
                    logger.warning("delivery.sent_again", problem=becomes.error)
                self._end(send.taken, becomes)
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
                    logger.warning("delivery.failed", problem=error, next_at=str(becomes.next_at))
                self._end(send.taken, becomes)
            case Completed(result=result):
                logger.info("delivery.completed")
                end = AttemptEnd(outcome=AttemptOutcome.SUCCEEDED, result=result)
                self._answer(send, end, now=now)
            case Rejected(error=error):
                logger.warning("delivery.rejected", problem=error)
                end = AttemptEnd(outcome=AttemptOutcome.FAILED, error=error, retryable=False)
                self._answer(send, end, now=now)

    def give_back(self, taken: TakenDelivery) -> None:
        """For a delivery whose job's runs are not sent any more: it becomes an intent for the job's workers."""
        log.info("delivery.given_back", run_id=taken.delivery.run_id, job=taken.job.name)
        self._end(taken, None)

    def commit(self, *, now: datetime) -> None:
        """Tells the store everything. Raises what that raises; what was not told is kept."""
        while self._answers:
            answers = self._answers[: self._store.elements_max]
            were_current = self._store.commit_answers(self._name, answers)
            del self._answers[: len(answers)]
            _log_stale(answers, were_current)
        while self._ends:
            ends = self._ends[: self._store.elements_max]
            were_current = self._store.commit_delivery_ends(ends, now=now)
            del self._ends[: len(ends)]
            _log_stale(ends, were_current)

    def _answer(self, send: Send, end: AttemptEnd, *, now: datetime) -> None:
        taken = send.taken
        settlement = settle_attempt(
            run_id=taken.delivery.run_id,
            attempt=taken.delivery.attempt,
            end=end,
            retry=taken.job.retry,
            # A run that is cancelled before its attempt is open has ended, and the answer is stale.
            cancel_requested=False,
            now=now,
        )
        self._answers.append(
            Answer(
                run_id=settlement.run_id,
                attempt=settlement.attempt,
                opened_at=min(send.began, now),
                settlement=settlement,
            )
        )

    def _end(self, taken: TakenDelivery, becomes: Delivery | None) -> None:
        delivery = taken.delivery
        end = DeliveryEnd(
            run_id=delivery.run_id, attempt=delivery.attempt, tries=delivery.tries, becomes=becomes
        )
        self._ends.append(end)


def _log_stale(told: Sequence[OfAttempt], answers: Sequence[bool]) -> None:
    """What came too late: its attempt was opened or settled, its run cancelled, or another try has begun."""
    for each, was_current in zip(told, answers, strict=True):
        if not was_current:
            log.info("delivery.stale", run_id=each.run_id, attempt=each.attempt)
