"""Deliveries of a memory store: what a relay takes, sends and ends."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from rota.domain.audit import AuditEvent
from rota.domain.delivery import IN_HAND, Delivery, DeliveryEnd, DeliveryState, first_taken, redriven, taken
from rota.domain.identity import RunId
from rota.domain.run import RunState
from rota.store.memory.tables import intent_of
from rota.store.memory.work import MemoryWork
from rota.store.port import DeliveryFilter, Intent, Notice, TakenDelivery, Wanted


class MemoryDeliveries(MemoryWork):
    def commit_takes(
        self,
        wanted: Sequence[Wanted],
        *,
        now: datetime,
        lease: timedelta,
        limit: int,
        intents_first: bool = False,
        backlog_first: bool = False,
    ) -> list[TakenDelivery]:
        with self._lock:
            self._check_count(range(limit))
            until = now + lease

            def take_again(wanted: Sequence[Wanted], limit: int) -> list[Delivery]:
                return self._take_again(wanted, now=now, until=until, limit=limit)

            def take_intents(wanted: Sequence[Wanted], limit: int) -> list[Delivery]:
                sent = [each for each in wanted if not self._is_fetched(each.job)]
                intents = self._choose(sent, now=now, limit=limit, backlog_first=backlog_first)
                begun = [self._begin(intent, now=now, until=until) for intent in intents]
                return [delivery for delivery in begun if delivery is not None]

            take, then_take = (take_intents, take_again) if intents_first else (take_again, take_intents)
            first = take(wanted, limit)
            second = then_take(_left(wanted, first), limit - len(first))
            taken = [self._taken(delivery, now=now) for delivery in [*first, *second]]
            return [each for each in taken if each is not None]

    def commit_delivery_ends(self, ends: Sequence[DeliveryEnd], *, now: datetime) -> list[bool]:
        with self._lock:
            self._check_count(ends)
            return [self._end(end, now=now) for end in ends]

    def read_next_delivery_time(self, jobs: Sequence[str]) -> datetime | None:
        with self._lock:
            times = [
                delivery.next_at
                for delivery in self._deliveries.values()
                if delivery.job in jobs
                and delivery.next_at is not None
                and (delivery.state in IN_HAND or self._has_place(delivery.job))
            ]
            intent_at = self._next_intent_time(
                job for job in jobs if not self._is_fetched(job) and self._has_place(job)
            )
            return min(times if intent_at is None else [*times, intent_at], default=None)

    def list_deliveries(self, filter_: DeliveryFilter, *, after: RunId | None, limit: int) -> list[Delivery]:
        with self._lock:
            matching = [
                delivery
                for run_id, delivery in sorted(self._deliveries.items())
                if (after is None or run_id > after) and _matches(delivery, filter_)
            ]
            return matching[:limit]

    def commit_redrive(self, run_id: RunId, *, event: AuditEvent, now: datetime) -> Delivery | None:
        with self._lock:
            delivery = self._deliveries.get(run_id)
            if delivery is None or delivery.state is not DeliveryState.DEAD:
                return delivery
            changed = redriven(delivery, now=now)
            self._deliveries[run_id] = changed
            self._write_audit(event)
            self._lock.note(Notice.QUEUED)
            return changed

    def _take_again(
        self, wanted: Sequence[Wanted], *, now: datetime, until: datetime, limit: int
    ) -> list[Delivery]:
        """Takes deliveries whose time has come; one that is in hand already takes no further place of its job."""
        limits = {each.job: limit if each.limit is None else each.limit for each in wanted}
        due = [
            (delivery.next_at, run_id, delivery)
            for run_id, delivery in self._deliveries.items()
            if delivery.job in limits and delivery.next_at is not None and delivery.next_at <= now
        ]
        found: list[Delivery] = []
        for _, run_id, delivery in sorted(due, key=lambda entry: entry[:2]):
            is_free = delivery.state in IN_HAND or self._free_of(Wanted(job=delivery.job), 1) > 0
            if len(found) < limit and limits[delivery.job] > 0 and is_free:
                limits[delivery.job] -= 1
                found.append(taken(delivery, until=until, now=now))
                self._deliveries[run_id] = found[-1]
        return found

    def _begin(self, intent: Intent, *, now: datetime, until: datetime) -> Delivery | None:
        """The delivery that an intent becomes; None where its run no longer waits for it."""
        del self._outbox[intent.run_id]
        run = self._runs.get(intent.run_id)
        if run is None or run.state is not RunState.QUEUED or run.attempt != intent.attempt - 1:
            return None
        self._deliveries[intent.run_id] = first_taken(
            run_id=run.run_id,
            attempt=intent.attempt,
            schedule_id=run.schedule_id,
            job=run.job,
            until=until,
            now=now,
        )
        return self._deliveries[intent.run_id]

    def _taken(self, delivery: Delivery, *, now: datetime) -> TakenDelivery | None:
        run = self._runs[delivery.run_id]
        version = self._versions.get((run.schedule_id, run.version))
        if version is None:
            self._fail(run, f"its version {run.version} does not exist", now=now)
            return None
        return TakenDelivery(delivery=delivery, run=run, version=version, job=self._job_or_default(run.job))

    def _end(self, end: DeliveryEnd, *, now: datetime) -> bool:
        delivery = self._deliveries.get(end.run_id)
        if (
            delivery is None
            or delivery.attempt != end.attempt
            or delivery.tries != end.tries
            or delivery.state is not DeliveryState.SENDING
        ):
            return False
        if end.becomes is not None:
            self._deliveries[end.run_id] = end.becomes
        else:
            del self._deliveries[end.run_id]
            self._outbox[end.run_id] = intent_of(self._runs[end.run_id])
        if end.becomes is None or end.becomes.state not in IN_HAND:
            self._lock.note(Notice.QUEUED)
        if end.becomes is not None and end.becomes.state is DeliveryState.DEAD:
            self._free_place(self._runs[end.run_id], now=now)
        return True


def _left(wanted: Sequence[Wanted], taken: Sequence[Delivery]) -> list[Wanted]:
    """What is still wanted beside these."""
    counts = Counter(delivery.job for delivery in taken)
    return [
        each if each.limit is None else replace(each, limit=each.limit - counts[each.job]) for each in wanted
    ]


def _matches(delivery: Delivery, filter_: DeliveryFilter) -> bool:
    return (
        (filter_.state is None or delivery.state is filter_.state)
        and (filter_.job is None or delivery.job == filter_.job)
        and (filter_.schedule_id is None or delivery.schedule_id == filter_.schedule_id)
    )
